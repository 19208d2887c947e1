"""Delaying rows to the round of their priority."""

from __future__ import annotations

from typing import Final

from ivm.kernels.cache import kernel
from ivm.kernels.memory import B_COUNT, B_DIFF_WIDTH, B_DIFFS, B_ROWS, B_TIMES, B_WIDTH, copy_words, load, store
from ivm.kernels.times import last_mask, rounds
from ivm.rows import Words

# A delay's program: the row's word, how it gives the priority, the rounds of a priority, the last round, and whether
# rows past it are dropped (otherwise they come at the last round).
D_WORD: Final = 0
D_PRIORITY: Final = 1
D_STRIDE: Final = 2
D_LAST: Final = 3
D_DROPS: Final = 4
DELAY_WORDS: Final = 5

# A row's priority: the word itself; its bit length; 63 minus that. Negative words have priority 0 in the first two.
VALUE: Final = 0
LENGTH: Final = 1
INVERSE: Final = 2


@kernel
def bit_length(word: int) -> int:
    """The bits of a word without its leading zeros; 0 for a negative one."""
    if word <= 0:
        return 0
    count = 1
    for shift in (32, 16, 8, 4, 2, 1):
        if word >> shift != 0:
            word >>= shift
            count += shift
    return count


@kernel
def delay(given: Words, out: Words, later: Words, how: Words, vector: int, shape: int) -> None:
    """Appends each update at its own time or the round of its row's priority, whichever is later: those at the loop
    vector to ``out``, others to ``later``. Both have room."""
    width = given[B_WIDTH]
    diff_width = given[B_DIFF_WIDTH]
    mask = last_mask(shape)
    for i in range(given[B_COUNT]):
        row = given[B_ROWS] + 8 * width * i
        word = load(row + 8 * how[D_WORD])
        if how[D_PRIORITY] == VALUE:
            priority = max(word, 0)
        elif how[D_PRIORITY] == LENGTH:
            priority = bit_length(word)
        else:
            priority = 63 - bit_length(word)
        last = how[D_LAST]
        least = last + 1 if priority > last // how[D_STRIDE] else priority * how[D_STRIDE]
        if least > last:
            if how[D_DROPS] != 0:
                continue
            least = last
        time = load(given[B_TIMES] + 8 * i)
        if (time & mask) < least:
            time = (time & ~mask) | least
        target = out if rounds(time, shape) == vector else later
        n = target[B_COUNT]
        copy_words(row, target[B_ROWS] + 8 * width * n, width)
        store(target[B_TIMES] + 8 * n, time)
        copy_words(given[B_DIFFS] + 8 * diff_width * i, target[B_DIFFS] + 8 * diff_width * n, diff_width)
        target[B_COUNT] = n + 1
