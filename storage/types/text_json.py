"""JSON text ↔ Python values: jsonb's canonical text, as in Postgres (keys ordered by length, then bytes; the last of
duplicate keys; numbers as numerics), and what the types json and jsonb refuse.

A JSON value is a dict, list, str, Decimal, bool or None. Python's decoder reads it; only text that it refuses, or that
may hold a code that SQL's text cannot, is read again by ``storage.types.json_errors``, which finds Postgres's error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any, Final, NoReturn

from ivm.errors import SqlError, too_deep
from ivm.stops import poll, polled
from storage.types.json_errors import json_error
from storage.types.numeric import numeric_text
from storage.types.text_number import parse_numeric

MAX_DEPTH: Final = 400
"""Arrays and objects in each other. Each level costs frames of Python's stack, of which there are a thousand."""
_BRACKETS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{}\]]', re.DOTALL)
_CODES: Final = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


class _Numbers:
    """Makes numbers by ``make``. Looks from time to time at what may stop the work, which a decoder in C does not."""

    __slots__ = ("left", "make")

    def __init__(self, make: Callable[[str], Any]) -> None:
        self.make, self.left = make, 0

    def __call__(self, text: str) -> Any:
        self.left -= 1
        if self.left < 0:
            self.left = 4096
            poll()
        return self.make(text)


def _decoder(make: Callable[[str], Any], **more: Any) -> json.JSONDecoder:
    numbers = _Numbers(make)
    return json.JSONDecoder(parse_float=numbers, parse_int=numbers, **more)


_INPUT: Final = _decoder(parse_numeric, parse_constant=_refuse)
_SYNTAX: Final = _decoder(str, parse_constant=_refuse)
_CANONICAL: Final = _decoder(Decimal)


def _depth(text: str) -> int:
    deepest = depth = 0
    for found in _BRACKETS.finditer(text):
        if found[0] in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif found[0] in "]}":
            depth -= 1
    return deepest


def _check_depth(text: str) -> None:
    """Raises 54001 for text nested too deeply; cheap where it has few brackets."""
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        raise too_deep()


def _decoded(decoder: json.JSONDecoder, text: str, *, characters: bool) -> Any:
    _check_depth(text)
    try:
        value = decoder.decode(text)
    except ValueError:
        raise json_error(text, characters) from None
    if characters and "\\u" in text and _CODES.search(text) is not None:
        json_error(text, characters, required=False)
    return value


def parse_json(text: str) -> Any:
    """jsonb's input → a JSON value. Raises 22P02 for invalid JSON, 22P05 for \\u0000, 22003, 54001."""
    return _decoded(_INPUT, text, characters=True)


def check_json(text: str) -> str:
    """The text of type json if it is valid. Its escapes need not stand for characters. Raises 22P02, 54001."""
    _decoded(_SYNTAX, text, characters=False)
    return text


def load_json(text: str) -> Any:
    """jsonb's canonical text → a JSON value, with the keys of objects in jsonb's order."""
    return _CANONICAL.decode(text)


def canonical_json(text: str) -> str:
    """The text that Postgres prints for jsonb input."""
    return format_json(parse_json(text))


_MANY: Final = 4096


def format_json(value: Any) -> str:
    """A JSON value as jsonb's canonical text."""
    if isinstance(value, str):
        return quoted(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return numeric_text(value)
    parts: list[str] = []
    if isinstance(value, list):
        for item in value if len(value) < _MANY else polled(value):
            parts.append(format_json(item))  # noqa: PERF401 (a comprehension would take a second frame a level)
        return f"[{', '.join(parts)}]"
    for key, item in sorted_pairs(value):
        parts.append(f"{quoted(key)}: {format_json(item)}")
    return f"{{{', '.join(parts)}}}"


def quoted(text: str) -> str:
    """Text as a JSON string. Raises 22P05 for a zero character, which SQL's text has not."""
    if "\0" in text:
        raise SqlError("22P05", "unsupported Unicode escape sequence", "\\u0000 cannot be converted to text.")
    return encode_basestring(text)


def sorted_pairs(value: dict[str, Any]) -> list[tuple[str, Any]]:
    """An object's keys and values in jsonb's order."""
    if len(value) < 2:
        return list(value.items())
    return sorted(value.items(), key=lambda pair: (len(code := pair[0].encode()), code))
