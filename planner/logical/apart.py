"""Rows set apart: a collection counts equal rows, but a volatile function has a value for each.

``each_row(rel, number, exprs)`` has the columns of ``rel``, then a number (a nullable bigint) that no other row has,
then the expressions, computed once for each row. ``number`` is unlike that of any other such node of the statement, so
that two nodes stay two. One that is read twice is computed once: no rewrite moves anything into it or out of it
(``planner.transform.apart`` makes them, for queries that run once).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeGuard

from ivm.words import INT8, ColumnType, Schema
from planner.expr.functions.internal.sampling import SAMPLED, SAMPLED_ANEW
from planner.expr.functions.library import is_volatile
from planner.expr.functions.lockstep import parts_of
from planner.expr.functions.python_calls import PYTHON_ROW, PYTHON_ROWS
from planner.expr.functions.routine import ROUTINE_ROW, ROUTINE_ROWS
from planner.expr.parts import walk
from planner.expr.scalar import LEAVES, Call, Literal, Scalar
from planner.logical.nodes import Rel, TableFunction, Values
from planner.logical.traversal import all_inputs, children, nodes, scalars

EACH_ROW: Final = "EACH ROW"
_BY_NUMBER: Final = (SAMPLED, SAMPLED_ANEW)
"""Functions of numbers that are unlike already."""
_CALLED: Final = frozenset({ROUTINE_ROW, ROUTINE_ROWS, PYTHON_ROW, PYTHON_ROWS})
UNIT: Final = Values(((),), ())
"""One row without columns."""
NUMBER: Final = ColumnType(INT8, True)


def each_row(rel: Rel, number: int, exprs: tuple[Scalar, ...] = ()) -> TableFunction:
    """See the module docstring."""
    columns: Schema = (NUMBER, *(ColumnType(e.type, e.nullable) for e in exprs))
    return TableFunction(rel, EACH_ROW, (Literal(number, INT8), *exprs), columns)


def sets_apart(rel: Rel) -> TypeGuard[TableFunction]:
    """Whether the node was made by ``each_row``."""
    return isinstance(rel, TableFunction) and rel.function == EACH_ROW


def own_number(rel: TableFunction) -> int:
    """The ``number`` of a node by ``each_row``."""
    assert isinstance(rel.args[0], Literal)
    assert isinstance(rel.args[0].value, int)
    return rel.args[0].value


def calls_volatile(expr: Scalar) -> bool:
    """Whether the expression calls a function that has a value for each row, subqueries aside."""
    return type(expr) not in LEAVES and any(is_volatile(part) and not _by_number(part) for part in walk(expr))


def expands_each(rel: Rel) -> bool:
    """Whether the node is a table function that is called for each row: equal rows too."""
    if not isinstance(rel, TableFunction):
        return False
    return any(key in _CALLED for key, _ in parts_of(rel.function, len(rel.args)))


def differs_by_row(rel: Rel) -> bool:
    """Whether anything in a plan, its subqueries included, has a value for each row."""
    return any(sets_apart(n) or expands_each(n) or any(map(calls_volatile, scalars(n))) for n in nodes(rel, all_inputs))


def read_twice(rel: Rel) -> frozenset[int]:
    """The numbers of the nodes by ``each_row`` that a plan without subqueries reads at several places."""
    seen: set[int] = set()
    once: set[int] = set()
    twice: set[int] = set()
    todo = [rel]
    while todo:
        node = todo.pop()
        if id(node) in seen:
            twice |= {own_number(n) for n in nodes(node) if sets_apart(n)}
            continue
        seen.add(id(node))
        if sets_apart(node):
            number = own_number(node)
            (twice if number in once else once).add(number)
        todo += children(node)
    return frozenset(twice)


def numbers_from(first: int) -> Iterator[int]:
    """Numbers for ``each_row`` that the binder has not given out."""
    while True:
        yield first
        first -= 1


def _by_number(expr: Scalar) -> bool:
    return isinstance(expr, Call) and expr.function in _BY_NUMBER
