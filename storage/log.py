"""The commit log, a write-ahead log: what makes a commit durable.

A log is a folder of segment files, each named by its first sequence number. A segment is a 32-byte head followed by
*groups*. A group is what one ``sync`` wrote: a head (magic, number of records, payload's length, first sequence number,
checksums of payload and head) and the records, each preceded by its length. Records are numbered 1, 2, 3, … without
gaps.

Invariant: a group is written only after the previous group is on disk. Everything before the last group was therefore
durable, and damage there is an error (XX001, naming file and offset), never a shorter history. The last group may be
*torn*, if its sync never returned: it is truncated if it is short, or if one of its 512-byte sectors was never written
(all zero). Payloads are masked, so that data never looks like that. A last group that is complete but fails its
checksum is damage too. A segment that another follows ends with an empty group, so that a lost last segment is noticed
as well.

Cost: ``append`` copies nothing; ``sync`` is one write and one fdatasync, however many records wait.
"""

from __future__ import annotations

import struct
import threading
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from ivm.errors import SqlError
from storage.files import AppendFile, DiskError, Files, RealFiles, disk_error

__all__ = ["CommitLog", "DiskError"]

_SEGMENT_MAGIC: Final = b"FRESHLG1"
_SEGMENT: Final = struct.Struct("<8sQ12xI")
_GROUP_MAGIC: Final = 0x50524746
_GROUP: Final = struct.Struct("<IIQQII")
_LENGTH: Final = struct.Struct("<I")
_SECTOR: Final = 512
_MASK: Final = np.frombuffer(bytes.fromhex("a5c3962d78e11b5a") * 8192, np.uint8)
SEGMENT_BYTES: Final = 64 << 20
_MAX_RECORD: Final = 2**32 - 1


@dataclass(frozen=True, slots=True)
class _Group:
    """A group's head; ``end`` is the offset where the group ends."""

    count: int
    first: int
    start: int
    end: int
    checksum: int


@dataclass(slots=True)
class _Segment:
    """A file of the log, with records ``first`` … ``last`` (first - 1 if it has none). ``newest``: the first record of
    the last group that was found in it; 0 if none was."""

    path: Path
    first: int
    last: int
    size: int
    ended: bool = False
    newest: int = 0


