"""Raw memory: the only module that reads and writes by address, and the layout of the descriptors that kernels get.

A kernel gets int64 arrays only. A *block* descriptor names a growable buffer of updates, a *trace* descriptor the
layers of a spine. Both hold addresses, and the caller keeps the arrays that they point into alive; why they do is in
docs/decisions/0012-raw-memory.md. Unless said otherwise an address is that of an int64 and memory is row-major: word j
of row i of a block lies at ``rows + 8 * (i * width + j)``.

Python takes addresses with ``address`` and makes descriptors with ``block_descriptor``, ``lay_out_block``,
``layer_descriptor`` and ``trace_head``, which check what they are given. Kernels take addresses with ``where``, and go
through ``load``, ``store``, ``words_at``, ``copy_words``, ``move_words`` and, for bytes, ``load_word``, ``store_word``,
``load_byte`` and ``copy_bytes``. With FRESHET_CHECKED=1 each of these checks the address (``ivm.kernels.shadow``) and
raises IndexError; otherwise nothing is checked, and they compile to single instructions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from llvmlite import ir
from numba import carray  # type: ignore[attr-defined,unused-ignore]
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from ivm.kernels.cache import CHECKED, kernel
from ivm.kernels.shadow import ADDRESSES, BASE, GRANULE_BITS, admit
from ivm.rows import Words

Bytes = NDArray[np.uint8]

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


@kernel
def spread(word: int) -> int:
    """A hash of a word, for filters (Fibonacci hashing)."""
    return (word * SPREAD) >> 32


if TYPE_CHECKING:

    def _pointer(address: int) -> int:
        """An address as a pointer to int64, for carray."""

    def _load(address: int) -> int: ...

    def _store(address: int, value: int) -> None: ...

    def _load_unaligned(address: int) -> int: ...

    def _store_released(address: int, value: int) -> None: ...

    def _load_byte(address: int) -> int: ...

    def _store_byte(address: int, value: int) -> None: ...

    def _copy_bytes(target: int, source: int, length: int) -> None: ...

    def _move_words(source: int, target: int, count: int) -> None: ...

    def prefetch(address: int) -> None:
        """Asks for the cache line of an address, any address, to be read soon."""

else:
    _WORD = ir.IntType(64)
    _BYTE = ir.IntType(8)

    @intrinsic
    def _pointer(typing_context, address):
        """An address as a pointer to int64, for carray."""

        def generate(context, builder, signature, arguments):
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return types.CPointer(types.int64)(types.int64), generate

    def _loading(alignment):
        """An intrinsic that loads the int64 at an address of some alignment in bytes; None: of an int64's."""

        def typing(typing_context, address):
            def generate(context, builder, signature, arguments):
                return builder.load(builder.inttoptr(arguments[0], _WORD.as_pointer()), align=alignment)

            return types.int64(types.int64), generate

        return intrinsic(typing)

    def _storing(alignment):
        """An intrinsic that stores an int64 at an address."""

        def typing(typing_context, address, value):
            def generate(context, builder, signature, arguments):
                builder.store(arguments[1], builder.inttoptr(arguments[0], _WORD.as_pointer()), align=alignment)
                return context.get_dummy_value()

            return types.void(types.int64, types.int64), generate

        return intrinsic(typing)

    _load = _loading(None)
    _store = _storing(None)
    _load_unaligned = _loading(1)
    _store_released = _storing(8)

    @intrinsic
    def _load_byte(typing_context, address):
        def generate(context, builder, signature, arguments):
            return builder.zext(builder.load(builder.inttoptr(arguments[0], _BYTE.as_pointer())), _WORD)

        return types.int64(types.int64), generate

    @intrinsic
    def _store_byte(typing_context, address, value):
        def generate(context, builder, signature, arguments):
            pointer = builder.inttoptr(arguments[0], _BYTE.as_pointer())
            builder.store(builder.trunc(arguments[1], _BYTE), pointer)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), generate

    @intrinsic
    def _copy_bytes(typing_context, target, source, length):
        def generate(context, builder, signature, arguments):
            pointers = [builder.inttoptr(a, _BYTE.as_pointer()) for a in arguments[:2]]
            cgutils.raw_memcpy(builder, *pointers, arguments[2], 1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), generate

    @intrinsic
    def _move_words(typing_context, source, target, count):
        def generate(context, builder, signature, arguments):
            pointers = [builder.inttoptr(a, _BYTE.as_pointer()) for a in arguments[:2]]
            cgutils.raw_memmove(builder, pointers[1], pointers[0], arguments[2], 8)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), generate

    @intrinsic
    def prefetch(typing_context, address):
        """Asks for the cache line of an address, any address, to be read soon."""

        def generate(context, builder, signature, arguments):
            pointer = _BYTE.as_pointer()
            kind = ir.FunctionType(ir.VoidType(), [pointer, *[ir.IntType(32)] * 3])
            function = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
            hints = [ir.Constant(ir.IntType(32), k) for k in (0, 3, 1)]  # to be read, into all caches, data
            builder.call(function, [builder.inttoptr(arguments[0], pointer), *hints])
            return context.get_dummy_value()

        return types.void(types.int64), generate


