"""The traversal of expressions: each is walked once, and a rewrite passes by what it does not replace."""

from __future__ import annotations

import pickle
import random

import pytest

from ivm.words import BOOL, INT4, TEXT, ColumnType
from planner.expr import parts
from planner.expr.evaluate import evaluator
from planner.expr.parts import CALLS, COLUMNS, SUBQUERIES, kinds_of, rebuild, walk
from planner.expr.scalar import (
    And,
    Call,
    Case,
    Coalesce,
    Column,
    Exists,
    Literal,
    Or,
    Scalar,
    children,
    with_children,
)
from planner.logical.nodes import Filter, Get, Project, Values
from planner.logical.traversal import renumber, substitute
from planner.transform.pipeline import optimize

A, B = Column(0, INT4), Column(1, INT4)
ONE = Literal(1, INT4)


def drawn(rng: random.Random, depth: int) -> Scalar:
    if not depth or rng.random() < 0.2:
        return rng.choice((A, B, ONE, Literal(rng.randrange(5), INT4)))
    below = [drawn(rng, depth - 1) for _ in range(3)]
    match rng.randrange(5):
        case 0:
            return Call("+(int4,int4)", (below[0], below[1]), INT4)
        case 1:
            return Coalesce(tuple(below), INT4)
        case 2:
            return And(tuple(Call("=(int4,int4)", (e, ONE), BOOL) for e in below))
        case 3:
            return Or(tuple(Call("=(int4,int4)", (e, A), BOOL) for e in below))
        case _:
            return Case(((Call("=(int4,int4)", (below[0], B), BOOL), below[1]),), below[2], INT4)


def in_order(expr: Scalar) -> list[Scalar]:
    return [expr, *(part for child in children(expr) for part in in_order(child))]


def replaced(expr: Scalar) -> Scalar:
    """Each column by the next one, and each sum turned around: the slow twin of ``rebuild``."""
    expr = with_children(expr, tuple(map(replaced, children(expr))))
    return turned(expr) if isinstance(expr, Column | Call) else expr


def turned(part: Column | Call) -> Scalar:
    if isinstance(part, Column):
        return Column(part.index + 1, part.type)
    return Call(part.function, part.args[::-1], part.type) if part.function.startswith("+") else part


@pytest.mark.parametrize("seed", range(50))
def test_parts_and_rebuilding(seed: int) -> None:
    expr = drawn(random.Random(seed), 5)
    if seed % 2 and children(expr):
        walk(children(expr)[0])  # what is walked already is not walked again
    assert [id(part) for part in walk(expr)] == [id(part) for part in in_order(expr)]
    assert kinds_of(expr) == frozenset(map(type, in_order(expr)))
    assert rebuild(expr, COLUMNS | CALLS, turned) == replaced(expr)
    assert rebuild(expr, SUBQUERIES, pytest.fail) is expr
    assert renumber(expr, lambda i: i) is expr
    assert substitute(expr, (A, B)) is expr


def deep(levels: int) -> Scalar:
    expr: Scalar = Literal(0, INT4)
    for i in range(levels):
        expr = Case(((Call("=(int4,int4)", (A, Literal(i, INT4)), BOOL, True), B),), expr, INT4)
    return expr


def test_a_plan_is_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by several rewrites: none of them replaces anything here."""
    count = 0
    found = parts.children

    def counted(expr: Scalar) -> tuple[Scalar, ...]:
        nonlocal count
        count += 1
        return found(expr)

    monkeypatch.setattr(parts, "children", counted)
    table = Get(16384, (ColumnType(INT4), ColumnType(INT4)))
    condition = Call("=(int4,int4)", (deep(100), ONE), BOOL, True)
    plan = Project(Filter(table, condition), (deep(100),))
    optimize(plan)
    assert count <= 2 * 201 + 10


def test_hashes_are_known_without_depth() -> None:
    """A deep expression is hashed, unpickled and compiled within the usual depth of calls."""
    expr = deep(20)
    assert hash(expr) == hash(deep(20))
    again = pickle.loads(pickle.dumps(expr))
    assert hash(again) == hash(expr)
    assert again == expr
    assert hash(deep(5_000)) is not None
    assert {Literal(1, INT4): "", Literal(True, BOOL): ""}.keys() == {Literal(True, BOOL), Literal(1, INT4)}
    assert Literal(1.0, INT4) != Literal(1, INT4)
    assert Literal("1", TEXT) != Literal(1, INT4)
    assert Exists(Values((), ())) == Exists(Values((), ()))


def test_equal_parts_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0
    runner = evaluator.call_runner

    def counted(*args: object) -> object:
        nonlocal made
        made += 1
        return runner(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(evaluator, "call_runner", counted)
    tests = [Call("=(int4,int4)", (A, Literal(1, INT4)), BOOL, True) for _ in range(10)]
    evaluator.compile_expressions((And(tuple(tests)), tests[0], tests[1]))
    assert made == 1
    random_calls = tuple(Call("random()", (), INT4, False) for _ in range(3))
    evaluator.compile_expressions(random_calls)
    assert made == 4
