"""Calls of user-defined functions, which are replaced by the function's body.

A body is bound in a scope of its own, whose only enclosing level is the arguments (by name, and as ``$1``). A body that
is a plain expression takes the arguments in; any other becomes a subquery, joined laterally to a row of the arguments.
So a view over a function is a view over what the function reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Final

from ivm.errors import SqlError, unsupported
from ivm.words import BOOL, INT8, UNKNOWN, ColumnType, Kind, Schema, SqlType
from planner.expr.functions.routine import ROUTINE, ROUTINE_ROWS, STABLE_ROUTINE
from planner.expr.scalar import And, Call, Case, Column, Literal, OuterColumn, Scalar, ScalarSubquery
from planner.logical.levels import lift
from planner.logical.nodes import Filter, Join, JoinKind, Project, Rel, TableFunction, TopK, schema
from planner.logical.traversal import rewrite, walk
from sql.bind.bound_query import UNIT, finished
from sql.bind.coerce import cast, castable, type_name
from sql.bind.environment import Binder, Environment, Parameters
from sql.bind.namespace import Namespace, Range, visible_columns
from sql.bind.overloads import Resolution, no_function, resolve_uncached
from sql.bind.scope import NameScope
from sql.bind.subquery import convert
from sql.bind.volatile import is_volatile
from sql.bind.walk import has_subquery
from sql.catalog.catalog import Relation
from sql.catalog.routine import Routine
from sql.catalog.search_path import pinned
from sql.parse import parse, parse_expression
from sql.syntax.nodes import queries as nodes
from storage.types.type_names import format_type

_TRUE: Final = Literal(True, BOOL)


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
    def args(self) -> tuple[SqlType, ...]:
        return self.routine.types

    @property
    def optional(self) -> int:
        return self.routine.optional


def routine_overloads(env: Environment, name: tuple[str, ...]) -> tuple[RoutineOverload, ...]:
    """The user-defined functions of this name."""
    found = env.catalog.routines(name[-2] if len(name) > 1 else None, name[-1])
    return tuple(RoutineOverload(r, r.routine) for r in found if r.routine is not None)


def signature(name: str, types: Sequence[SqlType]) -> str:
    """``f(integer,text)``: a function's name in the catalog."""
    return f"{name}({','.join(format_type(t, False) for t in types)})"


@dataclass(frozen=True, slots=True)
class RoutineCall:
    """A resolved call. ``args``: one for each declared argument, defaults filled in, cast to the declared types."""

    overload: RoutineOverload
    args: tuple[Scalar, ...]


def resolve_routine(
    b: Binder, node: nodes.Apply, found: tuple[RoutineOverload, ...], others: Sequence[Any] = ()
) -> RoutineCall | None:
    """The call of one of ``found``; None where it means one of the built-in ``others``. Raises 42883, 42725."""
    given = [b.bind(a) for a in node.args]
    if any(node.names):
        overload = _by_names(found, node, given)
        return _filled(b.env, overload, _in_place(overload, node, given), node.at)
    types = tuple(a.type for a in given)
    try:
        choice: Resolution[Any] | None = resolve_uncached((*others, *found), types)
    except SqlError:
        raise no_function(node.name[-1], types, node.at, ambiguous=True) from None
    if choice is None:
        raise no_function(node.name[-1], types, node.at)
    if not isinstance(choice.overload, RoutineOverload):
        return None
    return _filled(b.env, choice.overload, dict(enumerate(given)), node.at)


def _by_names(found: tuple[RoutineOverload, ...], node: nodes.Apply, given: Sequence[Scalar]) -> RoutineOverload:
    """The routine that accepts the arguments' names and types. Raises 42883, 42725."""
    types = [a.type for a in given]
    fitting: list[tuple[int, RoutineOverload]] = []
    for overload in found:
        if not _accepts(overload, node):
            continue
        wanted = [overload.args[i] for i in _in_place(overload, node, given)]
        if all(t.kind is Kind.UNKNOWN or castable(t, w, "implicit") for t, w in zip(types, wanted, strict=True)):
            fitting.append((sum(t == w for t, w in zip(types, wanted, strict=True)), overload))
    best = max((score for score, _ in fitting), default=0)
    chosen = [overload for score, overload in fitting if score == best]
    if len(chosen) == 1:
        return chosen[0]
    pairs = zip(node.names, types, strict=True)
    shown = ", ".join(f"{n} => {type_name(t)}" if n is not None else type_name(t) for n, t in pairs)
    if chosen:
        hint = "Could not choose a best candidate function. You might need to add explicit type casts."
        raise SqlError("42725", f"function {node.name[-1]}({shown}) is not unique", hint=hint, position=node.at + 1)
    hint = "No function matches the given name and argument types. You might need to add explicit type casts."
    raise SqlError("42883", f"function {node.name[-1]}({shown}) does not exist", hint=hint, position=node.at + 1)


