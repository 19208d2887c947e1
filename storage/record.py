"""The codec of log records: one commit as bytes.

Layout, little-endian. A head: magic, version, flags, epoch, number of updates, checksum of the rest. Then for each
update: the relation's id, its width in words, its number of rows, how its diffs are stored, the raw rows (row-major),
the raw diffs (none if all are equal). Then, where flagged: the dictionary's new entries (ids, lengths, bytes); the
catalog's change and what is known of loads, each preceded by its length; the positions of sequences (their number, then
each); and updates whose rows are in files (their number, then for each the relation, width, rows, checksum, length of
the file's name, the name), whose diffs are 1.
"""

from __future__ import annotations

import struct
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ivm.errors import SqlError
from ivm.rows import Words
from ivm.trace.batch import Batch
from storage.row_file import RowFile

_MAGIC: Final = b"FC"
VERSION: Final = 1
_HEAD: Final = struct.Struct("<2sBBqII")
_UPDATE: Final = struct.Struct("<qHxxxxxxQq")
_ENTRIES: Final = struct.Struct("<QQ")
_LENGTH: Final = struct.Struct("<Q")
_SEQUENCE: Final = struct.Struct("<qqq")
_FILE: Final = struct.Struct("<qHHIQ")
_ENTRIES_FLAG, _CATALOG_FLAG, _LOAD_FLAG, _SEQUENCES_FLAG, _FILES_FLAG = 1, 2, 4, 8, 16
_DIFFS_DIFFER: Final = 0
"""In place of the diff that all rows share (which is never 0)."""
_PIECE: Final = 1 << 18
_FEW: Final = 64


class Entries(NamedTuple):
    """Dictionary entries: ``ids`` int64[n], ``offsets`` int64[n + 1]; value i is ``data[offsets[i]:offsets[i+1]]``."""

    ids: Words
    data: NDArray[np.uint8]
    offsets: Words


class SequenceMark(NamedTuple):
    """A sequence's position after a crash: after ``value``, or at it if that was not ``called`` for yet."""

    storage: int
    value: int
    called: bool


NO_ENTRIES: Final = Entries(np.zeros(0, np.int64), np.zeros(0, np.uint8), np.zeros(1, np.int64))


class RelationUpdate(NamedTuple):
    """What one commit does to one relation: ``rows`` int64[n, width], ``diffs`` int64[n], none of them 0.

    ``file``: holds the rows, whose diffs are 1; the log record then names the file instead. ``arranged``: the same rows
    as a batch of the relation's own arrangement, built beside the engine.
    """

    relation: int
    rows: Words
    diffs: Words
    file: RowFile | None = None
    arranged: Batch | None = None


@dataclass(frozen=True, slots=True, eq=False)
class CommitRecord:
    """A commit: the changes of tables (from which views follow), what they need, and DDL.

    ``entries``: values new to the dictionary. ``catalog``: a change of the catalog, as the catalog's JSON. ``load``:
    the loads in this commit, so that a retried load is recognised. ``sequences``: numbers up to these have been or will
    be assigned.
    """

    epoch: int
    updates: tuple[RelationUpdate, ...] = ()
    entries: Entries = NO_ENTRIES
    catalog: bytes | None = None
    load: str | None = None
    sequences: tuple[SequenceMark, ...] = ()


def encode_record(record: CommitRecord) -> bytes:
    """Encodes the record. Cost: O(size), two copies; other threads run meanwhile, however large it is."""
    flags = 0
    parts: list[bytes] = []
    inline, files = 0, list[tuple[int, RowFile]]()
    for update in record.updates:
        if update.file is None:
            inline += 1
            parts += _encode_update(update)
        else:
            files.append((update.relation, update.file))
    if len(record.entries.ids):
        flags |= _ENTRIES_FLAG
        ids, data, offsets = record.entries
        parts += (_ENTRIES.pack(len(ids), len(data)), *_raw(ids), *_raw(np.diff(offsets)), *pieces(data))
    if record.catalog is not None:
        flags |= _CATALOG_FLAG
        parts += (_LENGTH.pack(len(record.catalog)), record.catalog)
    if record.load is not None:
        flags |= _LOAD_FLAG
        load = record.load.encode()
        parts += (_LENGTH.pack(len(load)), load)
    if record.sequences:
        flags |= _SEQUENCES_FLAG
        parts += (_LENGTH.pack(len(record.sequences)), *(_SEQUENCE.pack(*mark) for mark in record.sequences))
    if files:
        flags |= _FILES_FLAG
        parts += (
            _LENGTH.pack(len(files)),
            *(part for relation, file in files for part in _encode_file(relation, file)),
        )
    head = (_MAGIC, VERSION, flags, record.epoch, inline)
    checksum = zlib.crc32(_HEAD.pack(*head, 0))
    if len(parts) <= _FEW:  # at most some pieces, and a copy costs less than the calls
        parts = [b"".join(parts)] if sum(map(len, parts)) <= _PIECE else parts
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return b"".join((_HEAD.pack(*head, checksum), *parts))


