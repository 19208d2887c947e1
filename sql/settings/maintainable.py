"""Checks what a materialized view or a subscription cannot maintain: values that change while the tables do not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from ivm.errors import SqlError, unsupported
from ivm.words import TIMESTAMPTZ, Kind, SqlType
from planner.expr.functions.library import CASTS, FUNCTIONS, RAISING_CASTS, TRY_CAST
from planner.expr.functions.lockstep import parts_of
from planner.expr.functions.python_calls import PYTHON_CALLS, PYTHON_ROW, PYTHON_ROWS, traits
from planner.expr.functions.table import Volatility
from planner.expr.parts import walk
from planner.expr.scalar import Aggregate, Alike, Call, Checked, Literal
from planner.expr.state_fold import StateFold
from planner.logical.nodes import Filter, Get, Join, JoinKind, LetRec, Reduce, Rel, TableFunction
from planner.logical.temporal import HINT, conditions, is_clock, reads_clock
from planner.logical.traversal import all_inputs, conjuncts, nodes, scalars
from sql.catalog.catalog import Catalog, Relation
from sql.settings.settings import Settings
from storage.types.type_names import format_type

FIXED: Final = {
    "TimeZone": ("UTC", "GMT", "Etc/UTC"),
    "DateStyle": ("ISO, MDY",),
    "IntervalStyle": ("postgres",),
    "bytea_output": ("hex",),
}
"""The settings that values in views are computed with, whoever reads them."""
_CASTS: Final = (*RAISING_CASTS, TRY_CAST)
_SUBJECT: Final = {
    "TimeZone": (Kind.TIMESTAMPTZ,),
    "DateStyle": (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ),
    "IntervalStyle": (Kind.INTERVAL,),
    "bytea_output": (Kind.BYTEA,),
}
"""For each of these settings the types whose meaning or text depends on it."""


def check_maintainable(rel: Rel, catalog: Catalog, settings: Settings) -> None:
    """Raises 0A000 for system relations (no commit changes them), volatile and stable functions, and functions that
    depend on settings in which the session differs from views."""
    for node in nodes(rel, all_inputs):
        if isinstance(node, Get):
            _check_relation(catalog.relations.get(node.relation))
        if isinstance(node, TableFunction):
            _check_table_function(node)
            for name, _ in parts_of(node.function, len(node.args)):
                _check_settings(f"{name.partition('(')[0]}()", [a.type for a in node.args], settings)
        priorities = node.priorities if isinstance(node, LetRec) else ()
        present = _temporal(node)
        for expr in (*scalars(node), *(p for p in priorities if p is not None)):
            for part in walk(expr):
                if present and is_clock(part):
                    _check_clock(part, settings)
                elif isinstance(part, Call):
                    _check_call(part, settings)
                elif isinstance(part, Checked | Alike):
                    bodies = [f.body for f in part.forms] if isinstance(part, Alike) else [part.check]
                    for inner in chain.from_iterable(map(walk, bodies)):
                        if isinstance(inner, Call):
                            _check_call(inner, settings)
        if isinstance(node, Reduce):
            for aggregate in node.aggregates:
                _check_aggregate(aggregate, settings)


def _check_table_function(node: TableFunction) -> None:
    """Raises 0A000 for a user's function in Python that is not immutable."""
    if node.function in (PYTHON_ROWS, PYTHON_ROW) and isinstance(node.args[1], Literal):
        name, volatility = traits(str(node.args[1].value))
        if volatility != "immutable":
            hint = "Its result may change while the data does not. Declare it IMMUTABLE, or use a plain view."
            raise unsupported(f"function {name}, which is {volatility}, in a materialized view", hint)


def _temporal(node: Rel) -> bool:
    """Whether the node's conditions may read the clock. 0A000: one of them does in a way that cannot be maintained."""
    if isinstance(node, TableFunction):
        return True  # a series up to the present, or refused by ``planner.transform.growing_series``
    if isinstance(node, Filter):
        predicate = node.predicate
    elif isinstance(node, Join) and node.kind is not JoinKind.FULL:
        predicate = node.on
    else:
        return False
    for part in conjuncts(predicate):
        if reads_clock(part):
            conditions(part)
    return True


