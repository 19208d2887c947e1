"""Which user-defined routine a call means, with defaults, names, VARIADIC and polymorphic types (parse_func.c)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ivm.errors import SqlError
from ivm.words import ColumnType, Kind, SqlType
from planner.expr.functions.library import overloads
from planner.expr.functions.table import (
    ANYARRAY,
    ANYCOMPATIBLE,
    ANYCOMPATIBLEARRAY,
    ANYELEMENT,
    ArgumentType,
    Polymorphic,
)
from planner.expr.scalar import Call, Literal, Scalar
from sql.bind.coerce import cast, type_name
from sql.bind.environment import Binder, Environment, Parameters
from sql.bind.overloads import Resolution, no_function, not_resolved, resolve_uncached, result_type
from sql.bind.scope import NameScope
from sql.catalog.catalog import Relation, TableColumn
from sql.catalog.column_types import array_of
from sql.catalog.routine import Routine
from sql.catalog.search_path import pinned
from sql.parse import parse_expression
from sql.syntax.nodes import queries as nodes
from storage.types.type_names import format_type


@dataclass(frozen=True, slots=True)
class RoutineOverload:
    """A routine as a candidate of overload resolution (an ``Overload``)."""

    relation: Relation
    routine: Routine

    @property
    def key(self) -> str:
        return f"routine {self.relation.id}"

    @property
    def name(self) -> str:
        return self.routine.name

    @property
    def args(self) -> tuple[ArgumentType, ...]:
        return self.routine.types

    @property
    def optional(self) -> int:
        return self.routine.optional


@dataclass(frozen=True, slots=True)
class RoutineCall:
    """A resolved call. ``args``: one for each declared argument, defaults filled in, cast to ``types``, which are the
    declared types with polymorphic ones made concrete. ``columns``: of the result, () where a column definition list
    must say."""

    overload: RoutineOverload
    args: tuple[Scalar, ...]
    types: tuple[SqlType, ...]
    columns: tuple[TableColumn, ...]

    @property
    def routine(self) -> Routine:
        return self.overload.routine

    @property
    def result(self) -> SqlType:
        """The type of the call as a value: a row where there are several columns."""
        if not self.is_row:
            return self.columns[0].type
        declared = self.routine.result
        if isinstance(declared, SqlType) and declared.named is not None:
            return declared
        return SqlType(Kind.RECORD, fields=tuple((c.name, c.type.plain) for c in self.columns))

    @property
    def is_row(self) -> bool:
        """Whether the value is a row."""
        return self.routine.record or self.routine.returns_row or len(self.columns) != 1


@dataclass(frozen=True, slots=True)
class _Form:
    """A routine as one call may mean it (an ``Overload``). ``args``: the declared types of the given arguments, in the
    call's order; ``places``: which declared argument each of them is; ``spread``: the last of them are the elements of
    the variadic one."""

    overload: RoutineOverload
    args: tuple[ArgumentType, ...]
    places: tuple[int, ...]
    spread: bool

    @property
    def key(self) -> str:
        return self.overload.key

    @property
    def name(self) -> str:
        return self.overload.name


def routine_overloads(
    env: Environment, name: tuple[str, ...], *, procedures: bool = False
) -> tuple[RoutineOverload, ...]:
    """The user-defined functions of this name, or its procedures."""
    found = env.catalog.routines(name[-2] if len(name) > 1 else None, name[-1])
    if not found:
        return ()
    return tuple(
        RoutineOverload(r, r.routine) for r in found if r.routine is not None and r.routine.procedure == procedures
    )


def signature(name: str, types: Sequence[ArgumentType]) -> str:
    """``f(integer,text)``: a function's name in the catalog."""
    return f"{name}({','.join(map(argument_type_name, types))})"


def argument_type_name(type_: ArgumentType) -> str:
    """A declared type as users see it."""
    if type_ is Polymorphic.ANY:
        return '"any"'
    return type_.value if isinstance(type_, Polymorphic) else format_type(type_, False)


