"""What Spark's executors run for a load: first source batches → records by hash, then records of the same hash → runs.

It depends on Arrow only. Spark calls it through ``mapInArrow`` and shuffles the records between the two halves as
opaque bytes: passing each row as a Spark row between Java and Python would cost more than all the work done on it.
Executors need this package with the same Python and numpy.

A *record* is what a chunk of the source contributes to one *place* (hash bucket): rows, or dictionary entries whose ids
belong there, or rejected rows. A row's place is given by its hash, so that equal rows meet. Runs and entries become
files in a folder shared with the server. Only files named in the reports of successful tasks count.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import numpy as np
import pyarrow as pa

from ivm.distinct import distinct
from ivm.errors import SqlError
from ivm.rows import Words, pack
from ivm.trace.batch import Block
from storage.dictionary import Dictionary
from storage.load.columns import LoadColumn, load_schema
from storage.load.progress import tell_read
from storage.load.rejects import Reject, Rejects, TooManyRejects
from storage.load.source import ColumnBlock, SourceDecode
from storage.sorted_rows import Run, sorted_run
from storage.spark.blocks import decode_entries, encode_block, encode_entries, records, view_block
from storage.spark.errors import marked

ROWS: Final = 0
ENTRIES: Final = 1
REJECTS: Final = 2
CHUNK_ROWS: Final = 1 << 18
"""Rows whose records are built at a time."""
RUN_ROWS: Final = 1 << 20
"""The maximum number of rows in a run; a task holds a few times as much."""

Batches = Iterable[pa.RecordBatch]
TaskFunction = Callable[[Batches], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class Encoding:
    """How rows are encoded. ``id_bits``: see ``Dictionary``. ``places``: the number of hash buckets. ``most``: how many
    rows a load may reject, None if the first bad row is an error. ``folder``: where tasks report how much they have
    read (``storage.load.progress``)."""

    columns: tuple[LoadColumn, ...]
    secret: bytes
    places: int
    id_bits: int = 63
    most: int | None = None
    folder: str | None = None


@dataclass(frozen=True, slots=True)
class FileReport:
    """A task's report of one file: its number of ``rows``, or of entries. ``clash``: one id stands for two values.

    ``rejects`` belong to no file.
    """

    name: str = ""
    rows: int = 0
    counted: bool = False
    entries: int = 0
    clash: bool = False
    rejects: tuple[Reject, ...] = ()


def partitioner(encoding: Encoding, decode: SourceDecode) -> TaskFunction:
    """The first half: batches of a source → records (``storage.spark.blocks``). A task stops when it has more rejects
    than the load allows. The first ones of each task suffice for the driver to find the load's first."""

    def partition(batches: Batches) -> Iterator[pa.RecordBatch]:
        dictionary = Dictionary(encoding.secret, id_bits=encoding.id_bits)
        rejects = None if encoding.most is None else Rejects("", encoding.most)
        read = 0
        for rows in _chunks(marking_errors(decode(batches, dictionary, rejects)), encoding.columns):
            found = list(_row_records(rows, encoding.places))
            for entries in dictionary.drain_new():
                found += _entry_records(*entries, encoding.places)
            read += len(rows)
            if encoding.folder is not None:
                tell_read(encoding.folder, read)
            yield records(found)
        if rejects is not None and rejects.found:
            yield records([(0, REJECTS, json.dumps(rejects.found, ensure_ascii=False).encode())])

    return partition


def marking_errors(blocks: Iterator[ColumnBlock]) -> Iterator[ColumnBlock]:
    """Passes blocks through, marking errors so that the driver recognises them."""
    try:
        yield from blocks
    except TooManyRejects:  # the driver will report it
        return
    except SqlError as error:
        raise marked(error) from error


def _chunks(blocks: Iterator[ColumnBlock], columns: Sequence[LoadColumn]) -> Iterator[Words]:
    schema = load_schema(columns)
    held: list[Words] = []
    for vectors, count in blocks:
        held.append(pack(vectors, schema, count))
        if sum(map(len, held)) >= CHUNK_ROWS:
            yield np.concatenate(held)
            held.clear()
    if held:
        yield np.concatenate(held)


def _row_records(rows: Words, places: int) -> Iterator[tuple[int, int, bytes]]:
    place = (_hash(rows) % np.uint64(places)).astype(np.uint16 if places <= 1 << 16 else np.int64)
    order = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[order], np.arange(places + 1))
    rows = np.take(rows, order, axis=0)
    for k in range(places):
        some = rows[ends[k] : ends[k + 1]]
        if len(some):
            yield k, ROWS, encode_block(Block.of(some, np.zeros(len(some), np.int64), np.ones(len(some), np.int64)))


