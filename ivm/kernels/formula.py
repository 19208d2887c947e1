"""Formulas: expressions over the words of rows, encoded as words that one kernel interprets.

A formula is a head, steps, then its outputs. It works on strips of rows, column by column: a register holds a word and
a null flag for each row of a strip (a NULL's word is 0), and a step computes a register from others. A formula fails as
a whole, without saying why, if a row selected by a step's mask overflows, divides by zero, or is otherwise not covered;
the caller then evaluates all of the rows in its own way.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.kernels.cache import kernel
from ivm.kernels.codes import (
    ADD,
    AND,
    BITS_AND,
    BITS_OR,
    BITS_XOR,
    CHOOSE,
    COMPARE,
    CONST,
    DISTINCT,
    DIVIDE,
    FIT,
    FORMULA_HEAD,
    FROM_DECIMAL,
    H_BITS,
    H_KEEP,
    H_REGISTERS,
    H_STEPS,
    H_WEIGHTS,
    H_WIDTH,
    IS,
    LOAD,
    MULTIPLY,
    OR,
    REMAINDER,
    SAME_SCALE,
    SHIFT,
    STEP_WORDS,
    SUBTRACT,
    TO_DECIMAL,
)  # fmt: skip
from ivm.kernels.memory import B_COUNT, B_DIFF_WIDTH, B_DIFFS, B_ROWS, B_TIMES, B_WIDTH, load, store
from ivm.rows import Words

STRIP: Final = 256
"""The rows of a strip, evaluated at once."""

LEAST: Final = -(2**63)
_HALF: Final = np.uint64(1 << 31)
_HALF_BITS: Final = np.uint64(32)
DECIMAL_BITS: Final = 58
"""The bits of an inline decimal's mantissa."""


