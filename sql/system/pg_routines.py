"""User-defined functions in pg_proc, and in the functions about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from ivm.errors import SqlError
from ivm.words import Kind
from planner.expr.functions.table import ArgumentType, Polymorphic
from planner.identifiers import quoted
from sql.catalog.catalog import Relation
from sql.catalog.composite import domain_oid
from sql.catalog.routine import Argument, Fold, Routine
from sql.catalog.securables import LANGUAGES, securable
from sql.catalog.system.definitions import Datums, Row
from sql.system.acls import own_acl
from sql.system.builtin import BuiltinRow, by_oid
from sql.system.state import SystemState, owner_of
from storage.types.type_names import type_oid

SQL_LANGUAGE = 14
PYTHON_LANGUAGE = 15
_RECORD = 2249
_INTERNAL = 12
_INTERNAL_TYPE = 2281
_TRIGGER = 2279
_LANGUAGES: Final = {"python": PYTHON_LANGUAGE, "plpgsql": LANGUAGES["plpgsql"]}
_MODES: Final = {"in": "i", "out": "o", "inout": "b", "variadic": "v", "table": "t"}
_POLYMORPHIC: Final = {
    Polymorphic.ANY: 2276, Polymorphic.ANYELEMENT: 2283, Polymorphic.ANYARRAY: 2277, Polymorphic.ANYNONARRAY: 2776,
    Polymorphic.ANYENUM: 3500, Polymorphic.ANYCOMPATIBLE: 5077, Polymorphic.ANYCOMPATIBLEARRAY: 5078,
    Polymorphic.ANYCOMPATIBLENONARRAY: 5079, Polymorphic.ANYCOMPATIBLERANGE: 5080,
    Polymorphic.ANYCOMPATIBLEMULTIRANGE: 4538, Polymorphic.ANYRANGE: 3831, Polymorphic.ANYMULTIRANGE: 4537,
}  # fmt: skip


def rows(state: SystemState, row: Row) -> Iterator[Datums]:
    """pg_proc's rows for user-defined functions."""
    schemas = state.schemas()
    for relation in state.routines():
        routine = relation.routine
        assert routine is not None, "a function"
        names = tuple(a.name or "" for a in routine.declared)
        types = tuple(map(argument_oid, routine.types))
        modes, every = None, None
        if any(a.mode != "in" for a in routine.declared):
            every = tuple(argument_oid(a.type) for a in routine.declared)
            modes = tuple(_MODES[a.mode] for a in routine.declared)
        defaults = ", ".join(a.default for a in routine.arguments if a.default is not None)
        yield row(
            oid=relation.id, proname=routine.name, pronamespace=schemas[relation.schema_name],
            proowner=owner_of(state, relation), proacl=own_acl(securable(relation), state.roles),
            prolang=_language(routine), procost=100.0,
            prorows=1000.0 if routine.returns_set else 0.0, prokind=routine.kind[0],
            proisstrict=routine.strict, prosecdef=routine.definer, proretset=routine.returns_set,
            provolatile=routine.volatility[0],
            proparallel="u", pronargs=len(types), pronargdefaults=routine.optional, prorettype=_result_oid(routine),
            proargtypes=types, proallargtypes=every, proargmodes=modes,
            proargnames=names if any(names) else None, proargdefaults=defaults or None,
            provariadic=_variadic_oid(routine), prosrc="" if routine.expression else relation.definition,
            prosqlbody=f"RETURN {relation.definition}" if routine.expression else None,
        )  # fmt: skip


def _language(routine: Routine) -> int:
    return _INTERNAL if routine.fold is not None else _LANGUAGES.get(routine.language, SQL_LANGUAGE)


def aggregates(state: SystemState, row: Row, builtin: Mapping[str, int]) -> Iterator[Datums]:
    """pg_aggregate's rows for user-defined aggregates. ``builtin``: the oids of built-in functions."""
    for relation in state.routines():
        routine = relation.routine
        if routine is None or not routine.aggregate:
            continue
        fold = routine.fold
        yield row(
            aggfnoid=relation.id, aggkind=_kind(fold), aggfinalmodify="r", aggmfinalmodify="r",
            aggnumdirectargs=0 if fold is None else fold.direct or 0,
            aggtransfn=0 if fold is None else function_oid(state, fold.transition, builtin),
            aggfinalfn=0 if fold is None or fold.final is None else function_oid(state, fold.final, builtin),
            aggfinalextra=fold is not None and fold.final_extra,
            aggtranstype=_result_oid(routine) if fold is None else _state_oid(fold),
            agginitval=None if fold is None else fold.initial,
        )  # fmt: skip


def _kind(fold: Fold | None) -> str:
    """pg_aggregate.aggkind."""
    if fold is None or fold.direct is None:
        return "n"
    return "h" if fold.hypothetical else "o"


def _state_oid(fold: Fold) -> int:
    return _INTERNAL_TYPE if fold.stands_for else argument_oid(fold.state)


def function_oid(state: SystemState, name: tuple[str, ...], builtin: Mapping[str, int]) -> int:
    """The oid of a function of this name, a user's first."""
    own = (r.id for r in state.routines() if r.routine is not None and r.routine.name == name[-1])
    return next(own, builtin.get(name[-1], 0))


def _result_oid(routine: Routine) -> int:
    if routine.trigger:
        return _TRIGGER
    return argument_oid(routine.result)


def argument_oid(type_: ArgumentType) -> int:
    """The oid of a declared type."""
    if isinstance(type_, Polymorphic):
        return _POLYMORPHIC[type_]
    if (domain := domain_oid(type_)) is not None:
        return domain
    return _RECORD if type_.kind is Kind.RECORD and type_.named is None else type_oid(type_)


