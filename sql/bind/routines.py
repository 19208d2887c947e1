"""Calls of user-defined functions, which are replaced by the function's body.

A body is bound in a scope of its own, whose only enclosing level is the arguments (by name, and as ``$1``). A body that
is a plain expression takes the arguments in; any other becomes a subquery, joined laterally to a row of the arguments.
So a view over a function is a view over what the function reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import BOOL, INT4, INT8, TEXT, UNKNOWN, ColumnType, Kind, Schema, SqlType
from planner.expr.functions.routine import ROUTINE, ROUTINE_ROW, ROUTINE_ROWS, STABLE_ROUTINE
from planner.expr.functions.row import FIELD
from planner.expr.parts import OUTER_COLUMNS, rebuild, walk
from planner.expr.scalar import And, Call, Case, Column, Literal, OuterColumn, Scalar, ScalarSubquery
from planner.logical.levels import lift, relevel_rel
from planner.logical.nodes import Filter, Join, JoinKind, Project, Rel, TableFunction, TopK, schema
from planner.logical.traversal import nodes as nodes_of
from sql.bind.bound_query import UNIT, NamedRel, finished
from sql.bind.coerce import castable, same_family, type_name
from sql.bind.domains import domain_value
from sql.bind.environment import Binder, Environment, Parameters
from sql.bind.namespace import Namespace, Range, visible_columns
from sql.bind.python_routines import python_rows, python_value
from sql.bind.routine_resolution import RoutineCall, RoutineOverload, argument_type_name, schema_of, signature
from sql.bind.rows import make_row
from sql.bind.scope import NameScope
from sql.bind.subquery import convert
from sql.bind.volatile import is_volatile
from sql.bind.walk import has_subquery, references
from sql.catalog.catalog import TableColumn
from sql.catalog.routine import Routine
from sql.catalog.search_path import pinned
from sql.parse import parse, parse_expression
from sql.syntax.nodes import queries as nodes

_TRUE: Final = Literal(True, BOOL)


def routine_value(env: Environment, call: RoutineCall) -> Scalar:
    """A call as an expression; a row where the function has several columns."""
    made = _value(env, call)
    own = call.routine.interpreted or call.routine.language == "python" or call.is_row
    return domain_value(env, call.result, made) if own and call.result.domain is not None else made


def _value(env: Environment, call: RoutineCall) -> Scalar:
    routine = call.routine
    if routine.interpreted:
        return interpreted_value(env, call)
    if routine.language == "python":
        return python_value(call)
    rel = call_body(env, call)
    if call.is_row:
        rel = _as_row(rel, call)
    type_ = schema(rel.rel)[0].type
    inlined = _inlined(rel.rel, call)
    if inlined is not None:
        if not routine.strict or not call.args:
            return inlined
        known = tuple(Call("is not null", (a,), BOOL, False) for a in call.args)
        return Case(((And(known) if len(known) > 1 else known[0], inlined),), Literal(None, type_), type_)
    limited = TopK(rel.rel, (), (), Literal(1, SqlType(Kind.INT8)), None)
    return ScalarSubquery(lateral(limited, routine, tuple(lift(a) for a in call.args)), type_)


def _as_row(rel: NamedRel, call: RoutineCall) -> NamedRel:
    """The same rows, each in one column."""
    if isinstance(rel.rel, Project):
        return NamedRel(Project(rel.rel.input, (_row(rel.rel.exprs, rel.names, call),)), ("row",))
    columns = [Column(i, c.type, c.nullable) for i, c in enumerate(schema(rel.rel))]
    return NamedRel(Project(rel.rel, (_row(columns, rel.names, call),)), ("row",))


def _row(values: Sequence[Scalar], names: Sequence[str], call: RoutineCall) -> Scalar:
    made = make_row(values, names)
    return replace(made, type=call.result) if isinstance(made, Call) and call.result.named is not None else made


def _inlined(rel: Rel, call: RoutineCall) -> Scalar | None:
    """The body with the arguments substituted, if it is a plain expression that may be evaluated in place."""
    if not isinstance(rel, Project) or rel.input != UNIT or has_subquery(rel.exprs[0]):
        return None
    uses = [part.index for part in walk(rel.exprs[0]) if isinstance(part, OuterColumn)]
    for i, arg in enumerate(call.args):
        if uses.count(i) > 1 and (is_volatile(arg) or has_subquery(arg)):
            return None
    return rebuild(rel.exprs[0], OUTER_COLUMNS, lambda part: call.args[part.index])


def lateral(body: Rel, routine: Routine, args: tuple[Scalar, ...]) -> Rel:
    """The rows of a routine's body for these arguments, which are as seen from the outermost level of a subquery."""
    given: Rel = Project(UNIT, args)
    body = _with_constants(body, args)
    if routine.strict and args:
        known = tuple(Call("is not null", (Column(i, a.type),), BOOL, False) for i, a in enumerate(args))
        given = Filter(given, And(known) if len(known) > 1 else known[0])
    joined = Join(JoinKind.INNER, given, body, _TRUE, True)
    columns = schema(joined)[len(args) :]
    return Project(joined, tuple(Column(len(args) + i, c.type, c.nullable) for i, c in enumerate(columns)))


