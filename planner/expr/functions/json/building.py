"""Functions that build json and jsonb from SQL values: to_json, row_to_json, json_build_object, json_object, …"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import BOOL, JSON, JSONB, TEXT, Kind, SqlType
from planner.expr.functions.json import written
from planner.expr.functions.json.values import json_key, json_style, json_text, json_value
from planner.expr.functions.row import ROW
from planner.expr.functions.table import ANY, ANYARRAY, ANYELEMENT, CallSite, per_value
from planner.expr.functions.text.regex import TEXTS
from planner.expr.scalar import Call, Literal
from storage.types.arrays import shape
from storage.types.text_json import format_json, quoted
from storage.types.text_style import TextStyle

RECORD = SqlType(Kind.RECORD)


@per_value("row_to_json", (RECORD,), JSON, volatility="settings", needs_site=True, makes_null=False)
@per_value("array_to_json", (ANYARRAY,), JSON, volatility="settings", needs_site=True, makes_null=False)
@per_value(
    "to_json", (ANYELEMENT,), JSON, volatility="settings", needs_site=True, makes_null=False,
    vector=written.value(False),
)  # fmt: skip
def to_json(site: CallSite, value: Any) -> str:
    return json_text(site.args[0], value, json_style(site))


@per_value("row_to_json", (RECORD, BOOL), JSON, volatility="settings", needs_site=True, makes_null=False)
@per_value("array_to_json", (ANYARRAY, BOOL), JSON, volatility="settings", needs_site=True, makes_null=False)
def to_json_lines(site: CallSite, value: Any, pretty: bool) -> str:
    """With ``pretty``, each part of the outermost array or row starts a line."""
    return json_text(site.args[0], value, json_style(site), ",\n " if pretty else ",")


@per_value(
    "to_jsonb", (ANYELEMENT,), JSONB, volatility="settings", needs_site=True, makes_null=False,
    vector=written.value(True),
)  # fmt: skip
def to_jsonb(site: CallSite, value: Any) -> str:
    return format_json(json_value(site.args[0], value, json_style(site)))


def _pairs(site: CallSite, values: tuple[Any, ...], name: str) -> Iterator[tuple[str, SqlType, Any]]:
    """The keys, and the values with their types, of arguments that are both in turn. Raises 22023."""
    if len(values) % 2:
        raise SqlError(
            "22023", "argument list must have even number of elements",
            hint=f"The arguments of {name}() must consist of alternating keys and values.",
        )  # fmt: skip
    style = json_style(site)
    for i in range(0, len(values), 2):
        if values[i] is None and name == "json_build_object":
            raise SqlError("22023", f"argument {i + 1} cannot be null", hint="Object keys should be text.")
        if values[i] is None:
            raise SqlError("22023", f"argument {i + 1}: key must not be null")
        yield json_key(site.args[i], values[i], style), site.args[i + 1], values[i + 1]


def built_object(pairs: Iterator[tuple[str, SqlType, Any]], style: TextStyle) -> str:
    """Keys and values as a json object, with the spaces that json_build_object writes."""
    return f"{{{', '.join([f'{quoted(key)} : {json_text(type_, value, style)}' for key, type_, value in pairs])}}}"


@per_value(
    "json_build_object", (ANY,), JSON, strict=False, variadic=True, volatility="settings", needs_site=True,
    vector=written.members(" : ", ", ", False),
)  # fmt: skip
@per_value("json_build_object", (), JSON, strict=False, needs_site=True)
def json_build_object(site: CallSite, *values: Any) -> str:
    """json_build_object: the arguments are names and values in turn."""
    return built_object(_pairs(site, values, "json_build_object"), json_style(site))


@per_value(
    "jsonb_build_object", (ANY,), JSONB, strict=False, variadic=True, volatility="settings", needs_site=True,
    vector=written.members(": ", ", ", True),
)  # fmt: skip
@per_value("jsonb_build_object", (), JSONB, strict=False, needs_site=True)
def jsonb_build_object(site: CallSite, *values: Any) -> str:
    style = json_style(site)
    pairs = _pairs(site, values, "jsonb_build_object")
    return format_json({key: json_value(type_, value, style) for key, type_, value in pairs})


@per_value(
    "json_build_array", (ANY,), JSON, strict=False, variadic=True, volatility="settings", needs_site=True,
    vector=written.items(False),
)  # fmt: skip
@per_value("json_build_array", (), JSON, strict=False, needs_site=True)
def json_build_array(site: CallSite, *values: Any) -> str:
    style = json_style(site)
    return f"[{', '.join([json_text(t, v, style) for t, v in zip(site.args, values, strict=True)])}]"


@per_value(
    "jsonb_build_array", (ANY,), JSONB, strict=False, variadic=True, volatility="settings", needs_site=True,
    vector=written.items(True),
)  # fmt: skip
@per_value("jsonb_build_array", (), JSONB, strict=False, needs_site=True)
def jsonb_build_array(site: CallSite, *values: Any) -> str:
    style = json_style(site)
    return format_json([json_value(t, v, style) for t, v in zip(site.args, values, strict=True)])


OF_ROW: Final = "json of row"
"""The key of what the evaluator makes of ``row_to_json(ROW(…))``: names and values in turn."""


@per_value(OF_ROW, (ANY,), JSON, strict=False, variadic=True, volatility="settings", needs_site=True, internal=True,
           key_is_name=True, vector=written.members(":", ",", False))  # fmt: skip
def json_of_row(site: CallSite, *values: Any) -> str:
    """A row's JSON, of its fields' names and values."""
    style = json_style(site)
    pairs = zip(values[::2], site.args[1::2], values[1::2], strict=True)
    return f"{{{','.join([f'{quoted(name)}:{json_text(type_, value, style)}' for name, type_, value in pairs])}}}"


_OF_ROWS: Final = {
    "row_to_json(record)": OF_ROW, "to_json(anyelement)": OF_ROW, "json_element(anyelement)": OF_ROW,
    "to_jsonb(anyelement)": "jsonb_build_object(any)", "jsonb_element(anyelement)": "jsonb_build_object(any)",
}  # fmt: skip
"""What computes a function of a row from the row's fields."""


