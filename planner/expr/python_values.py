"""Datums ↔ the Python objects that a user's Python function takes and returns.

bool, int, float, Decimal, str and bytes are themselves; a date is a ``date``, a time a ``time``, a timestamp a naive
``datetime``, a timestamptz one in UTC, an interval a ``timedelta``, a uuid a ``UUID``, an array a tuple (functions may
return a list or tuple of items, of one dimension).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Final
from uuid import UUID

import numpy as np

from ivm.words import NEGATIVE_INFINITY, POSITIVE_INFINITY, Kind, SqlType

_DAY_ZERO: Final = date(2000, 1, 1)
_ZERO: Final = datetime(2000, 1, 1)
_MICROSECOND: Final = timedelta(microseconds=1)
_BITS: Final = {Kind.INT2: 15, Kind.INT4: 31, Kind.INT8: 63}
_TEXTS: Final = (Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR)
_THEMSELVES: Final = (Kind.BOOL, *_BITS, Kind.FLOAT4, Kind.FLOAT8, Kind.NUMERIC, *_TEXTS, Kind.BYTEA)
_KINDS: Final = (*_THEMSELVES, Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL, Kind.UUID)
_DIGITS: Final = (131072, 16383)
"""Of a numeric, before and after the point."""


class WrongTypeError(Exception):
    """A function returned something that is not a value of its type."""


class OutOfRangeError(Exception):
    """A value has no counterpart among Python's objects, or an object none among the type's values."""


def is_known(type_: SqlType) -> bool:
    """Whether Python functions may take and return values of the type."""
    if type_.element is not None:
        return type_.element.kind in _KINDS and type_.element.kind is not Kind.INTERVAL
    return type_.kind in _KINDS


def to_python(type_: SqlType) -> Callable[[Any], Any]:
    """A function that turns a datum (not None) into a Python object. It raises ``OutOfRangeError``."""
    match type_.kind:
        case Kind.ARRAY:
            assert type_.element is not None
            return _items(to_python(type_.element))
        case Kind.DATE:
            return _date
        case Kind.TIME:
            return _time
        case Kind.TIMESTAMP:
            return _timestamp
        case Kind.TIMESTAMPTZ:
            return lambda datum: _timestamp(datum).replace(tzinfo=UTC)
        case Kind.INTERVAL:
            return _timedelta
        case Kind.UUID:
            return lambda datum: UUID(bytes=datum)
        case _:
            assert type_.kind in _THEMSELVES, type_
            return _same


def _same(datum: Any) -> Any:
    return datum


def _items(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda datum: _converted(datum, convert)


def _converted(datum: Any, convert: Callable[[Any], Any]) -> Any:
    if isinstance(datum, tuple):
        return tuple(_converted(part, convert) for part in datum)
    return None if datum is None else convert(datum)


def _date(datum: int) -> date:
    try:
        return _DAY_ZERO + timedelta(days=datum)
    except OverflowError:
        raise OutOfRangeError("a date outside of the years 1 to 9999") from None


def _time(datum: int) -> time:
    if datum == 86_400_000_000:
        raise OutOfRangeError("the time 24:00:00")
    return (_ZERO + datum * _MICROSECOND).time()


def _timestamp(datum: int) -> datetime:
    if datum in (NEGATIVE_INFINITY, POSITIVE_INFINITY):
        raise OutOfRangeError("an infinite timestamp")
    try:
        return _ZERO + timedelta(microseconds=datum)
    except OverflowError:
        raise OutOfRangeError("a timestamp outside of the years 1 to 9999") from None


def _timedelta(datum: tuple[int, int, int]) -> timedelta:
    months, days, micros = datum
    if months:
        raise OutOfRangeError("an interval with months")
    try:
        return timedelta(days=days, microseconds=micros)
    except OverflowError:
        raise OutOfRangeError("an interval of more than 999999999 days") from None


def from_python(type_: SqlType, value: Any) -> Any:
    """The datum of a returned object; None is NULL. Raises ``WrongTypeError``, ``OutOfRangeError``."""
    if value is None:
        return None
    if type_.kind is Kind.ARRAY:
        if not isinstance(value, tuple | list):
            raise WrongTypeError
        assert type_.element is not None
        element = type_.element
        return tuple(from_python(element, item) for item in value)
    return _scalar(type_.kind, value)


def _scalar(kind: Kind, value: Any) -> Any:
    match kind, value:
        case Kind.BOOL, bool() | np.bool_():
            return bool(value)
        case _, bool() | np.bool_():
            raise WrongTypeError
        case ((Kind.INT2 | Kind.INT4 | Kind.INT8), Integral()):
            return _integer(operator.index(value), _BITS[kind])
        case ((Kind.FLOAT4 | Kind.FLOAT8), Real()):
            return _float(kind, value)
        case Kind.NUMERIC, Decimal() | Integral():
            return _numeric(value)
        case ((Kind.TEXT | Kind.VARCHAR | Kind.BPCHAR), str()):
            return _text(value)
        case Kind.BYTEA, bytes() | bytearray() | memoryview():
            return bytes(value)
        case Kind.UUID, UUID():
            return value.bytes
        case _:
            return _date_or_time(kind, value)


def _date_or_time(kind: Kind, value: Any) -> Any:
    match kind, value:
        case Kind.TIMESTAMP, datetime(tzinfo=None):
            return (value - _ZERO) // _MICROSECOND
        case Kind.TIMESTAMPTZ, datetime() if value.utcoffset() is not None:
            return (value.astimezone(UTC).replace(tzinfo=None) - _ZERO) // _MICROSECOND
        case _, datetime():
            raise WrongTypeError
        case Kind.DATE, date():
            return (value - _DAY_ZERO).days
        case Kind.TIME, time(tzinfo=None):
            return (datetime.combine(_DAY_ZERO, value) - _ZERO) // _MICROSECOND
        case Kind.INTERVAL, timedelta():
            return 0, value.days, value.seconds * 1_000_000 + value.microseconds
        case _:
            raise WrongTypeError


def _integer(value: int, bits: int) -> int:
    if not -(1 << bits) <= value < 1 << bits:
        raise OutOfRangeError
    return value


def _float(kind: Kind, value: Real) -> float:
    try:
        number = float(value)
    except OverflowError:
        raise OutOfRangeError from None
    if kind is Kind.FLOAT8:
        return number
    with np.errstate(over="ignore"):
        short = float(np.float32(number))
    if short in (np.inf, -np.inf) and number != short:
        raise OutOfRangeError
    return short


def _numeric(value: Any) -> Decimal:
    number = value if isinstance(value, Decimal) else Decimal(operator.index(value))
    before, after = _DIGITS
    if number.is_nan():
        return Decimal("NaN")
    exponent = number.as_tuple().exponent
    if isinstance(exponent, int) and (number.adjusted() >= before or exponent < -after or exponent > before):
        raise OutOfRangeError
    return Decimal(number)


def _text(value: str) -> str:
    if "\0" in value:
        raise OutOfRangeError
    try:
        value.encode()
    except UnicodeEncodeError:
        raise OutOfRangeError from None
    return str(value)