def _check_relation(relation: Relation | None) -> None:
    if relation is None or relation.sequence is not None:
        what = "a system relation" if relation is None else "a sequence"
        raise unsupported(f"{what} in a materialized view or subscription", hint="Use a plain view.")
    if relation.parts:
        raise unsupported(
            f"the materialized view {relation.name}, which Spark maintains, in a materialized view or subscription",
            hint="Its rows come some time after the commits that change them, and what the engine maintains is of one "
            "commit as a whole. Write its query instead.",
        )


def _check_call(call: Call, settings: Settings) -> None:
    volatility = _volatility(call)
    if call.function in _CASTS and isinstance(call.args[0], Literal):
        return  # a constant, which binding has checked (``sql.bind.literals``)
    if volatility == "settings":
        _check_settings(_shown(call), [*(a.type for a in call.args), call.type], settings)
    elif volatility != "immutable":
        raise unsupported(
            f"{_shown(call)}, which is {volatility}, in a materialized view",
            hint="Its result changes while the data does not, so that no update would tell the view about it. "
            + (HINT if is_clock(call) else "Use a plain view, or put the value into a table."),
        )


def is_immutable(call: Call) -> bool:
    """Whether a call's result depends on its arguments alone, never on the session's settings."""
    volatility = _volatility(call)
    if volatility != "settings":
        return volatility == "immutable"
    kinds = {kind for type_ in (*(a.type for a in call.args), call.type) for kind in _kinds(type_)}
    return all(kinds.isdisjoint(subject) for subject in _SUBJECT.values())


def _check_clock(call: Call, settings: Settings) -> None:
    """Checks a clock that shows the time of the session's zone."""
    if call.type.kind not in (Kind.TIMESTAMPTZ, Kind.INT8):
        _check_settings(_shown(call), [TIMESTAMPTZ], settings)


def _check_aggregate(aggregate: Aggregate, settings: Settings) -> None:
    """Checks aggregates that make JSON, since they turn their arguments into text."""
    if isinstance(aggregate.python, StateFold):
        for expr in (*aggregate.python.transition, *aggregate.python.final):
            for part in walk(expr):
                if isinstance(part, Call):
                    _check_call(part, settings)
    name = aggregate.function.partition("(")[0]
    if name.startswith("json"):
        _check_settings(f"{name}()", [a.type for a in aggregate.args], settings)


def _volatility(call: Call) -> Volatility:
    if call.function in _CASTS:
        found = CASTS.get((call.args[0].type.kind, call.type.kind))
    else:
        found = FUNCTIONS.get(call.function)
    return "immutable" if found is None else found.volatility


def _shown(call: Call) -> str:
    if call.function in _CASTS:
        return f"the cast from {format_type(call.args[0].type)} to {format_type(call.type)}"
    name = FUNCTIONS[call.function].name
    if call.function in PYTHON_CALLS.values() and isinstance(call.args[0], Literal):
        return f"function {traits(str(call.args[0].value))[0]}"
    return f"{name}()" if name.isidentifier() else f"operator {name}"


def _check_settings(what: str, types: Iterable[SqlType], settings: Settings) -> None:
    kinds = {kind for type_ in types for kind in _kinds(type_)}
    for name, allowed in FIXED.items():
        value = settings.get(name)
        if value not in allowed and not kinds.isdisjoint(_SUBJECT[name]):
            message = f"{what} in a materialized view is not supported while {name} is {value}"
            hint = f"Views compute with {name} {allowed[0]}, whoever reads them: SET {name} = '{allowed[0]}'"
            if name == "TimeZone":
                hint += f", or say the zone, as in ts AT TIME ZONE '{value}'"
            raise SqlError("0A000", message, hint=f"{hint}.")


def _kinds(type_: SqlType) -> Iterator[Kind]:
    """The kinds of which values of the type consist."""
    yield type_.kind
    if type_.element is not None:
        yield from _kinds(type_.element)
    for _, field in type_.fields:
        yield from _kinds(field)