@kernel
def _require(address: int, size: int) -> None:
    """Raises IndexError unless kernels may touch the first and the last of ``size`` bytes from an address on."""
    if size > 0:
        last = address + size - 1
        if not 0 <= address <= last < ADDRESSES:
            raise IndexError("an address that is none")
        if _load_byte(BASE + (address >> GRANULE_BITS)) == 0 or _load_byte(BASE + (last >> GRANULE_BITS)) == 0:
            raise IndexError("an address outside of all live arrays")


if CHECKED:

    @kernel
    def load(address: int) -> int:
        """The int64 at an address."""
        _require(address, 8)
        return _load(address)

    @kernel
    def store(address: int, value: int) -> None:
        """Stores an int64 at an address."""
        _require(address, 8)
        _store(address, value)

    @kernel
    def load_word(address: int) -> int:
        """The int64 at an address, which need not be aligned."""
        _require(address, 8)
        return _load_unaligned(address)

    @kernel
    def store_word(address: int, value: int) -> None:
        """Stores an int64 at an address, which is aligned."""
        _require(address, 8)
        _store_released(address, value)

    @kernel
    def load_byte(address: int) -> int:
        """The byte at an address, as an int64."""
        _require(address, 1)
        return _load_byte(address)

    @kernel
    def copy_bytes(target: int, source: int, length: int) -> None:
        """Copies bytes; the ranges do not overlap."""
        _require(target, length)
        _require(source, length)
        _copy_bytes(target, source, length)

    @kernel
    def move_words(source: int, target: int, count: int) -> None:
        """Copies ``count`` words; the ranges may overlap (a call of memmove: for many words)."""
        _require(target, 8 * count)
        _require(source, 8 * count)
        _move_words(source, target, count)

    @kernel
    def words_at(address: int, count: int) -> Words:
        """The words at an address as int64[count], which the caller keeps alive."""
        _require(address, 8 * count)
        return carray(_pointer(address), (count,))  # type: ignore[call-overload,no-any-return,unused-ignore]

    @kernel
    def _admit(address: int, size: int) -> int:
        """Lets kernels touch ``size`` bytes from an address on; returns the address."""
        if size > 0:
            for granule in range(address >> GRANULE_BITS, ((address + size - 1) >> GRANULE_BITS) + 1):
                _store_byte(BASE + granule, 1)
        return np.int64(address)  # type: ignore[return-value]  # numba takes addresses for uint64

    @kernel
    def where(array: Words) -> int:
        """The address of the array's first word."""
        return _admit(int(array.ctypes.data), 8 * len(array))

    @kernel
    def where_bytes(array: Bytes) -> int:
        """The address of the array's first byte."""
        return _admit(int(array.ctypes.data), len(array))

else:
    load, store, move_words = _load, _store, _move_words
    load_word, store_word, load_byte, copy_bytes = _load_unaligned, _store_released, _load_byte, _copy_bytes

    @kernel
    def words_at(address: int, count: int) -> Words:
        """The words at an address as int64[count], which the caller keeps alive."""
        return carray(_pointer(address), (count,))  # type: ignore[call-overload,no-any-return,unused-ignore]

    @kernel
    def where(array: Words) -> int:
        """The address of the array's first word."""
        return int(array.ctypes.data)

    @kernel
    def where_bytes(array: Bytes) -> int:
        """The address of the array's first byte."""
        return np.int64(array.ctypes.data)  # type: ignore[return-value]


