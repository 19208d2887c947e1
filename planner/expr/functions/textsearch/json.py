"""Vectors and headlines of json and jsonb: to_tsvector, json_to_tsvector, jsonb_to_tsvector, ts_headline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import SqlType
from planner.expr.functions.json.trees import tree_of
from planner.expr.functions.textsearch.dictionaries import lexemes, vector_of_words
from planner.expr.functions.textsearch.headlines import headline
from planner.expr.functions.textsearch.options import options_of
from storage.types.text_json import load_json, quoted
from storage.types.textsearch.nodes import Query
from storage.types.textsearch.vector import Vector

_KINDS: Final = ("string", "numeric", "boolean", "key", "all")
_NAMED: Final = {"number": "numeric"}
_HINT: Final = 'Possible values are: "string", "numeric", "boolean", "key", and "all".'


def _wanted(flags: str) -> frozenset[str]:
    """The kinds of values that a flag, or an array of them, names. Raises 22023."""
    value = load_json(flags)
    if isinstance(value, dict):
        raise SqlError("22023", "wrong flag type, only arrays and scalars are allowed")
    wanted: set[str] = set()
    for flag in value if isinstance(value, list) else [value]:
        if not isinstance(flag, str):
            raise SqlError("22023", "flag array element is not a string", hint=_HINT)
        if flag.lower() not in _KINDS:
            raise SqlError("22023", f'wrong flag in flag array: "{flag}"', hint=_HINT)
        wanted |= set(_KINDS) if flag.lower() == "all" else {flag.lower()}
    return frozenset(wanted)


def _texts(type_: SqlType, document: Any, wanted: frozenset[str]) -> Iterator[str]:
    tree = tree_of(type_)
    kind = tree.kind(document)
    if kind == "object":
        for key, value in tree.pairs(document):
            if "key" in wanted:
                yield key
            yield from _texts(type_, value, wanted)
    elif kind == "array":
        for item in tree.items(document):
            yield from _texts(type_, item, wanted)
    elif _NAMED.get(kind, kind) in wanted:
        yield tree.text(document) or ""


def _vector(type_: SqlType, oid: int, value: str, wanted: frozenset[str]) -> Vector:
    """The words of all wanted values. A gap in the positions keeps phrases inside of one value."""
    words: list[tuple[str, int]] = []
    last = 0
    for text in _texts(type_, tree_of(type_).load(value), wanted):
        more, last = lexemes(text, oid, last)
        words += more
        last += bool(more)
    return vector_of_words(words)


def strings_of(type_: SqlType) -> Callable[[int, str], Vector]:
    """to_tsvector of json or jsonb."""
    return lambda oid, value: _vector(type_, oid, value, frozenset({"string"}))


def flagged_of(type_: SqlType) -> Callable[[int, str, str], Vector]:
    """json_to_tsvector or jsonb_to_tsvector."""
    return lambda oid, value, flags: _vector(type_, oid, value, _wanted(flags))


def headline_of(type_: SqlType) -> Callable[..., str]:
    """ts_headline of json or jsonb: each string that is a value becomes its headline."""

    def compute(oid: int, value: str, query: Query, options: str = "") -> str:
        tree = tree_of(type_)
        options_of(options)  # they are checked for documents without strings too
        shown = _shown(type_, tree.load(value), lambda text: headline(oid, text, query, options))
        return tree.datum(tree.load(shown))

    return compute


def _shown(type_: SqlType, document: Any, change: Callable[[str], str]) -> str:
    """The text of a document with its strings changed."""
    tree = tree_of(type_)
    kind = tree.kind(document)
    if kind == "object":
        pairs = tree.pairs(document)
        return "{" + ",".join(f"{quoted(key)}:{_shown(type_, value, change)}" for key, value in pairs) + "}"
    if kind == "array":
        return "[" + ",".join(_shown(type_, item, change) for item in tree.items(document)) + "]"
    return quoted(change(tree.text(document) or "")) if kind == "string" else tree.datum(document)
