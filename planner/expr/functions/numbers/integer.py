"""Arithmetic and bit operators of smallint, integer and bigint, with Postgres's result types and overflow errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Final

import numpy as np

from ivm.errors import SqlError
from ivm.formula import TRUE, Register
from ivm.rows import Mask, Words
from ivm.stops import poll
from ivm.words import INT2, INT4, INT8, NUMERIC, Kind, SqlType
from planner.expr.comparison import Comparison
from planner.expr.functions.formula import BITS, FormulaRule, FormulaSite
from planner.expr.functions.numbers.numeric_math import division_by_zero
from planner.expr.functions.table import CallSite, Raises, per_value, vectorised
from storage.types.numeric import WIDE

INTEGERS: Final = (INT2, INT4, INT8)
_LEAST8: Final = -(2**63)
_NAMES: Final = {Kind.INT2: "smallint", Kind.INT4: "integer", Kind.INT8: "bigint"}
_FEW_FACTORS: Final = 400
_SAFE_FACTOR: Final = float(2**62)


def out_of_range(type: SqlType) -> SqlError:
    """The error 22003 in Postgres's words."""
    return SqlError("22003", f"{_NAMES[type.kind]} out of range")


def wider(left: SqlType, right: SqlType) -> SqlType:
    """The result type of an operator on two integer types."""
    return max(left, right, key=lambda t: BITS[t.kind])


def fails_range(words: Words, type: SqlType) -> Mask:
    """Whether each word is out of range of a type narrower than bigint."""
    bits = BITS[type.kind]
    fails: Mask = ((words + np.int64(1 << (bits - 1))) >> np.int64(bits)) != 0
    return fails


def _narrow(site: CallSite, words: Words) -> Words:
    """Checks exact results against the result type."""
    if site.result.kind is not Kind.INT8:
        site.fail_where(fails_range(words, site.result), out_of_range(site.result))
    return words


def _add(site: CallSite, left: Words, right: Words) -> Words:
    total = left + right
    if site.result.kind is Kind.INT8:
        site.fail_where(((left ^ total) & (right ^ total)) < 0, out_of_range(site.result))
    return _narrow(site, total)


def _subtract(site: CallSite, left: Words, right: Words) -> Words:
    total = left - right
    if site.result.kind is Kind.INT8:
        site.fail_where(((left ^ right) & (left ^ total)) < 0, out_of_range(site.result))
    return _narrow(site, total)


def product_overflows(left: Words, right: Words) -> Words:
    """The rows whose product does not fit an int64: doubles find the few candidates, exact integers decide."""
    estimate = np.abs(left.astype(np.float64) * right.astype(np.float64))
    rows = np.flatnonzero(np.broadcast_to(estimate >= _SAFE_FACTOR, np.broadcast(left, right).shape))
    if not len(rows):
        return rows
    pairs = zip(left[rows].tolist(), right[rows].tolist(), strict=True)
    return rows[[not _LEAST8 <= a * b < 2**63 for a, b in pairs]]


def _multiply(site: CallSite, left: Words, right: Words) -> Words:
    if site.result.kind is Kind.INT8:
        site.fail(product_overflows(left, right), out_of_range(site.result))
    return _narrow(site, left * right)


def _checked_divisor(site: CallSite, right: Words) -> Words:
    zero = right == 0
    if not np.count_nonzero(zero):
        return right
    site.fail_where(zero, division_by_zero())
    return np.where(zero, np.int64(1), right)


def _divide(site: CallSite, left: Words, right: Words) -> Words:
    divisor = _checked_divisor(site, right)
    lost = (left == _LEAST8) & (divisor == -1)
    if np.count_nonzero(lost):
        site.fail_where(lost, out_of_range(site.result))
        divisor = np.where(lost, np.int64(1), divisor)
    quotient = left // divisor
    # floor division is one too low where signs differ and there is a remainder
    inexact = (quotient * divisor != left) & ((left ^ divisor) < 0)
    return _narrow(site, quotient + inexact)


def _modulo(site: CallSite, left: Words, right: Words) -> Words:
    divisor = _checked_divisor(site, right)
    # x % -1 is 0, but traps for the smallest bigint
    return np.fmod(left, np.where(divisor == -1, np.int64(1), divisor))


def _bits(operation: Callable[[Words, Words], Words]) -> Callable[[CallSite, Words, Words], Words]:
    return lambda _site, left, right: operation(left, right)


