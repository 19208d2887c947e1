"""Line-based files by Spark: its text reader splits them at newlines, and our own parsers do the rest on the executors.

Spark cuts a long file into splits. The meaning of a split's bytes depends on where it begins, how many lines precede it
and whether a quote is open. So a first job, in Java alone, counts the lines and quotes of every split. A file is parsed
by one task, its lines in order, if some split begins inside a quote, or if only the parser can tell rows apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ivm.errors import SqlError
from storage.dictionary import Dictionary
from storage.load.columns import LoadColumn
from storage.load.partitions import partition_keys
from storage.load.paths import local_path, spark_path
from storage.load.rejects import Rejects
from storage.load.source import ColumnBlock, SourceDecode
from storage.load.text import TextColumns, TextFiles, TextFormat, TextStart, last_newline
from storage.spark.session import functions


class Split(NamedTuple):
    """What the first job reports of a split. ``quoted``: it has an odd number of quotes. ``returns``: the number of
    lines ending in \\r; ``inner``: of lines with a \\r elsewhere; ``markers``: of lines ``\\.``. ``first``: its first
    line."""

    path: str
    at: int
    lines: int
    quoted: bool
    returns: int
    inner: int
    markers: int
    first: bytes


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a file that is parsed independently: its number of ``lines``; ``ends`` if it is the file's last
    part."""

    start: TextStart
    lines: int
    ends: bool
    only_returns: bool


@dataclass(frozen=True, slots=True)
class TextDecoder:
    """Batches of lines (value binary, path text, at int64) → words. ``parts``: by path and the offset where the split
    begins; for files parsed ``whole``, by path and 0."""

    columns: TextColumns
    format: TextFormat
    parts: Mapping[tuple[str, int], _Part]
    whole: bool = False

    def __call__(
        self, batches: Iterable[pa.RecordBatch], dictionary: Dictionary, rejects: Rejects | None = None
    ) -> Iterator[ColumnBlock]:
        runs = (run for batch in batches for run in self._runs(batch))
        for key, values in groupby(runs, key=lambda run: run[0]):
            part = self.parts.get(key)
            if part is None:
                raise _changed(key[0])
            if rejects is not None:
                rejects.file = local_path(key[0])
            parser = self.format.parser(part.start, dictionary, rejects)
            pieces = _pieces((lines for _, lines in values), part, key[0])
            yield from self.columns.blocks(parser, part.start.fields, pieces, local_path(key[0]), dictionary)

    def _runs(self, batch: pa.RecordBatch) -> Iterator[tuple[tuple[str, int], pa.Array]]:
        """The batch, cut where another split begins."""
        value, path, at = batch.columns
        files = path.dictionary_encode()
        numbers, starts = files.indices.to_numpy(), at.to_numpy()
        changes = (np.diff(numbers) != 0) | ((np.diff(starts) != 0) & (not self.whole))
        bounds = [0, *(np.flatnonzero(changes) + 1).tolist(), batch.num_rows] if batch.num_rows else [0]
        for begin, end in pairwise(bounds):
            key = (files.dictionary[int(numbers[begin])].as_py(), 0 if self.whole else int(starts[begin]))
            yield key, value.slice(begin, end - begin)


def _pieces(batches: Iterable[pa.Array], part: _Part, path: str) -> Iterator[bytes]:
    """Chunks of lines with their newlines. The file's last newline is as ``last_newline`` has it."""
    count, held, last = 0, None, b""
    for lines in batches:
        if held is not None:
            yield held + b"\n"
        count, last = count + len(lines), lines[len(lines) - 1].as_py()
        held = joined(lines)
    if count != part.lines:
        raise _changed(path)
    if held is not None:
        yield held + (last_newline(last, part.only_returns) if part.ends else b"\n")


def joined(lines: pa.Array) -> bytes:
    """Lines, at least one, joined by newlines."""
    row = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    found: bytes = pc.binary_join(row, pa.scalar(b"\n"))[0].as_py()
    return found


def _changed(path: str) -> SqlError:
    return SqlError("58000", f'"{local_path(path)}" changed while it was read', hint="Run the statement again.")


