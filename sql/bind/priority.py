"""PRIORITY BY: in which order a block's rows enter its recursion."""

from __future__ import annotations

from ivm.errors import SqlError, unsupported
from ivm.words import INT8, ColumnType
from planner.expr.scalar import Column, Scalar
from sql.bind.coerce import cast
from sql.bind.environment import Environment
from sql.bind.expression import Binder
from sql.bind.scope import Namespace, Range, Scope, Visible
from sql.bind.volatile import is_volatile
from sql.bind.walk import has_subquery
from sql.syntax import nodes

_CLAUSE = "PRIORITY BY"


def block_priorities(env: Environment, with_: nodes.With) -> tuple[Scalar | None, ...]:
    """For each binding the priority of its rows, None where it lacks a column that the expression names; () without
    the option. Raises 42703 when no binding has all of them, 0A000 for a limit at which the block is to return."""
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
    columns = tuple(ColumnType(env.type(t), True) for t in cte.types)
    visible = tuple(
        Visible(n, Column(i, c.type, True)) for i, (n, c) in enumerate(zip(cte.columns, columns, strict=True))
    )
    expr = Binder(env, Scope(Namespace(visible, (Range(cte.name, visible),)), clause=_CLAUSE), _CLAUSE).bind(node)
    if has_subquery(expr):
        raise unsupported(f"a subquery in {_CLAUSE}", position=node.at + 1)
    if is_volatile(expr):  # a row's retraction comes with its priority
        raise unsupported(f"a volatile function in {_CLAUSE}", position=node.at + 1)
    return cast(env, expr, INT8, "assignment", node.at)