def _shifted(site: CallSite, left: Words, right: Words, to_left: bool) -> Words:
    bits = BITS[site.args[0].kind]
    # C shifts a smallint as an int, and x86 reduces the count modulo the width
    count = right & np.int64(63 if bits == 64 else 31)
    if not to_left:
        return left >> count
    words = left << count
    return words if bits == 64 else (words << np.int64(64 - bits)) >> np.int64(64 - bits)


def _negate(site: CallSite, words: Words) -> Words:
    if site.result.kind is Kind.INT8:
        site.fail_where(words == _LEAST8, out_of_range(site.result))
    return _narrow(site, -words)


def _absolute(site: CallSite, words: Words) -> Words:
    if site.result.kind is Kind.INT8:
        site.fail_where(words == _LEAST8, out_of_range(site.result))
    return _narrow(site, np.abs(words))


def _magnitude(f: FormulaSite, a: Register) -> Register:
    negative = f.test(f.compare(Comparison.LESS, a, f.constant(0)), TRUE)
    return f.choose(negative, f.where(negative).subtract(f.constant(0), a), a)


def _words(
    name: str, args: tuple[SqlType, ...], implementation: Callable[..., Words], formula: FormulaRule | None = None
) -> None:
    """Adds an operator that is defined on all words and has its first argument's type as result."""
    vectorised(name, args, args[0], total=True, makes_null=False, formula=formula)(implementation)


for _left in INTEGERS:
    for _right in INTEGERS:
        _pair, _result = (_left, _right), wider(_left, _right)
        vectorised(
            "+", _pair, _result, makes_null=False, raises=Raises.OVERFLOW, commutative=True, follows=(1, 1),
            formula=lambda f, a, b: f.add(a, b),
        )(_add)  # fmt: skip
        vectorised(
            "-", _pair, _result, makes_null=False, raises=Raises.OVERFLOW, follows=(1, -1),
            formula=lambda f, a, b: f.subtract(a, b),
        )(_subtract)  # fmt: skip
        vectorised(
            "*", _pair, _result, makes_null=False, raises=Raises.OVERFLOW, commutative=True,
            formula=lambda f, a, b: f.multiply(a, b),
        )(_multiply)  # fmt: skip
        vectorised("/", _pair, _result, makes_null=False, formula=lambda f, a, b: f.divide(a, b))(_divide)
    _one, _two, _shift = (_left,), (_left, _left), (_left, INT4)
    for _name in ("%", "mod"):
        vectorised(_name, _two, _left, makes_null=False, formula=lambda f, a, b: f.remainder(a, b))(_modulo)
    _words("&", _two, _bits(np.bitwise_and), lambda f, a, b: f.bits_and(a, b))
    _words("|", _two, _bits(np.bitwise_or), lambda f, a, b: f.bits_or(a, b))
    _words("#", _two, _bits(np.bitwise_xor), lambda f, a, b: f.bits_xor(a, b))
    _words("~", _one, lambda _site, words: ~words, lambda f, a: f.bits_xor(a, f.constant(-1)))
    _words("<<", _shift, lambda site, a, b: _shifted(site, a, b, True))
    _words(">>", _shift, lambda site, a, b: _shifted(site, a, b, False))
    _words("+", _one, lambda _site, words: words, lambda f, a: a)
    vectorised(
        "-", _one, _left, makes_null=False, raises=Raises.OVERFLOW, formula=lambda f, a: f.subtract(f.constant(0), a)
    )(_negate)
    vectorised("abs", _one, _left, makes_null=False, formula=_magnitude)(_absolute)
    vectorised("@", _one, _left, formula=_magnitude)(_absolute)


def _common(type: SqlType, value: int) -> int:
    if value >= 1 << (BITS[type.kind] - 1):
        raise out_of_range(type)
    return value


for _type in (INT4, INT8):
    per_value("gcd", (_type, _type), _type, needs_site=True)(lambda site, a, b: _common(site.result, math.gcd(a, b)))
    per_value("lcm", (_type, _type), _type, needs_site=True)(lambda site, a, b: _common(site.result, math.lcm(a, b)))


@per_value("factorial", (INT8,), NUMERIC)
def factorial(value: int) -> Decimal:
    if value < 0:
        raise SqlError("22003", "factorial of a negative number is undefined")
    if value > 32177:
        raise SqlError("22003", "value overflows numeric format")
    return _product(1, value)


def _product(first: int, last: int) -> Decimal:
    """The product of the integers from ``first`` to ``last``, in halves: Decimal multiplies long numbers fast."""
    if last - first < _FEW_FACTORS:
        return Decimal(math.prod(range(first, last + 1)))
    poll()
    middle = (first + last) // 2
    return WIDE.multiply(_product(first, middle), _product(middle + 1, last))
