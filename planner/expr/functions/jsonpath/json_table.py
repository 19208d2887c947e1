"""JSON_TABLE: rows from the items of a path, with columns from paths of each item, and nested paths.

The function's arguments: a NULL of the rows' type, the *layout* as JSON, the values of variables and then of DEFAULTs,
and the jsonb. A layout has a path, its columns and its nested layouts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from ivm.errors import too_deep
from ivm.words import JSONB, TEXT, Kind, SqlType
from planner.expr.context import Context
from planner.expr.functions.expansion import add, each_row
from planner.expr.functions.jsonpath.calls import shown
from planner.expr.functions.jsonpath.errors import PathError
from planner.expr.functions.jsonpath.evaluator import Evaluation
from planner.expr.functions.jsonpath.sql_json import Target, variables
from planner.expr.functions.table import ANY
from storage.types.jsonpath.parser import parse_path
from storage.types.text_json import load_json
from storage.types.text_style import DEFAULT_FORMATS, TextStyle

KEY: Final = "json table"
_TRUTHS: Final = {"true": True, "false": False}
_Row = dict[int, Any]


@lru_cache(256)
def _layout(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


@dataclass(slots=True)
class _Table:
    """One evaluation. ``types``: the columns'; ``defaults``: the values of DEFAULTs; ``strict``: ERROR ON ERROR."""

    types: list[SqlType]
    variables: dict[str, Any]
    defaults: tuple[Any, ...]
    strict: bool
    style: TextStyle
    zone: tuple[str, int]

    def _items(self, path: str, item: Any) -> list[Any]:
        return Evaluation(parse_path(path), item, self.variables, self.zone).results()

    def rows(self, layout: dict[str, Any], item: Any) -> list[_Row]:
        """The rows of a layout over an item: of each result of its path, with those of the nested layouts."""
        try:
            found = self._items(layout["path"], item)
        except PathError as failure:
            if self.strict:
                raise failure.error from None
            return []
        made: list[_Row] = []
        for number, value in enumerate(found, 1):
            own = shown(value)
            row = {c["index"]: self._column(c, own, number) for c in layout["columns"]}
            inner = [row | nested for part in layout["nested"] for nested in self.rows(part, own)]
            made += inner or [row]
        return made

    def _column(self, column: dict[str, Any], item: Any, number: int) -> Any:
        type_ = self.types[column["index"]]
        kind = column["kind"]
        if kind == "ordinality":
            return number
        if kind == "exists":
            return self._exists(column, item, type_)
        empty, error = (None if i is None else self.defaults[i] for i in column["defaults"])
        target = Target(type_, self.style, kind, column["empty"], column["error"], empty, error, column["name"])
        try:
            return target.result(self._items(column["path"], item))
        except PathError as failure:
            return target.failed(failure)

    def _exists(self, column: dict[str, Any], item: Any, type_: SqlType) -> Any:
        try:
            found: bool | None = bool(self._items(column["path"], item))
        except PathError as failure:
            if column["error"] == "error":
                raise failure.error from None
            found = _TRUTHS.get(column["error"])
        if found is None or type_.kind is Kind.BOOL:
            return found
        return int(found) if type_.kind in (Kind.INT2, Kind.INT4, Kind.INT8) else "true" if found else "false"


def _rows(context: Context, types: tuple[SqlType, ...], _: Any, text: str, *args: Any) -> list[tuple[Any, ...]]:
    layout = _layout(text)
    columns = [type_ for _, type_ in types[0].fields]
    *values, document = args
    names = layout["names"]
    given, defaults = values[: len(names)], tuple(values[len(names) :])
    style = TextStyle(context.timezone, context.now, context.session, context.formats)
    plain = TextStyle(context.timezone, context.now, context.session, DEFAULT_FORMATS)
    known = variables(names, types[2 : 2 + len(names)], given, plain)
    table = _Table(columns, known, defaults, layout["strict"], style, (context.timezone, context.statement_now))
    try:
        rows = table.rows(layout, load_json(document))
    except RecursionError:
        raise too_deep() from None
    return [tuple(row.get(i) for i in range(len(columns))) for row in rows]


def _run(vectors: Any, types: tuple[SqlType, ...], count: int, context: Context) -> Any:
    """A NULL as the jsonb, the last argument, gives no rows."""
    fields = [type_ for _, type_ in types[0].fields]
    return each_row(lambda _: fields, _rows, len(types) - 1)(vectors, types, count, context)


add(KEY, (SqlType(Kind.RECORD), TEXT, ANY, JSONB), lambda types: [t for _, t in types[0].fields], _run, nullable=True,
    key=KEY)  # fmt: skip
