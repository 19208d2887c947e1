"""Laws of gathers, and the shapes that plans must have."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ivm.graph import Arrange, Concat, Gather, Join, Leave, Threshold
from ivm.words import INT4, ColumnType
from planner import gathers
from planner.expr.scalar import Column
from planner.logical.nodes import Get, JoinKind, Project, Recursive, Reference
from planner.logical.nodes import Join as JoinRel
from planner.lower.plan import lower
from planner.lower.state import KnownIndexes
from planner.physical.nodes import LoopVariable, Table, TableErrors
from planner.transform.pipeline import optimize
from tests.support.planner_queries import LOOPS, NESTED, PLAIN, eq

WIDTH = 4


def any_gather(width: int) -> st.SearchStrategy[Gather]:
    word, bit = st.integers(0, width - 1), st.integers(0, 5)
    out = st.integers(0, WIDTH - 1)
    return st.builds(
        Gather,
        st.tuples(*[st.integers(-1, width - 1)] * WIDTH),
        st.lists(st.tuples(word, bit, out, bit), max_size=3).map(tuple),
        st.lists(st.tuples(word, bit), max_size=1).map(tuple),
    )


@given(any_gather(WIDTH), any_gather(WIDTH), st.lists(st.lists(st.integers(0, 63), min_size=4, max_size=4), max_size=6))
def test_compose_is_doing_both(first: Gather, second: Gather, rows: list[list[int]]) -> None:
    matrix = np.array(rows, np.int64).reshape(-1, WIDTH)
    step, _ = gathers.apply(first, matrix)
    both, _ = gathers.apply(second, step)
    once, _ = gathers.apply(gathers.compose(first, second), matrix)
    assert once.tolist() == both.tolist()


def widest() -> st.SearchStrategy[Gather]:
    """Gathers that move any of a word's bits."""
    bit, word = st.sampled_from([0, 1, 62, 63]), st.integers(0, WIDTH - 1)
    moves = st.lists(st.tuples(word, bit, word, bit), max_size=4).map(tuple)
    words = st.tuples(*[st.integers(-1, WIDTH - 1)] * WIDTH)
    return st.builds(Gather, words, moves, st.lists(st.tuples(word, bit), max_size=1).map(tuple))


@given(widest(), st.lists(st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63), 2**62]), min_size=4, max_size=4))
def test_one_row_is_moved_as_a_block_is(gather: Gather, row: list[int]) -> None:
    moved, _ = gathers.apply(gather, np.array([row], np.int64))
    one = gathers.apply_to_one(gather, row)
    assert moved.tolist() == ([] if one is None else [one])


def test_reach_runs_without_python() -> None:
    """The reachability loop is join, concat, arrange and threshold only, and joins with the threshold itself."""
    node = (ColumnType(INT4, False),)
    edges = Get(3, (ColumnType(INT4, False), ColumnType(INT4, False)))
    step = Project(
        JoinRel(JoinKind.INNER, Reference(7, node), edges, eq(Column(0, INT4, False), Column(1, INT4, False))),
        (Column(2, INT4, False),),
    )
    plan = lower(optimize(Recursive(7, Get(1, node), step, False, node)), KnownIndexes())
    allowed = Table | TableErrors | LoopVariable | Concat | Arrange | Threshold | Join | Leave
    assert all(isinstance(n, allowed) for n in plan.nodes)
    (join,) = [n for n in plan.nodes if isinstance(n, Join)]
    assert isinstance(plan.nodes[join.left], Threshold)
    assert sum(isinstance(n, Arrange) for n in plan.nodes) == 2


def test_optimizing_keeps_the_schema() -> None:
    from planner.logical.nodes import schema

    for rel in (*PLAIN.values(), *NESTED.values(), *LOOPS.values()):
        assert schema(optimize(rel)) == schema(rel)


def test_optimizing_again_plans_the_same_rows() -> None:
    """No subquery and no outer column is left anywhere."""
    from planner.expr.parts import walk
    from planner.expr.scalar import OuterColumn
    from planner.logical.traversal import children, has_subquery, scalars

    for rel in NESTED.values():
        todo = [optimize(rel)]
        while todo:
            node = todo.pop()
            todo += children(node)
            for expr in scalars(node):
                assert not has_subquery(expr)
                assert not any(isinstance(p, OuterColumn) for p in walk(expr))
            assert not (isinstance(node, JoinRel) and node.lateral)
