"""JSON_OBJECT, JSON_ARRAY, JSON, JSON_SCALAR and IS JSON of SQL/JSON, which have a syntax of their own (internal)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import BOOL, JSON, JSONB, TEXT, Kind, SqlType
from planner.expr.functions.json import written
from planner.expr.functions.json.trees import JSON_TREE
from planner.expr.functions.json.values import json_key, json_style, json_text, json_value
from planner.expr.functions.table import ANY, CallSite, VectorForm, per_value
from storage.types.text_json import check_json, format_json, quoted
from storage.types.type_names import format_type

_KINDS: Final = ("value", "object", "array", "scalar")


def object_key(type_: SqlType, absent: bool, unique: bool) -> str:
    """The key of JSON_OBJECT's function for a result of type json or jsonb."""
    return f"{type_.kind.value} object{' absent' if absent else ''}{' unique' if unique else ''}"


def array_key(type_: SqlType, absent: bool) -> str:
    """The key of JSON_ARRAY's function."""
    return f"{type_.kind.value} array{' absent' if absent else ''}"


def test_key(kind: str, unique: bool) -> str:
    """The key of IS JSON's function."""
    return f"is json {kind}{' unique' if unique else ''}"


def _object(type_: SqlType, absent: bool, unique: bool) -> Callable[..., str]:
    def construct(site: CallSite, *args: Any) -> str:
        style = json_style(site)
        members: list[tuple[str, str]] = []
        known: set[str] = set()
        for i in range(0, len(args), 2):
            if args[i] is None:
                raise SqlError("22004", "null value not allowed for object key")
            key, value = json_key(site.args[i], args[i], style), args[i + 1]
            if unique and key in known:
                shown = f": {quoted(key)}" if type_ is JSON else ""
                raise SqlError("22030", f"duplicate JSON object key value{shown}")
            known.add(key)
            if value is not None or not absent:
                found = json_text if type_ is JSON else _canonical
                members.append((key, found(site.args[i + 1], value, style)))
        if type_ is JSON:
            return f"{{{', '.join([f'{quoted(key)} : {value}' for key, value in members])}}}"
        last = dict(members)
        keys = sorted(last, key=lambda key: (len(code := key.encode()), code))
        return f"{{{', '.join([f'{quoted(key)}: {last[key]}' for key in keys])}}}"

    return construct


def _canonical(type_: SqlType, value: Any, style: Any) -> str:
    return format_json(json_value(type_, value, style))


def _array(type_: SqlType, absent: bool) -> Callable[..., str]:
    def construct(site: CallSite, *args: Any) -> str:
        style = json_style(site)
        shown = json_text if type_ is JSON else _canonical
        values = zip(site.args, args, strict=True)
        return f"[{', '.join([shown(t, v, style) for t, v in values if v is not None or not absent])}]"

    return construct


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise SqlError("22030", "duplicate JSON object key value")
    return found


_STRICT: Final = json.JSONDecoder(object_pairs_hook=_refuse_duplicates, parse_float=str, parse_int=str)


@per_value("json unique", (TEXT,), JSON, makes_null=False, internal=True, key_is_name=True)
def check_unique(text: str) -> str:
    """JSON(text WITH UNIQUE KEYS). Raises 22030 and 22P02."""
    _STRICT.decode(check_json(text))
    return text


@per_value("json scalar", (ANY,), JSON, makes_null=False, volatility="settings", needs_site=True, internal=True,
           key_is_name=True)  # fmt: skip
def json_scalar(site: CallSite, value: Any) -> str:
    """JSON_SCALAR."""
    return json_text(site.args[0], value, json_style(site))


def _test(kind: str, unique: bool) -> Callable[[CallSite, Any], bool]:
    def test(site: CallSite, value: Any) -> bool:
        type_ = site.args[0]
        if type_.kind not in _TEXTS:
            shown = format_type(type_, False)
            raise SqlError("42804", f"cannot use type {shown} in IS JSON predicate")
        text = value.decode(errors="surrogateescape") if isinstance(value, bytes) else value
        try:
            check_json(text)
            if unique and type_.kind is not Kind.JSONB:
                check_unique(text)
        except SqlError as error:
            if error.sqlstate not in ("22P02", "22030", "22P05"):
                raise
            return False
        found = JSON_TREE.kind(JSON_TREE.load(text))
        if kind == "scalar":
            return found not in ("object", "array")
        return kind in ("value", found)

    return test


_TEXTS: Final = (Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR, Kind.NAME, Kind.JSON, Kind.JSONB, Kind.BYTEA)


def _form(form: VectorForm, absent: bool) -> VectorForm:
    """Without NULLs, if they are not to be there."""
    return lambda site, *vectors: None if absent and any(v.nulls is not None for v in vectors) else form(site, *vectors)


def _constructor(key: str, type_: SqlType, construct: Callable[..., str], form: VectorForm | None) -> None:
    per_value(
        key, (ANY,), type_, strict=False, makes_null=False, variadic=True, volatility="settings", needs_site=True,
        internal=True, key_is_name=True, vector=form,
    )(construct)  # fmt: skip


for _flag in (False, True):
    for _type in (JSON, JSONB):
        _members = _form(written.members(": " if _type is JSONB else " : ", ", ", _type is JSONB), _flag)
        _constructor(array_key(_type, _flag), _type, _array(_type, _flag), _form(written.items(_type is JSONB), _flag))
        for _unique in (False, True):
            _constructor(
                object_key(_type, _flag, _unique), _type, _object(_type, _flag, _unique), None if _unique else _members
            )
    for _kind in _KINDS:
        per_value(test_key(_kind, _flag), (ANY,), BOOL, makes_null=False, needs_site=True, internal=True,
                  key_is_name=True)(_test(_kind, _flag))  # fmt: skip
