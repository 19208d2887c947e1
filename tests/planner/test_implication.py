"""Which conditions imply a predicate: nothing wrong is ever implied, and the usual cases are."""

from __future__ import annotations

from itertools import product

import pytest

from ivm.words import BOOL, INT4, TEXT
from planner.expr.comparison import Comparison
from planner.expr.scalar import And, Call, Column, Literal, Or, Scalar
from planner.logical.implication import _OUTCOMES, implied, refuted

X, Y = Column(0, INT4), Column(1, INT4)
VALUES = (None, 0, 1, 2, 3, 4)


def compare(column: Column, comparison: Comparison, value: int) -> Scalar:
    return Call(f"{comparison.value}(int4,int4)", (column, Literal(value, INT4)), BOOL)


def is_not_null(column: Column) -> Scalar:
    return Call("is not null", (column,), BOOL)


def holds(expr: Scalar, row: tuple[int | None, ...]) -> bool:
    """Whether a condition without NOT is true of a row."""
    match expr:
        case And():
            return all(holds(a, row) for a in expr.args)
        case Or():
            return any(holds(a, row) for a in expr.args)
        case Call(function="is not null", args=(Column(i),)):
            return row[i] is not None
        case Call(function="is null", args=(Column(i),)):
            return row[i] is None
        case Call(args=(Column(i), Literal(value))):
            given = row[i]
            return given is not None and _OUTCOMES[Comparison(expr.function.partition("(")[0])](given, value)
        case _:
            raise AssertionError(expr)


CONDITIONS = [
    *(compare(X, c, v) for c in Comparison for v in (1, 2, 3)),
    is_not_null(X),
    compare(Y, Comparison.GREATER, 2),
    Or((compare(X, Comparison.EQUAL, 1), compare(X, Comparison.EQUAL, 3))),
    Or((compare(X, Comparison.LESS, 1), compare(Y, Comparison.EQUAL, 3))),
    And((compare(X, Comparison.NOT_LESS, 2), compare(Y, Comparison.EQUAL, 3))),
]


def test_what_is_implied_holds() -> None:
    rows = list(product(VALUES, VALUES))
    found = 0
    for one, two, wanted in product(CONDITIONS, CONDITIONS, CONDITIONS):
        given = [c for g in (one, two) for c in (g.args if isinstance(g, And) else (g,))]
        if implied(wanted, given):
            found += 1
            assert all(holds(wanted, row) for row in rows if holds(one, row) and holds(two, row)), (given, wanted)
    assert found > 1000


def test_what_is_refuted_never_holds() -> None:
    rows = list(product(VALUES, VALUES))
    conditions = [*CONDITIONS, Call("is null", (X,), BOOL)]
    found = 0
    for one, two, wanted in product(conditions, conditions, conditions):
        given = [c for g in (one, two) for c in (g.args if isinstance(g, And) else (g,))]
        if refuted(wanted, given):
            found += 1
            assert not any(holds(wanted, row) for row in rows if holds(one, row) and holds(two, row)), (given, wanted)
    assert found > 1000


@pytest.mark.parametrize("given", range(15))
def test_one_comparison_implies_another_exactly(given: int) -> None:
    """On a dense order: among whole numbers x > 1 would imply x >= 2."""
    condition = CONDITIONS[given]
    rows = [(v / 2,) for v in range(-2, 12)]
    for wanted in CONDITIONS[:18]:
        really = all(holds(wanted, row) for row in rows if holds(condition, row))  # type: ignore[arg-type]
        assert implied(wanted, [condition]) == really, (condition, wanted)


def test_strict_functions_need_their_arguments() -> None:
    lower = Call("lower(text)", (Column(0, TEXT),), TEXT)
    given = Call("=(text,text)", (lower, Literal("a", TEXT)), BOOL)
    wanted = Call("is not null", (Column(0, TEXT),), BOOL)
    assert implied(wanted, [given])
    assert implied(Call("is not null", (lower,), BOOL), [given])
    assert not implied(wanted, [Call("is null", (Column(0, TEXT),), BOOL)])
