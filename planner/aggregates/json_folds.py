"""The folds of json_agg, json_object_agg and their kind over JSON text (``planner.expr.functions.json.members``)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import Kind, SqlType
from planner.aggregates.function import FoldRule

_BROKEN: Final = (Kind.ARRAY, Kind.RECORD)
"""The types whose values begin a line in a json array."""
_DECODER: Final = json.JSONDecoder()


def json_array(strict: bool) -> FoldRule:
    """json_agg. ``strict``: without NULLs, as in all functions here."""

    def fold(type_: SqlType, _: list[Any], texts: list[Any]) -> str:
        line = "\n " if type_.kind in _BROKEN else ""
        shown = ["null" if t is None else line + t for t in texts if not strict or t is not None]
        return f"[{', '.join(shown).removeprefix(line)}]"

    return fold


def jsonb_array(strict: bool) -> FoldRule:
    """jsonb_agg."""

    def fold(_: SqlType, __: list[Any], texts: list[Any]) -> str:
        return f"[{', '.join('null' if t is None else t for t in texts if not strict or t is not None)}]"

    return fold


def json_object(strict: bool, unique: bool) -> FoldRule:
    """json_object_agg; ``unique``: raises 22030 for a key that comes twice."""

    def fold(_: SqlType, __: list[Any], texts: list[Any]) -> str:
        known: set[str] = set()
        parts = []
        for key, end, text in _members(texts):
            if unique and key in known:
                raise SqlError("22030", f"duplicate JSON object key value: {text[:end]}")
            known.add(key)
            if end < len(text):
                parts.append(text)
        return f"{{ {', '.join(parts)} }}"

    return fold


def jsonb_object(strict: bool, unique: bool) -> FoldRule:
    """jsonb_object_agg: the last of several values of a key."""

    def fold(_: SqlType, __: list[Any], texts: list[Any]) -> str:
        found: dict[str, str] = {}
        known: set[str] = set()
        for key, end, text in _members(texts):
            if unique and key in known:
                raise SqlError("22030", "duplicate JSON object key value")
            known.add(key)
            if end < len(text):
                found[key] = text
        keys = sorted(found, key=lambda key: (len(code := key.encode()), code))
        return f"{{{', '.join([found[key] for key in keys])}}}"

    return fold


def _members(texts: list[Any]) -> Iterator[tuple[str, int, str]]:
    """The members' keys, where each key's text ends, and the texts."""
    for text in texts:
        key, end = _DECODER.raw_decode(text)
        yield key, end, text