def _accepts(overload: RoutineOverload, node: nodes.Apply) -> bool:
    """Whether the routine has arguments of the given names, and a default for each that is not given."""
    names = [a.name for a in overload.routine.arguments]
    given = {n for n in node.names if n is not None}
    first = sum(n is None for n in node.names)
    rest = overload.routine.arguments[first:]
    return given <= set(names[first:]) and all(a.default is not None or a.name in given for a in rest)


def _in_place(overload: RoutineOverload, node: nodes.Apply, given: Sequence[Scalar]) -> dict[int, Scalar]:
    """The given arguments by their positions in the declaration."""
    names = [a.name for a in overload.routine.arguments]
    return {i if n is None else names.index(n): a for i, (n, a) in enumerate(zip(node.names, given, strict=True))}


def _filled(env: Environment, overload: RoutineOverload, given: dict[int, Scalar], at: int) -> RoutineCall:
    env.catalog.by_id(overload.relation.id)  # a recording catalog notes the dependency
    args = []
    for i, argument in enumerate(overload.routine.arguments):
        expr = given.get(i)
        if expr is None:
            assert argument.default is not None, "resolved so"
            binder = _inside(env, overload).binder(NameScope(clause="DEFAULT expressions"), "DEFAULT expressions")
            expr = binder.bind(parse_expression(argument.default))
        args.append(cast(env, expr, argument.type, "implicit" if i in given else "assignment", at))
    return RoutineCall(overload, tuple(args))


def routine_value(b: Binder, call: RoutineCall, at: int) -> Scalar:
    """A call as an expression. Raises 0A000 for a function of several columns."""
    routine = call.overload.routine
    if routine.table and len(call.overload.relation.columns) > 1:
        raise unsupported("a row as the value of a function", "Call it in FROM.", at + 1)
    if routine.interpreted:
        return _interpreted(b.env, call)
    rel = routine_body(b.env, call.overload)
    inlined = _inlined(rel, call)
    if inlined is not None:
        if not routine.strict or not call.args:
            return inlined
        known = tuple(Call("is not null", (a,), BOOL, False) for a in call.args)
        return Case(
            ((And(known) if len(known) > 1 else known[0], inlined),), Literal(None, routine.result), routine.result
        )
    limited = TopK(rel, (), (), Literal(1, SqlType(Kind.INT8)), None)
    return ScalarSubquery(lateral(limited, routine, tuple(lift(a) for a in call.args)), routine.result)


def _inlined(rel: Rel, call: RoutineCall) -> Scalar | None:
    """The body with the arguments substituted, if it is a plain expression that may be evaluated in place."""
    if not isinstance(rel, Project) or rel.input != UNIT or has_subquery(rel.exprs[0]):
        return None
    uses = [part.index for part in walk(rel.exprs[0]) if isinstance(part, OuterColumn)]
    for i, arg in enumerate(call.args):
        if uses.count(i) > 1 and (is_volatile(arg) or has_subquery(arg)):
            return None
    args = call.args

    def take_in(part: Scalar) -> Scalar | None:
        return args[part.index] if isinstance(part, OuterColumn) else None

    return rewrite(rel.exprs[0], take_in)


def lateral(body: Rel, routine: Routine, args: tuple[Scalar, ...]) -> Rel:
    """The rows of a routine's body for these arguments, which are as seen from the outermost level of a subquery."""
    given: Rel = Project(UNIT, args)
    if routine.strict and args:
        known = tuple(Call("is not null", (Column(i, a.type),), BOOL, False) for i, a in enumerate(args))
        given = Filter(given, And(known) if len(known) > 1 else known[0])
    joined = Join(JoinKind.INNER, given, body, _TRUE, True)
    columns = schema(joined)[len(args) :]
    return Project(joined, tuple(Column(len(args) + i, c.type, c.nullable) for i, c in enumerate(columns)))


def routine_rows(b: Binder, call: RoutineCall) -> tuple[Rel, list[str]]:
    """A call in FROM: its rows and its columns' names."""
    overload = call.overload
    names = [c.name for c in overload.relation.columns]
    if not overload.routine.returns_set:
        return Project(UNIT, (routine_value(b, call, 0),)), names
    if overload.routine.interpreted:
        return TableFunction(UNIT, *interpreted_rows(b.env, call)), names
    return lateral(routine_body(b.env, overload), overload.routine, call.args), names


