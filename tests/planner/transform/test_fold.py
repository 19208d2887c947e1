"""What the arms of an OR share is taken out of it."""

from __future__ import annotations

from ivm.words import BOOL, INT8
from planner.expr.scalar import And, Call, Column, Literal, Or, Scalar
from planner.transform.fold import simplify

A, B, C = (Column(i, BOOL) for i in range(3))
FAILS = Call("=(int8,int8)", (Call("/(int8,int8)", (Column(3, INT8), Column(4, INT8)), INT8), Literal(1, INT8)), BOOL)


def either(*arms: Scalar) -> Scalar:
    return simplify(Or(arms))


def test_common_conjuncts_stand_before_the_or() -> None:
    assert either(And((A, B)), And((C, A))) == And((A, Or((B, C))))
    assert either(And((A, B, C)), And((C, B)), And((B, C, A))) == And((B, C))
    assert either(And((A, B)), A) == A


def test_nothing_in_common() -> None:
    assert either(And((A, B)), C) == Or((And((A, B)), C))


def test_what_may_raise_stays_where_it_is() -> None:
    kept = Or((And((A, FAILS)), And((A, B))))
    assert simplify(kept) == kept