def _with_constants(body: Rel, args: Sequence[Scalar]) -> Rel:
    """The body with constant arguments in the place of parameters, if it has frames, whose offsets are constant."""
    if not any(isinstance(node, TopK) and node.framed for node in nodes_of(body)):
        return body

    fixed = [not (references(a) or has_subquery(a) or is_volatile(a)) for a in args]

    def known(level: int, index: int) -> tuple[int, int] | Scalar:
        return args[index] if level == 0 and fixed[index] else (level, index)

    return relevel_rel(body, known, 1)


def routine_rows(
    b: Binder, call: RoutineCall, definitions: Sequence[tuple[str, SqlType]], at: int
) -> tuple[Rel, list[str]]:
    """A call in FROM: its rows and its columns' names. ``definitions``: the column definition list. Raises 42601."""
    call = _defined(call, definitions, at)
    names = [c.name for c in call.columns]
    if call.routine.returns_set:
        if call.routine.interpreted:
            return TableFunction(UNIT, *interpreted_rows(b.env, call)), names
        if call.routine.language == "python":
            return TableFunction(UNIT, *python_rows(call)), names
        return lateral(call_body(b.env, call).rel, call.routine, call.args), names
    value = routine_value(b.env, call)
    if not call.is_row:
        return Project(UNIT, (value,)), names
    fields_ = (Call(FIELD, (Column(0, value.type), Literal(i, INT4)), c.type) for i, c in enumerate(call.columns))
    return Project(Project(UNIT, (value,)), tuple(fields_)), names


def _defined(call: RoutineCall, definitions: Sequence[tuple[str, SqlType]], at: int) -> RoutineCall:
    """The call with the columns that a column definition list says. Raises 42601."""
    routine = call.routine
    if routine.record and not definitions:
        message = 'a column definition list is required for functions returning "record"'
        raise SqlError("42601", message, position=at + 1)
    if not definitions:
        return call
    if routine.record:
        return replace(call, columns=tuple(TableColumn(name, type_) for name, type_ in definitions))
    message = 'a column definition list is only allowed for functions returning "record"'
    if routine.outputs and call.is_row:
        message = "a column definition list is redundant for a function with OUT parameters"
    elif routine.table:
        message = "a column definition list is redundant for a function returning a named composite type"
    raise SqlError("42601", message, position=at + 1)


def set_rows(env: Environment, call: RoutineCall) -> tuple[Rel, Schema]:
    """The rows of a set-returning call in a select list, of one column; the arguments are the columns one level out."""
    rel = call_body(env, call)
    one = _as_row(rel, call) if call.is_row else rel
    return one.rel, tuple(ColumnType(c.type, True) for c in schema(one.rel))


