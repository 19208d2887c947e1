"""The file seam: what the commit log needs of a disk, the real disk, and one that forgets what was not synced.

``kill -9`` never tests fsync, because the kernel keeps what was written. ``ForgetfulFiles`` does: bytes reach the real
file only when they are synced, and a file's creation or removal only when its folder is. After a kill (of the process,
or by ``kill()`` in a test) the folder is in the state that a power cut would leave.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
from pathlib import Path
from random import Random
from typing import Final, Protocol

from ivm.errors import SqlError
from storage.background_sync import BackgroundSync


class FatalStorageError(Exception):
    """What is on disk is no longer known. The server must exit; only a restart shows what was kept."""


class DiskError(SqlError):
    """A full disk (53100), or one that fails (58030). What was to be written is not durable; it may be written
    again."""


def disk_error(error: OSError, what: str) -> DiskError:
    """The error of a write that failed."""
    full = error.errno in _FULL
    hint = "The server goes on reading, and writes again as soon as it can."
    return DiskError("53100" if full else "58030", f"{what}: {error.strerror or error}", None, hint)


_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
DISK_ERRORS: Final = (*_FULL, errno.EIO, errno.EROFS)
"""The errors of a disk, not of a program."""


def sync_path(path: Path) -> None:
    """Returns when a file's contents, or a folder's entries, are on disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, text: str) -> None:
    """Atomically and durably replaces a file's text. On a crash the file has the old text or the new."""
    unfinished = path.with_name(f"{path.name}.part")
    with unfinished.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    sync_path(path.parent)


class AppendFile(Protocol):
    """A file open for appending. Not thread-safe."""

    def write(self, data: bytes) -> None: ...

    def start_sync(self) -> None:
        """Starts the next ``sync`` in the background, so that ``sync`` only waits for what is left of it."""
        ...

    def is_synced(self, until: float) -> bool:
        """Whether the next ``sync`` would return without waiting by ``until`` (``perf_counter``)."""
        ...

    def sync(self) -> None:
        """Returns when all bytes written so far are on disk (fdatasync)."""
        ...

    def close(self) -> None:
        """Closes without syncing."""
        ...


class Files(Protocol):
    """A disk. All methods raise OSError."""

    def make_folder(self, folder: Path) -> None: ...

    def names(self, folder: Path) -> list[str]:
        """The names in a folder, sorted."""
        ...

    def read(self, path: Path) -> bytes: ...

    def create(self, path: Path) -> AppendFile:
        """Creates a file, which must not exist. Durable only after ``sync_folder``."""
        ...

    def append(self, path: Path) -> AppendFile:
        """Opens an existing file, positioned at its end."""
        ...

    def truncate(self, path: Path, size: int) -> None:
        """Truncates a file that is not open. Durable on return."""
        ...

    def remove(self, path: Path) -> None:
        """Removes a file. Durable only after ``sync_folder``."""
        ...

    def sync_folder(self, folder: Path) -> None: ...

    def free(self, folder: Path) -> int:
        """The bytes that may still be written."""
        ...


class _RealAppendFile:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._started: BackgroundSync | None = None

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]

    def start_sync(self) -> None:
        self._started = BackgroundSync.begin(self._descriptor)

    def is_synced(self, until: float) -> bool:
        return self._started is not None and self._started.is_done(until)

    def sync(self) -> None:
        started, self._started = self._started, None
        if started is None:
            os.fdatasync(self._descriptor)
        else:
            started.wait()

    def close(self) -> None:
        os.close(self._descriptor)


class RealFiles:
    """The disk."""

    def make_folder(self, folder: Path) -> None:
        if not folder.is_dir():
            folder.mkdir(parents=True, mode=0o700)
            self.sync_folder(folder.parent)

    def names(self, folder: Path) -> list[str]:
        return sorted(os.listdir(folder))

    def read(self, path: Path) -> bytes:
        return path.read_bytes()

    def create(self, path: Path) -> AppendFile:
        return _RealAppendFile(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600))

    def append(self, path: Path) -> AppendFile:
        return _RealAppendFile(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC))

    def truncate(self, path: Path, size: int) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.ftruncate(descriptor, size)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def remove(self, path: Path) -> None:
        path.unlink()

    def sync_folder(self, folder: Path) -> None:
        sync_path(folder)

    def free(self, folder: Path) -> int:
        found = os.statvfs(folder)
        return found.f_bavail * found.f_frsize


class _ForgetfulAppendFile:
    """``synced`` is certainly on disk; ``pending`` was written after it."""

    def __init__(self, files: ForgetfulFiles, path: Path, synced: bytes) -> None:
        self._files = files
        self.path = path
        self.synced = bytearray(synced)
        self.pending = bytearray()

    def write(self, data: bytes) -> None:
        self._files.check_write()
        self.pending += data

    def start_sync(self) -> None:
        pass

    def is_synced(self, until: float) -> bool:
        return True

    def sync(self) -> None:
        self._files.check_sync()
        self.synced += self.pending
        if self.path.exists():
            with self.path.open("ab") as real:
                real.write(self.pending)
        self.pending.clear()

    def close(self) -> None:
        pass