def _variadic_oid(routine: Routine) -> int:
    if not routine.variadic:
        return 0
    last = routine.types[-1]
    if isinstance(last, Polymorphic):
        element = Polymorphic.ANYELEMENT if last is Polymorphic.ANYARRAY else Polymorphic.ANYCOMPATIBLE
        return _POLYMORPHIC[element]
    return 0 if last.element is None else type_oid(last.element)


TypeName = Callable[[int], str]
"""The name of a type by its oid, as the session sees it."""


def arguments(routine: Routine, name: TypeName, defaults: bool = True) -> str:
    """pg_get_function_arguments: ``a integer, b integer DEFAULT 1``; without ``defaults``, the identity arguments."""
    plain = "IN " if routine.procedure else ""
    shown = [_argument(a, plain, name, defaults) for a in routine.declared if a.mode != "table"]
    direct = None if routine.fold is None else routine.fold.direct
    if direct is None:
        return ", ".join(shown)
    ordered = shown[direct:] or shown[-1:]  # a VARIADIC argument is both
    return " ".join([*([", ".join(shown[:direct])] if direct else []), "ORDER BY", ", ".join(ordered)])


def _argument(argument: Argument, plain: str, type_name: TypeName, defaults: bool) -> str:
    mode = plain if argument.mode == "in" else f"{argument.mode.upper()} "
    name = "" if argument.name is None else f"{quoted(argument.name)} "
    default = f" DEFAULT {argument.default}" if defaults and argument.default is not None else ""
    return f"{mode}{name}{_shown(argument.type, type_name)}{default}"


def _shown(type_: ArgumentType, type_name: TypeName) -> str:
    return '"any"' if type_ is Polymorphic.ANY else type_name(argument_oid(type_))


def result(relation: Relation, type_name: TypeName) -> str | None:
    """pg_get_function_result; None for a procedure."""
    routine = relation.routine
    assert routine is not None, "a function"
    if routine.procedure:
        return None
    if routine.trigger:
        return "trigger"
    columns = [a for a in routine.declared if a.mode == "table"]
    if columns:
        return "TABLE(" + ", ".join(f"{quoted(c.name or '')} {_shown(c.type, type_name)}" for c in columns) + ")"
    shown = _shown(routine.result, type_name)
    return f"SETOF {shown}" if routine.returns_set else shown


def builtin_text(oid: int, what: str) -> str | None:
    """What the functions about functions say of a built-in one; None if there is none."""
    row = by_oid("pg_proc").get(oid)
    if row is None:
        return None
    match what:
        case "definition":
            return _builtin_definition(row)
        case "result":
            return row["result"]
        case "identity" if row["identity"] is not None:
            return row["identity"]
        case _:
            return row["arguments"] or ""


def _builtin_definition(row: BuiltinRow) -> str:
    """pg_get_functiondef of a built-in function. Raises 42809."""
    name = quoted(row["proname"] or "")
    if row["prokind"] == "a":
        raise SqlError("42809", f'"{name}" is an aggregate function')
    traits = ["WINDOW"] if row["prokind"] == "w" else []
    traits += {"i": ["IMMUTABLE"], "s": ["STABLE"]}.get(row["provolatile"] or "", [])
    traits += {"s": ["PARALLEL SAFE"], "r": ["PARALLEL RESTRICTED"]}.get(row["proparallel"] or "", [])
    traits += ["STRICT"] if row["proisstrict"] == "t" else []
    traits += (
        [f"SUPPORT {by_oid('pg_proc')[int(row['prosupport'] or 0)]['proname']}"] if row["prosupport"] != "0" else []
    )
    language = {_INTERNAL: "internal", SQL_LANGUAGE: "sql"}[int(row["prolang"] or 0)]
    costs = [f"COST {row['procost']}"] if row["procost"] != ("1" if language == "internal" else "100") else []
    costs += [f"ROWS {row['prorows']}"] if row["proretset"] == "t" and row["prorows"] != "1000" else []
    lines = [
        f"CREATE OR REPLACE FUNCTION pg_catalog.{name}({row['arguments']})", f" RETURNS {row['result']}",
        f" LANGUAGE {language}", *(f" {' '.join(words)}" for words in (traits, costs) if words),
        f"AS $function${row['prosrc']}$function$",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def function_definition(relation: Relation, type_name: TypeName) -> str:
    """pg_get_functiondef: the CREATE OR REPLACE FUNCTION statement."""
    routine = relation.routine
    assert routine is not None, "a function"
    if routine.aggregate:
        raise SqlError("42809", f'"{routine.name}" is an aggregate function')
    name = f"{quoted(relation.schema_name)}.{quoted(routine.name)}"
    returns = [] if routine.procedure else [f" RETURNS {result(relation, type_name)}"]
    lines = [f"CREATE OR REPLACE {routine.kind.upper()} {name}({arguments(routine, type_name)})", *returns,
             f" LANGUAGE {routine.language}"]  # fmt: skip
    traits = [] if routine.volatility == "volatile" else [routine.volatility.upper()]
    traits += ["STRICT"] if routine.strict else []
    traits += ["SECURITY DEFINER"] if routine.definer else []
    if traits:
        lines.append(" " + " ".join(traits))
    body = relation.definition or ""
    tag = routine.kind
    lines.append(f"RETURN {body}" if routine.expression else f"AS ${tag}${body}${tag}$")
    return "\n".join(lines) + "\n"
