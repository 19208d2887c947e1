"""nextval, currval and setval: a sequence named by a constant is looked up when the statement is bound."""

from __future__ import annotations

from typing import Final

from ivm.errors import SqlError
from ivm.words import INT8, REGCLASS, Kind
from planner.expr.functions.system.sequence import IDENTITY, NEXTVAL
from planner.expr.scalar import Call, Literal, Scalar
from planner.identifiers import split_name
from sql.bind.environment import Environment
from sql.catalog.catalog import Generated, RelationKind

FUNCTIONS: Final = frozenset({"nextval", "currval", "setval"})


def next_value(column: Generated) -> Scalar:
    """The next number of a column's sequence."""
    return Call(IDENTITY if column.identity else NEXTVAL, (Literal(column.sequence, REGCLASS),), INT8, False)


def of_default(expr: Scalar) -> int | None:
    """The id of the sequence if a DEFAULT is just its nextval, else None."""
    if isinstance(expr, Call) and expr.function == "assignment_cast":
        expr = expr.args[0]
    if isinstance(expr, Call) and expr.function in (NEXTVAL, IDENTITY) and isinstance(expr.args[0], Literal):
        value = expr.args[0].value
        return value if isinstance(value, int) else None
    return None


def resolved(env: Environment, argument: Scalar, at: int) -> Scalar:
    """The argument of such a function; a constant name becomes the sequence's id. Raises 42P01, 42809."""
    name = _constant(argument)
    if name is None or name.isdigit():
        return argument
    schema_name, relation_name = split_name(name)
    relation = env.catalog.resolve(schema_name, relation_name)
    if relation is None:
        where = env.origin(argument, at) if isinstance(argument, Literal) else at
        raise SqlError("42P01", f'relation "{name}" does not exist', position=where + 1)
    if relation.kind is not RelationKind.SEQUENCE:
        raise SqlError("42809", f'"{relation.name}" is not a sequence')
    return Literal(relation.id, REGCLASS)


def _constant(argument: Scalar) -> str | None:
    """The name that an untyped literal or a constant cast to regclass gives, else None."""
    if isinstance(argument, Call) and argument.function == "cast" and argument.type.kind is Kind.REGCLASS:
        argument = argument.args[0]
        if not isinstance(argument, Literal) or argument.type.kind is not Kind.TEXT:
            return None
    elif not isinstance(argument, Literal) or argument.type.kind is not Kind.UNKNOWN:
        return None
    return argument.value if isinstance(argument.value, str) else None
