"""CREATE FUNCTION, CREATE AGGREGATE, DROP FUNCTION and DROP AGGREGATE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from ivm.errors import SqlError, unsupported
from ivm.words import Kind, SqlType
from planner.expr.python_function import check_body
from planner.expr.python_values import is_known
from sql.bind.aggregates import python_function
from sql.bind.coerce import type_name
from sql.bind.environment import Environment, Parameters
from sql.bind.routine_bodies import is_query
from sql.bind.routines import RoutineOverload, bind_body, signature
from sql.catalog.catalog import Relation, RelationKind, TableColumn
from sql.catalog.routine import Argument, Routine
from sql.catalog.search_path import Recorder
from sql.statements.comments import Comment
from sql.statements.routines import CreateFunction, DropFunction
from sql.syntax.nodes import queries as nodes
from sql.syntax.nodes import routines as nodes_routines


def create_function(env: Environment, node: nodes_routines.CreateFunctionStatement) -> CreateFunction:
    """CREATE FUNCTION, its body checked. Raises 42P13, and the errors of the body without positions."""
    schema_name = env.catalog.home(node.name.schema_name, False)
    arguments = tuple(
        Argument(a.name, env.type(a.type), None if a.default is None else a.default[1]) for a in node.arguments
    )
    _check_arguments(arguments)
    columns = _result_columns(env, node)
    result = columns[0].type if node.columns is None or len(columns) == 1 else SqlType(Kind.RECORD)
    routine = Routine(
        node.name.name, arguments, result, node.returns_set, len(columns) > 1 or node.columns is not None,
        node.volatility, node.strict, node.expression,
    )  # fmt: skip
    relation = Relation(
        0, schema_name, signature(routine.name, routine.types), RelationKind.FUNCTION, columns, definition=node.body,
        routine=routine,
    )  # fmt: skip
    if node.language == "plpgsql":
        routine = replace(routine, language=node.language)
        return CreateFunction(replace(relation, routine=routine), node.replace)
    if not is_query(routine, node.body):
        routine = replace(routine, statements=True)
        return CreateFunction(replace(relation, routine=routine), node.replace)
    recorder = Recorder(env.catalog)
    inner = replace(env, catalog=recorder, ctes={}, parameters=Parameters(), top=None)
    try:
        bind_body(inner, RoutineOverload(relation, routine), node.body)
    except SqlError as error:
        raise SqlError(error.sqlstate, error.message, error.detail, error.hint) from None
    references = recorder.references(0, len(node.body) + 1)
    relation = replace(relation, dependencies=tuple(sorted(recorder.seen)), references=references)
    return CreateFunction(relation, node.replace)


def _check_arguments(arguments: tuple[Argument, ...]) -> None:
    names = [a.name for a in arguments if a.name is not None]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise SqlError("42P13", f'parameter name "{name}" used more than once')
    defaults = [a.default is not None for a in arguments]
    if any(before and not after for before, after in pairwise(defaults)):
        raise SqlError("42P13", "input parameters after one with a default value must also have defaults")


def _result_columns(env: Environment, node: nodes_routines.CreateFunctionStatement) -> tuple[TableColumn, ...]:
    """The result's columns: those of RETURNS TABLE, of the table that RETURNS SETOF names, or one of the type."""
    if node.columns is not None:
        return tuple(TableColumn(c.name or "", env.type(c.type)) for c in node.columns)
    assert node.result is not None, "the grammar asks for one"
    if node.result.name == "void" and not node.returns_set:
        return (TableColumn(node.name.name, SqlType(Kind.VOID)),)
    if node.result.name in ("void", "trigger", "record"):
        raise unsupported(f"functions that return {node.result.name}", position=node.result.at + 1)
    table = env.catalog.resolve(None, node.result.name) if node.returns_set else None
    if table is not None and table.kind is not RelationKind.SYSTEM:
        return tuple(TableColumn(c.name, c.type) for c in table.columns)
    return (TableColumn(node.name.name, env.type(node.result)),)


