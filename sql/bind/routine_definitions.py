"""CREATE and DROP of functions, procedures and aggregates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ivm.errors import SqlError, unsupported
from ivm.words import SqlType
from planner.expr.python_function import check_body
from planner.expr.python_values import is_known
from sql.bind.aggregates import python_function
from sql.bind.coerce import type_name
from sql.bind.environment import Environment, Parameters
from sql.bind.python_routines import checked_function
from sql.bind.routine_bodies import is_query
from sql.bind.routine_resolution import RoutineOverload, argument_type_name, signature
from sql.bind.routine_signatures import aggregated_type, check_parameters, declared_type, returned
from sql.bind.routines import bind_body
from sql.catalog.catalog import Relation, RelationKind, TableColumn
from sql.catalog.routine import Argument, Routine
from sql.catalog.search_path import Recorder
from sql.statements.comments import Comment
from sql.statements.roles import Grant
from sql.statements.routines import AlterFunction, CreateFunction, DropFunction
from sql.syntax.nodes import queries as nodes
from sql.syntax.nodes import routines as nodes_routines
from sql.syntax.nodes.grants import GrantStatement


def create_function(env: Environment, node: nodes_routines.CreateFunctionStatement) -> CreateFunction:
    """CREATE FUNCTION and PROCEDURE, a body that is one query checked. Raises 42P13, and the errors of the body without
    positions."""
    schema_name = env.catalog.home(node.name.schema_name, False)
    declared = tuple(
        Argument(a.name, declared_type(env, a.type), None if a.default is None else a.default[1], a.mode)
        for a in node.arguments
    )
    check_parameters(declared)
    shape = returned(env, node, declared)
    routine = Routine(
        node.name.name, declared, shape.result, node.returns_set, shape.table, node.volatility, node.strict,
        node.expression, language=node.language, procedure=node.kind == "procedure", record=shape.record,
        trigger=shape.trigger, vectorised=node.vectorised, definer=node.definer,
    )  # fmt: skip
    relation = Relation(
        0, schema_name, signature(routine.name, routine.types), RelationKind.FUNCTION, shape.columns,
        definition=node.body, routine=routine,
    )  # fmt: skip
    if node.language == "python" and node.definer:
        raise unsupported("SECURITY DEFINER of a Python function", position=node.at + 1)
    if node.language == "python":
        return CreateFunction(relation, node.replace, checked_function(relation, routine))
    try:
        return CreateFunction(_checked(env, relation, routine, node.body), node.replace)
    except SqlError as error:
        raise SqlError(error.sqlstate, error.message, error.detail, error.hint) from None


def _checked(env: Environment, relation: Relation, routine: Routine, body: str) -> Relation:
    """The function with what its body reads. Bodies that are interpreted are checked once the function exists
    (``sql.ddl.routine_bodies``), polymorphic ones by their calls."""
    if routine.language != "sql":
        return relation
    if routine.procedure or routine.returns_nothing or routine.definer or not is_query(routine, body):
        return replace(relation, routine=replace(routine, statements=True))
    if routine.polymorphic:
        return relation
    recorder = Recorder(env.catalog)
    inner = replace(env, catalog=recorder, ctes={}, parameters=Parameters(), top=None, interpreted=[])
    types = tuple(t for t in routine.types if isinstance(t, SqlType))
    bind_body(inner, RoutineOverload(relation, routine), body, types, relation.columns)
    references = recorder.references(0, len(body) + 1) + recorder.unplaced()
    return replace(relation, dependencies=tuple(sorted(recorder.seen)), references=references)


def drop_function(env: Environment, node: nodes_routines.DropFunctionStatement) -> DropFunction:
    """DROP FUNCTION, PROCEDURE, ROUTINE and AGGREGATE. Raises 42883, 42725, 42809."""
    found: list[Relation] = []
    missing: list[str] = []
    for name, types in node.names:
        one, message = _dropped(env, name, types, node)
        found += one
        if not one:
            missing.append(f"{message}, skipping")
    return DropFunction(tuple(found), tuple(missing), node.cascade, f"DROP {node.kind.upper()}")


def alter_routine(env: Environment, node: nodes_routines.AlterRoutineStatement) -> AlterFunction:
    """ALTER FUNCTION, PROCEDURE, ROUTINE and AGGREGATE. Raises 42883, 42725, 42809, 3F000."""
    statement = nodes_routines.DropFunctionStatement(((node.name, node.types),), False, False, node.kind)
    old = drop_function(env, statement).functions[0]
    routine = old.routine
    assert routine is not None, "a routine"
    changed = replace(
        routine, name=node.rename or routine.name, volatility=node.volatility or routine.volatility,
        strict=routine.strict if node.strict is None else node.strict,
    )  # fmt: skip
    if node.definer is not None and node.definer != routine.definer:
        changed = _secured(changed, old.definition or "", definer=node.definer)
    home = old.schema_name if node.schema_name is None else env.catalog.home(node.schema_name, False)
    new = replace(old, routine=changed, name=signature(changed.name, changed.types), schema_name=home)
    return AlterFunction(old, new, f"ALTER {node.kind.upper()}", node.owner)


def _secured(routine: Routine, body: str, *, definer: bool) -> Routine:
    """A routine that runs as its owner, or no more: as its owner it is interpreted. Raises 0A000."""
    if routine.language == "python":
        raise unsupported("SECURITY DEFINER of a Python function")
    if routine.language == "sql" and not routine.procedure and not definer and is_query(routine, body):
        raise unsupported("ALTER FUNCTION … SECURITY INVOKER of this function", "Use CREATE OR REPLACE FUNCTION.")
    return replace(routine, definer=definer, statements=routine.statements or (definer and routine.language == "sql"))


def comment(env: Environment, node: nodes_routines.CommentStatement, operator: Relation | None) -> Comment:
    """COMMENT ON; functions are looked up here. ``operator``: the one commented on. Raises 42883, 42725, 42809."""
    routine = operator
    if node.kind in ("function", "procedure", "aggregate", "routine"):
        types = None if node.types is None else tuple(t for t in node.types if t is not None)
        statement = nodes_routines.DropFunctionStatement(((node.name, types),), False, False, node.kind)
        routine = drop_function(env, statement).functions[0]
    return Comment(node.kind, node.name.schema_name, node.name.name, node.text, node.part, routine)


def grant(env: Environment, node: GrantStatement) -> Grant:
    """GRANT and REVOKE; functions are looked up here. Raises 42883, 42725, 42809."""
    if not node.signatures:
        return node.grant
    statement = nodes_routines.DropFunctionStatement(node.signatures, False, False, "routine")
    try:
        found = drop_function(env, statement).functions
    except SqlError as error:
        raise replace(error, message=error.message.replace("routine ", f"{node.grant.routine} ", 1)) from None
    for routine in (r.routine for r in found):
        if (
            routine is not None
            and node.grant.routine != "routine"
            and (routine.procedure != (node.grant.routine == "procedure"))
        ):
            raise SqlError("42809", f"{signature(routine.name, routine.types)} is not a {node.grant.routine}")
    return replace(node.grant, routines=found)


def _dropped(
    env: Environment, name: nodes.TableName, types: tuple[nodes.TypeName, ...] | None,
    node: nodes_routines.DropFunctionStatement,
) -> tuple[list[Relation], str]:  # fmt: skip
    """The routine of a name, or none and what to say of it."""
    known = env.catalog.routines(name.schema_name, name.name)
    kind = node.kind
    if types is not None:
        typed = aggregated_type if kind == "aggregate" else declared_type
        wanted = tuple(typed(env, t) for t in types)
        known = tuple(r for r in known if r.routine is not None and r.routine.types == wanted)
        shown = f"{name.name}({', '.join(map(argument_type_name, wanted))})"
        message, absent = f"{kind} {shown} does not exist", f"{kind} {shown} does not exist"
    else:
        if kind in ("function", "procedure"):
            known = tuple(r for r in known if r.routine is not None and r.routine.procedure == (kind == "procedure"))
        shown = f"{name.name}()"
        message, absent = f'could not find a {kind} named "{name.name}"', f"{kind} {shown} does not exist"
    if len(known) > 1 and types is None:
        hint = f"Specify the argument list to select the {kind} unambiguously."
        raise SqlError("42725", f'{kind} name "{name.name}" is not unique', hint=hint)
    if not known and not node.if_exists:
        raise SqlError("42883", message)
    _check_kind(known[:1], kind, shown)
    return list(known[:1]), absent


def _check_kind(found: Sequence[Relation], kind: str, shown: str) -> None:
    for relation in found:
        routine = relation.routine
        if routine is None or kind in (routine.kind, "routine"):
            continue
        if kind == "aggregate":
            raise SqlError("42809", f"function {shown} is not an aggregate")
        if routine.aggregate and kind == "function":
            hint = "Use DROP AGGREGATE to drop aggregate functions."
            raise SqlError("42809", f'"{routine.name}" is an aggregate function', hint=hint)
        raise SqlError("42809", f"{shown} is not a {kind}")


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
        node.name.name,
        tuple(arguments),
        result,
        volatility=node.volatility,
        strict=node.strict,
        aggregate=True,
        language="python",
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
