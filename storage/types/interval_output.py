"""Formats intervals (months, days, microseconds) as Postgres does, in every IntervalStyle (after
``EncodeInterval``)."""

from __future__ import annotations

from storage.types.calendar import SECOND

Interval = tuple[int, int, int]


def format_interval(interval: Interval, style: str = "postgres") -> str:
    """``style``: postgres, postgres_verbose, sql_standard or iso_8601."""
    if style == "postgres_verbose":
        return _verbose(_fields(interval))
    if style == "sql_standard":
        return _sql_standard(_fields(interval))
    if style == "iso_8601":
        return _iso(_fields(interval))
    return _postgres(interval)


def _postgres(interval: Interval) -> str:
    """``1 year 2 mons -3 days +04:05:06.7``."""
    months, days, micros = interval
    parts: list[str] = []
    before = False
    years = abs(months) // 12 * (1 if months >= 0 else -1)
    for value, unit in ((years, "year"), (months - years * 12, "mon"), (days, "day")):
        if value:
            plus = "+" if before and value > 0 else ""
            parts.append(f"{plus}{value} {unit}{'' if value == 1 else 's'}")
            before = value < 0
    if micros or not parts:
        sign = "-" if micros < 0 else ("+" if before else "")
        seconds, fraction = divmod(abs(micros), SECOND)
        minutes, second = divmod(seconds, 60)
        clock = f"{sign}{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}"
        parts.append(f"{clock}.{fraction:06d}".rstrip("0") if fraction else clock)
    return " ".join(parts)


def _fields(interval: Interval) -> tuple[int, int, int, int, int, int]:
    """Years, months, days, hours, minutes, and µs below a minute, each with the sign of its part."""
    months, days, micros = interval
    ahead, clock = (1 if months >= 0 else -1), (1 if micros >= 0 else -1)
    years, month = divmod(abs(months), 12)
    minutes, rest = divmod(abs(micros), 60 * SECOND)
    hours, minute = divmod(minutes, 60)
    return ahead * years, ahead * month, days, clock * hours, clock * minute, clock * rest


def _seconds(micros: int, pad: bool) -> str:
    second, fraction = divmod(abs(micros), SECOND)
    text = f"{second:02d}" if pad else str(second)
    return f"{text}.{fraction:06d}".rstrip("0") if fraction else text


def _verbose(fields: tuple[int, int, int, int, int, int]) -> str:
    """``@ 1 year 2 mons -3 days 4 hours 5 mins 6.7 secs``; a negative first field is shown with ``ago``."""
    parts, ago = ["@"], False
    for value, unit in zip(fields[:5], ("year", "mon", "day", "hour", "min"), strict=True):
        if value:
            ago = value < 0 if len(parts) == 1 else ago
            shown = -value if ago else value
            parts.append(f"{shown} {unit}{'' if shown == 1 else 's'}")
    if fields[5]:
        ago = fields[5] < 0 if len(parts) == 1 else ago
        minus = "-" if (fields[5] < 0) != ago else ""
        parts.append(f"{minus}{_seconds(fields[5], False)} sec{'' if abs(fields[5]) == SECOND else 's'}")
    if len(parts) == 1:
        parts.append("0")
    return " ".join(parts) + (" ago" if ago else "")


def _sql_standard(fields: tuple[int, int, int, int, int, int]) -> str:
    """``1-2`` or ``3 4:05:06``; mixed fields, for which the standard has no form, with all signs: ``+1-2 -3
    +4:05:06``."""
    year, month, day, hour, minute, micros = fields
    negative, positive = any(f < 0 for f in fields), any(f > 0 for f in fields)
    long_part, short_part = bool(year or month), bool(day or hour or minute or micros)
    if not negative and not positive:
        return "0"
    clock = f"{abs(hour)}:{abs(minute):02d}:{_seconds(micros, True)}"
    if (negative and positive) or (long_part and short_part):
        signs = ["-" if below else "+" for below in (min(year, month) < 0, day < 0, min(hour, minute, micros) < 0)]
        return f"{signs[0]}{abs(year)}-{abs(month)} {signs[1]}{abs(day)} {signs[2]}{clock}"
    sign = "-" if negative else ""
    if long_part:
        return f"{sign}{abs(year)}-{abs(month)}"
    return f"{sign}{abs(day)} {clock}" if day else sign + clock


def _iso(fields: tuple[int, int, int, int, int, int]) -> str:
    """``P1Y2M3DT4H5M6.7S``."""
    date = "".join(f"{value}{unit}" for value, unit in zip(fields[:3], "YMD", strict=True) if value)
    time = "".join(f"{value}{unit}" for value, unit in zip(fields[3:5], "HM", strict=True) if value)
    if fields[5]:
        time += f"{'-' if fields[5] < 0 else ''}{_seconds(fields[5], False)}S"
    if not date and not time:
        return "PT0S"
    return f"P{date}T{time}" if time else f"P{date}"
