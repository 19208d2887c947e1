"""Moving updates between blocks: gather, append, and extracting those at one loop vector."""

from __future__ import annotations

from typing import Final

from ivm.kernels.cache import kernel
from ivm.kernels.memory import B_COUNT, B_DIFF_WIDTH, B_DIFFS, B_ROWS, B_TIMES, B_WIDTH, copy_words, load, store
from ivm.kernels.times import rounds, unwrap, wrap
from ivm.rows import Words

# A gather program: counts of words, bits and drops, the left row's width, the key width, then the entries.
P_WORDS: Final = 0
P_BITS: Final = 1
P_DROPS: Final = 2
P_LEFT: Final = 3
P_KEY: Final = 4
PROGRAM_HEAD: Final = 5

# How ``transfer`` changes times.
SAME: Final = 0
ENTER: Final = 1
LEAVE: Final = 2
NEXT: Final = 3


@kernel
def _word(left: int, right: int, program: Words, index: int) -> int:
    """Word ``index`` of [key | left val | right val]."""
    if index < program[P_LEFT]:
        return load(left + 8 * index)
    return load(right + 8 * (index - program[P_LEFT] + program[P_KEY]))


@kernel
def gather_row(left: int, right: int, program: Words, target: int) -> bool:
    """Writes the gathered row to the address ``target``; False when it is dropped."""
    words = program[P_WORDS]
    at = PROGRAM_HEAD + words
    if program[P_BITS] != 0 or program[P_DROPS] != 0:
        drops = at + 4 * program[P_BITS]
        for k in range(program[P_DROPS]):
            bit = _word(left, right, program, program[drops + 2 * k]) >> program[drops + 2 * k + 1]
            if bit & 1 != 0:
                return False
    for k in range(words):
        index = program[PROGRAM_HEAD + k]
        store(target + 8 * k, 0 if index < 0 else _word(left, right, program, index))
    for k in range(program[P_BITS]):
        entry = at + 4 * k
        bit = (_word(left, right, program, program[entry]) >> program[entry + 1]) & 1
        place = target + 8 * program[entry + 2]
        store(place, load(place) | (bit << program[entry + 3]))
    return True


@kernel
def _column(source: Words, to: int, step: int, program: Words, word: int) -> None:
    """Writes one word of each gathered row of a block, ``step`` bytes apart."""
    index = program[PROGRAM_HEAD + word]
    if index >= program[P_LEFT]:
        index += program[P_KEY] - program[P_LEFT]
    size = 8 * source[B_WIDTH]
    row = source[B_ROWS] + 8 * index
    for i in range(source[B_COUNT]):
        store(to + step * i, 0 if index < 0 else load(row + size * i))


@kernel
def gather(source: Words, target: Words, program: Words) -> int:
    """Appends the source's updates, gathered, to the target, which has room; returns the target's count."""
    width = source[B_WIDTH]
    out_width = target[B_WIDTH]
    diff_width = source[B_DIFF_WIDTH]
    out = target[B_COUNT]
    if program[P_BITS] == 0 and program[P_DROPS] == 0:
        count = source[B_COUNT]
        for k in range(program[P_WORDS]):
            _column(source, target[B_ROWS] + 8 * (out_width * out + k), 8 * out_width, program, k)
        copy_words(source[B_TIMES], target[B_TIMES] + 8 * out, count)
        copy_words(source[B_DIFFS], target[B_DIFFS] + 8 * diff_width * out, diff_width * count)
        target[B_COUNT] = out + count
        return int(out + count)
    for i in range(source[B_COUNT]):
        row = source[B_ROWS] + 8 * width * i
        if gather_row(row, row, program, target[B_ROWS] + 8 * out_width * out):
            store(target[B_TIMES] + 8 * out, load(source[B_TIMES] + 8 * i))
            copy_words(source[B_DIFFS] + 8 * diff_width * i, target[B_DIFFS] + 8 * diff_width * out, diff_width)
            out += 1
    target[B_COUNT] = out
    return int(out)


@kernel
def transfer(source: Words, target: Words, sign: int, change: int, shape: int, to_shape: int) -> int:
    """Appends the source's updates to the target, which has room, diffs times ``sign``; returns the target's count.

    ``change``: SAME; ENTER from ``shape`` to ``to_shape``; LEAVE ``shape``; NEXT round of ``shape``.
    """
    count = source[B_COUNT]
    width = source[B_WIDTH]
    diff_width = source[B_DIFF_WIDTH]
    out = target[B_COUNT]
    copy_words(source[B_ROWS], target[B_ROWS] + 8 * width * out, width * count)
    for i in range(count):
        time = load(source[B_TIMES] + 8 * i)
        if change == ENTER:
            time = wrap(time, shape, to_shape)
        elif change == LEAVE:
            time = unwrap(time, shape)
        elif change == NEXT:
            time += 1
        store(target[B_TIMES] + 8 * (out + i), time)
    to = target[B_DIFFS] + 8 * diff_width * out
    for i in range(count * diff_width):
        store(to + 8 * i, sign * load(source[B_DIFFS] + 8 * i))
    target[B_COUNT] = out + count
    return int(out + count)


@kernel
def extract(source: Words, target: Words, vector: int, shape: int) -> int:
    """Moves the source's updates at a loop vector to the end of the target, which has room.

    Returns the least loop vector left in the source, -1 if it is empty.
    """
    width = source[B_WIDTH]
    diff_width = source[B_DIFF_WIDTH]
    kept = 0
    out = target[B_COUNT]
    least = -1
    for i in range(source[B_COUNT]):
        time = load(source[B_TIMES] + 8 * i)
        found = rounds(time, shape)
        row = source[B_ROWS] + 8 * width * i
        diff = source[B_DIFFS] + 8 * diff_width * i
        if found == vector:
            copy_words(row, target[B_ROWS] + 8 * width * out, width)
            store(target[B_TIMES] + 8 * out, time)
            copy_words(diff, target[B_DIFFS] + 8 * diff_width * out, diff_width)
            out += 1
            continue
        if least < 0 or found < least:
            least = found
        copy_words(row, source[B_ROWS] + 8 * width * kept, width)
        store(source[B_TIMES] + 8 * kept, time)
        copy_words(diff, source[B_DIFFS] + 8 * diff_width * kept, diff_width)
        kept += 1
    source[B_COUNT] = kept
    target[B_COUNT] = out
    return least


@kernel
def least_vector(source: Words, start: int, shape: int) -> int:
    """The least loop vector among the updates from ``start`` on, -1 when there is none."""
    least = -1
    for i in range(start, source[B_COUNT]):
        found = rounds(load(source[B_TIMES] + 8 * i), shape)
        if least < 0 or found < least:
            least = found
    return least
