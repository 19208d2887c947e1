"""The checks of settings: (name, value) → the value in its canonical form. Each raises 22023, or 0A000."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from ivm.errors import SqlError
from sql.catalog.search_path import schema_list
from storage.encodings.encoding import CODECS
from storage.encodings.names import SQL_ASCII, UTF8, name_of
from storage.types.textsearch.configuration import configuration, configuration_name
from storage.types.zone_files import zone_names
from storage.types.zones import find_zone, fixed_zone

_UNITS: Final = {"us": 0.001, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def anything(name: str, value: str) -> str:
    return value


def choice(*values: str) -> Callable[[str, str], str]:
    def check(name: str, value: str) -> str:
        if value.lower() not in values:
            hint = f"Available values: {', '.join(values)}."
            raise SqlError("22023", f'invalid value for parameter "{name}": "{value}"', hint=hint)
        return value.lower()

    return check


def encoding(name: str, value: str) -> str:
    """An encoding's name. UTF8 and SQL_ASCII are the same bytes, of which the client makes what it likes. Raises 22023,
    and 0A000 for one that cannot be had."""
    found = name_of(value)
    message = f'invalid value for parameter "{name}": "{value}"'
    if found is None:
        raise SqlError("22023", message)
    if found not in CODECS and found not in (UTF8, SQL_ASCII):
        raise SqlError("0A000", message, f"Conversion between {found} and UTF8 is not supported.")
    return found


def boolean(name: str, value: str) -> str:
    """on or off; also written as 1 or 0, or as the beginning of on, off, true, false, yes or no."""
    word = value.strip().lower()
    if (word and any(full.startswith(word) for full in ("true", "yes"))) or word in ("on", "1"):
        return "on"
    if (word and any(full.startswith(word) for full in ("false", "no"))) or word in ("of", "off", "0"):
        return "off"
    raise SqlError("22023", f'parameter "{name}" requires a Boolean value')


def backslash_quote(name: str, value: str) -> str:
    """safe_encoding, on or off; or a whole word or digit for on and off."""
    word = {"true": "on", "yes": "on", "1": "on", "false": "off", "no": "off", "0": "off"}.get(value.lower(), value)
    return choice("safe_encoding", "on", "off")(name, word)


def duration(name: str, value: str) -> str:
    """A time in ms, or with a unit, in the form in which Postgres shows it."""
    given = milliseconds(name, value)
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if given and given % size == 0:
            return f"{given // size}{unit}"
    return f"{given}ms" if given else "0"


@lru_cache(1000)
def milliseconds(name: str, value: str) -> int:
    """A time with its unit, or without one in ms, in ms."""
    match = re.fullmatch(r"\s*(-?\d+(?:\.\d+)?)\s*([a-z]*)\s*", value)
    if match is None or (match[2] and match[2] not in _UNITS):
        hint = 'Valid units for this parameter are "us", "ms", "s", "min", "h", and "d".'
        raise SqlError("22023", f'invalid value for parameter "{name}": "{value}"', hint=hint)
    result = round(float(match[1]) * _UNITS[match[2] or "ms"])
    if not 0 <= result < 2**31:
        message = f'{result} ms is outside the valid range for parameter "{name}" (0 ms .. 2147483647 ms)'
        raise SqlError("22023", message)
    return result


def integer(name: str, value: str) -> str:
    if not re.fullmatch(r"-?\d+", value.strip()):
        raise SqlError("22023", f'invalid value for parameter "{name}": "{value}"')
    return value.strip()


def float_digits(name: str, value: str) -> str:
    given = int(integer(name, value))
    if not -15 <= given <= 3:
        raise SqlError("22023", f'{given} is outside the valid range for parameter "{name}" (-15 .. 3)')
    return str(given)


def natural(name: str, value: str) -> str:
    """An integer from 0 to 2147483647."""
    given = int(integer(name, value))
    if not 0 <= given < 2**31:
        message = f'{given} is outside the valid range for parameter "{name}" (0 .. 2147483647)'
        raise SqlError("22023", message)
    return str(given)


def timezone(name: str, value: str) -> str:
    if value.upper() in ("UTC", "GMT", "ZULU"):
        return value.upper() if value.upper() != "ZULU" else "UTC"
    if re.fullmatch(r"[+-]?\d+(\.\d+)?", value.strip()):
        return fixed_zone(round(float(value) * 3600))
    if find_zone(value) is not None:
        return zone_names().get(value.lower(), value)
    raise SqlError("22023", f'invalid value for parameter "TimeZone": "{value}"')


def search_path(name: str, value: str) -> str:
    schema_list(value)
    return value


def text_search_configuration(name: str, value: str) -> str:
    """The full name of a text search configuration."""
    try:
        return f"pg_catalog.{configuration_name(configuration(value))}"
    except SqlError as error:
        if error.sqlstate == "0A000":
            raise
        raise SqlError("22023", f'invalid value for parameter "{name}": "{value}"') from None
