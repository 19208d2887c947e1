"""Array literals, input and output, with Postgres's quoting. A datum is a tuple (nested for more dimensions); NULL is
None.

Lower bounds other than 1 stand before the braces: ``[0:1]={1,2}``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import Kind
from storage.types.arrays import Bounded, bounded, check_dimensions, is_array

Leaf = Callable[[object], bool]

_NEEDS_QUOTES: Final = re.compile(r'[\s{}",\\]')
_INTEGERS: Final = re.compile(r"\{-?[0-9]{1,18}(?:,-?[0-9]{1,18})*\}")
_WORDS: Final = re.compile(r"""\{[^\s{}",\\]+(?:,[^\s{}",\\]+)*\}""")
_NULL: Final = re.compile(r"[{,]null[,}]", re.IGNORECASE)
_LIMITS: Final = {Kind.INT2: 2**15, Kind.INT4: 2**31, Kind.INT8: 2**63}
_BOUND: Final = re.compile(r"\[(?:([+-]?\d+):)?([+-]?\d+)\]")
_BOUNDS: Final = re.compile(r"\s*((?:\[[+-]?\d+(?::[+-]?\d+)?\])+)\s*=\s*")


def _malformed(text: str, detail: str | None = None) -> SqlError:
    return SqlError("22P02", f'malformed array literal: "{text}"', detail)


def parse_array(text: str, parse_element: Callable[[str], object], is_leaf: Leaf) -> tuple[object, ...]:
    """An array literal → a tuple. ``parse_element`` parses one element's text."""
    body = text
    bounds = _BOUNDS.match(text)
    pairs = _declared(bounds[1], text) if bounds else []
    if bounds:
        body = text[bounds.end() :]
    body = body.strip()
    if not body.startswith("{"):
        raise _malformed(text, 'Array value must start with "{" or dimension information.')
    value, end = _level(body, 0, text, parse_element, 1)
    if body[end:].strip():
        raise _malformed(text, "Junk after closing right brace.")
    shape = _shape(value, is_leaf)
    if shape is None:
        raise _malformed(text, "Multidimensional arrays must have sub-arrays with matching dimensions.")
    if value and 0 in shape:
        raise _malformed(text)
    if bounds and shape != tuple(high - low + 1 for low, high in pairs):
        raise _malformed(text, "Specified array dimensions do not match array contents.")
    return bounded(value, [low for low, _ in pairs])


def _declared(bounds: str, text: str) -> list[tuple[int, int]]:
    """The bounds of ``[low:high]…``; ``[high]`` is ``[1:high]``. Raises 2202E, 54000."""
    pairs = [(int(low or 1), int(high)) for low, high in _BOUND.findall(bounds)]
    if any(not -(2**31) <= bound < 2**31 for pair in pairs for bound in pair):
        raise SqlError("54000", "array bound is out of integer range")
    check_dimensions(len(pairs))
    for low, high in pairs:
        if high < low:
            raise SqlError("2202E", "upper bound cannot be less than lower bound")
    return pairs


def parse_plain_array(kind: Kind, text: str) -> tuple[object, ...] | None:
    """``parse_array`` for integers or text without quotes, nesting or NULL; None for any other literal."""
    limit = _LIMITS.get(kind)
    if limit is not None and _INTEGERS.fullmatch(text):
        numbers = tuple(map(int, text[1:-1].split(",")))
        return numbers if -limit <= min(numbers) and max(numbers) < limit else None
    if kind is Kind.TEXT and _WORDS.fullmatch(text) and not _NULL.search(text):
        return tuple(text[1:-1].split(","))
    return None


def _shape(value: object, is_leaf: Leaf) -> tuple[int, ...] | None:
    if is_leaf(value):
        return ()
    assert isinstance(value, tuple)
    shapes = {_shape(item, is_leaf) for item in value}
    if len(shapes) > 1 or None in shapes:
        return None
    inner = shapes.pop() if shapes else ()
    assert inner is not None
    return (len(value), *inner)


def leaf_test(kind: Kind) -> Leaf:
    """A predicate that tells elements from nested arrays. Only an interval's datum is itself a plain tuple, of three
    ints."""
    return _is_interval if kind is Kind.INTERVAL else _is_no_tuple


def _is_no_tuple(item: object) -> bool:
    return not is_array(item)


def _is_interval(item: object) -> bool:
    return not isinstance(item, tuple) or (len(item) == 3 and all(type(part) is int for part in item))


def _level(
    body: str, at: int, text: str, parse_element: Callable[[str], object], depth: int
) -> tuple[tuple[object, ...], int]:
    """Parses the braces that open at ``at``, inside of ``depth`` - 1 others. Returns the value and the position after
    the closing brace. Raises 22P02, 54000."""
    check_dimensions(depth)
    items: list[object] = []
    at += 1
    at = _skip(body, at)
    if body[at : at + 1] == "}":
        return (), at + 1
    while True:
        at = _skip(body, at)
        if body[at : at + 1] == "{":
            item, at = _level(body, at, text, parse_element, depth + 1)
            items.append(item)
        else:
            token, quoted, at = _element(body, at, text)
            if not quoted and token.upper() == "NULL":
                items.append(None)
            else:
                items.append(parse_element(token))
        at = _skip(body, at)
        mark = body[at : at + 1]
        if mark == "}":
            return tuple(items), at + 1
        if mark != ",":
            raise _malformed(text, "Unexpected end of input." if not mark else "Unexpected array element.")
        at += 1


def _skip(body: str, at: int) -> int:
    while at < len(body) and body[at] in " \t\n\r\v\f":
        at += 1
    return at


def _element(body: str, at: int, text: str) -> tuple[str, bool, int]:
    out: list[str] = []
    quoted = body[at : at + 1] == '"'
    at += quoted
    # where the element's trailing blanks begin, which are dropped
    kept = 0
    while True:
        c = body[at : at + 1]
        if not c:
            raise _malformed(text, "Unexpected end of input.")
        if c == "\\":
            out.append(body[at + 1 : at + 2])
            at += 2
            kept = len(out)
            continue
        if quoted and c == '"':
            return "".join(out), True, at + 1
        if not quoted and c in ",}":
            token = "".join(out[:kept])
            if not token:
                raise _malformed(text, f'Unexpected "{c}" character.')
            return token, False, at
        if not quoted and c in '{"':
            raise _malformed(text, "Unexpected array element.")
        out.append(c)
        at += 1
        if quoted or c not in " \t\n\r\v\f":
            kept = len(out)


def format_array(value: Any, format_element: Callable[[Any], str], is_leaf: Leaf) -> str:
    """A tuple → an array literal. ``format_element`` formats one element that is not NULL."""
    parts: list[str] = []
    for item in value:
        if item is None:
            parts.append("NULL")
        elif is_leaf(item):
            parts.append(_quote(format_element(item)))
        else:
            parts.append(format_array(item, format_element, is_leaf))
    shown = "{" + ",".join(parts) + "}"
    return bounds_shown(value) + "=" + shown if isinstance(value, Bounded) else shown


def bounds_shown(value: Bounded) -> str:
    """The lower and upper bounds of each dimension: ``[0:1][2:5]``."""
    inner: Any = value
    parts = []
    for low in value.lower:
        parts.append(f"[{low}:{low + len(inner) - 1}]")
        inner = inner[0]
    return "".join(parts)


def _quote(text: str) -> str:
    if text == "" or text.upper() == "NULL" or _NEEDS_QUOTES.search(text):
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return text
