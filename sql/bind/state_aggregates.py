"""Aggregates of a state function in SQL: CREATE AGGREGATE (SFUNC = …), and what a call of one folds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ivm.errors import SqlError, unsupported
from ivm.words import TEXT, Kind, SqlType
from planner.expr.functions.library import FUNCTIONS, overloads
from planner.expr.functions.table import ArgumentType, Polymorphic
from planner.expr.scalar import Call, Column, Literal, Scalar
from planner.expr.state_fold import StateFold
from sql.bind.coerce import cast, castable, same_family
from sql.bind.environment import Binder, Environment, Parameters
from sql.bind.namespace import Namespace, Visible
from sql.bind.overloads import Resolution, resolve_uncached, result_type
from sql.bind.routine_resolution import (
    RoutineCall,
    RoutineOverload,
    argument_type_name,
    resolve_routine,
    routine_overloads,
)
from sql.bind.routines import interpreted_value
from sql.bind.scope import NameScope
from sql.bind.walk import has_subquery
from sql.catalog.column_types import array_of
from sql.catalog.routine import Fold
from sql.syntax.nodes import queries as nodes

_ELEMENT: Final = SqlType(Kind.RECORD, fields=((" any", TEXT),))
"""Stands for what a polymorphic type will be, while an aggregate of such types is defined."""
_STANDING: Final = {
    Polymorphic.ANY: _ELEMENT,
    Polymorphic.ANYELEMENT: _ELEMENT, Polymorphic.ANYNONARRAY: _ELEMENT, Polymorphic.ANYCOMPATIBLE: _ELEMENT,
    Polymorphic.ANYARRAY: array_of(_ELEMENT), Polymorphic.ANYCOMPATIBLEARRAY: array_of(_ELEMENT),
}  # fmt: skip


def check_fold(
    env: Environment, name: str, arguments: Sequence[ArgumentType], fold: Fold, direct: Sequence[ArgumentType] = ()
) -> ArgumentType:
    """The type of a new aggregate's result. ``direct``: the arguments that only the final function gets. Raises 42883,
    42804, 42P13, 0A000."""
    types = [_standing(t) for t in arguments]
    state = _standing(fold.state)
    shown = [fold.state, *arguments]
    transition, strict = function_over(env, fold.transition, [state, *types], shown)
    if not same_family(transition.type, state):
        wanted = argument_type_name(fold.state)
        raise SqlError("42804", f"return type of transition function {fold.transition[-1]} is not {wanted}")
    if strict and fold.initial is None and not (types and _alike(types[0], state)):
        message = (
            "must not omit initial value when transition function is strict and transition type is not compatible "
            "with input type"
        )
        raise SqlError("42P13", message)
    if fold.initial is not None and not isinstance(fold.state, Polymorphic):
        _initial(env, fold, state)
    if fold.final is None:
        return fold.state
    extra = [*map(_standing, direct), *(types if fold.final_extra else [])]
    shown = [fold.state, *direct, *(arguments if fold.final_extra else ())]
    final, _ = function_over(env, fold.final, [state, *extra], shown)
    found = next((p for p, t in _STANDING.items() if t == final.type and p in (fold.state, *arguments)), None)
    if found is not None:
        return found
    if _stands(final.type):
        compatible = any("compatible" in a.value for a in arguments if isinstance(a, Polymorphic))
        if final.type == _ELEMENT:
            return Polymorphic.ANYCOMPATIBLE if compatible else Polymorphic.ANYELEMENT
        return Polymorphic.ANYCOMPATIBLEARRAY if compatible else Polymorphic.ANYARRAY
    return final.type


def _standing(type_: ArgumentType) -> SqlType:
    if isinstance(type_, SqlType):
        return type_
    found = _STANDING.get(type_)
    if found is None:
        raise unsupported(f"an aggregate of {type_.value}")
    return found


def state_fold(b: Binder, overload: RoutineOverload, types: tuple[SqlType, ...], at: int) -> StateFold:
    """What a call with arguments of these types folds."""
    routine = overload.routine
    fold = routine.fold
    assert fold is not None, "an aggregate of a state function"
    env = b.env
    resolution = _resolution(overload, types)
    state = fold.state if isinstance(fold.state, SqlType) else result_type(fold.state, resolution)
    transition, strict = function_over(env, fold.transition, [state, *types], [fold.state, *routine.types])
    transition = cast(env, transition, state, "assignment", at)
    first = cast(env, Column(1, types[0], True), state, "explicit", at) if types and _alike(types[0], state) else None
    final: tuple[Scalar, ...] = ()
    final_strict, result = False, state
    if fold.final is not None:
        extra = types if fold.final_extra else ()
        found, final_strict = function_over(env, fold.final, [state, *extra], [fold.state, *extra])
        final, result = (found,), found.type
    return StateFold(
        overload.name, types, state, (transition,), strict, _initial(env, fold, state),
        () if first is None else (first,), final, final_strict, result.plain,
    )  # fmt: skip


def _resolution(overload: RoutineOverload, types: tuple[SqlType, ...]) -> Resolution[RoutineOverload]:
    found = resolve_uncached((overload,), types)
    assert found is not None, "resolved before"
    return found


def _alike(given: SqlType, state: SqlType) -> bool:
    """Whether the first argument can be the state without a function in between."""
    return same_family(given, state) or (castable(given, state, "implicit") and {given.kind, state.kind} <= _TEXTS)


_TEXTS: Final = {Kind.TEXT, Kind.VARCHAR}


def _initial(env: Environment, fold: Fold, state: SqlType) -> object:
    """The first state. Raises 22P02 and what else the type's input raises."""
    if fold.initial is None:
        return None
    try:
        made = cast(env, env.untyped(fold.initial, 0), state, "assignment", 0)
    except SqlError as error:
        raise SqlError(error.sqlstate, error.message, error.detail, error.hint) from None
    if not isinstance(made, Literal):
        raise unsupported(f"an aggregate whose first state '{fold.initial}' depends on the session")
    return made.value