def decode_record(data: bytes, folder: Path = Path()) -> CommitRecord:
    """The inverse of ``encode_record``. XX001 for any other bytes.

    ``folder``: where row files are. They are not opened: updates whose rows are in files have no rows yet.
    """
    if len(data) < _HEAD.size:
        raise _corrupt("it is too short")
    magic, version, flags, epoch, count, checksum = _HEAD.unpack_from(data)
    if magic != _MAGIC:
        raise _corrupt("it does not begin as one")
    if version != VERSION:
        raise SqlError("XX001", f"a commit's log record has version {version}; this server reads version {VERSION}",
                       hint="Start the server version that wrote it, and shut it down in order.")  # fmt: skip
    head = _HEAD.pack(magic, version, flags, epoch, count, 0)
    if checksum != zlib.crc32(memoryview(data)[_HEAD.size :], zlib.crc32(head)) or flags >= 32:
        raise _corrupt("its checksum does not match")
    reader = _Reader(data, _HEAD.size)
    updates = tuple(_decode_update(reader) for _ in range(count))
    entries = _decode_entries(reader) if flags & _ENTRIES_FLAG else NO_ENTRIES
    catalog = reader.take(reader.length()).tobytes() if flags & _CATALOG_FLAG else None
    load = str(reader.take(reader.length()), "utf-8") if flags & _LOAD_FLAG else None
    marks = tuple(reader.mark() for _ in range(reader.length())) if flags & _SEQUENCES_FLAG else ()
    if flags & _FILES_FLAG:
        updates += tuple(_decode_file(reader, folder) for _ in range(reader.length()))
    if reader.offset != len(data):
        raise _corrupt("it goes on past its end")
    return CommitRecord(epoch, updates, entries, catalog, load, marks)


def _corrupt(what: str) -> SqlError:
    return SqlError("XX001", f"a commit's log record is damaged: {what}")


def pieces(data: NDArray[np.uint8]) -> list[bytes]:
    """An array's bytes in chunks, since Python holds the GIL while it copies one."""
    return [data[start : start + _PIECE].tobytes() for start in range(0, len(data), _PIECE)]


def _raw(words: Words) -> list[bytes]:
    if words.nbytes <= _PIECE and sys.byteorder == "little":
        return [words.tobytes()]
    return pieces(np.ascontiguousarray(words, "<i8").reshape(-1).view(np.uint8))


def _encode_update(update: RelationUpdate) -> tuple[bytes, ...]:
    rows, diffs = update.rows, update.diffs
    assert rows.shape == (len(diffs), rows.shape[1]), "one diff for each row"
    constant = _constant(diffs)
    head = _UPDATE.pack(update.relation, rows.shape[1], len(rows), constant)
    return (head, *_raw(rows)) if constant != _DIFFS_DIFFER else (head, *_raw(rows), *_raw(diffs))


def _constant(diffs: Words) -> int:
    """The diff that all rows share, if they share one."""
    if len(diffs) > _FEW:
        return int(diffs[0]) if (diffs == diffs[0]).all() else _DIFFS_DIFFER
    found = set(diffs.tolist())
    return found.pop() if len(found) == 1 else _DIFFS_DIFFER


def _decode_update(reader: _Reader) -> RelationUpdate:
    relation, width, count, constant = _UPDATE.unpack(reader.take(_UPDATE.size))
    rows = reader.words(width * count).reshape(count, width)
    diffs = reader.words(count) if constant == _DIFFS_DIFFER else np.full(count, constant, np.int64)
    return RelationUpdate(relation, rows, diffs)


def _encode_file(relation: int, file: RowFile) -> tuple[bytes, bytes]:
    name = file.path.name.encode()
    return _FILE.pack(relation, file.width, len(name), file.checksum, file.size), name


def _decode_file(reader: _Reader, folder: Path) -> RelationUpdate:
    relation, width, length, checksum, count = _FILE.unpack(reader.take(_FILE.size))
    try:
        name = str(reader.take(length), "utf-8")
    except UnicodeDecodeError:
        raise _corrupt("a file's name is no text") from None
    none = np.zeros((0, width), np.int64)
    return RelationUpdate(relation, none, none[:, 0] if width else np.zeros(0, np.int64),
                  RowFile(folder / name, count, width, checksum))  # fmt: skip


def opened(update: RelationUpdate) -> RelationUpdate:
    """The update with its rows read from their file, if any. XX001: the file is missing or damaged."""
    if update.file is None:
        return update
    update.file.check()
    return update._replace(rows=update.file.rows(), diffs=np.ones(update.file.size, np.int64))


def by_relation(updates: list[RelationUpdate]) -> list[RelationUpdate]:
    """The same updates, those of one relation as one: a transaction of many statements is fed again each time that it
    goes on after others."""
    if len(updates) < 2 or any(u.arranged is not None for u in updates):
        return updates
    groups: dict[int, list[RelationUpdate]] = {}
    for update in updates:
        groups.setdefault(update.relation, []).append(update)
    return [
        own[0] if len(own) == 1 else RelationUpdate(
            relation, np.concatenate([u.rows for u in own]), np.concatenate([u.diffs for u in own])
        )
        for relation, own in groups.items()
    ]  # fmt: skip


def _decode_entries(reader: _Reader) -> Entries:
    count, size = _ENTRIES.unpack(reader.take(_ENTRIES.size))
    ids = reader.words(count)
    lengths = reader.words(count)
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if count and (lengths.min() < 0 or lengths.max() > size or offsets[-1] != size or offsets.min() < 0):
        raise _corrupt("its dictionary entries do not fill their data")
    return Entries(ids, np.frombuffer(reader.take(size), np.uint8).copy(), offsets)


class _Reader:
    """Reads fields from bytes; a missing field is damage."""

    def __init__(self, data: bytes, offset: int) -> None:
        self._data = memoryview(data)
        self.offset = offset

    def take(self, size: int) -> memoryview:
        if size > len(self._data) - self.offset:
            raise _corrupt("it ends early")
        piece = self._data[self.offset : self.offset + size]
        self.offset += size
        return piece

    def length(self) -> int:
        return int(_LENGTH.unpack(self.take(_LENGTH.size))[0])

    def mark(self) -> SequenceMark:
        storage, value, called = _SEQUENCE.unpack(self.take(_SEQUENCE.size))
        return SequenceMark(storage, value, bool(called))

    def words(self, count: int) -> Words:
        return np.frombuffer(self.take(count * 8), "<i8").astype(np.int64)