class CommitLog:
    """An append-only sequence of records. ``append`` and ``sync`` may be called from different threads.

    After a failed write or sync, which raises DiskError, nothing that was appended since the last successful one is
    durable, and the log has forgotten it: append it again. A failed sync is not repeated, because the kernel may have
    dropped what it could not write and report success the next time. What is written next goes to a new segment, after
    the failed one has been cut back to what is durable.
    """

    def __init__(self, folder: Path, files: Files, segments: list[_Segment], segment_bytes: int) -> None:
        self._folder = folder
        self._files = files
        self._segments = segments
        self._segment_bytes = segment_bytes
        self._queue = threading.Lock()
        self._disk = threading.Lock()
        self._waiting: list[bytes] = []
        self._appended = self._durable = segments[-1].last if segments else 0
        self.last_group = max((segment.newest for segment in segments), default=0)
        """The first record of the last group found when the log was opened; 0 if there was none."""
        self._file: AppendFile | None = files.append(segments[-1].path) if segments else None
        self._broken = False
        """Whether a write or sync to the newest segment has failed."""
        self._started: tuple[_Segment, int, int] | None = None
        """The group being synced: its segment, its bytes, its last record."""

    @classmethod
    def open(cls, folder: Path, files: Files | None = None, segment_bytes: int = SEGMENT_BYTES) -> CommitLog:
        """Opens or creates a log, and truncates a torn tail. Lock the data folder first (``lock_folder``).

        Reads the whole log to verify checksums. Raises XX001 for damage.
        """
        disk = files or RealFiles()
        disk.make_folder(folder)
        return cls(folder, disk, _open_segments(disk, folder), segment_bytes)

    @property
    def first(self) -> int:
        """The sequence number of the oldest record kept (``last`` + 1 if there is none)."""
        with self._disk:
            return self._segments[0].first if self._segments else self._appended + 1

    @property
    def free(self) -> int:
        """The bytes that may still be written."""
        return self._files.free(self._folder)

    @property
    def last(self) -> int:
        """The last sequence number assigned, 0 in a new log."""
        return self._appended

    @property
    def durable(self) -> int:
        """The newest record known to be on disk."""
        return self._durable

    def append(self, record: bytes) -> int:
        """Queues a record for the next ``sync`` and returns its sequence number. Cost: O(1)."""
        if not 0 < len(record) <= _MAX_RECORD:
            raise SqlError("54000", "the transaction is too large for one log record",
                           detail=f"It has {len(record)} bytes; at most {_MAX_RECORD} fit.",
                           hint="Split it into several transactions.")  # fmt: skip
        with self._queue:
            self._waiting.append(record)
            self._appended += 1
            return self._appended

    def start(self) -> None:
        """Writes all records appended so far and starts to sync them; ``sync`` completes that. At most one at a time.

        Raises DiskError as ``sync`` does.
        """
        with self._disk:
            with self._queue:
                records, self._waiting = self._waiting, []
            if records:
                assert self._started is None, "a sync ends before the next begins"
                try:
                    self._begin(records)
                except OSError as error:
                    raise self._forgotten(error) from error

    def is_synced(self, until: float) -> bool:
        """Whether the sync begun by ``start`` has ended by ``until`` (``perf_counter``), successfully or not.

        ``sync`` then does not wait. Call it only from the thread that calls ``start`` and ``sync``. False where syncs
        do not run in the background.
        """
        return self._started is None or (self._file is not None and self._file.is_synced(until))

    def sync(self) -> int:
        """Makes all records appended before the call durable. Returns the durable sequence number.

        Raises DiskError if the disk fails: acknowledge nothing then.
        """
        with self._disk:
            with self._queue:
                records, self._waiting = self._waiting, []
            try:
                self._end()
                if records:
                    self._begin(records)
                    self._end()
            except OSError as error:
                raise self._forgotten(error) from error
            return self._durable

    def _forgotten(self, error: OSError) -> DiskError:
        """After a failed write or sync: forgets what is not durable."""
        self._broken, self._started = True, None
        with self._queue:
            self._waiting.clear()
            self._appended = self._durable
        return disk_error(error, "the commit log cannot be written")

    def replay(self, after: int = 0) -> Iterator[tuple[int, bytes]]:
        """The durable records after ``after``, oldest first, with their sequence numbers. Verifies every checksum."""
        with self._disk:
            segments = [replace(segment) for segment in self._segments]
        for segment in segments:
            if segment.last <= after:
                continue
            data = self._files.read(segment.path)[: segment.size]
            for group in _groups(data, segment.path, segment.first):
                for sequence, record in _records(data, segment.path, group):
                    if sequence > after:
                        yield sequence, record

    def cut(self, sequence: int) -> None:
        """Removes whole segments that hold nothing above ``sequence``; the newest segment stays.

        Use it only for records whose effects are durable elsewhere: after a verified checkpoint of the store.
        """
        with self._disk:
            while len(self._segments) > 1 and self._segments[0].last <= sequence:
                self._files.remove(self._segments[0].path)
                self._files.sync_folder(self._folder)  # one by one, oldest first: a kill leaves no gap
                self._segments.pop(0)

    def close(self) -> None:
        """Syncs and closes."""
        self.sync()
        with self._disk:
            if self._file is not None:
                self._file.close()
                self._file = None

    def _begin(self, records: list[bytes]) -> None:
        first = self._durable + 1
        group = _encode_group(records, first)
        if self._broken:
            self._mend(first)
        segment = self._segments[-1] if self._segments else None
        if segment is None or (segment.size > _SEGMENT.size and segment.size + len(group) > self._segment_bytes):
            segment = self._new_segment(first)
        assert self._file is not None
        self._file.write(group)
        self._file.start_sync()
        self._started = segment, len(group), first + len(records) - 1

    def _end(self) -> None:
        """Waits for what ``_begin`` started, if anything."""
        if self._started is None:
            return
        assert self._file is not None
        self._file.sync()
        segment, size, last = self._started
        self._started = None
        segment.size += size
        segment.last = self._durable = last

    def _mend(self, first: int) -> None:
        """After a failed write or sync: removes what the newest segment has after its last durable group, which was not
        acknowledged, and begins a new one. A segment without groups is kept."""
        if self._file is not None:
            file, self._file = self._file, None
            file.close()
        if self._segments:
            newest = self._segments[-1]
            self._files.truncate(newest.path, newest.size)
            self._file = self._files.append(newest.path)
        if not self._segments or self._segments[-1].size > _SEGMENT.size:
            self._new_segment(first)
        self._broken = False

    def _new_segment(self, first: int) -> _Segment:
        path = self._folder / f"{first:020d}.log"
        head = _segment_head(first)
        if path.name in self._files.names(self._folder):  # an attempt that failed
            self._files.remove(path)
        file = self._files.create(path)
        file.write(head)
        file.sync()
        self._files.sync_folder(self._folder)
        if self._file is not None:
            end = _encode_group([], first)
            self._file.write(end)
            self._file.sync()
            self._file.close()
            self._segments[-1].size += len(end)
        self._file = file
        self._segments.append(_Segment(path, first, first - 1, len(head)))
        return self._segments[-1]