def drop_function(env: Environment, node: nodes_routines.DropFunctionStatement) -> DropFunction:
    """DROP FUNCTION and DROP AGGREGATE. Raises 42883, 42725, 42809."""
    kind = "aggregate" if node.aggregate else "function"
    found: list[Relation] = []
    missing: list[str] = []
    for name, types in node.names:
        known = env.catalog.routines(name.schema_name, name.name)
        message, shown = f'could not find a {kind} named "{name.name}"', f"{name.name}()"
        if types is not None:
            wanted = tuple(env.type(t) for t in types)
            known = tuple(r for r in known if r.routine is not None and r.routine.types == wanted)
            shown = f"{name.name}({', '.join(map(type_name, wanted))})"
            message = f"{kind} {shown} does not exist"
        if len(known) > 1 and types is None:
            hint = "Specify the argument list to select the function unambiguously."
            raise SqlError("42725", f'function name "{name.name}" is not unique', hint=hint)
        if not known and not node.if_exists:
            raise SqlError("42883", message)
        _check_kind(known[:1], node.aggregate, shown)
        found += known[:1]
        if not known:
            missing.append(f"{kind} {shown} does not exist, skipping")
    return DropFunction(tuple(found), tuple(missing), node.cascade, f"DROP {kind.upper()}")


def comment(env: Environment, node: nodes_routines.CommentStatement) -> Comment:
    """COMMENT ON; functions are looked up here. Raises 42883, 42725, 42809."""
    routine = None
    if node.kind in ("function", "aggregate", "routine"):
        named = ((node.name, node.types),)
        statement = nodes_routines.DropFunctionStatement(named, False, False, node.kind == "aggregate")
        routine = drop_function(env, statement).functions[0]
    return Comment(node.kind, node.name.schema_name, node.name.name, node.text, node.part, routine)


def _check_kind(found: Sequence[Relation], aggregate: bool, shown: str) -> None:
    for relation in found:
        routine = relation.routine
        if routine is None or routine.aggregate == aggregate:
            continue
        if aggregate:
            raise SqlError("42809", f"function {shown} is not an aggregate")
        hint = "Use DROP AGGREGATE to drop aggregate functions."
        raise SqlError("42809", f'"{routine.name}" is an aggregate function', hint=hint)


def create_aggregate(env: Environment, node: nodes_routines.CreateFunctionStatement) -> CreateFunction:
    """CREATE AGGREGATE … LANGUAGE python; its body is parsed but not run. Raises 0A000, 42601, 42P13."""
    assert node.result is not None, "the grammar asks for one"
    if not node.arguments:
        raise unsupported("aggregates without arguments", position=node.at + 1)
    arguments = []
    for argument in node.arguments:
        if argument.default is not None:
            raise SqlError("42P13", "aggregates cannot have default arguments", position=argument.at + 1)
        arguments.append(Argument(argument.name, _known(env, argument.type)))
    result = _known(env, node.result)
    routine = Routine(
        node.name.name, tuple(arguments), result, volatility=node.volatility, strict=node.strict, aggregate=True
    )
    schema_name = env.catalog.home(node.name.schema_name, False)
    columns = (TableColumn(routine.name, result),)
    name = signature(routine.name, routine.types)
    relation = Relation(0, schema_name, name, RelationKind.FUNCTION, columns, definition=node.body, routine=routine)
    function = python_function(RoutineOverload(relation, routine))
    check_body(function, len(arguments))
    return CreateFunction(relation, node.replace, function)


def _known(env: Environment, name: nodes.TypeName) -> SqlType:
    """A type whose values Python gets. Raises 0A000 for any other."""
    type_ = env.type(name).plain
    if not is_known(type_):
        raise unsupported(f"a Python aggregate with type {type_name(type_)}", position=name.at + 1)
    return type_
