"""JSON_TABLE in FROM: a table function whose layout is one of its arguments."""

from __future__ import annotations

import json
from typing import Any, Final

from ivm.words import INT4, JSONB, TEXT, ColumnType, Kind, SqlType
from planner.expr.functions.jsonpath.json_table import KEY
from planner.expr.scalar import Literal, Scalar
from planner.logical.nodes import Rel, TableFunction
from sql.bind.bound_query import UNIT
from sql.bind.coerce import cast, resolve_unknown
from sql.bind.environment import Environment
from sql.bind.expression import ExpressionBinder
from sql.bind.namespace import Namespace, rename, visible_columns
from sql.bind.positions import position
from sql.bind.scope import NameScope
from sql.syntax.nodes import queries as nodes
from sql.syntax.nodes.json_calls import JsonColumn, JsonPlan
from storage.types.jsonpath.parser import parse_path

_DOCUMENTS: Final = (Kind.JSON, Kind.JSONB, Kind.ARRAY, Kind.RECORD)


def json_table(env: Environment, ref: nodes.JsonTable, outer: NameScope | None) -> tuple[Rel, Namespace]:
    """The rows and the names of their columns. Raises 42601, 42804, 42846."""
    binder = ExpressionBinder(env, NameScope(parent=outer, clause="FROM"), "functions in FROM")
    value = cast(env, binder.bind(ref.value), JSONB, "explicit", position(ref.value))
    given = [resolve_unknown(env, binder.bind(v), v.at) for _, v in ref.passing]
    layout = _Layout(binder)
    plan = layout.plan(ref.plan)
    plan |= {"names": [name for name, _ in ref.passing], "strict": ref.strict}
    rows = SqlType(Kind.RECORD, fields=tuple(layout.fields))
    args = (Literal(None, rows), Literal(json.dumps(plan), TEXT), *given, *layout.defaults, value)
    rel = TableFunction(UNIT, KEY, args, tuple(ColumnType(type_, True) for _, type_ in layout.fields))
    visible = visible_columns([name for name, _ in layout.fields], rel.columns)
    return rel, rename(Namespace(visible), ref.alias or "json_table", ref.columns, ref.at)


class _Layout:
    """Collects the columns and the values of DEFAULT."""

    def __init__(self, binder: ExpressionBinder) -> None:
        self.binder = binder
        self.fields: list[tuple[str, SqlType]] = []
        self.defaults: list[Scalar] = []

    def plan(self, node: JsonPlan) -> dict[str, Any]:
        """The layout as JSON."""
        parse_path(node.path)
        columns = [self._column(column) for column in node.columns]
        return {"path": node.path, "columns": columns, "nested": [self.plan(part) for part in node.nested]}

    def _column(self, node: JsonColumn) -> dict[str, Any]:
        index = len(self.fields)
        type_ = INT4 if node.type is None else self.binder.env.type(node.type)
        self.fields.append((node.name, type_))
        if node.call is None:
            return {"index": index, "kind": "ordinality"}
        path = f"$.{json.dumps(node.name, ensure_ascii=False)}" if node.path is None else node.path
        parse_path(path)
        call = node.call
        kind = "exists" if call.function == "json_exists" else "value"
        if kind == "value" and (call.function == "json_query" or type_.kind in _DOCUMENTS):
            kind = " ".join(("query", *call.options))
        empty, if_empty = self._behaviour(call.on_empty, type_)
        error, if_error = self._behaviour(call.on_error, type_)
        return {
            "index": index, "kind": kind, "path": path, "name": node.name, "empty": empty, "error": error,
            "defaults": [if_empty, if_error],
        }  # fmt: skip

    def _behaviour(self, given: str | nodes.Expr, type_: SqlType) -> tuple[str, int | None]:
        """The word for what is given, and where DEFAULT's value is."""
        if isinstance(given, str):
            return given, None
        self.defaults.append(cast(self.binder.env, self.binder.bind(given), type_, "explicit", position(given)))
        return "default", len(self.defaults) - 1
