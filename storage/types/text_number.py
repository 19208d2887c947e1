"""Text of booleans, integers, floats and numerics, input and output, as in Postgres."""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation, Overflow
from typing import Final

import numpy as np

from ivm.errors import SqlError

# enough digits for any Postgres numeric (131072 before the point, 16383 after it)
WIDE: Final = Context(prec=150_000, rounding=ROUND_HALF_UP, Emin=-999_999, Emax=999_999)
_SPACE: Final = " \t\n\r\v\f"
_INTEGER: Final = re.compile(r"[+-]?[0-9]+\Z")
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_SPECIALS: Final = {
    "nan": "NaN", "inf": "Infinity", "+inf": "Infinity", "infinity": "Infinity", "+infinity": "Infinity",
    "-inf": "-Infinity", "-infinity": "-Infinity",
}  # fmt: skip
_MAX_NUMERIC_SCALE: Final = 16383
_TRUE: Final = frozenset({"t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"})
_FALSE: Final = frozenset({"f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"})


def syntax_error(label: str, text: str) -> SqlError:
    """22P02, for text that is not a value of the type."""
    return SqlError("22P02", f'invalid input syntax for type {label}: "{text}"')


def parse_bool(text: str) -> bool:
    """Any unique prefix of true, false, yes, no, on, off; 1 and 0."""
    word = text.strip(_SPACE).lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise syntax_error("boolean", text)


def parse_integer(text: str, low: int, high: int, label: str) -> int:
    """An integer within [low, high]. 22P02 for bad syntax, 22003 out of range."""
    body = text.strip(_SPACE)
    if not _INTEGER.match(body):
        raise syntax_error(label, text)
    value = int(body) if len(body) < 4000 else high + 1
    if not low <= value <= high:
        raise SqlError("22003", f'value "{text}" is out of range for type {label}')
    return value


def parse_oid(text: str) -> int:
    """An unsigned 32-bit number; negative ones wrap, as with strtoul."""
    body = text.strip(_SPACE)
    if not _INTEGER.match(body):
        raise syntax_error("oid", text)
    value = int(body)
    if not -(2**31) <= value < 2**32:
        raise SqlError("22003", f'value "{text}" is out of range for type oid')
    return value % 2**32


def parse_float(text: str, label: str) -> float:
    """A double, or a double that a real can represent. Overflow and underflow to zero are 22003, as in Postgres."""
    body = text.strip(_SPACE)
    special = _SPECIALS.get(body.lower())
    if special is not None:
        return float(special)
    if not _DECIMAL.match(body):
        raise syntax_error(label, text)
    value = float(body)
    if label == "real":
        with np.errstate(over="ignore", under="ignore"):
            value = float(np.float32(value))
    if math.isinf(value) or (value == 0.0 and any(c in "123456789" for c in re.split("[eE]", body)[0])):
        raise SqlError("22003", f'"{body}" is out of range for type {label}')
    return value


def parse_numeric(text: str, precision: int | None = None, scale: int | None = None) -> Decimal:
    """A numeric with its display scale, rounded half away from zero to a typmod's scale; 22P02, 22003."""
    body = text.strip(_SPACE)
    special = _SPECIALS.get(body.lower())
    if special is not None:
        return fit_numeric(Decimal(special), precision, scale)
    if not _DECIMAL.match(body):
        raise syntax_error("numeric", text)
    try:
        value = WIDE.create_decimal(body)
    except (InvalidOperation, Overflow):
        raise SqlError("22003", "value overflows numeric format") from None
    exponent = int(value.as_tuple().exponent)
    if value.adjusted() >= 131072 or exponent > 131072:
        raise SqlError("22003", "value overflows numeric format")
    if exponent > 0:
        value = WIDE.quantize(value, Decimal(1))
    elif exponent < -_MAX_NUMERIC_SCALE:
        value = WIDE.quantize(value, Decimal((0, (1,), -_MAX_NUMERIC_SCALE)))
    if value.is_zero():
        value = value.copy_abs()
    return fit_numeric(value, precision, scale)


def fit_numeric(value: Decimal, precision: int | None, scale: int | None) -> Decimal:
    """Applies a typmod to a numeric: rounds half away from zero; 22003 if it has too many digits."""
    if precision is None or value.is_nan():
        return value
    places = scale or 0
    if value.is_infinite():
        raise _overflow(precision, places, "A field with precision {}, scale {} cannot hold an infinite value.")
    rounded = WIDE.quantize(value, Decimal((0, (1,), -places)))
    if places < 0:  # no digits are shown after the point
        rounded = WIDE.quantize(rounded, Decimal(1))
    if not rounded.is_zero() and rounded.adjusted() >= precision - places:
        raise _overflow(precision, places, None)
    return rounded.copy_abs() if rounded.is_zero() else rounded


def _overflow(precision: int, scale: int, template: str | None) -> SqlError:
    digits = precision - scale
    limit = f"10^{digits}" if digits else "1"
    detail = (
        template.format(precision, scale)
        if template
        else f"A field with precision {precision}, scale {scale} must round to an absolute value less than {limit}."
    )
    return SqlError("22003", "numeric field overflow", detail)


def format_float8(value: float) -> str:
    """The shortest digits that round-trip, laid out as in Postgres's ryu output."""
    text = repr(float(value))
    if 2.0**53 <= abs(value) < math.inf and _halfway(text, value, math.ulp(value)):
        text = _inside(value, value, math.ulp(value), 17)
    return _layout(text, 15)


def format_float4(value: float) -> str:
    """The shortest digits that round-trip as a real."""
    real = np.float32(value)
    text = str(np.format_float_scientific(real, unique=True))
    if 2.0**24 <= abs(value) < math.inf:
        unit = math.ldexp(1.0, math.frexp(value)[1] - 24)
        text = _inside(value, real, unit, 9) if _halfway(text, value, unit) else text
    return _layout(text, 6)


def rounded_float(value: float, digits: int) -> str:
    """A float in so many significant digits, at least one, laid out as by C's %g."""
    return _special(f"{value:.{max(digits, 1)}g}")


def _special(text: str) -> str:
    return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(text, text)


def _halfway(text: str, value: float, unit: float) -> bool:
    # Postgres avoids digits exactly halfway between two floats, even if they round-trip
    return abs(int(Decimal(text)) - int(value)) * 2 == int(unit)


def _inside(value: float, exact: float | np.float32, unit: float, most: int) -> str:
    for digits in range(1, most + 1):
        text = f"{value:.{digits - 1}e}"
        if type(exact)(float(text)) == exact and not _halfway(text, value, unit):
            return text
    return f"{value:.{most - 1}e}"


def _layout(text: str, widest: int) -> str:
    """Postgres uses an exponent from 1e+15 up (1e+06 for real) and below 1e-04."""
    if text in ("inf", "-inf", "nan"):
        return _special(text)
    sign, body = ("-", text[1:]) if text[0] == "-" else ("", text)
    mantissa, _, exponent_text = body.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    exponent = int(exponent_text or 0) + len(whole) - 1
    if whole.strip("0") == "":
        lead = len(fraction) - len(fraction.lstrip("0"))
        exponent = int(exponent_text or 0) - lead - 1
    digits = digits.rstrip("0")
    if not digits:
        return sign + "0"
    if exponent < -4 or exponent >= widest:
        tail = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{tail}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    if len(digits) <= exponent + 1:
        return sign + digits.ljust(exponent + 1, "0")
    return f"{sign}{digits[: exponent + 1]}.{digits[exponent + 1 :]}"
