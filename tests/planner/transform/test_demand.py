"""Demand: conditions on a recursion restrict it; the rows stay the same, and only their work is done."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from ivm.errors import SqlError
from planner.logical.nodes import LetRec, Recursive, Rel
from planner.logical.traversal import children
from planner.transform.pipeline import optimize
from tests.planner.test_sql import RELATIONS, bound, new_row
from tests.support.demand_queries import block, query
from tests.support.planner_bench import World
from tests.support.planner_model import Bag
from tests.support.sessions import Server

VIEWS = 12
"""Views of one history."""


def recursions(rel: Rel) -> list[Recursive]:
    found = [rel] if isinstance(rel, Recursive) else []
    return [*found, *(r for child in children(rel) for r in recursions(child))]


def outcome(compute: object) -> object:
    assert callable(compute)
    try:
        return compute()
    except SqlError as error:
        return error.sqlstate


def commit(world: World, rnd: random.Random) -> None:
    changes: list[tuple[int, tuple[object, ...], int]] = []
    for _ in range(rnd.randint(1, 4)):
        table = rnd.choice([RELATIONS[n] for n in ("t", "t", "u", "e", "e")])
        have = list(world.contents[table.id].elements())
        pending = [r for t, r, _ in changes if t == table.id]
        if have and not pending and rnd.random() < 0.4:
            changes.append((table.id, rnd.choice(have), -1))
            continue
        row = new_row(table.name, rnd)
        key = tuple(row[i] for i in table.primary_key)
        if not key or all(tuple(r[i] for i in table.primary_key) != key for r in (*have, *pending)):
            changes.append((table.id, row, 1))
    world.commit(changes)


def is_within(seen: object, expected: object) -> bool:
    """The same rows, or fewer errors: a row that no query demands need not fail."""
    return seen == expected or (isinstance(expected, str) and isinstance(seen, Counter))


def maintained(world: World, view: int) -> Bag | str:
    errors = world.errors(view)
    if errors is not None and len(errors[0]):
        return "22012"
    return world.view_of(view, world.renderer.stored[view].schema)


def play(seed: int, steps: int, draw: Callable[[int], str] = query) -> tuple[int, int]:
    """Plays a history over random queries; gives how many were restricted, and how many demanded something."""
    rnd = random.Random(seed)
    world = World({r.id: (r.schema, r.primary_key) for r in RELATIONS.values()})
    for _ in range(5):
        commit(world, rnd)
    texts = [draw(seed * VIEWS + i) for i in range(VIEWS)]
    rels = [bound(text).rel for text in texts]
    for i, rel in enumerate(rels):
        world.install(100 + i, rel)
    world.views.clear()
    for _ in range(steps):
        for i, (text, rel) in enumerate(zip(texts, rels, strict=True)):
            expected = outcome(lambda: world.model(rel))  # noqa: B023
            assert is_within(maintained(world, 100 + i), expected), (seed, text)
            assert is_within(outcome(lambda: world.query(rel)), expected), (seed, text)  # noqa: B023
        commit(world, rnd)
    plans = [optimize(rel) for rel in rels]
    return sum(optimize_differs(plan) for plan in plans), len(plans)


def optimize_differs(plan: Rel) -> bool:
    found = recursions(plan)
    return any(r.demanded or r.met for r in found) or any(r.binding > 1 for r in found) or any(blocks(plan))


def blocks(rel: Rel) -> list[LetRec]:
    """The blocks that demand has entered."""
    found = [rel] if isinstance(rel, LetRec) and rel.demanded else []
    return [*found, *(b for child in children(rel) for b in blocks(child))]


@pytest.mark.parametrize("seed", range(6))
def test_what_is_asked_is_what_a_whole_recursion_has(seed: int) -> None:
    restricted, total = play(seed, 5)
    assert restricted * 4 >= total


@pytest.mark.parametrize("seed", range(4))
def test_what_is_asked_is_what_a_whole_block_has(seed: int) -> None:
    restricted, total = play(seed, 4, block)
    assert restricted * 6 >= total


REACH = "with recursive r(x, y) as (select src, dst from e union select r.x, e.dst from r join e on r.y = e.src)"


def test_only_what_is_asked_is_computed() -> None:
    """In chains of nine edges, a view from one node, or to one, holds and touches its own chain only."""
    world = World({r.id: (r.schema, r.primary_key) for r in RELATIONS.values()})
    world.commit([(3, (i, i + 1), 1) for i in range(5000) if i % 10])
    everything = len(world.query(bound(f"{REACH} select * from r").rel))
    assert everything == 500 * 45
    for view, asked, rows in ((101, "x = 201", 9), (102, "y = 210", 9), (103, "y in (210, 310)", 18)):
        rel = bound(f"{REACH} select * from r where {asked}").rel
        world.install(view, rel)
        assert len(world.view(view)) == rows
        assert sum(v.count for v in versions(world, view).values()) < 2 * 4500 + 200
        before = world.dataflow.counters
        world.commit([(3, (5001 + view, 5002 + view), 1)])
        spent = world.dataflow.counters - before
        assert spent.matches + spent.history + spent.segments < 40, spent
        world.commit([(3, (205, 999_000), 1), (3, (999_000, 210), 1)])
        assert len(world.view(view)) == rows + 1
        world.commit([(3, (205, 999_000), -1), (3, (999_000, 210), -1)])
        assert len(world.view(view)) == rows


def versions(world: World, view: int) -> dict[int, object]:
    published = world.dataflow.publish()
    return {n: v for n in world.renderer.stored[view].nodes if (v := published.get(n)) is not None}


@pytest.mark.parametrize("read", [
    "select * from r a, r b where a.x = 1 and b.y = a.y",
    "select * from r where x = 1 union all select * from r where x + 1 = 3",
    "select random() * 0, x from r where x + 0 = 1",
])  # fmt: skip
def test_what_is_read_whole_stays_whole(read: str) -> None:
    """Nothing is computed twice: a recursion that some reader needs whole is not copied."""
    found = recursions(optimize(bound(f"{REACH} {read}").rel))
    assert found
    assert not any(r.demanded for r in found)
    assert len({id(r) for r in found}) == 1


def test_what_is_volatile_or_may_fail_does_not_enter() -> None:
    """random() is not pushed down, nor is a condition that divides; a recursion that calls random() stays whole."""
    for text in (
        f"{REACH} select * from r where x > random()",
        f"{REACH} select * from r where 1 / x = 1",
        "with recursive r(x, y) as (select src, random() from e union all select x, y from r where x > 9)"
        " select * from r where x = 1",
    ):
        assert not any(r.demanded for r in recursions(optimize(bound(text).rel))), text


def test_a_union_all_is_not_turned_round() -> None:
    """A cycle that the base does not reach ends the plain query; followed backwards, it would not end."""
    world = World({r.id: (r.schema, r.primary_key) for r in RELATIONS.values()})
    world.commit([(3, (1, 2), 1), (3, (4, 5), 1), (3, (5, 4), 1), (3, (5, 2), 1), (2, (1, 1, None), 1)])
    rel = bound(
        "with recursive r(x, y) as (select id, x from u union all select r.x, e.dst from r join e on r.y = e.src)"
        " select * from r where y = 2"
    ).rel
    assert world.query(rel) == world.model(rel) == Counter({(1, 2): 1})


@pytest.mark.parametrize(
    ("asked", "rows"),
    [
        ("select r.* from r join u on r.x = u.x", 9),
        ("select * from r where x in (select x from u)", 9),
        ("select * from r where y in (select x + 9 from u)", 9),
    ],
)
def test_another_relation_asks(asked: str, rows: int) -> None:
    """In chains of nine edges, a row of the other relation adds its own chain, and removes it when it leaves."""
    world = World({r.id: (r.schema, r.primary_key) for r in RELATIONS.values()})
    world.commit([(3, (i, i + 1), 1) for i in range(5000) if i % 10])
    world.commit([(2, (1, 201, None), 1)])
    rel = bound(f"{REACH} {asked}").rel
    world.install(100, rel)
    assert len(world.view(100)) == rows
    before = world.dataflow.counters
    world.commit([(2, (2, 301, None), 1)])
    spent = world.dataflow.counters - before
    assert spent.matches + spent.history + spent.segments < 400, spent
    assert len(world.view(100)) == 2 * rows
    world.commit([(2, (1, 201, None), -1)])
    assert len(world.view(100)) == rows
    assert world.view(100) == world.query(rel)


def test_a_block_computes_what_is_asked() -> None:
    world = World({r.id: (r.schema, r.primary_key) for r in RELATIONS.values()})
    world.commit([(3, (i, i + 1), 1) for i in range(5000) if i % 10])
    whole = REACH.replace("recursive r(x, y)", "mutually recursive r(x int, y int)")
    world.install(100, bound(f"{whole} select * from r where x = 201").rel)
    assert len(world.view(100)) == 9
    assert sum(v.count for v in versions(world, 100).values()) < 2 * 4500 + 200


def test_it_can_be_turned_off() -> None:
    for text in (f"{REACH} select * from r where x = 1", f"{REACH} select r.* from r join u on r.x = u.x"):
        (whole,) = recursions(optimize(bound(text).rel, demanding=False))
        assert not whole.demanded
        assert not whole.met
        (restricted,) = recursions(optimize(bound(text).rel))
        assert restricted.demanded or restricted.met


def test_a_view_keeps_whether_it_was(tmp_path: Path) -> None:
    """Over a restart, and when a change of a table rebuilds it, whatever the session's setting is then."""
    server = Server(tmp_path / "data")
    client = server.client()
    client.run("CREATE TABLE e (src int, dst int)")
    client.run("INSERT INTO e SELECT i, i + 1 FROM generate_series(1, 100) i WHERE i % 10 <> 0")
    text = f"{REACH} select y from r where x = 41"
    for demand in ("on", "off"):
        client.run(f"SET recursion_demand = {demand}; CREATE MATERIALIZED VIEW v_{demand} AS {text}")
    (line,) = client.rows(f"EXPLAIN CREATE MATERIALIZED VIEW v AS {text}")[-1]
    assert line == "planned with recursion_demand = off, which is kept with the view"

    def most() -> list[int]:
        """The rows in the largest arrangement that belongs to each view alone."""
        engine = server.coordinator.engine
        views = {r.name: engine.renderer.stored[r.id] for r in engine.catalog.relations.values() if r.definition}
        spines = [[s for n in views[v].nodes for s in engine.dataflow._operators[n].spines()] for v in sorted(views)]
        return [max(spine.count for spine in own) for own in spines]

    planned = most()
    server.restart()
    again = server.client()
    for view in ("v_off", "v_on"):  # a read waits until the view is filled
        again.rows(f"SELECT * FROM {view}")
    assert most() == planned
    assert planned[0] > 4 * planned[1], "nothing is asked of the one that was made under off"
    again.run("ALTER TABLE e ADD COLUMN note text")
    assert most() == planned
    for view in ("v_off", "v_on"):
        assert again.sorted(f"SELECT * FROM {view}") == [(str(i),) for i in range(42, 51)]
    again.close()
    server.close()


def main() -> None:
    """Histories of other seeds, of queries and of blocks: python -m tests.planner.transform.test_demand FIRST COUNT."""
    first, count = int(sys.argv[1]), int(sys.argv[2])
    for seed in range(first, first + count):
        play(seed, 4, block if seed % 2 else query)
    print(f"{count} histories of {VIEWS} views agree")


if __name__ == "__main__":
    main()
