"""What the rewrites of a plan cost where they have little to do."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable

import pytest

from planner.logical.nodes import Rel
from planner.logical.traversal import Changed
from planner.transform import fold as folding
from planner.transform.branches import together
from planner.transform.decorrelate.subqueries import decorrelate
from planner.transform.demand.recursion import demand
from planner.transform.pipeline import optimize
from planner.transform.pushdown import push_down
from tests.programs.join_histories import Joined

JOIN = "SELECT t.a, count(*) FROM t JOIN u ON t.a = u.id AND NOT (u.x = 1 AND t.a = 2) WHERE u.x > 3 GROUP BY t.a"


def bound(text: str) -> Rel:
    return Joined().bound(text).rel


def joined(count: int) -> Rel:
    """A join of so many tables, each with conditions of its own."""
    tables = ", ".join(f"e x{i}" for i in range(count))
    met = " AND ".join(f"x{i}.src = x{i - 1}.dst AND x{i}.dst > {i}" for i in range(1, count))
    return bound(f"SELECT x0.src FROM {tables} WHERE {met}")


def calls(work: Callable[[], object], name: str | None = None) -> int:
    """How many functions are called, or how often those of a name."""
    profile = cProfile.Profile()
    profile.enable()
    work()
    profile.disable()
    found = pstats.Stats(profile).stats.items()  # type: ignore[attr-defined]
    return sum(numbers[1] for (_, _, called), numbers in found if name is None or called == name)


@pytest.mark.parametrize("rewrite", [together, decorrelate, demand])
def test_a_plan_without_what_is_rewritten_stays_as_it_is(rewrite: Callable[[Rel], Rel]) -> None:
    rel = optimize(bound(JOIN))
    assert rewrite(rel) is rel


def test_negations_are_simplified_without_subqueries_too() -> None:
    rel = bound("SELECT 1 FROM t WHERE NOT (NOT t.a = 2)")
    same = bound("SELECT 1 FROM t WHERE t.a = 2")
    assert decorrelate(rel) == same


def test_what_has_been_folded_is_not_walked_again() -> None:
    known: Changed = {}
    rel = folding.fold(optimize(joined(8)), known)
    assert calls(lambda: folding.fold(rel, known), "_fold") == 0


def test_a_plan_is_folded_again_only_where_it_has_changed() -> None:
    """A plan is folded four times."""
    rel = joined(8)
    nodes = calls(lambda: folding.fold(rel), "_fold")
    assert calls(lambda: optimize(rel), "_fold") < 4 * nodes


def test_pushing_conditions_down_grows_with_the_tables() -> None:
    few, many = joined(4), joined(16)
    push_down(few)
    assert calls(lambda: push_down(many)) < 6 * calls(lambda: push_down(few))
