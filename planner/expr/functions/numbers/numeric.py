"""numeric: addition, subtraction and multiplication vectorised over inline words, the rest value by value.

The evaluator has converted numeric(p, s) arguments to unconstrained NUMERIC words.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import partial
from typing import Final

import numpy as np

from ivm.errors import SqlError
from ivm.kernels.numeric_codes import (
    ABSOLUTE,
    ADD,
    CEILING,
    DIVIDE,
    FLOOR,
    MODULO,
    MULTIPLY,
    NEGATE,
    ROUND,
    SUBTRACT,
    TRUNCATE,
)
from ivm.rows import Mask, Words
from ivm.stops import poll
from ivm.words import INT4, NUMERIC
from planner.expr.functions.numbers import columns
from planner.expr.functions.numbers import numeric_math as maths
from planner.expr.functions.numbers.float import check_buckets
from planner.expr.functions.table import CallSite, Made, per_value, vectorised
from storage.text_columns import TooLarge
from storage.types.numeric import (
    INLINE_LIMIT,
    INLINE_SCALE,
    SCALE_BITS,
    WIDE,
    aligned,
    decode_numeric,
    encode_numeric,
    inline_parts,
    inline_words,
    scale_of,
)  # fmt: skip
from storage.types.order import canonical_numeric

_Pair = Callable[[Decimal, Decimal], Decimal]
_ByKernel = Callable[..., Made]
_FEW: Final = 32
"""Up to so many rows are computed one by one."""
_PART: Final = 1 << 14
"""Rows between two looks at whether the work is to end."""
_SAFE_PRODUCT: Final = float(2**56)


def _wide(site: CallSite, wide: Mask, result: Words, operation: _Pair, by_kernel: _ByKernel, *given: Words) -> None:
    """Writes the results of rows of long numerics, few by ``operation``, many ``by_kernel`` as far as it knows them."""
    rows = np.flatnonzero(wide)
    left = []
    for at in range(0, len(rows) if len(rows) > _FEW else 0, _PART):
        poll()
        part = rows[at : at + _PART]
        try:
            made = by_kernel(*[words[part] for words in given], site.context.dictionary)
        except TooLarge:
            left.append(part)
            continue
        result[part] = made.words
        if made.rest is not None:
            left.append(part[made.rest])
    rest = rows if len(rows) <= _FEW else np.concatenate(left) if left else rows[:0]
    _by_value(site, rest, result, operation, given[0], given[-1])


def _by_value(site: CallSite, rows: Words, result: Words, operation: _Pair, left: Words, right: Words) -> None:
    """Writes ``operation`` of the rows' values into ``result``, once for each distinct pair."""
    dictionary = site.context.dictionary
    known: dict[tuple[int, int], int | SqlError] = {}
    for row, a, b in zip(rows.tolist(), left[rows].tolist(), right[rows].tolist(), strict=True):
        found = known.get((a, b))
        if found is None:
            poll()  # numbers may be long
            try:
                value = operation(decode_numeric(a, dictionary), decode_numeric(b, dictionary))
                found = encode_numeric(maths.checked(value), dictionary)
            except SqlError as error:
                found = error.with_traceback(None)
            known[a, b] = found
        if isinstance(found, SqlError):
            site.fail(np.array([row]), found)
        else:
            result[row] = found


def _sum(site: CallSite, left: Words, right: Words, sign: int) -> Words:
    if not np.count_nonzero((left ^ right) & SCALE_BITS | (left & 1)):
        # inline and of one scale: the words add, and overflow, as their mantissas do
        moved = right & ~SCALE_BITS
        total = left + moved if sign > 0 else left - moved
        lost = (left ^ total) & ((moved if sign > 0 else ~moved) ^ total)
        if not np.count_nonzero(lost < 0):
            return total
    return _general_sum(site, left, right, sign)


def _general_sum(site: CallSite, left: Words, right: Words, sign: int) -> Words:
    (m1, s1), (m2, s2) = inline_parts(left), inline_parts(right)
    wide = ((left | right) & 1) != 0
    if np.count_nonzero(s1 != s2):
        scale = np.maximum(s1, s2)
        (m1, lost1), (m2, lost2) = aligned(m1, scale - s1), aligned(m2, scale - s2)
        wide |= lost1 | lost2
    else:
        scale = s1
    total = m1 + m2 if sign > 0 else m1 - m2
    wide |= (total >= INLINE_LIMIT) | (total < -INLINE_LIMIT)
    result = inline_words(total, scale)
    if np.count_nonzero(wide):
        operation, code = (WIDE.add, ADD) if sign > 0 else (WIDE.subtract, SUBTRACT)
        _wide(site, wide, result, operation, partial(columns.computed, code), left, right)
    return result


@vectorised("+", (NUMERIC, NUMERIC), NUMERIC, makes_null=False)
def add(site: CallSite, left: Words, right: Words) -> Words:
    return _sum(site, left, right, 1)


@vectorised("-", (NUMERIC, NUMERIC), NUMERIC, makes_null=False)
def subtract(site: CallSite, left: Words, right: Words) -> Words:
    return _sum(site, left, right, -1)


