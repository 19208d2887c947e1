"""Plans with volatile functions: what is computed once for each row, what is read twice, and what conditions pass."""

from __future__ import annotations

import pytest

from planner.logical.apart import differs_by_row, own_number, sets_apart
from planner.logical.nodes import Filter, Get, Rel, schema
from planner.logical.traversal import nodes
from planner.transform.pipeline import optimize
from tests.support.bind_fake import FakeCatalog, query

CATALOG = "CREATE TABLE t (x int, y int, z text)"


def plan(text: str) -> Rel:
    return optimize(query(text, FakeCatalog(CATALOG)).rel)


def apart(rel: Rel) -> list[Rel]:
    return [n for n in nodes(rel) if sets_apart(n)]


@pytest.mark.parametrize("text", [
    "SELECT x FROM t WHERE y > 1",
    "SELECT random() FROM t",
    "SELECT x FROM t TABLESAMPLE BERNOULLI (50)",
])  # fmt: skip
def test_plans_without_volatile_functions_inside_stay(text: str) -> None:
    rel = plan(text)
    assert not apart(rel)
    assert not any(sets_apart(n) for n in nodes(rel))


def test_a_plan_that_is_read_twice_is_computed_once() -> None:
    """Both references read one node, with the same columns below it; two queries with equal texts stay two."""
    once = apart(
        plan("WITH c AS (SELECT x, y, random() AS r FROM t) SELECT a.x FROM c a JOIN c b ON a.r = b.r AND b.y > 1")
    )
    assert len({own_number(n) for n in once if sets_apart(n)}) == 1
    assert len(set(once)) == 1
    inner = "(SELECT random() AS r FROM t)"
    twice = apart(plan(f"SELECT * FROM {inner} a JOIN {inner} b ON a.r = b.r"))
    assert len({own_number(n) for n in twice if sets_apart(n)}) == 2


def test_unread_columns_are_not_counted() -> None:
    (node,) = apart(plan("SELECT count(*) FROM t WHERE random() < 0.5 AND x > 1"))
    assert sets_apart(node)
    assert len(schema(node.input)) == 0


def test_conditions_on_other_columns_go_first() -> None:
    """As in Postgres, which calls the function for the rows that meet them only."""
    (node,) = apart(plan("SELECT * FROM (SELECT random() AS r, x FROM t) q WHERE x = 1 AND r > 0"))
    assert sets_apart(node)
    assert any(isinstance(n, Filter) for n in nodes(node))


def test_conditions_do_not_enter_a_cte() -> None:
    (node,) = apart(plan("WITH c AS (SELECT random() AS r, x FROM t) SELECT * FROM c WHERE x = 1"))
    assert sets_apart(node)
    assert not any(isinstance(n, Filter) for n in nodes(node))


def test_what_differs_by_row() -> None:
    assert not differs_by_row(Get(1, ()))
    assert differs_by_row(query("SELECT (SELECT random()) FROM t", FakeCatalog(CATALOG)).rel)
