"""Rows of information_schema.routines and parameters, from those of pg_proc and pg_type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from sql.catalog.catalog import Relation
from sql.catalog.securables import LANGUAGES, securable
from sql.catalog.system.definitions import Datums, Row, definition
from sql.system.pg_types import pg_proc, pg_type, type_names
from sql.system.state import SystemState
from storage.types.type_names import format_type, type_from_oid

_MODES: Final = {"i": "IN", "o": "OUT", "b": "INOUT", "v": "IN", "t": "OUT"}
_KINDS: Final = {"f": "FUNCTION", "p": "PROCEDURE"}


def _named(
    state: SystemState, name: str, rows: Callable[[SystemState, Row], Iterator[Datums]]
) -> Iterator[dict[str, object]]:
    """The rows of a relation of pg_catalog, by the names of their columns."""
    known = definition("pg_catalog", name)
    return (dict(zip(known.defaults, values, strict=True)) for values in rows(state, known.row))


def _types(state: SystemState) -> Mapping[object, dict[str, object]]:
    return {type_["oid"]: type_ for type_ in _named(state, "pg_type", pg_type)}


def _data_type(state: SystemState, type_: Mapping[str, object], prefix: str) -> dict[str, object]:
    """The columns that name a type, those of its own name beginning with ``prefix``."""
    schema = next(name for name, oid in state.schemas().items() if oid == type_["typnamespace"])
    oid = type_["oid"]
    assert isinstance(oid, int)
    plain = type_from_oid(oid, -1)
    if type_["typelem"] and type_["typlen"] == -1:
        shown = "ARRAY"
    elif schema != "pg_catalog":
        shown = "USER-DEFINED"
    else:
        shown = type_names()[oid] if plain is None else format_type(plain, False)
    return {
        "data_type": shown, f"{prefix}_catalog": state.database, f"{prefix}_schema": schema,
        f"{prefix}_name": type_["typname"],
    }  # fmt: skip


def _visible(state: SystemState) -> Iterator[tuple[dict[str, object], str, Relation | None, bool]]:
    """The functions that the current role may call or owns: their rows of pg_proc, schemas, what they are in the
    catalog if they are users', and whether the role sees the body."""
    schemas = {oid: name for name, oid in state.schemas().items()}
    own = {r.id: r for r in state.routines()}
    access = state.roles.access
    for function in _named(state, "pg_proc", pg_proc):
        relation = own.get(function["oid"])  # type: ignore[call-overload]
        what = None if relation is None else securable(relation)
        owns = access.is_superuser(state.role) if what is None else access.owns(state.role, what)
        if what is None or owns or access.has(state.role, what, "X"):
            yield function, schemas[function["pronamespace"]], relation, owns  # type: ignore[index]


def _specific(state: SystemState, schema: str, function: Mapping[str, object]) -> dict[str, object]:
    name = f"{function['proname']}_{function['oid']}"
    return {"specific_catalog": state.database, "specific_schema": schema, "specific_name": name}


def _yes(value: object) -> str:
    return "YES" if value else "NO"


def routines(state: SystemState, row: Row) -> Iterator[Datums]:
    types, languages = _types(state), {oid: name for name, oid in LANGUAGES.items()}
    for function, schema, _, owns in _visible(state):
        language = languages[function["prolang"]]  # type: ignore[index]
        called = function["prokind"] != "p"
        known = types.get(function["prorettype"]) if called else None
        result = {} if known is None else _data_type(state, known, "type_udt")
        yield row(
            **_specific(state, schema, function), routine_catalog=state.database, routine_schema=schema,
            routine_name=function["proname"], routine_type=_KINDS.get(str(function["prokind"])), **result,
            dtd_identifier="0" if called else None, routine_body="SQL" if language == "sql" else "EXTERNAL",
            routine_definition=function["prosrc"] if owns else None,
            external_name=function["prosrc"] if language == "c" else None, external_language=language.upper(),
            parameter_style="GENERAL", is_deterministic=_yes(function["provolatile"] == "i"),
            sql_data_access="MODIFIES", is_null_call=_yes(function["proisstrict"]) if called else None,
            schema_level_routine="YES", max_dynamic_result_sets=0,
            security_type="DEFINER" if function["prosecdef"] else "INVOKER", as_locator="NO", is_udt_dependent="NO",
        )  # fmt: skip


def parameters(state: SystemState, row: Row) -> Iterator[Datums]:
    types = _types(state)
    for function, schema, relation, owns in _visible(state):
        every = function["proallargtypes"] or function["proargtypes"]
        names, modes = function["proargnames"], function["proargmodes"]
        routine = None if relation is None else relation.routine
        assert isinstance(every, tuple)
        for i, oid in enumerate(every):
            if oid not in types:
                continue  # of a kind that is not here
            default = routine.declared[i].default if routine is not None and owns else None
            yield row(
                **_specific(state, schema, function), ordinal_position=i + 1,
                parameter_mode=_MODES[modes[i]] if isinstance(modes, tuple) else "IN", is_result="NO", as_locator="NO",
                parameter_name=names[i] or None if isinstance(names, tuple) else None,
                **_data_type(state, types[oid], "udt"), dtd_identifier=str(i + 1), parameter_default=default,
            )  # fmt: skip
