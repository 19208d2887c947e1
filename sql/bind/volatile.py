"""Volatile functions in what a statement gives out: once for each row, in the rows' order.

A collection holds equal rows once, with their number, and in no order. So what calls a volatile function at the top of
a query is taken out of its plan, and computed when the rows are written out and sorted (Postgres, too, computes
such columns after it sorts).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from ivm.words import BOOL, Kind
from planner.expr.functions.table import FUNCTIONS
from planner.expr.scalar import Call, Column, Literal, Parameter, Scalar
from planner.logical.nodes import Project, schema
from planner.logical.traversal import renumber, walk
from sql.bind.walk import has_subquery

if TYPE_CHECKING:
    from sql.bind.query import Bound


def is_volatile(expr: Scalar) -> bool:
    """Whether a volatile function is called in the expression, subqueries aside."""
    for part in walk(expr):
        if isinstance(part, Call):
            function = FUNCTIONS.get(part.function)
            if function is not None and function.volatility == "volatile":
                return True
    return False


def gives_volatile(bound: Bound) -> bool:
    """Whether the query's columns are to be computed late."""
    return isinstance(bound.rel, Project) and bool(_late(bound, bound.rel))


def postponed(bound: Bound) -> tuple[Bound, tuple[Scalar, ...]]:
    """The query without what is computed late, its columns where they were, and its shown columns over that."""
    rel = bound.rel
    if not isinstance(rel, Project):
        shown = schema(rel)[: bound.width]
        return bound, tuple(Column(i, c.type, c.nullable) for i, c in enumerate(shown))
    late = _late(bound, rel)
    needed = sorted(_columns(rel.exprs[i] for i in late), key=lambda c: c.index)
    place = {c.index: len(rel.exprs) + n for n, c in enumerate(needed)}
    untyped = {i for i, e in enumerate(rel.exprs[: bound.width]) if e.type.kind is Kind.UNKNOWN}
    absent = Literal(None, BOOL)
    kept = [absent if i in late or i in untyped else e for i, e in enumerate(rel.exprs)]
    shown_exprs: list[Scalar] = []
    for i, expr in enumerate(rel.exprs[: bound.width]):
        if i in late:
            shown_exprs.append(_moved(expr, place))
        elif i in untyped or isinstance(expr, Literal | Parameter):
            shown_exprs.append(expr)
        else:
            shown_exprs.append(Column(i, expr.type, expr.nullable))
    return replace(bound, rel=Project(rel.input, (*kept, *needed))), tuple(shown_exprs)


def _late(bound: Bound, rel: Project) -> set[int]:
    """The shown columns that call volatile functions, and that nothing sorts by."""
    sorted_by = {part.index for key in bound.order for part in walk(key.expr) if isinstance(part, Column)}
    exprs = enumerate(rel.exprs[: bound.width])
    return {i for i, e in exprs if i not in sorted_by and is_volatile(e) and not has_subquery(e)}


def _columns(exprs: Iterable[Scalar]) -> set[Column]:
    return {part for expr in exprs for part in walk(expr) if isinstance(part, Column)}


def _moved(expr: Scalar, place: dict[int, int]) -> Scalar:
    return renumber(expr, place.__getitem__)
