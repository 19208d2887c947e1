"""SQL values → JSON, as Postgres's ``datum_to_json`` and ``datum_to_jsonb``: with the ISO form of dates and times,
whatever DateStyle is."""

from __future__ import annotations

from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import Kind, SqlType
from planner.expr.functions.casts.text import style_of
from planner.expr.functions.table import CallSite
from storage.types.text import format_datum
from storage.types.text_array import leaf_test
from storage.types.text_json import load_json, parse_json, quoted
from storage.types.text_number import parse_numeric
from storage.types.text_style import DEFAULT_FORMATS, TextStyle

NUMBERS: Final = (Kind.INT2, Kind.INT4, Kind.INT8, Kind.FLOAT4, Kind.FLOAT8, Kind.NUMERIC)
_MOMENTS: Final = (Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
NO_KEYS: Final = (Kind.ARRAY, Kind.RECORD, Kind.JSON, Kind.JSONB)


def json_style(site: CallSite) -> TextStyle:
    """The settings that values in JSON depend on: the time zone alone."""
    style = style_of(site)
    return TextStyle(style.timezone, style.now, style.reg, DEFAULT_FORMATS)


def _text(type_: SqlType, value: Any, style: TextStyle) -> str:
    """A scalar's text, moments with a T and an offset's minutes."""
    if type_.kind is Kind.BOOL:
        return "true" if value else "false"
    text = format_datum(type_, value, style)
    if type_.kind not in _MOMENTS or not text[0].isdigit():
        return text
    text, era = text.removesuffix(" BC"), text[-3:] if text.endswith(" BC") else ""
    bare = type_.kind is Kind.TIMESTAMPTZ and text[-3] in "+-"
    return text.replace(" ", "T", 1) + (":00" if bare else "") + era


def _is_number(type_: SqlType, text: str) -> bool:
    return type_.kind in NUMBERS and text[-1].isdigit()


def _item_type(type_: SqlType, value: tuple[Any, ...]) -> SqlType:
    """The type of an array's items: the array's own while there are more dimensions."""
    element = type_.element
    assert element is not None, "an array has an element's type"
    is_leaf = leaf_test(element.kind)
    return element if element.kind is Kind.RECORD or all(item is None or is_leaf(item) for item in value) else type_


def json_text(type_: SqlType, value: Any, style: TextStyle, separator: str = ",") -> str:
    """A value as json. ``separator``: what stands between the parts of the outermost array or row."""
    if value is None:
        return "null"
    kind = type_.kind
    if kind is Kind.ARRAY:
        of = _item_type(type_, value)
        return f"[{separator.join([json_text(of, item, style) for item in value])}]"
    if kind is Kind.RECORD:
        pairs = zip(type_.fields, value, strict=True)
        return f"{{{separator.join([f'{quoted(name)}:{json_text(t, v, style)}' for (name, t), v in pairs])}}}"
    if kind in (Kind.JSON, Kind.JSONB):
        return str(value)
    text = _text(type_, value, style)
    return text if kind is Kind.BOOL or _is_number(type_, text) else quoted(text)


def json_value(type_: SqlType, value: Any, style: TextStyle) -> Any:
    """A value as a JSON value (``storage.types.text_json``). Raises 22P05 and others for a json that is no jsonb."""
    if value is None:
        return None
    match type_.kind:
        case Kind.BOOL:
            return bool(value)
        case Kind.ARRAY:
            of = _item_type(type_, value)
            return [json_value(of, item, style) for item in value]
        case Kind.RECORD:
            pairs = zip(type_.fields, value, strict=True)
            return {name: json_value(t, v, style) for (name, t), v in pairs}
        case Kind.JSON:
            return parse_json(value)
        case Kind.JSONB:
            return load_json(value)
        case _:
            text = _text(type_, value, style)
            return parse_numeric(text) if _is_number(type_, text) else text


def json_key(type_: SqlType, value: Any, style: TextStyle) -> str:
    """A value that is not NULL as an object's key. Raises 22023."""
    if type_.kind in NO_KEYS:
        raise SqlError("22023", "key value must be scalar, not array, composite, or json")
    return _text(type_, value, style)
