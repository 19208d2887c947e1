"""to_char of numbers, after PostgreSQL's ``formatting.c`` in the C locale.

Each type makes its digits by a rule of its own.
"""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from typing import Final

import numpy as np

from ivm.errors import SqlError
from planner.expr.functions.formatting.number_template import NumberTemplate, number_template
from planner.expr.functions.formatting.number_writer import write_number
from storage.types.numeric import WIDE, numeric_text

_ROMAN: Final = (
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"),
    (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
)  # fmt: skip
_INT4: Final = (-(2**31), 2**31)
_INT8: Final = (-(2**63), 2**63)


def format_int4(value: int, text: str) -> str:
    """to_char of an int4, which wraps around if V multiplies it beyond its range, as in C."""
    t = number_template(text)
    if t.roman:
        return write_number(t, _roman(value))
    if t.scientific:
        return _signed(f"{float(value):+.{t.post}e}")
    if t.multiplied:
        factor = 10**t.multi if 10**t.multi < _INT4[1] else _INT4[0]
        value = (value * factor + _INT4[1]) % 2**32 - _INT4[1]
    return _plain(t, _with_zeros(value, t))


def format_int8(value: int, text: str) -> str:
    """to_char of an int8. Raises 22003 if V multiplies it beyond its range."""
    t = number_template(text)
    if t.roman:
        return write_number(t, _roman(_int4(value)))
    if t.scientific:
        return _exponential(Decimal(value), t)
    if t.multiplied:
        value *= 10**t.multi
        if not (_INT8[0] <= value < _INT8[1] and 10**t.multi < _INT8[1]):
            raise SqlError("22003", "bigint out of range")
    return _plain(t, _with_zeros(value, t))


def format_numeric(value: Decimal, text: str) -> str:
    """to_char of a numeric."""
    t = number_template(text)
    if t.roman:
        if not value.is_finite():
            what = "NaN" if value.is_nan() else "infinity"
            raise SqlError("0A000", f"cannot convert {what} to integer")
        return write_number(t, _roman(_int4(int(WIDE.quantize(value, Decimal(1))))))
    if t.scientific:
        return _exponential(value, t) if value.is_finite() else _no_exponent(t)
    if t.multiplied:
        value = WIDE.scaleb(value, t.multi)
    return _plain(t, numeric_text(WIDE.quantize(value, Decimal((0, (1,), -t.post))) if value.is_finite() else value))


def format_float(value: float, text: str, digits: int) -> str:
    """to_char of a float, of which no more digits are shown than its type holds: 6 or 15."""
    t = number_template(text)
    if t.roman:
        whole = round(value) if math.isfinite(value) else _INT4[0]
        return write_number(t, _roman(whole))
    if t.scientific:
        return _signed(f"{value:+.{t.post}e}") if math.isfinite(value) else _no_exponent(t)
    if t.multiplied:
        value = value * 10.0**t.multi if digits > 6 else float(np.float32(value) * np.float32(10.0**t.multi))
    if not math.isfinite(value):
        return _plain(replace(t, post=_places(3 if math.isnan(value) else 8, t, digits)), numeric_text(Decimal(value)))
    places = _places(len(f"{abs(value):.0f}"), t, digits)
    return _plain(replace(t, post=places), f"{value:.{places}f}")


def _places(whole: int, t: NumberTemplate, digits: int) -> int:
    return 0 if whole >= digits else min(t.post, digits - whole)


def _int4(value: int) -> int:
    if not _INT4[0] <= value < _INT4[1]:
        raise SqlError("22003", "integer out of range")
    return value


def _with_zeros(value: int, t: NumberTemplate) -> str:
    return f"{value}.{'0' * t.post}" if t.post else str(value)


def _plain(t: NumberTemplate, digits: str) -> str:
    """Digits with a sign, as many ``#`` if there are too many."""
    sign, number = ("-", digits[1:]) if digits.startswith("-") else ("+", digits)
    t = replace(t, pre=t.pre + t.multi)
    whole = len(number.partition(".")[0])
    if whole > t.pre:
        number = "#" * t.pre + "." + "#" * t.post
    return write_number(t, number, sign, max(t.pre - whole, 0))


def _signed(text: str) -> str:
    return text.replace("+", " ", 1) if text[0] == "+" else text


def _no_exponent(t: NumberTemplate) -> str:
    """NaN and the infinities have no exponent."""
    text = " " + "#" * (t.pre + t.post + 5)
    return text[: t.pre + 1] + "." + text[t.pre + 2 :]


def _exponential(value: Decimal, t: NumberTemplate) -> str:
    unit = Decimal((0, (1,), -t.post))
    power = value.adjusted() if value else 0
    rounded = WIDE.quantize(WIDE.scaleb(value, -power), unit)
    if abs(rounded) >= 10:
        power, rounded = power + 1, WIDE.quantize(rounded / 10, unit)
    text = f"{rounded:f}e{'-' if power < 0 else '+'}{abs(power):02d}"
    return text if text.startswith("-") else " " + text


def _roman(number: int) -> str:
    if not 1 <= number <= 3999:
        return "#" * 15
    out = ""
    for size, letters in _ROMAN:
        out += letters * (number // size)
        number %= size
    return out
