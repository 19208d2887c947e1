"""Rows of constants after VALUES, recognised without a token for each: ``(1, 'a', NULL), (2, 'b', true), …``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from ivm.stops import poll

MANY_ROWS: Final = 8
"""From so many rows on."""
WIDE: Final = 32
"""Of so many constants, one row is enough."""
_AT_ONCE: Final = 256
"""So many rows are matched by one call, during which no other thread runs."""
_NUMBER: Final = r"-?(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?+\d++)?+"
_CELL: Final = rf"(?:{_NUMBER}|'[^']*+(?:''[^']*+)*+'|[nN][uU][lL]{{2}}|[tT][rR][uU][eE]|[fF][aA][lL][sS][eE])"
CELL: Final = re.compile(_CELL, re.ASCII)
"""One constant, where nothing else can stand."""
FIRST: Final = re.compile(rf"\(\s*+{_CELL}(?:\s*+,\s*+{_CELL})*+\s*+\)", re.ASCII)
"""The first row."""
_WIDE: Final = re.compile(rf"\(\s*+{_CELL}(?:\s*+,\s*+{_CELL}){{{WIDE - 1}}}", re.ASCII)
_COMMA: Final = re.compile(r"\s*+,\s*+", re.ASCII)


def rows_end(text: str, at: int, stop: int) -> int | None:
    """Where the rows that begin at an offset end; None: they are few, or not all of them constants in one number.

    A string is in plain quotes, a minus stands right before its number. What follows the last row is no comma.
    """
    first = FIRST.match(text, at, stop)
    if first is None:
        return None
    if _COMMA.match(text, first.end(), stop) is None:
        return None if _WIDE.match(text, at, stop) is None else first.end()
    end = None
    for piece in pieces(text, at, stop, len(CELL.findall(first.group()))):
        end = piece[1]
        poll()
    return None if end is None or _COMMA.match(text, end, stop) else end


def pieces(text: str, at: int, stop: int, width: int) -> Iterator[tuple[int, int]]:
    """The offsets of runs of rows of so many constants, which follow each other with commas between them.

    The first has ``MANY_ROWS`` or more, if they are not wide.
    """
    pattern = _run(width, MANY_ROWS - 1 if width < WIDE else 0)
    while (found := pattern.match(text, at, stop)) is not None:
        yield at, found.end()
        comma = _COMMA.match(text, found.end(), stop)
        if comma is None:
            return
        at, pattern = comma.end(), _run(width, 0)


@lru_cache(maxsize=64)
def _run(width: int, least: int) -> re.Pattern[str]:
    row = rf"\(\s*+{_CELL}(?:\s*+,\s*+{_CELL}){{{width - 1}}}\s*+\)"
    return re.compile(rf"{row}(?:\s*+,\s*+{row}){{{least},{_AT_ONCE - 1}}}+", re.ASCII)


def cells(text: str, width: int) -> list[Sequence[str]]:
    """The constants of rows of so many, row by row. One match for a row takes half as long as one for each constant,
    but a pattern for each of many widths long to make."""
    runs = pieces(text, 0, len(text), width)
    if width < WIDE and width > 1:
        return [row for start, end in runs for row in _one_row(width).findall(text, start, end)]
    found = [cell for start, end in runs for cell in CELL.findall(text, start, end)]
    return [found[i : i + width] for i in range(0, len(found), width)]


@lru_cache(maxsize=WIDE)
def _one_row(width: int) -> re.Pattern[str]:
    """Each constant is a group."""
    between = r"\s*+,\s*+"
    return re.compile(rf"\(\s*+{between.join([f'({_CELL})'] * width)}\s*+\)", re.ASCII)
