"""What a jsonb contains: ``@>``, ``<@``, ``?``, ``?|`` and ``?&``."""

from __future__ import annotations

from typing import Any, Final

from ivm.stops import poll
from ivm.words import BOOL, JSONB, TEXT, Kind
from planner.expr.functions.json import columns
from planner.expr.functions.table import per_value
from planner.expr.functions.text.concat import flatten
from planner.expr.functions.text.regex import TEXTS
from storage.types.text_json import load_json

_FEW: Final = 8
"""Elements that are looked for one by one."""


def _contains(left: Any, right: Any) -> bool:
    """JsonbDeepContains: below the top, values of the same kind only."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key, item in right.items():  # noqa: SIM110 (a generator would take a second frame a level)
            if key not in left or not _contains(left[key], item):
                return False
        return True
    if isinstance(left, list) and isinstance(right, list):
        simple = {(type(v), v) for v in left if not isinstance(v, list | dict)} if len(right) > _FEW else None
        for wanted in right:
            poll()
            if simple is not None and not isinstance(wanted, list | dict):
                if (type(wanted), wanted) not in simple:
                    return False
            elif not _has(left, wanted):
                return False
        return True
    return type(left) is type(right) and bool(left == right)


def _has(items: list[Any], wanted: Any) -> bool:
    """Whether an array has an element that contains the wanted one."""
    for item in items:  # noqa: SIM110
        if type(item) is type(wanted) and _contains(item, wanted):
            return True
    return False


@per_value("@>", (JSONB, JSONB), BOOL, makes_null=False, vector=columns.contains)
@per_value("jsonb_contains", (JSONB, JSONB), BOOL, makes_null=False, vector=columns.contains)
def contains(left: str, right: str) -> bool:
    """Whether the right value is in the left one. An array contains a scalar that is one of its elements."""
    whole, part = load_json(left), load_json(right)
    if isinstance(whole, list) and not isinstance(part, list | dict):
        return _has(whole, part)
    return _contains(whole, part)


@per_value("<@", (JSONB, JSONB), BOOL, makes_null=False, vector=columns.contained)
@per_value("jsonb_contained", (JSONB, JSONB), BOOL, makes_null=False, vector=columns.contained)
def contained(left: str, right: str) -> bool:
    return contains(right, left)


def _keys(value: str) -> Any:
    """What has the strings that exist in a value: an object's keys, an array's strings, or the string itself."""
    found = load_json(value)
    return found if isinstance(found, dict | list) else (found,)


@per_value("?", (JSONB, TEXT), BOOL, makes_null=False, vector=columns.exists)
@per_value("jsonb_exists", (JSONB, TEXT), BOOL, makes_null=False, vector=columns.exists)
def exists(value: str, key: str) -> bool:
    return key in _keys(value)


def _strings(value: str) -> set[str]:
    return {key for key in _keys(value) if isinstance(key, str)}


@per_value("?|", (JSONB, TEXTS), BOOL, makes_null=False, vector=columns.exists_of(False))
@per_value("jsonb_exists_any", (JSONB, TEXTS), BOOL, makes_null=False, vector=columns.exists_of(False))
def exists_any(value: str, keys: tuple[str | None, ...]) -> bool:
    found = _strings(value)
    return any(key is not None and key in found for key in flatten(keys, Kind.TEXT))


@per_value("?&", (JSONB, TEXTS), BOOL, makes_null=False, vector=columns.exists_of(True))
@per_value("jsonb_exists_all", (JSONB, TEXTS), BOOL, makes_null=False, vector=columns.exists_of(True))
def exists_all(value: str, keys: tuple[str | None, ...]) -> bool:
    found = _strings(value)
    return all(key is None or key in found for key in flatten(keys, Kind.TEXT))