def of_fields(call: Call) -> Call:
    """A call of such a function on ``ROW(…)`` as one that needs no row; any other call as it is."""
    made = _OF_ROWS.get(call.function)
    row = call.args[0] if made is not None else None
    if made is None or not isinstance(row, Call) or row.function != ROW or not row.args:
        return call
    pairs = zip(row.type.fields, row.args, strict=True)
    args = chain.from_iterable((Literal(name, TEXT), value) for (name, _), value in pairs)
    return Call(made, tuple(args), call.type, call.nullable)


def _text_pairs(items: tuple[Any, ...]) -> list[tuple[str, str | None]]:
    """The keys and values of json_object's one array: in turn, or each an array of two. Raises 2202E, 22004."""
    dimensions = shape(items, False)
    match len(dimensions):
        case 0:
            return []
        case 1:
            if dimensions[0] % 2:
                raise SqlError("2202E", "array must have even number of elements")
            return _checked(zip(items[::2], items[1::2], strict=True))
        case 2:
            if dimensions[1] != 2:
                raise SqlError("2202E", "array must have two columns")
            return _checked((pair[0], pair[1]) for pair in items)
        case _:
            raise SqlError("2202E", "wrong number of array subscripts")


def _checked(pairs: Any) -> list[tuple[str, str | None]]:
    found = list(pairs)
    if any(key is None for key, _ in found):
        raise SqlError("22004", "null value not allowed for object key")
    return found


def _zipped(keys: tuple[Any, ...], values: tuple[Any, ...]) -> list[tuple[str, str | None]]:
    """The keys and values of json_object's two arrays."""
    first, second = shape(keys, False), shape(values, False)
    if len(first) > 1 or len(first) != len(second):
        raise SqlError("2202E", "wrong number of array subscripts")
    if len(keys) != len(values):
        raise SqlError("2202E", "mismatched array dimensions")
    return _checked(zip(keys, values, strict=True))


def _as_json(pairs: list[tuple[str, str | None]]) -> str:
    parts = [f"{quoted(key)} : {'null' if value is None else quoted(value)}" for key, value in pairs]
    return f"{{{', '.join(parts)}}}"


def _as_jsonb(pairs: list[tuple[str, str | None]]) -> str:
    return format_json(dict(pairs))


def _register(name: str, result: SqlType, shown: Callable[[list[tuple[str, str | None]]], str]) -> None:
    per_value(name, (TEXTS,), result, makes_null=False)(lambda items: shown(_text_pairs(items)))
    per_value(name, (TEXTS, TEXTS), result, makes_null=False)(lambda keys, values: shown(_zipped(keys, values)))


_register("json_object", JSON, _as_json)
_register("jsonb_object", JSONB, _as_jsonb)
