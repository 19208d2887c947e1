"""Volatile functions in a statement's result: called once for each row, in the order of the rows.

A collection holds equal rows once, with a count, and in no order. So the columns of a statement's query that call
volatile functions are taken out of its plan and computed when the sorted rows are sent (Postgres, too, computes such
columns after sorting).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ivm.words import BOOL, Kind
from planner.expr.functions.library import FUNCTIONS
from planner.expr.functions.system.session import CURRENT_SETTING, SETTING_NOW
from planner.expr.parts import CALLS, rebuild, walk
from planner.expr.scalar import LEAVES, Call, Column, Literal, Parameter, Scalar
from planner.logical.nodes import Project, schema
from planner.logical.traversal import renumber
from sql.bind.bound_query import BoundQuery
from sql.bind.walk import has_subquery


def is_volatile(expr: Scalar) -> bool:
    """Whether the expression calls a volatile function, subqueries aside."""
    if isinstance(expr, Literal | Column | Parameter):
        return False
    for part in walk(expr):
        if isinstance(part, Call):
            function = FUNCTIONS.get(part.function)
            if function is not None and function.volatility == "volatile":
                return True
    return False


def gives_volatile(bound: BoundQuery) -> bool:
    """Whether columns of the query are computed after sorting."""
    return isinstance(bound.rel, Project) and bool(_late(bound, bound.rel))


def postponed(bound: BoundQuery) -> tuple[BoundQuery, tuple[Scalar, ...]]:
    """The query with NULLs in place of the columns that are computed after sorting, and the expressions of all its
    columns over that."""
    rel = bound.rel
    if isinstance(rel, Project):
        rel = replace(rel, exprs=_asked_anew(rel.exprs))
    else:
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


def _late(bound: BoundQuery, rel: Project) -> set[int]:
    """The columns that call volatile functions, and that ORDER BY does not use."""
    sorted_by = {part.index for key in bound.order for part in walk(key.expr) if isinstance(part, Column)}
    exprs = [(i, e) for i, e in enumerate(rel.exprs[: bound.width]) if type(e) not in LEAVES]
    return {i for i, e in exprs if i not in sorted_by and is_volatile(e) and not has_subquery(e)}


def _asked_anew(exprs: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    """The columns; beside set_config, current_setting sees what the columns before it have set."""
    if not any(_calls(part, "set_config") for e in exprs for part in walk(e)):
        return exprs
    return tuple(rebuild(e, CALLS, _now) for e in exprs)


def _now(expr: Call) -> Scalar:
    if not _calls(expr, CURRENT_SETTING):
        return expr
    return replace(expr, function=expr.function.replace(CURRENT_SETTING, SETTING_NOW))


def _calls(expr: Scalar, name: str) -> bool:
    return isinstance(expr, Call) and expr.function.startswith(f"{name}(")


def _columns(exprs: Iterable[Scalar]) -> set[Column]:
    return {part for expr in exprs for part in walk(expr) if isinstance(part, Column)}


def _moved(expr: Scalar, place: dict[int, int]) -> Scalar:
    return renumber(expr, place.__getitem__)