def interpreted_value(env: Environment, call: RoutineCall) -> Scalar:
    """The value of a routine that an interpreter runs."""
    routine = call.routine
    if routine.trigger:
        raise SqlError("0A000", "trigger functions can only be called as triggers")
    env.interpreted.append(signature(routine.name, routine.types))
    key = ROUTINE if routine.volatility == "volatile" else STABLE_ROUTINE
    return Call(key, (Literal(call.overload.relation.oid, INT8), *call.args), call.result, True)


def interpreted_rows(
    env: Environment, call: RoutineCall, *, as_row: bool = False
) -> tuple[str, tuple[Scalar, ...], Schema]:
    """The rows of a routine that an interpreter runs, as a table function: its key, arguments and columns."""
    overload = call.overload
    env.interpreted.append(signature(overload.name, overload.args))
    row = Literal(None, SqlType(Kind.RECORD, fields=tuple((c.name, c.type) for c in call.columns)))
    args = (row, Literal(overload.relation.oid, INT8), *call.args)
    if as_row:
        return ROUTINE_ROW, args, (ColumnType(row.type, True),)
    return ROUTINE_ROWS, args, schema_of(call.columns)


def _inside(env: Environment, overload: RoutineOverload) -> Environment:
    """The environment of a routine's own text."""
    catalog = pinned(env.catalog, overload.relation)
    views = (*env.views, overload.relation.id)
    asking = None if env.asking is None else env.asking.inside_routine()
    return replace(
        env, catalog=catalog, ctes={}, parameters=Parameters(), views=views, top=None, notes=None, asking=asking
    )


def call_body(env: Environment, call: RoutineCall) -> NamedRel:
    """The rows of a call's body, in which the arguments are the columns one level out."""
    text = call.overload.relation.definition
    assert text is not None, "a routine has a body"
    return bind_body(_inside(env, call.overload), call.overload, text, call.types, call.columns)


def routine_body(env: Environment, overload: RoutineOverload) -> Rel:
    """The same for a function that is not polymorphic, of any call; a row without columns for any other."""
    routine = overload.routine
    if routine.polymorphic or routine.interpreted or routine.language == "python":
        return UNIT
    types = tuple(t for t in routine.types if isinstance(t, SqlType))
    return call_body(env, RoutineCall(overload, (), types, () if routine.record else overload.relation.columns)).rel


def bind_body(
    env: Environment, overload: RoutineOverload, text: str, types: tuple[SqlType, ...],
    columns: tuple[TableColumn, ...],
) -> NamedRel:  # fmt: skip
    """The rows of a body, which need not be in the catalog yet. ``env``: the body's own; ``columns``: those wanted, ()
    where the body says. Raises 42P13 where its columns are not what the routine declares."""
    routine = overload.routine
    query = _query(routine, text)
    given = tuple(ColumnType(type_, True) for type_ in types)
    numbered = visible_columns([f"${i + 1}" for i in range(len(given))], given)
    named = tuple(
        replace(v, name=a.name) for v, a in zip(numbered, routine.arguments, strict=True) if a.name is not None
    )
    arguments = (*named, *numbered)
    scope = NameScope(Namespace(arguments, (Range(routine.name, arguments),)), clause="FUNCTION")
    bound = env.bind_query(_named_parameters(query, len(given)), scope)
    rel = finished(bound)
    called = overload.relation.id in env.views
    if not columns:
        found = schema(rel)
        texts = [TEXT if c.type.kind is Kind.UNKNOWN else None for c in found]
        return NamedRel(convert(env, rel, texts, "implicit"), tuple(c.name for c in bound.columns))
    return NamedRel(_shaped(env, routine, rel, [c.type for c in columns], called), tuple(c.name for c in columns))