def resolve_routine(
    b: Binder, node: nodes.Apply, found: tuple[RoutineOverload, ...], others: Sequence[Any] = ()
) -> RoutineCall | None:
    """The call of one of ``found``; None where it means one of the built-in ``others``. Raises 42883, 42725, 42804."""
    given = [b.bind(a) for a in node.args]
    forms = [form for overload in found for form in _forms(overload, node)]
    schemas = list(dict.fromkeys(overload.relation.schema_name for overload in found))
    # of forms with equal types the one in the earlier schema is meant, and there the one that is not spread
    ranks = [(schemas.index(form.overload.relation.schema_name), form.spread) for form in forms]
    best: dict[tuple[ArgumentType, ...], tuple[int, bool]] = {}
    for form, rank in zip(forms, ranks, strict=True):
        best[form.args] = min(rank, best.get(form.args, rank))
    forms = [form for form, rank in zip(forms, ranks, strict=True) if rank == best[form.args]]
    types = tuple(a.type for a in given)
    builtin = () if any(node.names) or node.variadic else tuple(others)
    try:
        choice: Resolution[Any] | None = resolve_uncached((*builtin, *forms), types)
    except SqlError as error:
        raise not_resolved(error, _unresolved(node, types, ambiguous=True)) from None
    if choice is None and node.variadic and others:
        return None
    if choice is None:
        raise _unresolved(node, types)
    if not isinstance(choice.overload, _Form):
        return None
    if sum(form.args == choice.overload.args for form in forms) > 1:
        raise _unresolved(node, types, ambiguous=True)
    return _filled(b.env, choice, given, node.at)


def _unresolved(node: nodes.Apply, types: Sequence[SqlType], *, ambiguous: bool = False) -> SqlError:
    if not any(node.names):
        return no_function(node.name[-1], types, node.at, ambiguous=ambiguous)
    pairs = zip(node.names, types, strict=True)
    shown = ", ".join(f"{n} => {type_name(t)}" if n is not None else type_name(t) for n, t in pairs)
    if ambiguous:
        hint = "Could not choose a best candidate function. You might need to add explicit type casts."
        return SqlError("42725", f"function {node.name[-1]}({shown}) is not unique", hint=hint, position=node.at + 1)
    hint = "No function matches the given name and argument types. You might need to add explicit type casts."
    return SqlError("42883", f"function {node.name[-1]}({shown}) does not exist", hint=hint, position=node.at + 1)


def _forms(overload: RoutineOverload, node: nodes.Apply) -> list[_Form]:
    """How a call may mean a routine, by the number and the names of the arguments alone."""
    arguments = overload.routine.arguments
    places = _places(overload, node)
    found: list[_Form] = []
    missing = [a for i, a in enumerate(arguments) if places is not None and i not in places]
    whole = places is not None and all(a.default is not None for a in missing)
    if places is not None and whole and (not node.variadic or overload.routine.variadic):
        found.append(_Form(overload, tuple(arguments[i].type for i in places), places, False))
    count = len(node.args)
    if overload.routine.variadic and not node.variadic and not any(node.names) and count >= len(arguments):
        repeated = (len(arguments) - 1,) * (count - len(arguments) + 1)
        each = element_type(arguments[-1].type)
        args = (*(a.type for a in arguments[:-1]), *(each for _ in repeated))
        found.append(_Form(overload, args, (*range(len(arguments) - 1), *repeated), True))
    return found


def _places(overload: RoutineOverload, node: nodes.Apply) -> tuple[int, ...] | None:
    """Which declared argument each given one is; None where there is none for it."""
    names = [a.name for a in overload.routine.arguments]
    if len(node.args) > len(names):
        return None
    places: list[int] = []
    for i, name in enumerate(node.names or (None,) * len(node.args)):
        if name is not None and (name not in names or names.index(name) in places):
            return None
        places.append(i if name is None else names.index(name))
    return tuple(places)


def element_type(type_: ArgumentType) -> ArgumentType:
    """The type of a variadic argument's elements."""
    if type_ is ANYARRAY:
        return ANYELEMENT
    if type_ is ANYCOMPATIBLEARRAY:
        return ANYCOMPATIBLE
    assert isinstance(type_, SqlType), "an array"
    assert type_.element is not None, "an array"
    return type_.element