def frames(session: Any, source: TextFiles) -> Sequence[tuple[Any, SourceDecode]]:
    """The frames of a source of text: one of the files that are split, one of those that are not."""
    remote = source.remote
    lines = _lines(session, [spark_path(path) for path in source.files] if remote is None else [remote.uri])
    splits = find_splits(lines, source.format.quote or '"')
    if remote is not None:
        keys = partition_keys([remote.below(local_path(split.path)) for split in splits])
        source = replace(source, partitions=replace(source.partitions, keys=keys))
    decoders = planned(splits, source)
    chosen: list[tuple[Any, SourceDecode]] = []
    for decode in decoders:
        paths = sorted({path for path, _ in decode.parts})
        frame = lines.where(lines["path"].isin(*paths)) if len(decoders) > 1 else lines
        chosen.append((_in_order(frame, len(paths)) if decode.whole else frame, decode))
    return chosen


def planned(splits: Sequence[Split], source: TextFiles) -> list[TextDecoder]:
    """One or two decoders: of the files that are split, and of those that are parsed whole."""
    columns = TextColumns(source.columns, source.partitions)
    parts: dict[bool, dict[tuple[str, int], _Part]] = {False: {}, True: {}}
    for _, of_file in groupby(splits, key=lambda split: split.path):
        listed = list(of_file)
        whole = _is_whole(listed, source.format)
        parts[whole].update(_parts(listed, whole, source, columns.of_file))
    kinds = [whole for whole in parts if parts[whole]] or [False]
    return [TextDecoder(columns, source.format, parts[whole], whole) for whole in kinds]


def _lines(session: Any, paths: Sequence[str]) -> Any:
    f = functions()
    text = session.read.option("lineSep", "\n").text(list(paths))
    path, at = text["_metadata.file_path"], text["_metadata.file_block_start"]
    return text.select(f.col("value").cast("binary").alias("value"), path.alias("path"), at.alias("at"))


def find_splits(lines: Any, quote: str) -> list[Split]:
    """The splits of a frame of lines, sorted by path and position."""
    f = functions()
    value = lines["value"]
    text = value.cast("string")

    def occurrences(of: str) -> Any:
        return f.octet_length(text) - f.octet_length(f.replace(text, f.lit(of), f.lit("")))

    returns = f.endswith(value, f.lit(b"\r")).cast("long")
    marked = value.isin(b"\\.", b"\\.\r").cast("long")
    found = lines.groupBy("path", "at").agg(
        f.count("value").alias("lines"),
        (f.sum(occurrences(quote)) % 2 == 1).alias("quoted"),
        f.sum(returns).alias("returns"),
        f.sum((occurrences("\r") > returns).cast("long")).alias("inner"),
        f.sum(marked).alias("markers"),
        f.first("value").alias("first"),
    )
    rows = [Split(*row) for row in found.collect()]
    return sorted(split._replace(first=bytes(split.first)) for split in rows)


def _is_whole(splits: Sequence[Split], format_: TextFormat) -> bool:
    """Whether one task must read the whole file, because a split's bytes alone are ambiguous."""
    if len(splits) == 1:
        return False
    if format_.quote is None:
        return False
    lines, returns = sum(s.lines for s in splits), sum(s.returns for s in splits)
    unlike = 0 < returns < lines - 1 or any(split.inner for split in splits)
    open_ = np.cumsum([split.quoted for split in splits[:-1]]) % 2
    return format_.quote == "" or unlike or any(split.markers for split in splits) or bool(open_.any())


def _parts(
    splits: Sequence[Split], whole: bool, source: TextFiles, columns: Sequence[LoadColumn]
) -> Iterator[tuple[tuple[str, int], _Part]]:
    path = splits[0].path
    name = local_path(path).rpartition("/")[2]
    fields = source.format.fields(splits[0].first, columns, name)
    total = sum(split.lines for split in splits)
    only = total == 1 and splits[0].inner > 0
    start = TextStart(source.label(name), fields)
    if whole:
        yield (path, 0), _Part(start, total, True, only)
        return
    before = 0
    returns = any(split.returns for split in splits)
    for split in splits:
        start = TextStart(source.label(name), fields, before, returns if before else None)
        before += split.lines
        yield (path, split.at), _Part(start, split.lines, before == total, only)


def _in_order(lines: Any, files: int) -> Any:
    """Each file's lines in one partition, in order."""
    f = functions()
    numbered = lines.withColumn("n", f.monotonically_increasing_id())
    return numbered.repartition(files, "path").sortWithinPartitions("path", "at", "n").drop("n")