class ForgetfulFiles:
    """A disk whose real folder holds only what was synced.

    ``fail_sync``, ``full``: while set, syncs fail (EIO), or writes (ENOSPC). ``kill(random)``: every call after it
    fails. With a Random, a random prefix of each file's pending bytes survives, as a disk may have written some of them
    (a torn write).
    """

    def __init__(self) -> None:
        self.fail_sync = False
        self.full = False
        self.syncs = 0
        self._dead = False
        self._open: dict[Path, _ForgetfulAppendFile] = {}
        self._created: dict[Path, _ForgetfulAppendFile] = {}
        self._removed: set[Path] = set()

    def check_alive(self) -> None:
        """Raises OSError once killed."""
        if self._dead:
            raise OSError("the disk is gone")

    def check_write(self) -> None:
        """Raises OSError if nothing can be written."""
        self.check_alive()
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")

    def free(self, folder: Path) -> int:
        del folder
        return 1 << 40

    def check_sync(self) -> None:
        """Counts a sync. Raises OSError if it is to fail."""
        self.check_alive()
        self.syncs += 1
        if self.fail_sync:
            raise OSError(5, "Input/output error")

    def kill(self, random: Random | None = None) -> None:
        """Simulates a power cut."""
        self._dead = True
        for path, file in self._open.items():
            if random is not None and file.pending and path.exists():
                with path.open("ab") as real:
                    real.write(file.pending[: random.randint(0, len(file.pending))])

    def make_folder(self, folder: Path) -> None:
        self.check_alive()
        folder.mkdir(parents=True, exist_ok=True)

    def names(self, folder: Path) -> list[str]:
        self.check_alive()
        real = {path for path in folder.iterdir() if path not in self._removed}
        return sorted(path.name for path in real | {p for p in self._created if p.parent == folder})

    def read(self, path: Path) -> bytes:
        self.check_alive()
        file = self._open.get(path)
        return bytes(file.synced + file.pending) if file is not None else path.read_bytes()

    def create(self, path: Path) -> AppendFile:
        self.check_alive()
        if path in self._created or (path.exists() and path not in self._removed):
            raise FileExistsError(path)
        file = _ForgetfulAppendFile(self, path, b"")
        self._open[path] = self._created[path] = file
        return file

    def append(self, path: Path) -> AppendFile:
        self.check_alive()
        file = self._open[path] = self._open.get(path) or _ForgetfulAppendFile(self, path, path.read_bytes())
        return file

    def truncate(self, path: Path, size: int) -> None:
        self.check_sync()
        self._open.pop(path, None)
        os.truncate(path, size)

    def remove(self, path: Path) -> None:
        self.check_alive()
        self._open.pop(path, None)
        if self._created.pop(path, None) is None:
            self._removed.add(path)

    def sync_folder(self, folder: Path) -> None:
        self.check_sync()
        for path in [p for p in self._removed if p.parent == folder]:
            path.unlink()
            self._removed.remove(path)
        for path in [p for p in self._created if p.parent == folder]:
            path.write_bytes(self._created.pop(path).synced)


_SEGMENT_NAME: Final = re.compile(r"[0-9]{20}\.log")
_HARMLESS: Final = frozenset({"lock", "lease", "log", "temp", "loads", "spark", "lost+found", "pg_hba.conf"})
"""What a data folder without a store may have: left by a start that failed, or put there beforehand."""


def check_folder(folder: Path) -> None:
    """55000: the folder has files, but none of a server's."""
    names = set(os.listdir(folder)) if folder.is_dir() else set()
    log = os.listdir(folder / "log") if (folder / "log").is_dir() else []
    strange = sorted(names - _HARMLESS) or [f"log/{name}" for name in log if not _SEGMENT_NAME.fullmatch(name)]
    if strange and "store.duckdb" not in names and not any(map(_SEGMENT_NAME.fullmatch, log)):
        raise SqlError(
            "55000",
            f"the folder {folder} is not empty, and no data folder of a server",
            f"It contains {strange[0]!r}" + (f" and {len(strange) - 1} more." if len(strange) > 1 else "."),
            "Give a new or an empty folder with --data.",
        )


def lock_folder(folder: Path) -> int:
    """Locks a data folder for this process until it ends. Returns the descriptor that holds the lock.

    Raises 55006 if another process holds it. Lock before opening the log: opening truncates a torn tail, which under a
    running server would be a record still being written.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise SqlError(
            "55006",
            f"the data folder {folder} is in use by another server",
            hint="Stop that server, or give this one a folder of its own with --data.",
        ) from None
    return descriptor
