"""User-defined functions in pg_proc, and in the functions about it."""

from __future__ import annotations

from collections.abc import Iterator

from ivm.errors import SqlError
from ivm.words import Kind, SqlType
from planner.identifiers import quoted
from sql.catalog.catalog import Relation
from sql.catalog.routine import Argument, Routine
from sql.catalog.system.definitions import Datums, Row
from sql.system.state import OWNER, SystemState
from storage.types.type_names import format_type, type_oid

SQL_LANGUAGE = 14
PYTHON_LANGUAGE = 15
_RECORD = 2249


def rows(state: SystemState, row: Row) -> Iterator[Datums]:
    """pg_proc's rows for user-defined functions."""
    schemas = state.schemas()
    for relation in state.routines():
        routine = relation.routine
        assert routine is not None, "a function"
        names: tuple[str, ...] | None = tuple(a.name or "" for a in routine.arguments)
        types = tuple(type_oid(t) for t in routine.types)
        modes, every = None, None
        if routine.table:
            columns = relation.columns
            every = (*types, *(type_oid(c.type) for c in columns))
            modes = (*("i" for _ in types), *("t" for _ in columns))
            names = (*(names or ()), *(c.name for c in columns))
        defaults = ", ".join(a.default for a in routine.arguments if a.default is not None)
        yield row(
            oid=relation.id, proname=routine.name, pronamespace=schemas[relation.schema_name], proowner=OWNER,
            prolang=PYTHON_LANGUAGE if routine.aggregate else SQL_LANGUAGE, procost=100.0,
            prorows=1000.0 if routine.returns_set else 0.0, prokind="a" if routine.aggregate else "f",
            proisstrict=routine.strict, proretset=routine.returns_set, provolatile=routine.volatility[0],
            proparallel="u", pronargs=len(types), pronargdefaults=routine.optional, prorettype=_result_oid(routine),
            proargtypes=types, proallargtypes=every, proargmodes=modes,
            proargnames=names if names is not None and any(names) else None, proargdefaults=defaults or None,
            prosrc="" if routine.expression else relation.definition,
            prosqlbody=f"RETURN {relation.definition}" if routine.expression else None,
        )  # fmt: skip


def aggregates(state: SystemState, row: Row) -> Iterator[Datums]:
    """pg_aggregate's rows for user-defined aggregates."""
    for relation in state.routines():
        if relation.routine is not None and relation.routine.aggregate:
            yield row(
                aggfnoid=relation.id, aggkind="n", aggfinalmodify="r", aggmfinalmodify="r",
                aggtranstype=_result_oid(relation.routine),
            )  # fmt: skip


def _result_oid(routine: Routine) -> int:
    return _RECORD if routine.result.kind is Kind.RECORD else type_oid(routine.result)


def arguments(routine: Routine, defaults: bool = True) -> str:
    """pg_get_function_arguments: ``a integer, b integer DEFAULT 1``."""
    return ", ".join(_argument(a, defaults) for a in routine.arguments)


def _argument(argument: Argument, defaults: bool) -> str:
    name = "" if argument.name is None else f"{quoted(argument.name)} "
    default = f" DEFAULT {argument.default}" if defaults and argument.default is not None else ""
    return f"{name}{_shown(argument.type)}{default}"


def _shown(type_: SqlType) -> str:
    return format_type(type_, False)


def result(relation: Relation) -> str:
    """pg_get_function_result."""
    routine = relation.routine
    assert routine is not None, "a function"
    if routine.table:
        return "TABLE(" + ", ".join(f"{quoted(c.name)} {_shown(c.type)}" for c in relation.columns) + ")"
    return f"SETOF {_shown(routine.result)}" if routine.returns_set else _shown(routine.result)


def function_definition(relation: Relation) -> str:
    """pg_get_functiondef: the CREATE OR REPLACE FUNCTION statement."""
    routine = relation.routine
    assert routine is not None, "a function"
    if routine.aggregate:
        raise SqlError("42809", f'"{routine.name}" is an aggregate function')
    name = f"{quoted(relation.schema_name)}.{quoted(routine.name)}"
    lines = [
        f"CREATE OR REPLACE FUNCTION {name}({arguments(routine)})",
        f" RETURNS {result(relation)}",
        " LANGUAGE sql",
    ]
    traits = [] if routine.volatility == "volatile" else [routine.volatility.upper()]
    traits += ["STRICT"] if routine.strict else []
    if traits:
        lines.append(" " + " ".join(traits))
    body = relation.definition or ""
    lines.append(f"RETURN {body}" if routine.expression else f"AS $function${body}$function$")
    return "\n".join(lines) + "\n"