def _interpreted(env: Environment, call: RoutineCall) -> Scalar:
    """The value of a routine that an interpreter runs."""
    routine = call.overload.routine
    env.interpreted.append(signature(routine.name, routine.types))
    key = ROUTINE if routine.volatility == "volatile" else STABLE_ROUTINE
    return Call(key, (Literal(call.overload.relation.oid, INT8), *call.args), routine.result, True)


def interpreted_rows(env: Environment, call: RoutineCall) -> tuple[str, tuple[Scalar, ...], Schema]:
    """The rows of a routine that an interpreter runs, as a table function: its key, arguments and columns."""
    overload = call.overload
    env.interpreted.append(signature(overload.name, overload.args))
    columns = overload.relation.columns
    row = Literal(None, SqlType(Kind.RECORD, fields=tuple((c.name, c.type) for c in columns)))
    args = (row, Literal(overload.relation.oid, INT8), *call.args)
    return ROUTINE_ROWS, args, tuple(ColumnType(c.type, True) for c in columns)


def _inside(env: Environment, overload: RoutineOverload) -> Environment:
    """The environment of a routine's own text. Raises 0A000 for a recursive function."""
    if overload.relation.id in env.views:
        raise unsupported(f"the recursive function {signature(overload.name, overload.args)}")
    catalog = pinned(env.catalog, overload.relation)
    views = (*env.views, overload.relation.id)
    return replace(env, catalog=catalog, ctes={}, parameters=Parameters(), views=views, top=None)


def routine_body(env: Environment, overload: RoutineOverload) -> Rel:
    """The rows of a routine's body, in which the arguments are the columns one level out."""
    text = overload.relation.definition
    assert text is not None, "a routine has a body"
    return bind_body(_inside(env, overload), overload, text)


def bind_body(env: Environment, overload: RoutineOverload, text: str) -> Rel:
    """The same for a body that is not in the catalog yet. ``env``: the body's own. Raises 42P13 where its columns are
    not what the routine declares."""
    routine = overload.routine
    query = _query(routine, text)
    given = tuple(ColumnType(a.type, True) for a in routine.arguments)
    numbered = visible_columns([f"${i + 1}" for i in range(len(given))], given)
    named = tuple(
        replace(v, name=a.name) for v, a in zip(numbered, routine.arguments, strict=True) if a.name is not None
    )
    arguments = (*named, *numbered)
    scope = NameScope(Namespace(arguments, (Range(routine.name, arguments),)), clause="FUNCTION")
    bound = env.bind_query(_named_parameters(query, len(given)), scope)
    rel = finished(bound)
    found = schema(rel)
    wanted = [c.type for c in overload.relation.columns]
    if len(found) != len(wanted):
        many = "many" if len(found) > len(wanted) else "few"
        number = f"Final statement returns too {many} columns."
        raise _mismatch(routine, number if len(wanted) > 1 else "Final statement must return exactly one column.")
    for i, (have, want) in enumerate(zip(found, wanted, strict=True)):
        if have.type != UNKNOWN and not castable(have.type, want, "assignment"):
            place = f"Final statement returns {type_name(have.type)} instead of {type_name(want)} at column {i + 1}."
            raise _mismatch(routine, place if routine.table else f"Actual return type is {type_name(have.type)}.")
    return convert(env, rel, wanted, "assignment")


def _mismatch(routine: Routine, detail: str) -> SqlError:
    shown = "record" if routine.result.kind is Kind.RECORD else format_type(routine.result, False)
    return SqlError("42P13", f"return type mismatch in function declared to return {shown}", detail)


def _query(routine: Routine, text: str) -> nodes.Query:
    if routine.expression:
        expr = parse_expression(text)
        select = nodes.Select((nodes.Target(expr, None, 0),), (), None, None, None, None, 0)
        return nodes.Query(select, 0)
    tree = parse(text.strip().removesuffix(";"))
    if not isinstance(tree, nodes.Query):
        raise unsupported("a function whose body is no SELECT")
    return tree


def _named_parameters(node: Any, count: int) -> Any:
    """The syntax tree with each ``$1`` as a name, which the scope of the arguments has. Raises 42P02."""
    if isinstance(node, nodes.Param):
        if not 1 <= node.index <= count:
            raise SqlError("42P02", f"there is no parameter ${node.index}")
        return nodes.Name((f"${node.index}",), node.at)
    if isinstance(node, tuple):
        return tuple(_named_parameters(n, count) for n in node)
    if is_dataclass(node) and not isinstance(node, type):
        changed = {f.name: _named_parameters(getattr(node, f.name), count) for f in fields(node)}
        return replace(node, **changed)
    return node
