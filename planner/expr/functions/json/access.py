"""Parts of json and jsonb: ``->``, ``->>``, ``#>``, ``#>>``, subscripts, and what a value is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import INT4, JSONB, TEXT, Kind
from planner.expr.functions.json import columns
from planner.expr.functions.json.trees import ABSENT, JSONB_TREE, TREES, Tree, index_of
from planner.expr.functions.table import per_value
from planner.expr.functions.text.concat import flatten
from planner.expr.functions.text.regex import TEXTS
from storage.types.text_json import format_json, load_json

Keys = Sequence[str | None]
_REMEMBERED: Final = 10_000
"""Longer texts are parsed each time."""


def _at(tree: Tree, document: Any, index: int) -> Any:
    """An array's element; a negative index counts from the end."""
    items = tree.items(document)
    return items[index] if -len(items) <= index < len(items) else ABSENT


def field(tree: Tree, document: Any, key: str | int) -> Any:
    """``document -> key``. A jsonb that is a scalar is an array of one element to it."""
    kind = tree.kind(document)
    if isinstance(key, str):
        return tree.member(document, key) if kind == "object" else ABSENT
    if kind == "array":
        return _at(tree, document, key)
    return document if tree.prefix == "jsonb" and kind != "object" and key in (0, -1) else ABSENT


def path(tree: Tree, document: Any, keys: Keys) -> Any:
    """``document #> keys``."""
    for key in keys:
        kind = tree.kind(document) if key is not None else "null"
        if kind == "object":
            document = tree.member(document, key or "")
        elif kind == "array" and (index := index_of(key or "")) is not None:
            document = _at(tree, document, index)
        else:
            return ABSENT
        if document is ABSENT:
            return ABSENT
    return document


def _datum(tree: Tree, found: Any) -> str | None:
    return None if found is ABSENT else tree.datum(found)


def _text(tree: Tree, found: Any) -> str | None:
    return None if found is ABSENT else tree.text(found)


def _loader(tree: Tree) -> Callable[[str], Any]:
    """What gives a datum's document, which nobody changes. A jsonb of which several fields are asked for is parsed
    once."""
    if tree is not JSONB_TREE:
        return tree.load
    known = lru_cache(maxsize=4)(tree.load)
    return lambda value: known(value) if len(value) <= _REMEMBERED else tree.load(value)


def _of_field(tree: Tree, shown: Callable[[Tree, Any], str | None]) -> Callable[[str, str | int], str | None]:
    load = _LOADERS[tree.prefix]
    return lambda value, key: shown(tree, field(tree, load(value), key))


def _of_path(tree: Tree, shown: Callable[[Tree, Any], str | None]) -> Callable[[str, Keys], str | None]:
    load = _LOADERS[tree.prefix]
    return lambda value, keys: shown(tree, path(tree, load(value), flatten(keys, Kind.TEXT)))


_LOADERS: Final = {tree.prefix: _loader(tree) for tree in TREES}


def _of_steps(of_path: Callable[[str, Keys], str | None]) -> Callable[..., str | None]:
    return lambda value, *keys: of_path(value, keys)


def _typeof(tree: Tree) -> Callable[[str], str]:
    return lambda value: tree.kind(tree.load(value))


def _array_length(tree: Tree) -> Callable[[str], int]:
    def length(value: str) -> int:
        document = tree.load(value)
        kind = tree.kind(document)
        if kind != "array":
            raise SqlError("22023", f"cannot get array length of a {'non-array' if kind == 'object' else 'scalar'}")
        return len(tree.items(document))

    return length


def _register(tree: Tree) -> None:
    type_, name = tree.type, tree.prefix
    for result, shown, suffix, symbol, along in ((type_, _datum, "", "->", "#>"), (TEXT, _text, "_text", "->>", "#>>")):
        as_text = suffix != ""
        of_field, of_path, form = _of_field(tree, shown), _of_path(tree, shown), columns.field(as_text)
        for key in (TEXT, INT4):
            per_value(symbol, (type_, key), result, vector=form)(of_field)
        per_value(f"{name}_object_field{suffix}", (type_, TEXT), result, vector=form)(of_field)
        per_value(f"{name}_array_element{suffix}", (type_, INT4), result, vector=form)(of_field)
        per_value(along, (type_, TEXTS), result, vector=columns.path(as_text))(of_path)
        per_value(
            f"{name}_extract_path{suffix}", (type_, TEXT), result, variadic=True, vector=columns.steps(as_text)
        )(_of_steps(of_path))  # fmt: skip
    per_value(f"{name}_typeof", (type_,), TEXT, makes_null=False, vector=columns.type_of)(_typeof(tree))
    per_value(
        f"{name}_array_length", (type_,), INT4, makes_null=False, vector=columns.array_length
    )(_array_length(tree))  # fmt: skip


for _tree in TREES:
    _register(_tree)


@per_value("jsonb_subscript", (JSONB, TEXT), JSONB, variadic=True, internal=True, vector=columns.steps(False))
def subscript(value: str, *keys: str) -> str | None:
    """``value[key][key]…``; every key as text."""
    found: Any = load_json(value)
    for key in keys:
        if isinstance(found, dict):
            found = found.get(key, ABSENT)
        elif isinstance(found, list) and (index := index_of(key)) is not None and -len(found) <= index < len(found):
            found = found[index]
        else:
            return None
        if found is ABSENT:
            return None
    return format_json(found)