def _damage(path: Path, offset: int, what: str) -> SqlError:
    return SqlError(
        "XX001",
        f"the commit log is damaged: {path}, byte {offset}: {what}",
        detail="Commits after this place cannot be read, so the server does not start with a shorter history.",
        hint="Restore the data folder from a backup, or the disk's copy of this file.",
    )


def _masked(payload: bytes) -> list[bytes]:
    """XOR with a fixed mask (its own inverse), so that data never looks like an unwritten sector of zeros.

    Works in chunks of the mask's length, to let other threads run.
    """
    data = np.frombuffer(payload, np.uint8)
    if len(data) <= len(_MASK):
        return [(data ^ _MASK[: len(data)]).tobytes()]
    parts = (data[start : start + len(_MASK)] for start in range(0, len(data), len(_MASK)))
    return [(part ^ _MASK[: len(part)]).tobytes() for part in parts]


def _segment_head(first: int) -> bytes:
    body = _SEGMENT.pack(_SEGMENT_MAGIC, first, 0)[:-4]
    return body + _LENGTH.pack(zlib.crc32(body))


def _encode_group(records: list[bytes], first: int) -> bytes:
    parts: list[bytes] = []
    for record in records:
        parts += (_LENGTH.pack(len(record)), record)
    payload = _masked(b"".join(parts))
    checksum, size = 0, 0
    for part in payload:
        checksum, size = zlib.crc32(part, checksum), size + len(part)
    body = _GROUP.pack(_GROUP_MAGIC, len(records), size, first, checksum, 0)[:-4]
    return b"".join((body, _LENGTH.pack(zlib.crc32(body)), *payload))


def _group_at(data: bytes, offset: int) -> _Group | None:
    """The group whose head is at ``offset``, None if no intact head is there."""
    if offset + _GROUP.size > len(data):
        return None
    magic, count, length, first, checksum, head_checksum = _GROUP.unpack_from(data, offset)
    start = offset + _GROUP.size
    if magic != _GROUP_MAGIC or zlib.crc32(data[offset : start - 4]) != head_checksum:
        return None
    return _Group(count, first, start, start + length, checksum)


def _intact(data: bytes, group: _Group) -> bool:
    return group.end <= len(data) and zlib.crc32(memoryview(data)[group.start : group.end]) == group.checksum


def _groups(data: bytes, path: Path, first: int) -> Iterator[_Group]:
    """The groups of a segment without a torn tail. XX001 otherwise."""
    offset = _SEGMENT.size
    while offset < len(data):
        group = _group_at(data, offset)
        if group is None or group.first != first or not _intact(data, group):
            raise _damage(path, offset, "a group of records does not match its checksum")
        yield group
        offset, first = group.end, first + group.count


