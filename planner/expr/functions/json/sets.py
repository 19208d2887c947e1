"""Table functions of json and jsonb: their elements, members and keys, and records made from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import BOOL, TEXT, Kind, SqlType
from planner.expr.context import Context
from planner.expr.functions.expansion import add, each, each_row
from planner.expr.functions.json.records import no_row_type, populated_row
from planner.expr.functions.json.trees import TREES, Tree
from storage.types.text_style import TextStyle

RECORD: Final = SqlType(Kind.RECORD)
DEFINED: Final = frozenset(f"{tree.prefix}_to_{what}" for tree in TREES for what in ("record", "recordset"))
"""Functions whose columns the query defines: ``f(…) AS t(a int, …)``."""
Rows = Sequence[tuple[Any, ...]]


def _elements(tree: Tree, name: str, shown: Callable[[Any], Any]) -> Callable[[Context, str], list[Any]]:
    def compute(context: Context, value: str) -> list[Any]:
        document = tree.load(value)
        kind = tree.kind(document)
        if kind == "array":
            return [shown(item) for item in tree.items(document)]
        if kind != "object":
            what = f"call {name} on a scalar" if tree.prefix == "json" else "extract elements from a scalar"
        else:
            what = f"call {name} on a non-array" if tree.prefix == "json" else "extract elements from an object"
        raise SqlError("22023", f"cannot {what}")

    return compute


def _members(tree: Tree, name: str, shown: Callable[[Any], Any]) -> Callable[..., Rows]:
    def compute(context: Context, types: tuple[SqlType, ...], value: str) -> Rows:
        document = tree.load(value)
        kind = tree.kind(document)
        if kind == "object":
            return [(key, shown(item)) for key, item in tree.pairs(document)]
        if tree.prefix == "jsonb":
            raise SqlError("22023", f"cannot call {name} on a non-object")
        what = "an array as an object" if kind == "array" else "a scalar"
        raise SqlError("22023", f"cannot deconstruct {what}")

    return compute


def _keys(tree: Tree) -> Callable[[Context, str], list[str]]:
    def compute(context: Context, value: str) -> list[str]:
        document = tree.load(value)
        kind = tree.kind(document)
        if kind != "object":
            what = "an array" if kind == "array" else "a scalar"
            raise SqlError("22023", f"cannot call {tree.prefix}_object_keys on {what}")
        return [key for key, _ in tree.pairs(document)]

    return compute


def _style(context: Context) -> TextStyle:
    return TextStyle(context.timezone, context.now, context.session, context.formats)


def _fields(types: Sequence[SqlType]) -> list[SqlType]:
    return [type_ for _, type_ in types[0].fields]


def _record(tree: Tree) -> Callable[..., Rows]:
    def compute(context: Context, types: tuple[SqlType, ...], base: Any, value: str | None) -> Rows:
        if value is None:
            return [(None,) * len(types[0].fields) if base is None else base]
        return [populated_row(tree, tree.load(value), types[0], base, _style(context))]

    return compute


def _recordset(tree: Tree, name: str) -> Callable[..., Rows]:
    def compute(context: Context, types: tuple[SqlType, ...], base: Any, value: str, *_: bool) -> Rows:
        if not types[0].fields:
            raise no_row_type(name)
        document, shown = tree.load(value), name
        kind = tree.kind(document)
        if kind != "array":
            what = "a non-array" if tree.prefix == "jsonb" else "an object" if kind == "object" else "a scalar"
            raise SqlError("22023", f"cannot call {shown} on {what}")
        rows = []
        for item in tree.items(document):
            if tree.kind(item) != "object":
                raise SqlError("22023", f"argument of {shown} must be an array of objects")
            rows.append(populated_row(tree, item, types[0], base, _style(context)))
        return rows

    return compute


def _register(tree: Tree) -> None:
    name, type_ = tree.prefix, tree.type
    for suffix, result, shown in (("", type_, tree.datum), ("_text", TEXT, tree.text)):
        elements, each_name = f"{name}_array_elements{suffix}", f"{name}_each{suffix}"
        nullable = suffix != ""
        found = each(result, _elements(tree, elements, shown))
        add(elements, (type_,), result, found, nullable=nullable, names=("value",))
        results = (TEXT, result)
        members = each_row(lambda _, results=results: results, _members(tree, each_name, shown))  # type: ignore[misc]
        add(each_name, (type_,), lambda _, results=results: results, members, nullable=nullable,  # type: ignore[misc]
            names=("key", "value"), row=True)  # fmt: skip
    add(f"{name}_object_keys", (type_,), TEXT, each(TEXT, _keys(tree)))
    # their first argument is a NULL of the type that the column definitions make
    many = f"{name}_to_recordset"
    one, several = each_row(_fields, _record(tree), 2), each_row(_fields, _recordset(tree, many), 1)
    add(f"{name}_to_record", (RECORD, type_), _fields, one, nullable=True)
    add(many, (RECORD, type_), _fields, several, nullable=True)
    populate = f"{name}_populate_recordset"
    rows = each_row(_fields, _recordset(tree, populate), 1)
    for args in ((RECORD, type_), (RECORD, type_, BOOL)):
        add(populate, args, _fields, rows, nullable=True, row=True)


for _tree in TREES:
    _register(_tree)
