"""Every kind of plan, maintained and one-shot, against a naive interpreter, under random changes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from ivm.errors import SqlError
from ivm.operators import linear
from planner.logical.nodes import Rel
from tests.support.planner_bench import Row, World
from tests.support.planner_queries import LOOPS, NESTED, PLAIN, TABLES
from tests.support.profiles import scaled

STEPS = scaled(8)


def changes(world: World, rnd: random.Random) -> list[tuple[int, Row, int]]:
    """Inserts and deletes a few rows: NULL keys, duplicates, and updates of existing rows."""
    made: list[tuple[int, Row, int]] = []
    for _ in range(rnd.randint(1, 4)):
        table = rnd.choice((1, 1, 2, 3))
        have = list(world.contents[table].elements())
        pending = [row for t, row, _ in made if t == table]
        if have and rnd.random() < 0.45 and not pending:
            made.append((table, rnd.choice(have), -1))
            continue
        row = new_row(table, rnd)
        taken = {r[0] for r in (*have, *pending)}
        if table != 2 or row[0] not in taken:
            made.append((table, row, 1))
    return made


def new_row(table: int, rnd: random.Random) -> Row:
    some = rnd.choice((None, 1, 2, 3, 4, 5))
    if table == 1:
        return (rnd.choice((None, 1, 2, 3, 4)), some)
    if table == 2:
        return (rnd.randint(1, 5), some, rnd.choice((None, "a", "b", "zz")))
    return (rnd.randint(1, 5), rnd.randint(1, 5))


def outcome(compute: object) -> object:
    """Rows, or the error's SQLSTATE."""
    assert callable(compute)
    try:
        return compute()
    except SqlError as error:
        return error.sqlstate


def maintained(world: World, view: int) -> object:
    errors = world.errors(view)
    return "21000" if errors is not None and len(errors[0]) else world.view(view)


def histories(queries: dict[str, Rel], seed: int) -> Iterator[tuple[World, str, int, Rel]]:
    world = World(TABLES)
    rnd = random.Random(seed)
    for _ in range(3):
        world.commit(changes(world, rnd))
    for i, rel in enumerate(queries.values()):
        world.install(100 + i, rel)
    for _ in range(STEPS):
        for i, (name, rel) in enumerate(queries.items()):
            yield world, name, 100 + i, rel
        world.commit(changes(world, rnd))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("queries", [PLAIN, NESTED, LOOPS], ids=["plain", "nested", "loops"])
def test_views_equal_recompute(queries: dict[str, Rel], seed: int) -> None:
    """At every step: the view, a one-shot run from scratch and the naive interpreter agree."""
    for world, name, view, rel in histories(queries, seed):
        expected = outcome(lambda: world.model(rel))  # noqa: B023
        assert maintained(world, view) == expected, name
        assert outcome(lambda: world.query(rel)) == expected, name  # noqa: B023


def test_large_blocks_are_mapped_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """As above, with parts of two rows."""
    monkeypatch.setattr(linear, "AT_ONCE", 2)
    for world, name, view, rel in histories(PLAIN, 2):
        expected = outcome(lambda: world.model(rel))  # noqa: B023
        assert maintained(world, view) == expected, name
        assert outcome(lambda: world.query(rel)) == expected, name  # noqa: B023


def test_a_change_costs_the_change() -> None:
    """One row in a join, an aggregate and a reachability query over thousands of rows touches a few."""
    world = World(TABLES)
    world.commit([(3, (i, i + 1), 1) for i in range(0, 6000, 2)] + [(2, (i, i % 7, "x"), 1) for i in range(3000)])
    world.commit([(1, (2, 0), 1)])
    for i, name in enumerate(("inner equal", "group", "left mixed", "except all")):
        world.install(100 + i, PLAIN[name])
    world.install(200, LOOPS["reach"])
    world.install(201, NESTED["exists"])
    world.commit([(1, (4, 4), 1)])
    before = world.dataflow.counters
    world.commit([(1, (6, 1), 1)])
    spent = world.dataflow.counters - before
    assert spent.matches + spent.seeks + spent.history + spent.segments < 300
    for view in world.views:
        assert world.view(view) == world.model(world.views[view])


def test_drop_and_share() -> None:
    """Equal views share nodes; dropping one keeps the other working, and a new one is right."""
    world = World(TABLES)
    world.commit([(1, (1, 2), 1), (2, (1, 5, "a"), 1)])
    for rel in (PLAIN["inner equal"], LOOPS["reach"], LOOPS["mutual"]):
        world.install(100, rel)
        first = set(world.renderer.stored[100].nodes)
        world.install(101, rel)
        outputs = 1 if world.renderer.errors(101) is None else 2
        assert len(set(world.renderer.stored[101].nodes) - first) == outputs
        world.renderer.drop_relation(100)
        del world.views[100]
        world.commit([(1, (1, 3), 1)])
        world.check()
        world.renderer.drop_relation(101)
        world.views.clear()
        world.commit([(1, (1, 4), 1)])
        world.install(102, rel)
        world.check()
        world.renderer.drop_relation(102)
        world.views.clear()


def test_view_over_view() -> None:
    """A view reads another one's rows, and its errors."""
    world = World(TABLES)
    world.install(100, NESTED["scalar"])
    from planner.logical.nodes import Get, schema

    row = schema(NESTED["scalar"])
    inner = Get(100, row)
    world.renderer.install(_lowered(world, inner), 101)
    world.dataflow.hydrate()
    world.commit([(1, (1, 2), 1), (2, (1, 5, "a"), 1)])
    assert world.view_of(101, row) == Counter({(1, 5): 1})


def _lowered(world: World, rel: Rel) -> object:
    from planner.lower.plan import lower
    from planner.transform.pipeline import maintained

    return lower(maintained(rel), world.indexes(False))