def _records(data: bytes, path: Path, group: _Group) -> Iterator[tuple[int, bytes]]:
    payload = b"".join(_masked(data[group.start : group.end]))
    offset = 0
    for sequence in range(group.first, group.first + group.count):
        if offset + _LENGTH.size > len(payload):
            raise _damage(path, group.start, "a group's records do not fill it")
        (length,) = _LENGTH.unpack_from(payload, offset)
        offset += _LENGTH.size
        yield sequence, payload[offset : offset + length]
        offset += length
    if offset != len(payload):
        raise _damage(path, group.start, "a group's records do not fill it")


def _torn(data: bytes, offset: int) -> bool:
    """Whether the bad group at ``offset`` is torn, its sync never having returned.

    True if it is cut short, or if one of its sectors was never written. False if an intact group follows, which was
    written only after this one was on disk.
    """
    group = _group_at(data, offset)
    if group is not None:
        return group.end > len(data) or (group.end == len(data) and _unwritten_sector(data, offset))
    if len(data) - offset < _GROUP.size:
        return True
    magic = _LENGTH.pack(_GROUP_MAGIC)
    later = data.find(magic, offset + 1)
    while later >= 0:
        if _group_at(data, later) is not None:
            return False
        later = data.find(magic, later + 1)
    return _unwritten_sector(data, offset)


def _unwritten_sector(data: bytes, offset: int) -> bool:
    start = offset
    while start < len(data):
        end = min(len(data), (start // _SECTOR + 1) * _SECTOR)
        if end - start >= 16 and not any(data[start:end]):
            return True
        start = end
    return False


def _open_segments(disk: Files, folder: Path) -> list[_Segment]:
    """All segments of a folder, verified, their torn tail truncated."""
    paths = [folder / name for name in disk.names(folder) if name.endswith(".log")]
    if paths and not any(disk.read(paths[-1])[: _SEGMENT.size]):
        disk.remove(paths[-1])  # created, but the power failed before its head was written
        disk.sync_folder(folder)
        paths.pop()
    segments: list[_Segment] = []
    for path in paths:
        data = disk.read(path)
        segment = _check_head(path, data, segments)
        if path == paths[-1]:
            limit = len(data)
        else:  # only the closing empty group may be torn here, and only if nothing was written after it
            bare = path == paths[-2] and len(disk.read(paths[-1])) <= _SEGMENT.size
            limit = _GROUP.size if bare else 0
        _check_groups(disk, segment, data, limit)
        segments.append(segment)
    if segments and segments[-1].ended:
        raise _damage(segments[-1].path, segments[-1].size, "the segment that follows this one is missing")
    return segments


def _check_head(path: Path, data: bytes, before: list[_Segment]) -> _Segment:
    magic, first, _ = _SEGMENT.unpack_from(data) if len(data) >= _SEGMENT.size else (b"", 0, 0)
    if magic != _SEGMENT_MAGIC or data[: _SEGMENT.size] != _segment_head(first) or path.name != f"{first:020d}.log":
        raise _damage(path, 0, "not the head of a segment of this name")
    if before and first != before[-1].last + 1:
        raise _damage(path, 0, f"records {before[-1].last + 1} to {first - 1} are missing")
    return _Segment(path, first, first - 1, _SEGMENT.size)


def _check_groups(disk: Files, segment: _Segment, data: bytes, limit: int) -> None:
    """Reads a segment's groups and fills ``segment`` in. Truncates a torn tail of at most ``limit`` bytes."""
    while segment.size < len(data):
        group = _group_at(data, segment.size)
        expected = group is not None and group.first == segment.last + 1 and not segment.ended
        if group is None or not expected or not _intact(data, group):
            if len(data) - segment.size > limit or not _torn(data, segment.size):
                raise _damage(segment.path, segment.size, "a group of records does not match its checksum")
            disk.truncate(segment.path, segment.size)
            return
        segment.ended = group.count == 0
        segment.newest = group.first if group.count else segment.newest
        segment.last, segment.size = segment.last + group.count, group.end
