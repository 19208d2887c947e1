"""What an object's catalog, oid and column number stand for: pg_describe_object and pg_identify_object."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Protocol

from ivm.errors import unsupported
from ivm.words import Kind, SqlType
from planner.expr.context import ObjectNames
from planner.expr.functions.table import Polymorphic
from planner.identifiers import quoted
from sql.catalog.access import CLASS, DATABASE, FUNCTION, NAMESPACE, TYPE
from sql.catalog.catalog import Relation
from sql.catalog.comments import CONSTRAINT, TRIGGER
from sql.catalog.keys import constraint_oid
from sql.catalog.routine import Routine
from sql.catalog.securables import LANGUAGE, LANGUAGES
from sql.catalog.user_types import type_of_oid
from sql.system.builtin import by_oid
from sql.system.pg_dependencies import EXTENSIONS, RULE_BASE
from sql.system.state import SystemState, all_relations, databases, defaults_of, indexed, relkind
from storage.types.type_names import format_type, internal_name, type_from_oid

_ATTRDEF: Final = 2604
_AUTHID: Final = 1260
_OPERATOR: Final = 2617
_REWRITE: Final = 2618
_EXTENSION: Final = 3079
_KINDS: Final = {
    "r": "table", "p": "table", "v": "view", "m": "materialized view", "i": "index", "I": "index", "S": "sequence",
    "c": "composite type", "f": "foreign table",
}  # fmt: skip


class Names(Protocol):
    """How the session writes names: with a schema where the search path does not find the object."""

    def reg_out(self, type: SqlType, oid: int) -> str: ...
    def routine_visible(self, routine: Relation) -> bool: ...


def described(state: SystemState, names: Names, catalog: int, oid: int, number: int) -> ObjectNames:
    """An object, or a relation's column. Raises 0A000 for catalogs without such names."""
    finder = _FINDERS.get(catalog)
    if finder is None:
        raise unsupported(f"the name of an object of the catalog with oid {catalog}")
    absent = ObjectNames(None, _ABSENT[catalog], None, None, None, None, None)
    return finder(state, names, oid, number) or absent


def _plain(kind: str, name: str) -> ObjectNames:
    return ObjectNames(f"{kind} {name}", kind, None, quoted(name), quoted(name), (name,))


_REGCLASS: Final = SqlType(Kind.REGCLASS)


def _whole(schema: str, name: str) -> str:
    return f"{quoted(schema)}.{quoted(name)}"


def _relation(state: SystemState, names: Names, oid: int, number: int) -> ObjectNames | None:
    relations = ((r.oid, k, r.schema_name, r.name, r.columns) for r, k in all_relations(state))
    indexes = ((i.id, "i", r.schema_name, i.name, ()) for r, i in indexed(state))
    for own, letter, schema, name, columns in (*relations, *indexes):
        if own != oid:
            continue
        kind, whole, shown = _KINDS[letter], _whole(schema, name), names.reg_out(_REGCLASS, oid)
        if not number:
            return ObjectNames(f"{kind} {shown}", kind, quoted(schema), quoted(name), whole, (schema, name))
        if not 0 < number <= len(columns):
            return None
        column = columns[number - 1].name
        return ObjectNames(
            f"column {column} of {kind} {shown}", f"{kind} column", quoted(schema), quoted(name),
            f"{whole}.{quoted(column)}", (schema, name, column),
        )  # fmt: skip
    return None


def _type(state: SystemState, names: Names, oid: int, number: int) -> ObjectNames | None:
    own = type_of_oid((*state.types(), *state.relations()), oid)
    domain = next((t for t in state.types() if t.domain and t.oid == oid), None)
    known = type_from_oid(oid) if own is None else own[1]
    if domain is not None:
        whole = _whole(domain.schema_name, domain.name)
        return ObjectNames(
            f"type {quoted(domain.name)}", "type", quoted(domain.schema_name), quoted(domain.name), whole, (whole,)
        )
    if known is None:
        return None
    schema = "pg_catalog" if own is None else own[0].schema_name
    shown, name = format_type(known, False), internal_name(known)
    whole = _qualified(known, schema)
    return ObjectNames(f"type {shown}", "type", quoted(schema), quoted(name), whole, (whole,))


def _qualified(type_: SqlType, schema: str = "pg_catalog") -> str:
    """A type's name with its schema, which the standard's names do not have."""
    base = type_ if type_.element is None else type_.element
    shown = format_type(type_, False)
    standard = schema == "pg_catalog" and format_type(base, False) != internal_name(base)
    return shown if standard else f"{quoted(schema)}.{shown}"


def _inputs(routine: Routine) -> Iterator[tuple[str, str]]:
    """The types of a routine's input arguments, as the session sees them and with their schemas."""
    for argument in routine.declared:
        if argument.mode in ("out", "table"):
            continue
        if isinstance(argument.type, Polymorphic):
            yield argument.type.value, f"pg_catalog.{argument.type.value}"
        else:
            yield format_type(argument.type, False), _qualified(argument.type)


def _routine(names: Names, relation: Relation) -> ObjectNames:
    routine = relation.routine
    assert routine is not None, "a routine"
    pairs = list(_inputs(routine))
    kind = "aggregate" if routine.aggregate else routine.kind
    whole = f"{_whole(relation.schema_name, routine.name)}({','.join(w for _, w in pairs)})"
    place = "" if names.routine_visible(relation) else f"{quoted(relation.schema_name)}."
    shown = f"{place}{quoted(routine.name)}({','.join(s for s, _ in pairs)})"
    address = relation.schema_name, routine.name
    args = tuple(w for _, w in pairs)
    return ObjectNames(f"function {shown}", kind, quoted(relation.schema_name), None, whole, address, args)