def _hash(rows: Words) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Multiply and rotate, word by word, as FxHash does; then moves the high bits, which are the best, down."""
    found = np.zeros(len(rows), np.uint64)
    for i in range(rows.shape[1]):
        turned = (found << np.uint64(5)) | (found >> np.uint64(59))
        found = (turned ^ rows[:, i].view(np.uint64)) * np.uint64(0x517CC1B727220A95)
    return found >> np.uint64(20)


def _entry_records(
    ids: Words, data: np.ndarray[tuple[int], np.dtype[np.uint8]], offsets: Words, places: int
) -> Iterator[tuple[int, int, bytes]]:
    place = (ids >> 1) % places  # ids are odd
    lengths = np.diff(offsets)
    for k in distinct(place).tolist():
        chosen = np.flatnonzero(place == k)
        ends = np.concatenate([[0], np.cumsum(lengths[chosen])]).astype(np.int64)
        picked = np.repeat(offsets[:-1][chosen] - ends[:-1], lengths[chosen]) + np.arange(ends[-1])
        yield int(k), ENTRIES, encode_entries((ids[chosen], data[picked], ends))


def sorter(folder: str) -> TaskFunction:
    """The second half: the records of some places → files of runs and entries, and a report of each (JSON, column
    ``data``)."""

    def sort(batches: Batches) -> Iterator[pa.RecordBatch]:
        held: list[Words] = []
        entries: list[pa.Table] = []
        for port, data in _opened(batches):
            if port == ROWS:
                held.append(view_block(data).rows)
                if sum(map(len, held)) >= RUN_ROWS:
                    yield _report_batch(_write_run(held, Path(folder)))
                    held = []
            elif port == ENTRIES:
                entries.append(_entry_table(data))
            else:
                yield _report_batch(FileReport(rejects=tuple(Reject(*reject) for reject in json.loads(bytes(data)))))
        if held:
            yield _report_batch(_write_run(held, Path(folder)))
        if entries:
            yield _report_batch(_write_entries(entries, Path(folder)))

    return sort


def _opened(batches: Batches) -> Iterator[tuple[int, memoryview]]:
    for batch in batches:
        data = batch.column("data")
        for i, port in enumerate(batch.column("port").to_pylist()):
            yield port, memoryview(data[i].as_buffer())


def _write_run(parts: Sequence[Words], folder: Path) -> FileReport:
    run = sorted_run(np.concatenate(parts))
    path = folder / f"{uuid4().hex}.run"
    with path.open("xb") as file:
        file.write(np.ascontiguousarray(run.rows).reshape(-1).view(np.uint8).data)
        if run.counts is not None:
            file.write(run.counts.tobytes())
    return FileReport(path.name, len(run.rows), run.counts is not None)


def read_run(folder: Path, report: FileReport, width: int) -> Run:
    """A memory-mapped run, which stays readable after its file is removed."""
    words = np.memmap(folder / report.name, np.int64, "c") if width or report.counted else np.zeros(0, np.int64)
    at = report.rows * width
    rows = np.asarray(words[:at]).reshape(report.rows, width)
    return Run(rows, np.asarray(words[at:]) if report.counted else None)


def _entry_table(data: memoryview) -> pa.Table:
    ids, content, offsets = decode_entries(data)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    return pa.table({"id": ids, "value": pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(ids), buffers)})


def _write_entries(tables: Sequence[pa.Table], folder: Path) -> FileReport:
    distinct = pa.concat_tables(tables).group_by(["id", "value"]).aggregate([]).sort_by("id")
    ids = distinct.column("id").to_numpy()
    path = folder / f"{uuid4().hex}.entries"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, distinct.schema) as writer:
        writer.write_table(distinct, max_chunksize=CHUNK_ROWS)
    return FileReport(path.name, entries=len(ids), clash=bool((ids[1:] == ids[:-1]).any()))


def read_entries(folder: Path, report: FileReport) -> Iterator[pa.RecordBatch]:
    """Entries in batches, with the columns id and value."""
    with pa.OSFile(str(folder / report.name)) as file, pa.ipc.open_file(file) as reader:
        for i in range(reader.num_record_batches):
            yield reader.get_batch(i)


def _report_batch(report: FileReport) -> pa.RecordBatch:
    return pa.record_batch([pa.array([json.dumps(asdict(report), ensure_ascii=False)])], ["data"])


def reports_of(texts: Iterable[Any]) -> list[FileReport]:
    """The reports of a job's tasks. Each task counts once, however often it was tried."""
    found = [json.loads(text) for text in texts]
    return [
        FileReport(**(report | {"rejects": tuple(Reject(*reject) for reject in report["rejects"])})) for report in found
    ]
