"""Users' aggregates: CREATE AGGREGATE … LANGUAGE python checked, and their calls."""

from __future__ import annotations

from collections.abc import Sequence

from ivm.errors import SqlError, unsupported
from ivm.words import SqlType
from planner.expr.python_function import PythonFunction, check_body
from planner.expr.python_values import is_known
from planner.expr.scalar import Scalar
from sql.bind.coerce import cast, plain, type_name
from sql.bind.environment import Environment
from sql.bind.overloads import resolve_anew
from sql.bind.overloads import signature as shown_call
from sql.bind.routines import Entry, signature
from sql.catalog.catalog import Relation, RelationKind, TableColumn
from sql.catalog.routine import Argument, Routine
from sql.statements.routines import CreateFunction
from sql.syntax import nodes
from sql.syntax.nodes_routines import CreateFunctionStatement


def create(env: Environment, node: CreateFunctionStatement) -> CreateFunction:
    """CREATE AGGREGATE; its body is parsed, but does not run yet. Raises 0A000, 42601, 42P13."""
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
    function = python_function(Entry(relation, routine))
    check_body(function, len(arguments))
    return CreateFunction(relation, node.replace, function)


def _known(env: Environment, name: nodes.TypeName) -> SqlType:
    type_ = plain(env.type(name))
    if not is_known(type_):
        raise unsupported(f"a Python aggregate with type {type_name(type_)}", position=name.at + 1)
    return type_


def python_function(entry: Entry) -> PythonFunction:
    """What an aggregate calls."""
    routine, body = entry.routine, entry.relation.definition
    assert body is not None, "an aggregate has a body"
    return PythonFunction(shown_call(entry.name, entry.args), entry.name, body, routine.result, routine.strict)


def arguments(env: Environment, entry: Entry, args: Sequence[Scalar], at: int) -> tuple[Scalar, ...]:
    """A call's arguments as the aggregate takes them; the call was resolved to it."""
    choice = resolve_anew((entry,), tuple(a.type for a in args))
    assert choice is not None, "resolved before"
    return tuple(cast(env, a, t, "implicit", at) for a, t in zip(args, choice.args, strict=True))
