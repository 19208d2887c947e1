"""Type time with time zone. A datum is its word, which compares as the values do: by the time in UTC, then by the zone
(the seconds west of Greenwich), after PostgreSQL's ``timetz_cmp_internal``."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from ivm.errors import SqlError
from ivm.words import Kind, SqlType
from storage.types.calendar import DAY, SECOND
from storage.types.definition import BytesPart, FormatPart, Inside, TypeDefinition
from storage.types.text_style import TextStyle
from storage.types.text_time import parse_timetz
from storage.types.time_output import format_offset, format_time, round_micros

_ZONE_BITS: Final = 18
_ZONE_BIAS: Final = 1 << (_ZONE_BITS - 1)
_FORM: Final = struct.Struct("!qi")


def timetz(micros: int, west: int) -> int:
    """The datum of a local time (µs since midnight) in a zone (seconds west of Greenwich)."""
    return ((micros + west * SECOND) << _ZONE_BITS) + west + _ZONE_BIAS


def timetz_parts(datum: int) -> tuple[int, int]:
    """The inverse of ``timetz``."""
    west = (datum & (2 * _ZONE_BIAS - 1)) - _ZONE_BIAS
    return (datum >> _ZONE_BITS) - west * SECOND, west


def _parse(type_: SqlType, text: str, style: TextStyle, inside: Inside[str]) -> int:
    micros, east = parse_timetz(text, type_.precision, style)
    return timetz(micros, -east)


def format_timetz(datum: int) -> str:
    """``04:05:06.789-08``"""
    micros, west = timetz_parts(datum)
    return format_time(micros) + format_offset(-west)


def _write(type_: SqlType, datum: int, style: TextStyle, part: FormatPart) -> str:
    return format_timetz(datum)


def _send(type_: SqlType, datum: int, part: BytesPart) -> bytes:
    return _FORM.pack(*timetz_parts(datum))


def _receive(type_: SqlType, data: bytes, inside: Inside[bytes]) -> int:
    micros, west = _FORM.unpack(data)
    if not 0 <= micros <= DAY:
        raise SqlError("22008", "time out of range")
    if not -57_600 < west < 57_600:
        raise SqlError("22009", "time zone displacement out of range")
    return timetz(round_micros(micros, type_.precision), west)


def _modified(name: str, args: Sequence[int]) -> SqlType:
    if args and args[0] < 0:
        raise SqlError("22023", f"TIME({args[0]}) WITH TIME ZONE precision must not be negative")
    return SqlType(Kind.TIMETZ, min(args[0], 6) if args else None)


DEFINITION: Final = TypeDefinition(
    Kind.TIMETZ, "time with time zone",
    "1266 timetz 12 f b D f 0 1270 timetz_ timetztypmod d p 0",
    "1350:timetz_in 1351:timetz_out 2472:timetz_recv 2473:timetz_send 2911:timetztypmodin 2912:timetztypmodout",
    _parse, _write, _send, _receive, names=("timetz",), modified=_modified, extremes=True, by_settings=True,
)  # fmt: skip
