"""Raw memory, and the layout of the descriptors that kernels get.

A kernel gets int64 arrays only. A *block* descriptor names a growable buffer of updates, a *trace* descriptor names
the layers of a spine. Both hold addresses; whoever calls keeps the arrays that they point into alive.
Every address is of an int64, row-major: word j of row i of a block lies at ``rows + 8 * (i * width + j)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from llvmlite import ir
from numba import carray  # type: ignore[attr-defined,unused-ignore]
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from ivm.kernels.cache import kernel

Words = NDArray[np.int64]

# Block: how many updates, words a row, addresses of rows, times and diffs, room, diff words an update.
B_COUNT: Final = 0
B_WIDTH: Final = 1
B_ROWS: Final = 2
B_TIMES: Final = 3
B_DIFFS: Final = 4
B_ROOM: Final = 5
B_DIFF_WIDTH: Final = 6
BLOCK_WORDS: Final = 7

# Trace: a head (since is the address of a shared word), then LAYER_WORDS for each layer. Layer 0 is the small one that
# is updated in place.
T_LAYERS: Final = 0
T_WIDTH: Final = 1
T_KEY_WIDTH: Final = 2
T_SHAPE: Final = 3
T_DIFF_WIDTH: Final = 4
T_ORDER: Final = 5
T_SINCE: Final = 6
T_ROOM: Final = 7
HEAD: Final = 8

# Layer: rows, their addresses; strides in bytes (0: one time or diff for the whole layer); the fence, or 0; the filter,
# or 0, and the mask of its bits; the sums of the first diffs before every FENCE-th row, or 0.
L_COUNT: Final = 0
L_ROWS: Final = 1
L_TIMES: Final = 2
L_TIME_STRIDE: Final = 3
L_DIFFS: Final = 4
L_DIFF_STRIDE: Final = 5
L_FENCE: Final = 6
L_SIGN: Final = 7
L_FILTER: Final = 8
L_MASK: Final = 9
L_RANKS: Final = 10
LAYER_WORDS: Final = 11

# A fence holds the first word of every FENCE-th row, so that a search touches few cache lines.
FENCE: Final = 32

# A filter has a bit for each hash of a row's first word: most layers are known not to have a key before they are
# searched. 12 to 24 bits a row; layers of fewer rows are searched as fast, the largest ones have most keys.
FILTER_LEAST: Final = 256
FILTER_MOST: Final = 1 << 17
FILTER_BITS: Final = 12
SPREAD: Final = -7046029254386353131
"""2^64 divided by the golden ratio, for hashing by multiplication (Fibonacci hashing)."""


if TYPE_CHECKING:

    def _pointer(address: int) -> int:
        """An address as a pointer to int64, for carray."""

    def load(address: int) -> int:
        """The int64 at an address."""

    def store(address: int, value: int) -> None:
        """Puts an int64 at an address."""

    def prefetch(address: int) -> None:
        """Asks for the cache line of an address, any address, to be read soon."""

else:

    @intrinsic
    def _pointer(typing_context, address):
        """An address as a pointer to int64, for carray."""

        def generate(context, builder, signature, arguments):
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return types.CPointer(types.int64)(types.int64), generate

    @intrinsic
    def load(typing_context, address):
        """The int64 at an address."""

        def generate(context, builder, signature, arguments):
            return builder.load(builder.inttoptr(arguments[0], ir.IntType(64).as_pointer()))

        return types.int64(types.int64), generate

    @intrinsic
    def store(typing_context, address, value):
        """Puts an int64 at an address."""

        def generate(context, builder, signature, arguments):
            builder.store(arguments[1], builder.inttoptr(arguments[0], ir.IntType(64).as_pointer()))
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), generate

    @intrinsic
    def prefetch(typing_context, address):
        """Asks for the cache line of an address, any address, to be read soon."""

        def generate(context, builder, signature, arguments):
            pointer = ir.IntType(8).as_pointer()
            kind = ir.FunctionType(ir.VoidType(), [pointer, *[ir.IntType(32)] * 3])
            function = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
            hints = [ir.Constant(ir.IntType(32), k) for k in (0, 3, 1)]  # to be read, into all caches, data
            builder.call(function, [builder.inttoptr(arguments[0], pointer), *hints])
            return context.get_dummy_value()

        return types.void(types.int64), generate


@kernel
def spread(word: int) -> int:
    """A hash of a word, for filters (Fibonacci hashing)."""
    return (word * SPREAD) >> 32


@kernel
def words_at(address: int, count: int) -> Words:
    """The words at an address as an array, which whoever calls keeps alive."""
    return carray(_pointer(address), (count,))  # type: ignore[call-overload,no-any-return,unused-ignore]


@kernel
def where(array: Words) -> int:
    """The address of the array's first word."""
    return int(array.ctypes.data)


@kernel
def lay_out(buffer: Words, block: Words, count: int, width: int, diff_width: int, room: int) -> None:
    """Lets a block descriptor name ``count`` updates in a buffer: rows, then times, then diffs."""
    rows = where(buffer)
    times = rows + 8 * room * width
    block[B_COUNT] = count
    block[B_WIDTH] = width
    block[B_ROWS] = rows
    block[B_TIMES] = times
    block[B_DIFFS] = times + 8 * room
    block[B_ROOM] = room
    block[B_DIFF_WIDTH] = diff_width


if TYPE_CHECKING:

    def move_words(source: int, target: int, count: int) -> None:
        """Copies ``count`` words; the ranges may overlap."""

else:

    @intrinsic
    def move_words(typing_context, source, target, count):
        """Copies ``count`` words; the ranges may overlap (a call of memmove: for many words)."""

        def generate(context, builder, signature, arguments):
            pointers = [builder.inttoptr(a, ir.IntType(8).as_pointer()) for a in arguments[:2]]
            cgutils.raw_memmove(builder, pointers[1], pointers[0], arguments[2], 8)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), generate


@kernel
def freeze(trace: Words, held: Words) -> None:
    """Copies a trace's descriptor, and behind it the updates of its small layer, into an array that just holds both:
    there the copy is the layer."""
    held[: len(trace)] = trace
    count = trace[HEAD + L_COUNT]
    rows = where(held) + 8 * len(trace)
    times = rows + 8 * count * trace[T_WIDTH]
    diffs = times + 8 * count
    move_words(trace[HEAD + L_ROWS], rows, count * trace[T_WIDTH])
    move_words(trace[HEAD + L_TIMES], times, count)
    move_words(trace[HEAD + L_DIFFS], diffs, count * trace[T_DIFF_WIDTH])
    held[HEAD + L_ROWS] = rows
    held[HEAD + L_TIMES] = times
    held[HEAD + L_DIFFS] = diffs


@kernel
def copy_words(source: int, target: int, count: int) -> None:
    """Copies ``count`` words upwards; the ranges may overlap when target < source."""
    for i in range(count):
        store(target + 8 * i, load(source + 8 * i))