@vectorised("*", (NUMERIC, NUMERIC), NUMERIC, makes_null=False)
def multiply(site: CallSite, left: Words, right: Words) -> Words:
    (m1, s1), (m2, s2) = inline_parts(left), inline_parts(right)
    scale = s1 + s2
    size = np.abs(m1.astype(np.float64) * m2)
    wide = (((left | right) & 1) != 0) | (scale > INLINE_SCALE) | (size > _SAFE_PRODUCT)
    result = inline_words(m1 * m2, scale)
    if np.count_nonzero(wide):
        _wide(site, wide, result, WIDE.multiply, partial(columns.computed, MULTIPLY), left, right)
    return result


def _unary(
    site: CallSite, words: Words, inline: Callable[[Words], Words], operation: Callable[[Decimal], Decimal], code: int
) -> Words:
    mantissa, scale = inline_parts(words)
    changed = inline(mantissa)
    wide = ((words & 1) != 0) | (changed >= INLINE_LIMIT)
    result = inline_words(changed, scale)
    if np.count_nonzero(wide):
        _wide(site, wide, result, lambda a, _: operation(a), partial(columns.resigned, code), words)
    return result


@vectorised("-", (NUMERIC,), NUMERIC, makes_null=False)
def negate(site: CallSite, words: Words) -> Words:
    return _unary(site, words, np.negative, lambda v: v.copy_negate(), NEGATE)


@vectorised("+", (NUMERIC,), NUMERIC, total=True, makes_null=False)
def plus(_site: CallSite, words: Words) -> Words:
    return words


@vectorised("@", (NUMERIC,), NUMERIC)
@vectorised("abs", (NUMERIC,), NUMERIC, makes_null=False)
def absolute(site: CallSite, words: Words) -> Words:
    return _unary(site, words, np.abs, lambda v: v.copy_abs(), ABSOLUTE)


per_value("/", (NUMERIC, NUMERIC), NUMERIC, makes_null=False, vector=columns.pair(DIVIDE))(maths.divide)
for _name in ("%", "mod"):
    per_value(_name, (NUMERIC, NUMERIC), NUMERIC, makes_null=False, vector=columns.pair(MODULO))(maths.modulo)

for _name, _operation in (
    ("div", maths.whole_quotient),
    ("^", maths.power), ("pow", maths.power), ("power", maths.power), ("gcd", maths.greatest_divisor),
    ("lcm", maths.least_multiple), ("log", maths.logarithm),
):  # fmt: skip
    per_value(_name, (NUMERIC, NUMERIC), NUMERIC, makes_null=False)(_operation)

for _name, _function in (
    ("sqrt", maths.square_root), ("exp", maths.exponential), ("ln", maths.natural_logarithm),
    ("trim_scale", canonical_numeric),
):  # fmt: skip
    per_value(_name, (NUMERIC,), NUMERIC)(_function)


@per_value("log", (NUMERIC,), NUMERIC)
@per_value("log10", (NUMERIC,), NUMERIC)
def common_logarithm(value: Decimal) -> Decimal:
    return maths.logarithm(Decimal(10), value)


for _name, _cut, _form in (
    ("round", maths.round_to, columns.cut(ROUND)), ("trunc", maths.truncate_to, columns.cut(TRUNCATE)),
):  # fmt: skip
    per_value(_name, (NUMERIC, INT4), NUMERIC, makes_null=False, vector=_form)(_cut)
    per_value(_name, (NUMERIC,), NUMERIC, makes_null=False, vector=_form)(_cut)


@per_value("ceil", (NUMERIC,), NUMERIC, makes_null=False, vector=columns.cut(CEILING))
@per_value("ceiling", (NUMERIC,), NUMERIC, makes_null=False, vector=columns.cut(CEILING))
def ceiling(value: Decimal) -> Decimal:
    return value.to_integral_value(ROUND_CEILING, WIDE)


@per_value("floor", (NUMERIC,), NUMERIC, makes_null=False, vector=columns.cut(FLOOR))
def floor(value: Decimal) -> Decimal:
    return value.to_integral_value(ROUND_FLOOR, WIDE)


@per_value("sign", (NUMERIC,), NUMERIC, makes_null=False)
def sign(value: Decimal) -> Decimal:
    return value if value.is_nan() else Decimal((value > 0) - (value < 0))


@per_value("scale", (NUMERIC,), INT4)
def display_scale(value: Decimal) -> int | None:
    """scale: how many fractional digits are shown; NULL for NaN and infinities."""
    return scale_of(value) if value.is_finite() else None


@per_value("min_scale", (NUMERIC,), INT4)
def least_scale(value: Decimal) -> int | None:
    """min_scale: how many fractional digits are needed; NULL for NaN and infinities."""
    return scale_of(canonical_numeric(value)) if value.is_finite() else None


@per_value("width_bucket", (NUMERIC, NUMERIC, NUMERIC, INT4), INT4)
def width_bucket(value: Decimal, low: Decimal, high: Decimal, count: int) -> int:
    """The number of the equal-width bucket; 0 and count + 1 are outside."""
    check_buckets(value, low, high, count)
    if low > high:
        value, low, high = value.copy_negate(), low.copy_negate(), high.copy_negate()
    if value < low:
        return 0
    if value >= high:
        return count + 1
    position = WIDE.multiply(WIDE.subtract(value, low), count)
    return int(maths.whole_quotient(position, WIDE.subtract(high, low))) + 1