@kernel
def _calculate(
    how: int, out: Words, none: Words, a: Words, b: Words, a_none: Words, b_none: Words, mask: Words, bits: int
) -> int:  # fmt: skip
    """Computes sums, differences, products. Returns non-zero if one fails."""
    spare = 64 - bits
    bad = 0
    for i in range(len(out)):
        x, y = a[i], b[i]
        # unsigned words wrap; numba lets LLVM assume that signed ones never overflow, and so drop the checks
        u, v = np.uint64(x), np.uint64(y)
        over = np.int64(0)
        if how == ADD:
            value = np.int64(u + v)
            over = (x ^ value) & (y ^ value)
        elif how == SUBTRACT:
            value = np.int64(u - v)
            over = (x ^ y) & (x ^ value)
        else:
            value = np.int64(u * v)
            small = ((u + _HALF) | (v + _HALF)) >> _HALF_BITS == 0
            if not small and x != 0 and ((x == -1 and y == LEAST) or value // x != y):
                over = np.int64(-1)
        null = a_none[i] | b_none[i]
        bad |= (((value << spare) >> spare) ^ value | (over >> 63)) & (null - 1) & -mask[i]
        out[i] = value & (null - 1)
        none[i] = null
    return int(bad)


@kernel
def _divide(
    how: int, out: Words, none: Words, a: Words, b: Words, a_none: Words, b_none: Words, mask: Words, bits: int
) -> int:  # fmt: skip
    """Computes quotients and remainders. Returns non-zero if one fails."""
    spare = 64 - bits
    bad = 0
    for i in range(len(out)):
        x, y = a[i], b[i]
        null = a_none[i] | b_none[i]
        counts = (null - 1) & -mask[i]
        if y == 0:
            bad |= counts
            y = 1
        if y == -1:  # machine division traps at the least integer
            value = 0 if how == REMAINDER or x == LEAST else -x
            if how == DIVIDE and x == LEAST:
                bad |= counts
        else:
            quotient = x // y
            if quotient * y != x and (x ^ y) < 0:
                quotient += 1  # floor division is one too low where signs differ and there is a remainder
            value = x - quotient * y if how == REMAINDER else quotient
        bad |= (((value << spare) >> spare) ^ value) & counts
        out[i] = value & (null - 1)
        none[i] = null
    return int(bad)


@kernel
def _combine(
    how: int, out: Words, none: Words, a: Words, b: Words, a_none: Words, b_none: Words, constant: int
) -> None:  # fmt: skip
    """Bit operations, comparisons, and other steps of two registers that never fail."""
    for i in range(len(out)):
        x, y = a[i], b[i]
        null = a_none[i] | b_none[i]
        value = 0
        if how == COMPARE:
            value = (constant >> (1 + int(x > y) - int(x < y))) & 1
        elif how == AND:
            value = x & y
            null &= 1 - ((1 - x) & (1 - a_none[i]) | (1 - y) & (1 - b_none[i]))
        elif how == OR:
            value = x | y
            null &= 1 - value
        elif how == DISTINCT:
            value = ((a_none[i] ^ b_none[i]) | int(x != y)) ^ constant
            null = 0
        elif how == BITS_AND:
            value = x & y
        elif how == BITS_OR:
            value = x | y
        else:
            value = x ^ y
        out[i] = value & (null - 1)
        none[i] = null


@kernel
def _convert(
    how: int, out: Words, none: Words, a: Words, b: Words, a_none: Words, b_none: Words, mask: Words, constant: int
) -> int:  # fmt: skip
    """Runs steps that read one register, or check it by another. Returns non-zero if a row fails."""
    bad = 0
    for i in range(len(out)):
        value = a[i]
        null = a_none[i]
        wrong = 0
        if how == IS:
            value = (constant >> (2 if null != 0 else value & 1)) & 1
            null = 0
        elif how == SHIFT:
            value = value << constant if constant >= 0 else value >> -constant
        elif how == FIT:
            wrong = (value << (64 - constant)) >> (64 - constant) ^ value
        elif how == TO_DECIMAL:
            wrong = (value << (64 - DECIMAL_BITS)) >> (64 - DECIMAL_BITS) ^ value
            value = value << 6 | constant << 1
        elif how == FROM_DECIMAL:
            wrong = value & 63
            value >>= 6
            wrong |= (value << (64 - constant)) >> (64 - constant) ^ value
        elif how == SAME_SCALE:
            wrong = ((value | b[i]) & 1 | (value ^ b[i]) & 63) & (b_none[i] - 1)
        else:
            bad |= null & mask[i]
        bad |= wrong & (null - 1) & -mask[i]
        out[i] = value & (null - 1)
        none[i] = null
    return int(bad)


@kernel
def _choose(out: Words, none: Words, a: Words, b: Words, a_none: Words, b_none: Words, mask: Words) -> None:
    for i in range(len(out)):
        out[i] = a[i] if mask[i] != 0 else b[i]
        none[i] = a_none[i] if mask[i] != 0 else b_none[i]


@kernel
def _load(out: Words, none: Words, word: int, null_word: int, stride: int, bit: int) -> None:
    """Loads a column: the addresses of its first word and null word (0: none), and the bytes from row to row."""
    for i in range(len(out)):
        out[i] = load(word + stride * i)
    if null_word == 0:
        none[:] = 0
    else:
        for i in range(len(none)):
            none[i] = (load(null_word + stride * i) >> bit) & 1


@kernel
def _step(
    formula: Words, at: int, rows: int, width: int, words: Words, nulls: Words, room: int, count: int
) -> int:  # fmt: skip
    """Runs one step on a strip of ``count`` rows at an address. Returns non-zero if a row fails."""
    how = formula[at]
    target = formula[at + 1] * room
    out = words[target : target + count]
    none = nulls[target : target + count]
    constant = formula[at + 5]
    if how == LOAD:
        null_word = formula[at + 3]
        _load(out, none, rows + 8 * formula[at + 2], 0 if null_word < 0 else rows + 8 * null_word, 8 * width, constant)
        return 0
    if how == CONST:
        out[:] = constant
        none[:] = formula[at + 2]
        return 0
    first, second, third = formula[at + 2] * room, formula[at + 3] * room, formula[at + 4] * room
    a, a_none = words[first : first + count], nulls[first : first + count]
    b, b_none = words[second : second + count], nulls[second : second + count]
    mask = words[third : third + count]
    if how <= MULTIPLY:
        return int(_calculate(how, out, none, a, b, a_none, b_none, mask, constant))
    if how in (DIVIDE, REMAINDER):
        return int(_divide(how, out, none, a, b, a_none, b_none, mask, constant))
    if how == CHOOSE:
        _choose(out, none, a, b, a_none, b_none, mask)
        return 0
    if how in (BITS_AND, BITS_OR, BITS_XOR, COMPARE, AND, OR, DISTINCT):
        _combine(how, out, none, a, b, a_none, b_none, constant)
        return 0
    return int(_convert(how, out, none, a, b, a_none, b_none, mask, constant))


@kernel
def _write(formula: Words, rows: int, width: int, words: Words, nulls: Words, room: int, i: int, target: int) -> None:
    """Writes row i of a strip's result to an address; ``rows`` is the strip's input."""
    at = FORMULA_HEAD + STEP_WORDS * formula[H_STEPS]
    for k in range(formula[H_WIDTH]):
        given = formula[at + k]
        word = words[given * room + i] if given >= 0 else load(rows + 8 * (width * i + ~given))
        store(target + 8 * k, word)
    at += formula[H_WIDTH]
    for _ in range(formula[H_BITS]):
        place = target + 8 * formula[at]
        store(place, load(place) | nulls[formula[at + 2] * room + i] << formula[at + 1])
        at += 3


@kernel
def apply_formula(formula: Words, rows: int, width: int, count: int, target: int, sources: Words, weights: int) -> int:
    """Writes the results of kept rows to ``target``, one after the other, the input row of each to ``sources``, and its
    weights, if any, to the address ``weights``. Returns how many, -1 if the formula fails."""
    room = min(count, STRIP)
    registers = formula[H_REGISTERS]
    words = np.empty(registers * room, np.int64)
    nulls = np.empty(registers * room, np.int64)
    keep = formula[H_KEEP] * room
    weighing = formula[H_WEIGHTS]
    weigh = FORMULA_HEAD + STEP_WORDS * formula[H_STEPS] + formula[H_WIDTH] + 3 * formula[H_BITS]
    out = 0
    start = 0
    while start < count:
        strip = rows + 8 * width * start
        size = min(room, count - start)
        for k in range(formula[H_STEPS]):
            if _step(formula, FORMULA_HEAD + STEP_WORDS * k, strip, width, words, nulls, room, size) != 0:
                return -1
        for i in range(size):
            if words[keep + i] != 0:
                _write(formula, strip, width, words, nulls, room, i, target + 8 * formula[H_WIDTH] * out)
                for k in range(weighing):
                    store(weights + 8 * (weighing * out + k), words[formula[weigh + k] * room + i])
                sources[out] = start + i
                out += 1
        start += size
    return out


@kernel
def map_block(source: Words, target: Words, formula: Words) -> int:
    """Appends the source's updates, each row through the formula, to the target, which has room.

    Returns the target's count; -1, with the target unchanged, if the formula fails for a row.
    """
    count = source[B_COUNT]
    start = target[B_COUNT]
    if count == 0:
        return int(start)
    diffs = target[B_DIFFS] + 8 * target[B_DIFF_WIDTH] * start
    sources = np.empty(count, np.int64)
    made = apply_formula(
        formula, source[B_ROWS], source[B_WIDTH], count, target[B_ROWS] + 8 * target[B_WIDTH] * start, sources, diffs
    )
    if made < 0:
        return -1
    weighing = formula[H_WEIGHTS]
    for n in range(made):
        i = sources[n]
        store(target[B_TIMES] + 8 * (start + n), load(source[B_TIMES] + 8 * i))
        diff = load(source[B_DIFFS] + 8 * i)
        if weighing == 0:
            store(diffs + 8 * n, diff)
        for k in range(weighing):
            place = diffs + 8 * (weighing * n + k)
            store(place, diff * load(place))
    target[B_COUNT] = start + made
    return int(start + made)