def function_over(
    env: Environment, name: tuple[str, ...], types: Sequence[SqlType], shown: Sequence[ArgumentType]
) -> tuple[Scalar, bool]:
    """A call of a function with columns of these types, and whether it is strict. A body that reads tables or has a
    subquery is interpreted. Raises 42883."""
    columns = tuple(Visible(f"${i}", Column(i, t, True)) for i, t in enumerate(types))
    scope = NameScope(Namespace(columns), clause="aggregate")
    inner = env.with_ctes({})
    inner.interpreted, inner.parameters = [], Parameters()
    binder = inner.binder(scope, "aggregate")
    args = tuple(nodes.Name((f"${i}",), 0) for i in range(len(types)))
    node = nodes.Apply(name, args, 0)
    found = routine_overloads(inner, name)
    call: RoutineCall | None = None
    try:
        call = resolve_routine(binder, node, found, overloads(name[-1])) if found else None
        if call is not None and call.routine.polymorphic and any(_stands(t) for t in types):
            return Column(0, call.result, True), call.routine.strict  # each call binds the body, with its types
        expr = binder.bind(node)
    except SqlError as error:
        if error.sqlstate != "42883":
            raise SqlError(error.sqlstate, error.message, error.detail, error.hint) from None
        listed = ", ".join(map(argument_type_name, shown))
        raise SqlError("42883", f"function {name[-1]}({listed}) does not exist") from None
    if call is not None and has_subquery(expr):
        expr = interpreted_value(inner, call)
    env.interpreted.extend(inner.interpreted)
    return expr, _strict(expr) if call is None else call.routine.strict


def _stands(type_: SqlType) -> bool:
    return _ELEMENT in (type_, type_.element)


def _strict(expr: Scalar) -> bool:
    function = FUNCTIONS.get(expr.function) if isinstance(expr, Call) else None
    return function is not None and function.strict
