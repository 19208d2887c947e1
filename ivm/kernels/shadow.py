"""Which memory kernels may touch, when they are checked: a map with a byte for each eight bytes of address space.

Set ``FRESHET_CHECKED=1`` before anything of the engine is imported: ``ivm.kernels.memory`` then looks up every address
here and raises IndexError where the byte is 0, and numba checks the indices of arrays too. Kernels compiled like that
lie in cache folders of their own. The map is 2^44 bytes of address space, of which only the touched pages take memory.

Arrays whose address Python takes (``memory.address``) are marked until they are gone. Arrays whose address a kernel
takes (``memory.where``) are marked too, and stay so: what is missed is a stray access to memory that such an array of a
kernel had before. A stray access to another live array is missed as well, unless gaps lie between: the tests put gaps
around every block's rows, times and diffs.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ivm.kernels.cache import CHECKED

BASE: Final = 1 << 44
"""Where the map lies: fixed, since compiled kernels are kept in files."""
ADDRESSES: Final = 1 << 47
"""User space on x86-64 and AArch64 ends here."""
GRANULE_BITS: Final = 3

_READ_WRITE: Final = 3
_FLAGS: Final = 0x02 | 0x20 | 0x4000 | 0x100000
"""MAP_PRIVATE, MAP_ANONYMOUS, MAP_NORESERVE, MAP_FIXED_NOREPLACE of Linux."""

_known: set[tuple[int, int]] = set()


def _reserve() -> None:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    found = library.mmap(BASE, ADDRESSES >> GRANULE_BITS, _READ_WRITE, _FLAGS, -1, 0)
    if found != BASE:
        raise OSError(ctypes.get_errno(), "FRESHET_CHECKED needs 16 TiB of address space without a limit on it")


def mark(start: int, size: int, value: int) -> None:
    """Says of ``size`` bytes from an address on whether kernels may touch them: 1 or 0."""
    if size > 0:
        first, last = start >> GRANULE_BITS, (start + size - 1) >> GRANULE_BITS
        ctypes.memset(BASE + first, value, last - first + 1)


def admit(array: NDArray[Any]) -> None:
    """Lets kernels touch a contiguous array for as long as the array that owns its memory lives."""
    start, size = int(array.ctypes.data), array.nbytes
    if (start, size) in _known:
        return
    _known.add((start, size))
    mark(start, size, 1)
    owner: NDArray[Any] = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    weakref.finalize(owner, _forget, start, size).atexit = False


def _forget(start: int, size: int) -> None:
    _known.discard((start, size))
    mark(start, size, 0)


if CHECKED:
    _reserve()