def _filled(env: Environment, choice: Resolution[_Form], given: Sequence[Scalar], at: int) -> RoutineCall:
    form, overload = choice.overload, choice.overload.overload
    env.catalog.by_id(overload.relation.id)  # a recording catalog notes the dependency
    if env.asking is not None:
        env.asking.call(overload.relation)
    spread = [cast(env, a, t, "implicit", at) for a, t, i in _last(form, given, choice)]
    exprs = dict(zip(form.places, given, strict=True))
    if form.spread:
        exprs[form.places[-1]] = _array(spread, at)
    arguments = overload.routine.arguments
    for i, argument in enumerate(arguments):
        if i not in exprs:
            assert argument.default is not None, "resolved so"
            exprs[i] = _default(env, overload, argument.default)
    ordered = [exprs[i] for i in range(len(arguments))]
    whole = _whole(overload, ordered, at)
    context = ["implicit" if i in form.places else "assignment" for i in range(len(arguments))]
    args = tuple(
        cast(env, e, t, "implicit" if c == "implicit" else "assignment", at)
        for e, t, c in zip(ordered, whole.args, context, strict=True)
    )
    return RoutineCall(overload, args, whole.args, _columns(overload, whole, at))


def exact_call(env: Environment, overload: RoutineOverload, args: Sequence[Scalar], at: int) -> RoutineCall:
    """The call of a routine with one argument for each that it declares."""
    env.catalog.by_id(overload.relation.id)  # a recording catalog notes the dependency
    whole = _whole(overload, args, at)
    given = tuple(cast(env, e, t, "implicit", at) for e, t in zip(args, whole.args, strict=True))
    return RoutineCall(overload, given, whole.args, _columns(overload, whole, at))


def _last(form: _Form, given: Sequence[Scalar], choice: Resolution[_Form]) -> list[tuple[Scalar, SqlType, int]]:
    if not form.spread:
        return []
    last = form.places[-1]
    triples = zip(given, choice.args, form.places, strict=True)
    common = choice.common if form.args[-1] is ANYCOMPATIBLE else choice.element
    return [(a, (common or t) if isinstance(form.args[-1], Polymorphic) else t, i)
            for a, t, i in triples if i == last]  # fmt: skip


def _array(items: list[Scalar], at: int) -> Scalar:
    type_ = array_of(items[0].type.plain)
    if all(isinstance(i, Literal) for i in items):
        return Literal(tuple(i.value for i in items if isinstance(i, Literal)), type_)
    return Call(overloads("array")[0].key, tuple(items), type_, False)


def _default(env: Environment, overload: RoutineOverload, text: str) -> Scalar:
    catalog = pinned(env.catalog, overload.relation)
    inside = replace(env, catalog=catalog, ctes={}, parameters=Parameters(), top=None, notes=None)
    return inside.binder(NameScope(clause="DEFAULT expressions"), "DEFAULT expressions").bind(parse_expression(text))


def _whole(overload: RoutineOverload, args: Sequence[Scalar], at: int) -> Resolution[RoutineOverload]:
    """The concrete types of all arguments. Raises 42804."""
    declared = overload.args
    if not overload.routine.polymorphic:
        return Resolution(overload, tuple(t for t in declared if isinstance(t, SqlType)), None)
    types = tuple(a.type for a in args)
    try:
        found = resolve_uncached((overload,), types)
    except SqlError as error:
        raise not_resolved(error, no_function(overload.name, types, at, ambiguous=True)) from None
    if found is None:
        raise no_function(overload.name, types, at)
    exact = tuple(d if isinstance(d, SqlType) else t for d, t in zip(declared, found.args, strict=True))
    return replace(found, args=exact)


def _columns(overload: RoutineOverload, whole: Resolution[RoutineOverload], at: int) -> tuple[TableColumn, ...]:
    """The result's columns, polymorphic types made concrete."""
    routine = overload.routine
    if routine.record:
        return overload.relation.columns if routine.statements else ()
    if not routine.polymorphic and not isinstance(routine.result, Polymorphic):
        return overload.relation.columns
    if routine.outputs:
        return tuple(
            TableColumn(c.name, result_type(o.type, whole))
            for c, o in zip(overload.relation.columns, routine.outputs, strict=True)
        )
    if isinstance(routine.result, Polymorphic):
        return (TableColumn(routine.name, result_type(routine.result, whole)),)
    return overload.relation.columns


def schema_of(columns: Sequence[TableColumn]) -> tuple[ColumnType, ...]:
    """The columns of a routine's rows, any of which may be NULL."""
    return tuple(ColumnType(c.type, True) for c in columns)
