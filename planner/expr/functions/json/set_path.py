"""Changes of a jsonb at a path (``setPath`` in jsonfuncs.c)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, Final

from ivm.errors import SqlError
from planner.expr.functions.json.trees import index_of


class PathChange(Enum):
    """What happens at the end of the path."""

    REPLACE = "replace"
    CREATE = "create"
    """Replaces, or adds what is not there."""
    INSERT_BEFORE = "insert before"
    INSERT_AFTER = "insert after"
    DELETE = "delete"
    ASSIGN = "assign"
    """An assignment to a subscript: what is missing on the way is made, and gaps of arrays are filled with nulls."""


MAX_GAP: Final = 1_000_000
"""The nulls that an assignment may add."""
_ADDS: Final = (PathChange.CREATE, PathChange.INSERT_BEFORE, PathChange.INSERT_AFTER, PathChange.ASSIGN)
_INSERTS: Final = (PathChange.INSERT_BEFORE, PathChange.INSERT_AFTER)


def set_path(value: Any, path: Sequence[str | None], change: PathChange, new: Any, level: int = 0) -> Any:
    """The JSON value with one place changed. Raises 22004, 22023, 22P02."""
    if isinstance(value, dict | list) and path[level] is None:
        raise SqlError("22004", f"path element at position {level + 1} is null")
    key = path[level] or ""
    if isinstance(value, dict):
        return _in_object(value, key, path, change, new, level)
    if isinstance(value, list):
        return _in_array(value, key, path, change, new, level)
    return value


def _in_object(
    value: dict[str, Any], key: str, path: Sequence[str | None], change: PathChange, new: Any, level: int
) -> dict[str, Any]:
    last = level == len(path) - 1
    if key not in value:
        if change is PathChange.ASSIGN:
            return value | {key: _missing(path, level + 1, new)}
        return value | {key: new} if last and change in _ADDS else value
    if not last:
        return value | {key: set_path(_assignable(value[key], change), path, change, new, level + 1)}
    if change in _INSERTS:
        hint = "Try using the function jsonb_set to replace key value."
        raise SqlError("22023", "cannot replace existing key", hint=hint)
    if change is PathChange.DELETE:
        return {k: v for k, v in value.items() if k != key}
    return value | {key: new}


def _in_array(
    value: list[Any], key: str, path: Sequence[str | None], change: PathChange, new: Any, level: int
) -> list[Any]:
    index = index_of(key)
    if index is None:
        raise SqlError("22P02", f'path element at position {level + 1} is not an integer: "{key}"')
    count, last = len(value), level == len(path) - 1
    if index < -count and change is PathChange.ASSIGN:
        raise SqlError("22023", f"path element at position {level + 1} is out of range: {index}")
    place = index + count if index < 0 else index
    if not 0 <= place < count:
        if change is PathChange.ASSIGN:
            return value + _nulls(place - count) + [_missing(path, level + 1, new)]
        if not last or change not in _ADDS:
            return value
        return [new, *value] if place < 0 else [*value, new]
    before, found, after = value[:place], value[place], value[place + 1 :]
    if not last:
        found = _assignable(found, change)
        return [*before, set_path(found, path, change, new, level + 1), *after]
    match change:
        case PathChange.DELETE:
            return before + after
        case PathChange.INSERT_BEFORE:
            return [*before, new, found, *after]
        case PathChange.INSERT_AFTER:
            return [*before, found, new, *after]
        case _:
            return [*before, new, *after]


def _assignable(value: Any, change: PathChange) -> Any:
    """What an assignment goes on into. Raises 22023 for a scalar."""
    if change is not PathChange.ASSIGN or isinstance(value, dict | list):
        return value
    raise cannot_replace()


def cannot_replace() -> SqlError:
    """For an assignment to a part of a scalar."""
    return SqlError(
        "22023", "cannot replace existing key",
        "The path assumes key is a composite object, but it is a scalar value.",
    )  # fmt: skip


def _missing(path: Sequence[str | None], level: int, new: Any) -> Any:
    """A new value with what leads to it."""
    if level == len(path):
        return new
    key = path[level]
    if key is None:
        raise SqlError("22004", f"path element at position {level + 1} is null")
    index = index_of(key)
    inner = _missing(path, level + 1, new)
    if index is None:
        return {key: inner}
    return [*_nulls(index), inner]


def _nulls(count: int) -> list[None]:
    """What fills an array's gap. Raises 54000."""
    if count > MAX_GAP:
        raise SqlError("54000", f"a gap of {count} jsonb array elements exceeds the maximum allowed ({MAX_GAP})")
    return [None] * count
