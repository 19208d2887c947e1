"""The json functions that build json from SQL values. Freshet has jsonb but no type json, so they return type text,
formatted as PostgreSQL does (``datum_to_json`` in json.c)."""

from __future__ import annotations

import json
from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import TEXT, Kind, SqlType
from planner.expr.functions.casts.text import style_of
from planner.expr.functions.table import ANY, CallSite, per_value
from storage.types.text import format_datum
from storage.types.text_style import DEFAULT_FORMATS, TextStyle

_NUMBERS: Final = (Kind.INT2, Kind.INT4, Kind.INT8, Kind.FLOAT4, Kind.FLOAT8, Kind.NUMERIC)
_MOMENTS: Final = (Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
RECORD: Final = SqlType(Kind.RECORD)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _json(type_: SqlType, value: Any, style: TextStyle) -> str:
    if value is None:
        return "null"
    kind = type_.kind
    if kind is Kind.BOOL:
        return "true" if value else "false"
    if kind is Kind.ARRAY:
        assert type_.element is not None
        return _array(type_, type_.element, value, style)
    if kind is Kind.RECORD:
        pairs = zip(type_.fields, value, strict=True)
        return "{" + ",".join(f"{_quoted(name)}:{_json(t, v, style)}" for (name, t), v in pairs) + "}"
    text = format_datum(type_, value, TextStyle(style.timezone, style.now, style.reg, DEFAULT_FORMATS))
    if kind is Kind.JSONB:
        return text
    if kind in _NUMBERS:
        return text if text[-1].isdigit() else _quoted(text)
    if kind in _MOMENTS:
        text = _iso_offset(text.replace(" ", "T", 1) if text[0].isdigit() else text, kind)
    return _quoted(text)


def _iso_offset(text: str, kind: Kind) -> str:
    """json.c writes every offset with minutes."""
    bare = kind is Kind.TIMESTAMPTZ and len(text) > 3 and text[-3] in "+-"
    return text + ":00" if bare else text


def _array(type_: SqlType, element: SqlType, value: Any, style: TextStyle) -> str:
    inner = element.kind not in (Kind.INTERVAL, Kind.RECORD)
    nested = inner and any(isinstance(item, tuple) for item in value)
    return "[" + ",".join(_json(type_ if nested else element, item, style) for item in value) + "]"


@per_value("row_to_json", (RECORD,), TEXT, volatility="settings", needs_site=True)
@per_value("to_json", (ANY,), TEXT, volatility="settings", needs_site=True)
def to_json(site: CallSite, value: Any) -> str:
    return _json(site.args[0], value, style_of(site))


@per_value("json_build_object", (ANY,), TEXT, strict=False, variadic=True, volatility="settings", needs_site=True)
def json_build_object(site: CallSite, *values: Any) -> str:
    """json_build_object: the arguments are names and values in turn."""
    if len(values) % 2:
        raise SqlError(
            "22023", "argument list must have even number of elements",
            hint="The arguments of json_build_object() must consist of alternating keys and values.",
        )  # fmt: skip
    style = style_of(site)
    parts = []
    for i in range(0, len(values), 2):
        if values[i] is None:
            raise SqlError("22004", f"argument {i + 1} cannot be null", hint="Object keys should be text.")
        name = values[i] if isinstance(values[i], str) else format_datum(site.args[i], values[i], style)
        parts.append(f"{_quoted(name)} : {_json(site.args[i + 1], values[i + 1], style)}")
    return "{" + ", ".join(parts) + "}"


@per_value("json_build_array", (ANY,), TEXT, strict=False, variadic=True, volatility="settings", needs_site=True)
def json_build_array(site: CallSite, *values: Any) -> str:
    style = style_of(site)
    return "[" + ", ".join(_json(t, v, style) for t, v in zip(site.args, values, strict=True)) + "]"