def _shaped(env: Environment, routine: Routine, rel: Rel, wanted: Sequence[SqlType], called: bool) -> Rel:
    """The rows with the types of the columns that the routine declares. Raises 42P13, and 42804 when a call's body
    makes a row of other fields."""
    found = schema(rel)
    if len(wanted) == 1 and wanted[0].named is not None and wanted[0].fields:
        packed = _packed(env, rel, wanted[0])
        if packed is not None:
            return packed
    several = len(wanted) > 1 or (routine.returns_row and wanted[0].kind is not Kind.RECORD)
    if len(found) == 1 and several and found[0].type.kind is Kind.RECORD and found[0].type.fields:
        parts = found[0].type.fields
        if not called:
            return rel
        _check_row([t for _, t in parts], wanted)
        rel = Project(rel, tuple(Call(FIELD, (Column(0, found[0].type), Literal(i, INT4)), t)
                                 for i, (_, t) in enumerate(parts)))  # fmt: skip
        found = schema(rel)
    check_shape(routine, [c.type for c in found], wanted)
    return convert(env, rel, wanted, "assignment")


def _check_row(found: Sequence[SqlType], wanted: Sequence[SqlType]) -> None:
    message = "function return row and query-specified return row do not match"
    if len(found) != len(wanted):
        plural = "" if len(found) == 1 else "s"
        detail = f"Returned row contains {len(found)} attribute{plural}, but query expects {len(wanted)}."
        raise SqlError("42804", message, detail)
    for i, (have, want) in enumerate(zip(found, wanted, strict=True)):
        if not same_family(have, want):
            shown = f"type {type_name(have)} at ordinal position {i + 1}, but query expects {type_name(want)}"
            raise SqlError("42804", message, f"Returned {shown}.")


def _packed(env: Environment, rel: Rel, row: SqlType) -> Rel | None:
    """A body whose columns are the fields of the row that the function returns; None if they are not."""
    found = schema(rel)
    if len(found) == 1 and (found[0].type.kind is Kind.RECORD or found[0].type == UNKNOWN):
        return None
    types = [type_ for _, type_ in row.fields]
    pairs = zip(found, types, strict=False)
    if len(found) != len(types) or not all(c.type == UNKNOWN or castable(c.type, t, "assignment") for c, t in pairs):
        return None
    cast_rel = convert(env, rel, types, "assignment")
    fields = tuple(Column(i, c.type, c.nullable) for i, c in enumerate(schema(cast_rel)))
    return Project(cast_rel, (Call("row", fields, row, False),))


def check_shape(routine: Routine, found: Sequence[SqlType], wanted: Sequence[SqlType]) -> None:
    """Raises 42P13 where the last statement's columns cannot become those that the routine declares."""
    if len(found) != len(wanted):
        many = "many" if len(found) > len(wanted) else "few"
        number = f"Final statement returns too {many} columns."
        raise mismatch(routine, number if len(wanted) > 1 else "Final statement must return exactly one column.")
    for i, (have, want) in enumerate(zip(found, wanted, strict=True)):
        if have != UNKNOWN and not castable(have, want, "assignment"):
            place = f"Final statement returns {type_name(have)} instead of {type_name(want)} at column {i + 1}."
            raise mismatch(routine, place if routine.table or routine.record else
                           f"Actual return type is {type_name(have)}.")  # fmt: skip


def mismatch(routine: Routine, detail: str) -> SqlError:
    """42P13: the body's rows are not what the routine returns."""
    several = isinstance(routine.result, SqlType) and routine.result.kind is Kind.RECORD
    shown = "record" if several else argument_type_name(routine.result)
    return SqlError("42P13", f"return type mismatch in function declared to return {shown}", detail)


def _query(routine: Routine, text: str) -> nodes.Query:
    if routine.expression:
        expr = parse_expression(text)
        select = nodes.Select((nodes.Target(expr, None, 0),), (), None, None, None, None, 0)
        return nodes.Query(select, 0)
    tree = parse(text.strip().removesuffix(";"))
    assert isinstance(tree, nodes.Query), "other bodies are interpreted"
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
