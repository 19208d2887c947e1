"""What json_agg, json_object_agg and their kind gather: the JSON text of one element or member (internal)."""

from __future__ import annotations

from typing import Any, Final

from ivm.errors import SqlError
from ivm.rows import Vector
from ivm.words import TEXT, Kind
from planner.expr.functions.json import written
from planner.expr.functions.json.values import json_key, json_style, json_text, json_value
from planner.expr.functions.table import ANY, ANYELEMENT, CallSite, Made, VectorForm, per_value
from storage.types.text_json import format_json, quoted

_NO_KEY: Final = SqlError("22023", "field name must not be null")


@per_value(
    "json_element", (ANYELEMENT,), TEXT, volatility="settings", needs_site=True, internal=True, makes_null=False,
    vector=written.value(False),
)  # fmt: skip
def json_element(site: CallSite, value: Any) -> str:
    return json_text(site.args[0], value, json_style(site))


@per_value(
    "jsonb_element", (ANYELEMENT,), TEXT, volatility="settings", needs_site=True, internal=True, makes_null=False,
    vector=written.value(True),
)  # fmt: skip
def jsonb_element(site: CallSite, value: Any) -> str:
    return format_json(json_value(site.args[0], value, json_style(site)))


def _member_form(prefix: str, strict: bool) -> VectorForm:
    plain = written.members(" : ", "", False, "") if prefix == "json" else written.members(": ", "", True, "")

    def form(site: CallSite, key: Vector, value: Vector) -> Made | None:
        return None if strict and value.nulls is not None else plain(site, key, value)

    return form


def _register(prefix: str, strict: bool) -> None:
    def member(site: CallSite, key: Any, value: Any) -> str:
        if key is None:
            raise _NO_KEY
        style = json_style(site)
        name = quoted(json_key(site.args[0], key, style))
        if value is None and strict:
            return name
        if prefix == "json":
            return f"{name} : {json_text(site.args[1], value, style)}"
        return f"{name}: {format_json(json_value(site.args[1], value, style))}"

    per_value(
        f"{prefix}_member{'_strict' if strict else ''}", (ANY, ANY), TEXT, strict=False, makes_null=False,
        volatility="settings", needs_site=True, internal=True, vector=_member_form(prefix, strict),
    )(member)  # fmt: skip


for _prefix in (Kind.JSON.value, Kind.JSONB.value):
    for _strict in (False, True):
        _register(_prefix, _strict)