@kernel
def part(array: Words, start: int, count: int) -> Words:
    """``array[start : start + count]`` as a view that counts no references: the caller keeps the array alive.

    To numba a use of ``array`` after that of the view does so; a kernel that passes many arrays on in a loop is twice
    as fast with such views.
    """
    return words_at(where(array) + 8 * start, count)


@kernel
def borrowed(array: Words) -> Words:
    """``part`` of all of an array."""
    return part(array, 0, len(array))


def address(array: NDArray[Any]) -> int:
    """The address of a contiguous array's first item, for descriptors; the caller keeps the array alive."""
    if CHECKED:
        assert array.flags.c_contiguous
        admit(array)
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


def lay_out_block(buffer: Words, block: Words, count: int, width: int, diff_width: int, room: int) -> None:
    """``lay_out`` from Python: ``buffer`` is int64[room * (width + 1 + diff_width) or more]."""
    assert 0 <= count <= room
    assert len(buffer) >= room * (width + 1 + diff_width)
    if CHECKED:
        admit(buffer)
    lay_out(buffer, block, count, width, diff_width, room)


def block_descriptor(rows: Words, times: Words, diffs: Words, count: int, room: int) -> Words:
    """The descriptor of a block in arrays of its own: int64[n, width], int64[n] and int64[n, diff_width], contiguous.

    ``count`` of the rows are updates. ``room`` up to n, or 0 where nothing may be written.
    """
    for array in (rows, times, diffs):
        assert array.dtype == np.int64
        assert array.flags.c_contiguous
    assert 0 <= count <= len(rows)
    assert room <= len(rows) == len(times) == len(diffs)
    found = count, rows.shape[1], address(rows), address(times), address(diffs), room, diffs.shape[1]
    return np.array(found, np.int64)


def layer_descriptor(block: Words, count: int, once: bool, fence: int, bits: Words) -> Words:
    """The descriptor of a layer of a trace: the first ``count`` updates of the block with this descriptor.

    ``once``: one time and diff stand for all. ``fence``: its address or 0. ``bits``: a filter of a power of two of
    words, or of none.
    """
    assert count >= 0
    assert len(bits) & (len(bits) - 1) == 0
    stride = 0 if once else 8
    layer = np.zeros(LAYER_WORDS, np.int64)
    layer[L_COUNT] = count
    layer[L_ROWS], layer[L_TIMES], layer[L_DIFFS] = block[B_ROWS], block[B_TIMES], block[B_DIFFS]
    layer[L_TIME_STRIDE], layer[L_DIFF_STRIDE] = stride, stride * block[B_DIFF_WIDTH]
    layer[L_FENCE], layer[L_SIGN] = fence, 1
    layer[L_FILTER], layer[L_MASK] = address(bits) if len(bits) else 0, 64 * len(bits) - 1
    return layer


def trace_head(
    small: Words, width: int, key_width: int, shape: int, diff_width: int, order: int, room: int
) -> Words:  # fmt: skip
    """The descriptor of a trace whose only layer is the small one, empty, in ``small``: int64[room * (width + 1 +
    diff_width)]. ``order``: see ``ivm.kernels.order``."""
    assert 0 <= key_width <= width
    assert len(small) >= room * (width + 1 + diff_width)
    base = address(small)
    head = np.zeros(HEAD + LAYER_WORDS, np.int64)
    head[T_WIDTH], head[T_KEY_WIDTH], head[T_SHAPE], head[T_DIFF_WIDTH] = width, key_width, shape, diff_width
    head[T_ORDER], head[T_ROOM] = order, room
    layer = head[HEAD:]
    layer[L_ROWS], layer[L_TIMES] = base, base + 8 * room * width
    layer[L_DIFFS] = base + 8 * room * (width + 1)
    layer[L_TIME_STRIDE], layer[L_DIFF_STRIDE], layer[L_SIGN] = 8, 8 * diff_width, 1
    return head


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
