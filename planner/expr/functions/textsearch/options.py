"""The options of ts_headline: ``StartSel = <b>, MaxWords = 35``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from ivm.errors import SqlError
from storage.types.text_number import parse_integer


@dataclass(frozen=True, slots=True)
class Options:
    """``most`` and ``least``: MaxWords and MinWords; ``short``: ShortWord; ``all``: HighlightAll."""

    start: str = "<b>"
    stop: str = "</b>"
    delimiter: str = " ... "
    most: int = 35
    least: int = 15
    short: int = 3
    fragments: int = 0
    all: bool = False


_OPTION: Final = re.compile(
    r"""[\s,]*(?:"(?P<quoted>(?:[^"]|"")+)"|(?P<name>[^\W\d][^\s=]*))\s*=\s*"""
    r"""(?:[Ee]?'(?P<single>(?:[^'\\]|''|\\.)*)'|"(?P<double>(?:[^"]|"")*)"|(?P<bare>[^\s,'"][^\s,]*))(?=[\s,]|\Z)""",
    re.DOTALL,
)
_TEXTS: Final = {"startsel": "start", "stopsel": "stop", "fragmentdelimiter": "delimiter"}
_NUMBERS: Final = {"maxwords": "most", "minwords": "least", "shortword": "short", "maxfragments": "fragments"}
_INTEGER: Final = (-(2**31), 2**31 - 1, "integer")
_TRUE: Final = ("1", "on", "true", "t", "y", "yes")


def options_of(text: str) -> Options:
    """The options that a text sets. Raises 42601, 22P02, 22023."""
    found: dict[str, Any] = {}
    for name, value in _pairs(text):
        key = name.lower()
        if key in _TEXTS:
            found[_TEXTS[key]] = value
        elif key in _NUMBERS:
            found[_NUMBERS[key]] = parse_integer(value, *_INTEGER)
        elif key == "highlightall":
            found["all"] = value.lower() in _TRUE
        else:
            raise SqlError("22023", f'unrecognized headline parameter: "{name}"')
    options = Options(**found)
    _check(options)
    return options


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs, at = [], 0
    while text[at:].strip(" \t\r\n\f\v,"):
        found = _OPTION.match(text, at)
        if found is None:
            raise SqlError("42601", f'invalid parameter list format: "{text}"')
        name = found["name"] if found["quoted"] is None else found["quoted"].replace('""', '"')
        pairs.append((name, _value(found)))
        at = found.end()
    return pairs


def _value(found: re.Match[str]) -> str:
    if found["single"] is not None:
        return re.sub(r"''|\\(.)", lambda m: m[1] or "'", found["single"], flags=re.DOTALL)
    return found["bare"] if found["double"] is None else found["double"].replace('""', '"')


def _check(options: Options) -> None:
    if options.all:
        return
    for wrong, message in (
        (options.least >= options.most, "MinWords should be less than MaxWords"),
        (options.least <= 0, "MinWords should be positive"),
        (options.short < 0, "ShortWord should be >= 0"),
        (options.fragments < 0, "MaxFragments should be >= 0"),
    ):
        if wrong:
            raise SqlError("22023", message)
