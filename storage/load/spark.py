"""Loads that Spark reads and encodes, which come back as sorted runs in Parquet files.

Executors turn rows into words (``storage.load.executor``), Spark partitions them by their hash and sorts each part, and
writes rows and dictionary entries to a folder that it shares with the server. The driver, this process, never holds a
row of the source. The server then takes the entries, giving a value its id (nearly always the one the executors
proposed, else it remaps the rows), and reads the runs. Only the DataFrame API is used, so that ``local[*]``,
``spark://`` and ``sc://`` are interchangeable.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow.parquet as pq

from ivm.errors import SqlError
from ivm.words import row_width
from storage.cancel import Cancel
from storage.dictionary import Dictionary
from storage.load.columns import LoadColumn, LoadedRows, load_schema
from storage.load.entries import Remap, replace_ids, take_entries
from storage.load.executor import ENTRY, REJECT, ROW, encoder, rejecting_encoder, rejects_of, stream_width
from storage.load.rejects import Rejects
from storage.load.source import Source, SourceDecode, read_here
from storage.spark.errors import spark_error
from storage.spark.session import SparkSession, tagged

_ROWS_PER_PART: Final = 1_000_000


def read_with_spark(
    spark: SparkSession, source: Source, dictionary: Dictionary, *, id_bits: int = 63, cancel: Cancel | None = None,
    rejects: Rejects | None = None,
) -> Iterator[LoadedRows]:  # fmt: skip
    """As ``read_here``, by Spark: sorted runs of distinct rows with how often they occur. Equal in content.

    Files' paths are checked before (``storage.load.paths``). ``id_bits``: see ``Dictionary``. ``cancel``: stops Spark's
    jobs too. Raises what ``read_here`` raises, 58000 where Spark is missing or fails, 57014.
    """
    count = source.check()
    scratch = Path(tempfile.mkdtemp(prefix="freshet-spark-", dir=spark.settings.shared))
    try:
        with spark as session, tagged(session, scratch.name, cancel or Cancel()):
            stream = _encoded(session, source, dictionary.secret, id_bits, None if rejects is None else rejects.most)
            parts = None if count is None else max(1, -(-count // _ROWS_PER_PART))
            _write_runs(stream, source.columns, parts, out=scratch / "out")
        columns = ["w0", "value"]
        entries = (pq.read_table(path, columns=columns, partitioning=None) for path in _files(scratch / "out", ENTRY))
        remap = take_entries(entries, dictionary)
        if (
            remap is None
        ):  # ids clash among executors (once in 2^63 pairs): only a single dictionary can tell them apart
            yield from read_here(source, dictionary, rejects)
        else:
            if rejects is not None:
                _take_rejects(scratch / "out", rejects)
            yield from _runs(scratch / "out", source.columns, remap)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _encoded(session: Any, source: Source, secret: bytes, id_bits: int, most: int | None) -> Any:
    """The frame of rows as words and of entries (``storage.load.executor``)."""
    words = "".join(f"w{i} long, " for i in range(stream_width(source.columns)))
    schema = f"part int, place long, diff long, {words}value binary"
    try:
        encoded = [
            frame.mapInArrow(_encoder(source, decode, secret, id_bits, most), schema)
            for frame, decode in source.frames(session, most is not None)
        ]
        return reduce(lambda one, other: one.unionAll(other), encoded)
    except SqlError:
        raise
    except Exception as error:
        raise spark_error(error) from error


def _encoder(source: Source, decode: SourceDecode, secret: bytes, id_bits: int, most: int | None) -> Any:
    columns = tuple(source.columns)
    if most is None:
        return encoder(columns, decode, secret, id_bits)
    return rejecting_encoder(columns, decode, secret, id_bits, most)


def _write_runs(stream: Any, columns: Sequence[LoadColumn], parts: int | None, out: Path) -> None:
    """Partitions, consolidates, sorts, writes: folders part=0 (rows), part=1 (entries) and part=2 (rejects), a run for
    each file.

    ``parts`` None: as many as Spark finds good when it sees how much there is.
    Entries are grouped by their value too, so that one id proposed for two values stays to be seen.
    """
    words = [f"w{i}" for i in range(stream_width(columns))]
    try:
        by_place = stream.repartition("place") if parts is None else stream.repartition(parts, "place")
        placed = by_place.groupBy("part", "place", *words, "value").sum("diff")
        runs = placed.withColumnRenamed("sum(diff)", "diff").sortWithinPartitions("part", *words)
        runs.drop("place").write.partitionBy("part").parquet(out.as_uri())
    except Exception as error:
        raise spark_error(error) from error


def _take_rejects(out: Path, rejects: Rejects) -> None:
    columns = ["diff", "value"]
    tables = (pq.read_table(path, columns=columns, partitioning=None) for path in _files(out, REJECT))
    rejects.take([reject for table in tables for reject in rejects_of(table)])


def _files(out: Path, part: int) -> list[Path]:
    return sorted((out / f"part={part}").glob("*.parquet"))


def _runs(out: Path, columns: Sequence[LoadColumn], remap: Remap) -> Iterator[LoadedRows]:
    width = row_width(load_schema(columns))
    names = [f"w{i}" for i in range(width)]
    for path in _files(out, ROW):
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(1 << 17, columns=[*names, "diff"]):
                rows = np.empty((batch.num_rows, width), np.int64)
                for i, name in enumerate(names):
                    rows[:, i] = batch.column(name).to_numpy()
                replace_ids(rows, columns, remap)
                yield LoadedRows(rows, np.asarray(batch.column("diff").to_numpy(), np.int64))
