"""The common jsonb operators. A jsonb's datum is its canonical text."""

from __future__ import annotations

from typing import Any

from ivm.errors import SqlError
from ivm.words import BOOL, INT4, TEXT, Kind, SqlType
from planner.expr.functions.table import per_value
from planner.expr.functions.text.regex import TEXTS
from storage.types.text_json import format_json, parse_json

JSONB = SqlType(Kind.JSONB)
_ABSENT = object()


def _field(value: Any, key: str | int) -> Any:
    if isinstance(value, dict) and isinstance(key, str):
        return value.get(key, _ABSENT)
    if isinstance(key, int) and not isinstance(value, dict):
        items = value if isinstance(value, list) else [value]  # a scalar is treated as an array with one element
        return items[key] if -len(items) <= key < len(items) else _ABSENT
    return _ABSENT


def _as_text(value: Any) -> str | None:
    if value is _ABSENT or value is None:
        return None
    return value if isinstance(value, str) else format_json(value)


def _as_json(value: Any) -> str | None:
    return None if value is _ABSENT else format_json(value)


@per_value("->", (JSONB, TEXT), JSONB)
@per_value("->", (JSONB, INT4), JSONB)
def field(value: str, key: str | int) -> str | None:
    return _as_json(_field(parse_json(value), key))


@per_value("->>", (JSONB, TEXT), TEXT)
@per_value("->>", (JSONB, INT4), TEXT)
def field_text(value: str, key: str | int) -> str | None:
    return _as_text(_field(parse_json(value), key))


def _path(value: str, path: tuple[str | None, ...]) -> Any:
    found = parse_json(value)
    for key in path:
        if key is None:
            return _ABSENT
        if isinstance(found, list):
            found = _field(found, int(key)) if key.lstrip("-").isdecimal() else _ABSENT
        else:
            found = _field(found, key)
    return found


@per_value("#>", (JSONB, TEXTS), JSONB)
def path(value: str, keys: tuple[str | None, ...]) -> str | None:
    return _as_json(_path(value, keys))


@per_value("#>>", (JSONB, TEXTS), TEXT)
def path_text(value: str, keys: tuple[str | None, ...]) -> str | None:
    return _as_text(_path(value, keys))


@per_value("jsonb_typeof", (JSONB,), TEXT)
def jsonb_typeof(value: str) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}
    return names.get(type(parse_json(value)), "number")


@per_value("jsonb_array_length", (JSONB,), INT4)
def jsonb_array_length(value: str) -> int:
    parsed = parse_json(value)
    if not isinstance(parsed, list):
        kind = "non-array" if isinstance(parsed, dict) else "scalar"
        raise SqlError("22023", f"cannot get array length of a {kind}")
    return len(parsed)


def _contains(left: Any, right: Any, top: bool = False) -> bool:
    if isinstance(left, dict) and isinstance(right, dict):
        return all(key in left and _contains(left[key], item) for key, item in right.items())
    if isinstance(left, list) and isinstance(right, list):
        return all(any(_contains(item, wanted) for item in left) for wanted in right)
    if top and isinstance(left, list) and not isinstance(right, dict):
        return any(_contains(item, right) for item in left)
    return type(left) is type(right) and bool(left == right)


@per_value("@>", (JSONB, JSONB), BOOL)
def contains(left: str, right: str) -> bool:
    return _contains(parse_json(left), parse_json(right), True)


@per_value("<@", (JSONB, JSONB), BOOL)
def contained(left: str, right: str) -> bool:
    return contains(right, left)


@per_value("?", (JSONB, TEXT), BOOL)
def exists(value: str, key: str) -> bool:
    parsed = parse_json(value)
    return key in parsed if isinstance(parsed, dict | list) else parsed == key
