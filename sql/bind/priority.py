"""PRIORITY BY: the order in which the rows of a WITH MUTUALLY RECURSIVE enter its recursion."""

from __future__ import annotations

from ivm.errors import SqlError, unsupported
from ivm.words import INT8, ColumnType
from planner.expr.scalar import Scalar
from sql.bind.coerce import cast
from sql.bind.environment import Environment
from sql.bind.expression import ExpressionBinder
from sql.bind.namespace import one_table, visible_columns
from sql.bind.scope import NameScope
from sql.bind.volatile import is_volatile
from sql.bind.walk import has_subquery
from sql.syntax.nodes import queries as nodes

_CLAUSE = "PRIORITY BY"


def block_priorities(env: Environment, with_: nodes.With) -> tuple[Scalar | None, ...]:
    """For each binding the priority of its rows, None where it lacks a column of the expression; () without the option.

    Raises 42703 where no binding has all the columns, 42601 and 0A000 for other options that exclude this one.
    """
    node = with_.priority
    if node is None:
        return ()
    if with_.return_at_limit:
        raise unsupported("RETURN AT RECURSION LIMIT with PRIORITY BY", position=node.at + 1)
    if with_.no_priority:
        raise SqlError("42601", "conflicting or redundant options", position=node.at + 1)
    found: list[Scalar | None] = []
    missing: SqlError | None = None
    for cte in with_.ctes:
        try:
            found.append(_priority(env, cte, node))
        except SqlError as error:
            if error.sqlstate != "42703":
                raise
            missing = missing or error
            found.append(None)
    if missing is not None and not any(found):
        raise missing
    return tuple(found)


def _priority(env: Environment, cte: nodes.Cte, node: nodes.Expr) -> Scalar:
    columns = visible_columns(cte.columns, tuple(ColumnType(env.type(t), True) for t in cte.types))
    expr = ExpressionBinder(env, NameScope(one_table(cte.name, columns), clause=_CLAUSE), _CLAUSE).bind(node)
    if has_subquery(expr):
        raise unsupported(f"a subquery in {_CLAUSE}", position=node.at + 1)
    if is_volatile(expr):  # a row's retraction must have the priority of its insertion
        raise unsupported(f"a volatile function in {_CLAUSE}", position=node.at + 1)
    return cast(env, expr, INT8, "assignment", node.at)
