"""fdatasync in the background, by glibc's POSIX AIO, whose thread does not need the GIL.

A Python thread that syncs must acquire the GIL twice. While the thread that started it keeps computing, that costs more
than a sync on a good disk. Anywhere but on 64-bit glibc ``begin`` starts nothing, and the caller syncs itself.
"""

from __future__ import annotations

import ctypes
import errno
import math
import os
import platform
import struct
from functools import cache
from time import perf_counter
from typing import Any, Final

_SIZE: Final = 168
"""sizeof(struct aiocb) on 64-bit glibc."""
_DESCRIPTOR_AT: Final = 0
_NOTIFY_AT: Final = 44
"""aio_sigevent.sigev_notify."""
_SIGEV_NONE: Final = 1
_TIMESPEC: Final = struct.Struct("ll")


@cache
def _library() -> Any:
    """glibc with aio_fsync, or None if there is none."""
    if platform.system() != "Linux" or platform.libc_ver()[0] != "glibc" or struct.calcsize("P") != 8:
        return None
    library = ctypes.CDLL(None, use_errno=True)
    return library if hasattr(library, "aio_fsync") else None


class BackgroundSync:
    """One fdatasync in progress. Invariant: its control block outlives ``wait``."""

    def __init__(self, library: Any, block: Any) -> None:
        self._library = library
        self._block = block

    @classmethod
    def begin(cls, descriptor: int) -> BackgroundSync | None:
        """Starts syncing what was written to the descriptor. None if it cannot be done in the background."""
        library = _library()
        if library is None:
            return None
        block = ctypes.create_string_buffer(_SIZE)
        ctypes.c_int.from_buffer(block, _DESCRIPTOR_AT).value = descriptor
        ctypes.c_int.from_buffer(block, _NOTIFY_AT).value = _SIGEV_NONE
        if library.aio_fsync(os.O_DSYNC, block) != 0:
            return None
        return cls(library, block)

    def is_done(self, until: float) -> bool:
        """Whether the sync has ended, successfully or not, by ``until`` (a time of ``perf_counter``)."""
        library, block = self._library, self._block
        while library.aio_error(block) == errno.EINPROGRESS:
            left = until - perf_counter()
            if left <= 0:
                return False
            seconds = min(left, 3600.0)
            limit = _TIMESPEC.pack(int(seconds), int(seconds % 1 * 1e9))
            library.aio_suspend((ctypes.c_void_p * 1)(ctypes.addressof(block)), 1, limit)
        return True

    def wait(self) -> None:
        """Returns when the data is on disk. Raises OSError if the disk failed."""
        self.is_done(math.inf)
        library, block = self._library, self._block
        error = library.aio_error(block)
        if error != 0 or library.aio_return(block) != 0:
            raise OSError(error or errno.EIO, os.strerror(error or errno.EIO))
