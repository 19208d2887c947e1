"""The codec of blocks of updates, for Spark's shuffles and for files that appear atomically by rename.

A *record* is what a block, or some dictionary entries, contribute to one *place* (partition number or hash bucket).
Spark moves records as opaque bytes: passing each row of words as a Spark row between Java and Python would cost more
than all the work done on it. A file holds the traces of one part of a fragment, or updates: a slice of a source's or of
a step's, or a view's own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import numpy as np
import pyarrow as pa

from ivm.distinct import distinct
from ivm.errors import SqlError
from ivm.rows import Words
from ivm.trace.batch import Block
from storage.dictionary import Dictionary, Entries

ENTRIES: Final = -1
"""The port of dictionary entries."""
RECORDS: Final = pa.schema([("place", pa.int64()), ("port", pa.int32()), ("data", pa.binary())])
RECORDS_DDL: Final = "place long, port int, data binary"
_FILE: Final = pa.schema([("trace", pa.int32()), ("data", pa.large_binary())])
_HEAD: Final = 4
_TIMES: Final = 1
_DIFFS: Final = 2


def encoded_words(block: Block) -> int:
    """The maximum number of words that ``encode_into`` writes."""
    return _HEAD + block.n * (block.width + 1 + block.diff_width)


def encode_into(block: Block, target: Words) -> int:
    """Encodes a block into ``target``, which must have room; returns the number of words written. All-zero times and
    all-one diffs take no space."""
    rows, times, diffs = block.arrays()
    flags = (_TIMES if times.any() else 0) | (_DIFFS if not (diffs == 1).all() else 0)
    target[:_HEAD] = block.n, block.width, block.diff_width, flags
    at = _HEAD
    for part in (rows, *((times,) if flags & _TIMES else ()), *((diffs,) if flags & _DIFFS else ())):
        target[at : at + part.size].reshape(part.shape)[:] = part
        at += part.size
    return at


def encode_block(block: Block) -> bytes:
    """Encodes a block."""
    words = np.empty(encoded_words(block), np.int64)
    return words[: encode_into(block, words)].tobytes()


def encode_cells(blocks: Sequence[Block]) -> pa.BinaryArray:
    """One binary cell per block, built in Arrow's own layout, so that nothing is copied twice."""
    words = np.empty(sum(map(encoded_words, blocks)), np.int64)
    ends = np.zeros(len(blocks) + 1, np.int32)
    for i, block in enumerate(blocks):
        start = ends[i] // 8
        ends[i + 1] = 8 * (start + encode_into(block, words[start:]))
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(words)]
    return pa.Array.from_buffers(pa.binary(), len(blocks), buffers)


def decode_block(data: bytes | memoryview) -> Block:
    """The inverse of ``encode_block``. The arrays are copies."""
    block = view_block(data)
    return Block.of(*(array.copy() for array in block.arrays()))


def view_block(data: bytes | memoryview) -> Block:
    """The inverse of ``encode_block`` without a copy. Do not write to the arrays or pass them to a kernel."""
    words = np.frombuffer(data, np.int64)
    n, width, diff_width, flags = words[:_HEAD].tolist()
    at = _HEAD + n * width
    rows = words[_HEAD:at].reshape(n, width)
    times, diffs = np.zeros(n, np.int64), np.ones((n, diff_width), np.int64)
    if flags & _TIMES:
        times = words[at : at + n]
        at += n
    if flags & _DIFFS:
        diffs = words[at : at + n * diff_width].reshape(n, diff_width)
    return Block.of(rows, times, diffs)


def encode_entries(entries: Entries) -> bytes:
    """Encodes dictionary entries."""
    ids, data, offsets = entries
    head = np.array([len(ids)], np.int64)
    return b"".join([head.tobytes(), np.ascontiguousarray(ids).tobytes(),
                     np.ascontiguousarray(offsets - offsets[0]).tobytes(),
                     data[offsets[0] : offsets[-1]].tobytes()])  # fmt: skip


def decode_entries(data: bytes | memoryview) -> Entries:
    """The inverse of ``encode_entries``."""
    count = int(np.frombuffer(data, np.int64, 1)[0])
    words = np.frombuffer(data, np.int64, 2 * count + 2).copy()
    return words[1 : 1 + count], np.frombuffer(data, np.uint8, -1, 8 * len(words)).copy(), words[1 + count :]


