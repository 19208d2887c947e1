"""jsonb's canonical text, as in Postgres: keys ordered by length, then bytes; the last of duplicate keys; numbers as
numerics."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, Final, NoReturn

from ivm.errors import SqlError
from storage.types.numeric import numeric_text
from storage.types.text_number import parse_numeric

_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def parse_json(text: str) -> Any:
    """JSON text → dict, list, str, Decimal, bool, None; 22P02 for invalid JSON."""
    try:
        return json.loads(text, parse_float=parse_numeric, parse_int=parse_numeric, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise SqlError("22P02", "invalid input syntax for type json", f'The input string is "{text}".') from None


def canonical_json(text: str) -> str:
    """The text that Postgres prints for jsonb input."""
    return format_json(parse_json(text))


def format_json(value: Any) -> str:
    """Formats a parsed JSON value as jsonb."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return numeric_text(value)
    if isinstance(value, str):
        if "\x00" in value:
            raise SqlError("22P05", "unsupported Unicode escape sequence", "\\u0000 cannot be converted to text.")
        return _quoted(value)
    if isinstance(value, list):
        return "[" + ", ".join(format_json(item) for item in value) + "]"
    pairs = sorted(value.items(), key=lambda pair: (len(pair[0].encode()), pair[0].encode()))
    return "{" + ", ".join(f"{_quoted(key)}: {format_json(item)}" for key, item in pairs) + "}"


def _quoted(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(c) or (c if c >= " " else f"\\u{ord(c):04x}") for c in text) + '"'
