"""The parts of a json's text, verbatim: type json keeps white space, duplicate keys and numbers as they were written.

All functions take valid JSON text without white space around it. Python's decoder finds where each part ends.
"""

from __future__ import annotations

import json
import re
from typing import Final

from storage.types.json_errors import json_error

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_DECODER: Final = json.JSONDecoder(parse_float=str, parse_int=str)
_CODES: Final = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None, "it matches nothing too"
    return found.end()


def _end(text: str, at: int) -> int:
    """Where the value that starts here ends."""
    return _DECODER.raw_decode(text, at)[1]


def array_texts(text: str) -> list[str]:
    """The elements of an array."""
    found: list[str] = []
    at = _skip(text, 1)
    while text[at] != "]":
        end = _end(text, at)
        found.append(text[at:end])
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def member_texts(text: str) -> list[tuple[str, str]]:
    """The keys, decoded, and the values of an object, duplicates included. Raises 22P05 and 22P02 as ``decoded``."""
    found: list[tuple[str, str]] = []
    at = _skip(text, 1)
    while text[at] != "}":
        end = _end(text, at)
        key = decoded(text[at:end])
        at = _skip(text, _skip(text, end) + 1)
        end = _end(text, at)
        found.append((key, text[at:end]))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def decoded(text: str) -> str:
    """The characters of a JSON string. Raises 22P05 for \\u0000, 22P02 for half a surrogate pair."""
    if "\\u" in text and _CODES.search(text) is not None:
        json_error(text, True, required=False)
    return str(json.loads(text)) if "\\" in text else text[1:-1]
