"""JSON_EXISTS, JSON_VALUE and JSON_QUERY of SQL/JSON, which have a syntax of their own (internal).

Their arguments: the jsonb, the path, the names of the variables, then for JSON_EXISTS what an error gives; for the
others the options, what ON EMPTY and ON ERROR say, and the values of DEFAULT; then the variables' values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ivm.errors import SqlError, too_deep
from ivm.words import BOOL, JSONB, JSONPATH, TEXT, Kind, SqlType
from planner.expr.functions.casts.text import style_of
from planner.expr.functions.json.records import populated
from planner.expr.functions.json.trees import JSONB_TREE
from planner.expr.functions.json.values import json_style, json_value
from planner.expr.functions.jsonpath.calls import shown
from planner.expr.functions.jsonpath.errors import PathError, failing
from planner.expr.functions.jsonpath.evaluator import Evaluation
from planner.expr.functions.jsonpath.moments import DATE, TIME, TIMESTAMP, TIMESTAMPTZ, Moment
from planner.expr.functions.table import ANY, CallSite, per_value
from planner.expr.functions.text.regex import TEXTS
from storage.types.jsonpath.parser import parse_path
from storage.types.text import parse_datum
from storage.types.text_json import format_json, load_json
from storage.types.text_style import TextStyle

EXISTS: Final = "json_exists"
VALUE: Final = "json_value"
QUERY: Final = "json_query"
_TRUTHS: Final = {"true": True, "false": False, "unknown": None}
_EMPTY: Final = {"empty array": "[]", "empty object": "{}"}
_MOMENTS: Final = {Kind.DATE: DATE, Kind.TIME: TIME, Kind.TIMESTAMP: TIMESTAMP, Kind.TIMESTAMPTZ: TIMESTAMPTZ}
_STRINGS: Final = (Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR, Kind.NAME)
_DOCUMENTS: Final = (Kind.JSON, Kind.JSONB)


def variables(
    names: Sequence[str], types: Sequence[SqlType], values: Sequence[Any], style: TextStyle
) -> dict[str, Any]:  # fmt: skip
    """A path's variables: SQL's values as those of jsonpath."""
    return {
        name: Moment(_MOMENTS[t.kind], v) if t.kind in _MOMENTS and v is not None else json_value(t, v, style)
        for name, t, v in zip(names, types, values, strict=True)
    }


def _items(
    site: CallSite, value: str, path: str, names: tuple[str, ...], types: tuple[SqlType, ...], values: tuple[Any, ...]
) -> list[Any]:
    """The results of the path. Raises PathError, and SqlError for what is always raised."""
    known = variables(names, types, values, json_style(site))
    zone = (site.context.timezone, site.context.statement_now)
    try:
        return Evaluation(parse_path(path), load_json(value), known, zone).results()
    except RecursionError:
        raise too_deep() from None


@per_value(EXISTS, (JSONB, JSONPATH, TEXTS, ANY), BOOL, strict=False, variadic=True, volatility="settings",
           needs_site=True, internal=True, key_is_name=True)  # fmt: skip
def json_exists(
    site: CallSite, value: str | None, path: str | None, names: tuple[str, ...], on_error: str, *values: Any
) -> bool | None:
    """JSON_EXISTS."""
    if value is None or path is None:
        return None
    try:
        return bool(_items(site, value, path, names, site.args[4:], values))
    except PathError as failure:
        if on_error == "error":
            raise failure.error from None
        return _TRUTHS[on_error]


@per_value(QUERY, (JSONB, JSONPATH, TEXTS, TEXT, TEXT, TEXT, ANY, ANY), ANY, strict=False, variadic=True,
           volatility="settings", needs_site=True, internal=True, key_is_name=True)  # fmt: skip
@per_value(VALUE, (JSONB, JSONPATH, TEXTS, TEXT, TEXT, TEXT, ANY, ANY), ANY, strict=False, variadic=True,
           volatility="settings", needs_site=True, internal=True, key_is_name=True)  # fmt: skip
def json_result(
    site: CallSite, value: str | None, path: str | None, names: tuple[str, ...], options: str, on_empty: str,
    on_error: str, if_empty: Any, if_error: Any, *values: Any,
) -> Any:  # fmt: skip
    """JSON_VALUE (``options``: value) and JSON_QUERY (``options``: query, the wrapper and omit)."""
    if value is None or path is None:
        return None
    target = Target(site.result, style_of(site), options, on_empty, on_error, if_empty, if_error)
    try:
        return target.result(_items(site, value, path, names, site.args[8:], values))
    except PathError as failure:
        return target.failed(failure)


@dataclass(frozen=True, slots=True)
class Target:
    """What JSON_VALUE or JSON_QUERY makes of items. ``options``: value or query, and the words of the clauses;
    ``column``: the one of JSON_TABLE, which errors name."""

    type: SqlType
    style: TextStyle
    options: str
    on_empty: str
    on_error: str
    if_empty: Any = None
    if_error: Any = None
    column: str = ""

    def result(self, found: list[Any]) -> Any:
        """The result of a path's items. Raises PathError, and 22035."""
        if found:
            return self._scalar(found) if self.options == "value" else self._document(found)
        if self.on_empty == "error":
            of_column = f' of column "{self.column}"' if self.column else ""
            raise SqlError("22035", f"no SQL/JSON item found for specified path{of_column}")
        return self._instead(self.on_empty, self.if_empty)

    def failed(self, failure: PathError) -> Any:
        """The result of an error. Raises it for ERROR ON ERROR."""
        if self.on_error == "error":
            raise failure.error from None
        return self._instead(self.on_error, self.if_error)

    def _instead(self, behaviour: str, default: Any) -> Any:
        if behaviour == "default":
            return default
        text = _EMPTY.get(behaviour)
        return None if text is None else populated(JSONB_TREE, load_json(text), self.type, self.style)

    def _scalar(self, found: list[Any]) -> Any:
        item = found[0]
        if len(found) > 1 or isinstance(item, dict | list):
            what = f'for column "{self.column}"' if self.column else "in JSON_VALUE"
            message = f"JSON path expression {what} must return single scalar item"
            raise failing("22034" if len(found) > 1 else "2203F", message)
        if item is None:
            return None
        item = shown(item)
        is_text = isinstance(item, str) and self.type.kind not in _DOCUMENTS
        return self._input(item if is_text else format_json(item))

    def _document(self, found: list[Any]) -> Any:
        words = self.options.split()
        items = [shown(item) for item in found]
        item = items[0]
        if "unconditional" in words or ("conditional" in words and len(items) > 1):
            item = items
        elif len(items) > 1:
            what = f'for column "{self.column}"' if self.column else "in JSON_QUERY"
            raise failing(
                "22034", f"JSON path expression {what} must return single item when no wrapper is requested",
                "Use the WITH WRAPPER clause to wrap SQL/JSON items into an array.",
            )  # fmt: skip
        kind = self.type.kind
        if item is None and kind not in (*_STRINGS, *_DOCUMENTS):
            return None
        if isinstance(item, str) and "omit" in words:
            return self._input(item)
        if kind in (Kind.ARRAY, Kind.RECORD):
            try:
                return populated(JSONB_TREE, item, self.type, self.style)
            except SqlError as error:
                raise PathError(error) from None
        return self._input(format_json(item))

    def _input(self, text: str) -> Any:
        """A text as the type. Raises PathError."""
        if self.type.kind is Kind.BYTEA:
            return text.encode()
        try:
            return parse_datum(self.type, text, self.style)
        except SqlError as error:
            raise PathError(error) from None