def _constraints(state: SystemState, names: Names) -> Iterator[tuple[int, ObjectNames]]:
    for relation, index in indexed(state):
        if index.constraint:
            yield constraint_oid(index), _of_table(names, "constraint", "table constraint", index.name, relation)
    for relation in state.relations():
        named = [(k.id, k.name) for k in relation.foreign_keys] + [(c.id, c.name) for c in relation.checks]
        for oid, name in named:
            yield oid, _of_table(names, "constraint", "table constraint", name, relation)


def _triggers(state: SystemState, names: Names) -> Iterator[tuple[int, ObjectNames]]:
    for relation in state.relations():
        for trigger in relation.triggers:
            yield trigger.id, _of_table(names, "trigger", "trigger", trigger.name, relation)


def _of_table(names: Names, word: str, kind: str, name: str, relation: Relation) -> ObjectNames:
    """Something that has a name among those of its table."""
    table = _whole(relation.schema_name, relation.name)
    schema = quoted(relation.schema_name) if kind == "table constraint" else None
    text = f"{word} {name} on table {names.reg_out(_REGCLASS, relation.oid)}"
    address = relation.schema_name, relation.name, name
    return ObjectNames(text, kind, schema, None, f"{quoted(name)} on {table}", address)


def _default(names: Names, relation: Relation, number: int) -> ObjectNames:
    column = relation.columns[number - 1].name
    table = _whole(relation.schema_name, relation.name)
    text = f"default value for column {column} of table {names.reg_out(_REGCLASS, relation.oid)}"
    address = relation.schema_name, relation.name, column
    return ObjectNames(text, "default value", None, None, f"for {table}.{quoted(column)}", address)


_REGPROCEDURE: Final = SqlType(Kind.REGPROCEDURE)
_REGOPERATOR: Final = SqlType(Kind.REGOPERATOR)


def _builtin_routine(names: Names, oid: int) -> ObjectNames | None:
    row = by_oid("pg_proc").get(oid)
    if row is None:
        return None
    signature, name = names.reg_out(_REGPROCEDURE, oid), row["proname"] or ""
    kind = "aggregate" if row["prokind"] == "a" else "function"
    args = tuple(signature.partition("(")[2][:-1].split(",")) if row["proargtypes"] != "{}" else ()
    return ObjectNames(
        f"function {signature}", kind, "pg_catalog", None, f"pg_catalog.{signature}", ("pg_catalog", name), args
    )


def _operator(state: SystemState, names: Names, oid: int) -> ObjectNames | None:
    shown = names.reg_out(_REGOPERATOR, oid)
    if shown.isdigit():
        return None
    own = next((r for r in state.operators() if r.oid == oid), None)
    schema = "pg_catalog" if own is None else quoted(own.schema_name)
    bare = shown if own is None else shown.removeprefix(f"{schema}.")
    address = schema, bare.partition("(")[0]
    args = tuple(bare.partition("(")[2][:-1].split(","))
    return ObjectNames(f"operator {shown}", "operator", schema, None, f"{schema}.{bare}", address, args)


def _rule(state: SystemState, names: Names, oid: int) -> ObjectNames | None:
    view = next((r for r in state.relations() if r.oid == oid - RULE_BASE), None)
    if view is None:
        return None
    whole, kind = _whole(view.schema_name, view.name), _KINDS[relkind(view)]
    text = f"rule _RETURN on {kind} {names.reg_out(_REGCLASS, view.oid)}"
    return ObjectNames(text, "rule", None, None, f'"_RETURN" on {whole}', (view.schema_name, view.name, "_RETURN"))


def _role(state: SystemState, oid: int) -> ObjectNames | None:
    return _plain("role", state.roles.name(oid)) if oid in state.roles.access.roles else None


_ABSENT: Final = {
    CLASS: "relation", TYPE: "type", FUNCTION: "routine", CONSTRAINT: "constraint", TRIGGER: "trigger",
    _OPERATOR: "operator", _REWRITE: "rewrite", LANGUAGE: "language", _EXTENSION: "extension",
    _ATTRDEF: "default value", NAMESPACE: "schema", DATABASE: "database", _AUTHID: "role",
}  # fmt: skip
"""What an object is called that there is not."""
Finder = Callable[[SystemState, Names, int, int], ObjectNames | None]
_FINDERS: Final[dict[int, Finder]] = {
    CLASS: _relation,
    TYPE: _type,
    FUNCTION: lambda state, names, oid, _: next(
        (_routine(names, r) for r in state.routines() if r.oid == oid), _builtin_routine(names, oid)
    ),
    _OPERATOR: lambda state, names, oid, _: _operator(state, names, oid),
    _REWRITE: lambda state, names, oid, _: _rule(state, names, oid),
    LANGUAGE: lambda state, names, oid, _: next(
        (_plain("language", name) for name, known in LANGUAGES.items() if known == oid), None
    ),
    _EXTENSION: lambda state, names, oid, _: next(
        (_plain("extension", name) for name, known in EXTENSIONS.items() if known == oid), None
    ),
    CONSTRAINT: lambda state, names, oid, _: dict(_constraints(state, names)).get(oid),
    TRIGGER: lambda state, names, oid, _: dict(_triggers(state, names)).get(oid),
    _ATTRDEF: lambda state, names, oid, _: next(
        (_default(names, r, n) for o, r, n in defaults_of(state) if o == oid), None
    ),
    NAMESPACE: lambda state, _names, oid, _: next(
        (_plain("schema", name) for name, known in state.schemas().items() if known == oid), None
    ),
    DATABASE: lambda state, _names, oid, _: next(
        (_plain("database", database.name) for database in databases(state) if database.oid == oid), None
    ),
    _AUTHID: lambda state, _names, oid, _: _role(state, oid),
}
"""By the catalog's oid."""