def entries_of(blocks: Sequence[Block], dictionary: Dictionary) -> Entries | None:
    """The entries of all ids among the blocks' words, None if there are none. Integers that happen to equal an id add
    that id's entry, which is harmless."""
    if not len(dictionary):
        return None
    words = distinct(np.concatenate([np.zeros(0, np.int64), *(b.rows[: b.n].reshape(-1) for b in blocks)]))
    words = words[(words & 1) == 1]  # ids are odd
    ids = words[dictionary.living(words)]
    return (ids, *dictionary.packed(ids)) if len(ids) else None


def pieces(block: Block, record_bytes: int) -> Iterator[Block]:
    """The block, cut to fit records of this many bytes."""
    rows, times, diffs = block.arrays()
    most = max(record_bytes // (8 * (block.width + 1 + block.diff_width)), 1)
    for start in range(0, block.n, most):
        yield Block.of(rows[start : start + most], times[start : start + most], diffs[start : start + most])


def joined(blocks: Sequence[Block]) -> Block:
    """Concatenates blocks of one layout, copying their arrays."""
    rows, times, diffs = zip(*(block.arrays() for block in blocks), strict=True)
    return Block.of(np.concatenate(rows), np.concatenate(times), np.concatenate(diffs))


def records(found: Sequence[tuple[int, int, bytes]]) -> pa.RecordBatch:
    """(place, port, bytes) as an Arrow batch for Spark."""
    places, ports, data = zip(*found, strict=True) if found else ((), (), ())
    return pa.RecordBatch.from_arrays(
        [pa.array(places, pa.int64()), pa.array(ports, pa.int32()), pa.array(data, pa.binary())], schema=RECORDS
    )


def write_blocks(path: Path, blocks: Sequence[Block], entries: Entries | None = None, durable: bool = True) -> int:
    """Atomically writes a file with one block per trace; returns its size in bytes. Idempotent: a retried task writes
    the same file again. ``durable``: fsync it."""
    rows: list[tuple[int, Any]] = [(number, _encoded(block)) for number, block in enumerate(blocks)]
    if entries is not None:
        rows.append((ENTRIES, pa.py_buffer(encode_entries(entries))))
    unfinished = path.with_name(f"{path.name}.{uuid4().hex}.part")
    unfinished.parent.mkdir(parents=True, exist_ok=True)
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with unfinished.open("wb") as file:
        with pa.ipc.new_file(file, _FILE, options=options) as writer:
            for number, data in rows:
                ends = pa.py_buffer(np.array([0, data.size], np.int64))
                cell = pa.Array.from_buffers(pa.large_binary(), 1, [None, ends, data])
                writer.write_batch(pa.record_batch([pa.array([number], pa.int32()), cell], schema=_FILE))
        if durable:
            file.flush()
            os.fsync(file.fileno())
    size = unfinished.stat().st_size
    unfinished.replace(path)
    return size


def _encoded(block: Block) -> Any:
    words = np.empty(encoded_words(block), np.int64)
    return pa.py_buffer(words[: encode_into(block, words)])


def read_blocks(path: Path, take: Callable[[Entries], object]) -> list[Block]:
    """A file's blocks, by trace. ``take`` receives the file's entries; it is called before the blocks are returned."""
    blocks: list[Block] = []
    for number, data in _contents(path):
        if number == ENTRIES:
            take(decode_entries(data))
        else:
            blocks.append(decode_block(data))
    return blocks


def read_block(path: Path) -> Block:
    """The block of a file that has exactly one, and no entries."""
    ((_, data),) = _contents(path)
    return decode_block(data)


def load_into(dictionary: Dictionary) -> Callable[[Entries], object]:
    """A callback that loads entries into a task's own dictionary."""
    return lambda entries: dictionary.load(*entries)


def take_into(dictionary: Dictionary) -> Callable[[Entries], object]:
    """A callback that interns entries in the server's dictionary. IdsClashError: a value has another id there."""

    def take(entries: Entries) -> None:
        ids, data, offsets = entries
        if (dictionary.intern_packed(data, offsets) != ids).any():
            raise IdsClashError

    return take


class IdsClashError(SqlError):
    """XX000: an id that an executor gave to a value belongs to another value: once in 2^63 pairs."""

    def __init__(self) -> None:
        super().__init__("XX000", "an executor has given a value an id that another value has")


def _contents(path: Path) -> Iterator[tuple[int, memoryview]]:
    with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
        for i in range(reader.num_record_batches):
            batch = reader.get_batch(i)
            yield batch.column(0)[0].as_py(), memoryview(batch.column(1)[0].as_buffer())
