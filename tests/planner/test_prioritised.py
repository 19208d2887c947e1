"""Recursions of least labels: which are prioritised, that results stay the same, and that the work is less."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ivm.errors import SqlError
from planner.explain import explain
from planner.lower.state import KnownIndexes
from tests.programs.prioritised import CATALOG, KNOWN, WAYS, play
from tests.support.bind_fake import query
from tests.support.planner_bench import World
from tests.support.prioritised_rounds import Rounds

BASE = "SELECT id, label FROM known"
STEP = "SELECT e.dst, b.v FROM best b JOIN ways e ON b.n = e.src"


def block(base: str = BASE, step: str = STEP, label: str = "min(v)", more: str = "", head: str = "") -> str:
    return (
        f"WITH MUTUALLY RECURSIVE {head} best (n int, v bigint) AS "
        f"(SELECT n, {label} FROM ({base} UNION ALL {step}) AS p (n, v) GROUP BY n){more} SELECT n, v FROM best"
    )


def is_prioritised(sql: str) -> bool:
    return "Prioritise" in explain(query(sql, CATALOG).rel, "physical", KnownIndexes())


@pytest.mark.parametrize("seed", range(12))
def test_random_histories(seed: int) -> None:
    play(seed, 8, 3)


@pytest.mark.parametrize(
    "sql",
    [
        block(),
        block(label="max(v)"),
        block(step="SELECT e.dst, b.v + e.w FROM best b JOIN ways e ON b.n = e.src"),
        block(step="SELECT e.dst, b.v FROM best b JOIN ways e ON b.n = e.src AND e.w < 3 WHERE b.n > 1"),
        block(more=", few (n int) AS (SELECT n FROM best WHERE v < 3)"),
        block(base="SELECT id, label FROM nodes"),
    ],
)
def test_a_label_that_is_copied_or_grows_is_prioritised(sql: str) -> None:
    assert is_prioritised(sql)


@pytest.mark.parametrize(
    "sql",
    [
        block(head="(RETURN AT RECURSION LIMIT 5)"),
        block(label="min(v) + count(*)"),
        block(label="sum(v)::bigint"),
        block(step="SELECT e.dst, b.v FROM best b JOIN ways e ON b.n = e.src WHERE b.v < 4"),
        block(step="SELECT b.v::int, b.v FROM best b JOIN ways e ON b.n = e.src"),
        block(step="SELECT e.dst, b.v * 2 FROM best b JOIN ways e ON b.n = e.src"),
        block(step="SELECT e.dst, - b.v FROM best b JOIN ways e ON b.n = e.src"),
        block(step="SELECT e.dst, b.v FROM ways e LEFT JOIN best b ON b.n = e.src"),
        block(step="SELECT e.dst, b.v FROM ways e JOIN (SELECT * FROM best LIMIT 2) b ON b.n = e.src"),
        block(step="SELECT e.dst, e.w FROM best b JOIN ways e ON b.n = e.src"),
        block(label="max(v)", step="SELECT e.dst, b.v + 1 FROM best b JOIN ways e ON b.n = e.src AND e.src < e.dst"),
        block(step="SELECT e.dst, few.v FROM few JOIN ways e ON few.n = e.src",
              more=", few (n int, v bigint) AS (SELECT n, v FROM best WHERE v < 3)"),
    ],
)  # fmt: skip
def test_other_labels_are_not(sql: str) -> None:
    assert not is_prioritised(sql)


def test_only_the_least_labels_travel() -> None:
    """A path of 300 nodes with randomly ordered labels: plain rounds carry most labels far, prioritised ones few."""
    assert WAYS is not None
    assert KNOWN is not None
    order = [(i * 1009) % 300 for i in range(300)]
    pairs = [edge for a, b in pairwise(order) for edge in ((a, b), (b, a))]
    rows = [(WAYS.id, (a, b, 0), 1) for a, b in pairs] + [(KNOWN.id, (n, n), 1) for n in range(300)]
    spent = []
    for sql in (block(), block(step=STEP + " WHERE b.v >= 0")):
        world = World({t.id: (t.schema, ()) for t in (WAYS, KNOWN)})
        world.commit(rows)
        before = world.dataflow.counters
        world.install(1, query(sql, CATALOG).rel)
        spent.append(world.dataflow.counters - before)
        assert set(world.view(1)) == {(n, 0) for n in range(300)}
        world.commit([(WAYS.id, (order[150], order[151], 0), -1), (WAYS.id, (order[151], order[150], 0), -1)])
        halves = (order[:151], order[151:])
        assert set(world.view(1)) == {(n, min(half)) for half in halves for n in half}
    assert spent[0].matches * 5 < spent[1].matches


GROWS = "SELECT e.dst, b.v + e.w FROM best b JOIN ways e ON b.n = e.src"


def world_of(sql: str, rows: list[tuple[int, tuple[int, ...], int]]) -> World:
    assert WAYS is not None
    assert KNOWN is not None
    world = World({t.id: (t.schema, ()) for t in (WAYS, KNOWN)})
    world.commit(rows)
    world.install(1, query(sql, CATALOG).rel)
    return world


def failures(world: World) -> int:
    found = world.errors(1)
    return 0 if found is None else len(found[0])


def path(length: int) -> list[tuple[int, tuple[int, ...], int]]:
    assert WAYS is not None
    assert KNOWN is not None
    return [(KNOWN.id, (0, 0), 1), *((WAYS.id, (i, i + 1, 1), 1) for i in range(length))]


def test_rounds_are_limited_within_a_priority() -> None:
    """Distances by distance take two rounds each, however long the path; in one priority they are too many."""
    assert WAYS is not None
    plain = world_of(block(step=GROWS, head="(RECURSION LIMIT 5)"), path(30))
    assert failures(plain) == 1
    world = world_of(block(step=GROWS, head="(RECURSION LIMIT 5, PRIORITY BY v)"), path(30))
    assert failures(world) == 0
    assert set(world.view(1)) == {(i, i) for i in range(31)}
    one = world_of(block(step=GROWS, head="(RECURSION LIMIT 5, PRIORITY BY v / 100)"), path(30))
    assert failures(one) == 1
    one.commit([(WAYS.id, (2, 3, 1), -1)])
    assert failures(one) == 0
    assert set(one.view(1)) == {(i, i) for i in range(3)}


def test_a_row_without_a_priority_is_an_error_that_heals() -> None:
    assert KNOWN is not None
    world = world_of(block(step=GROWS, head="(PRIORITY BY v)"), path(3))
    assert failures(world) == 0
    for label in (-1, 5000):
        world.commit([(KNOWN.id, (50, label), 1)])
        assert failures(world) == 1
        world.commit([(KNOWN.id, (50, label), -1)])
        assert failures(world) == 0
        assert world.view(1) == world.model(world.views[1])


def test_where_the_first_to_come_stays_the_priority_decides_who_that_is() -> None:
    """Each node keeps the first labels offered to it: by label, by descending label, or all at once."""
    assert KNOWN is not None
    first = (
        "first (n int, v bigint) AS (SELECT n, v FROM first AS had UNION SELECT id, label FROM known k "
        "WHERE NOT EXISTS (SELECT FROM first f WHERE f.n = k.id)) SELECT n, v FROM first"
    )
    rows: list[tuple[int, tuple[int, ...], int]] = [(KNOWN.id, (n, v), 1) for n in (1, 2) for v in (3, 5, 8)]
    kept = {"v": {3}, "9 - v": {8}, "(v - 5) * (v - 5)": {5}, "7": {3, 5, 8}}
    for order, labels in kept.items():
        world = world_of(f"WITH MUTUALLY RECURSIVE (PRIORITY BY {order}, RECURSION LIMIT 4) {first}", rows)
        assert set(world.view(1)) == {(n, v) for n in (1, 2) for v in labels}
        gone = next(iter(labels))
        world.commit([(KNOWN.id, (1, gone), -1)])
        assert world.view(1) == Rounds(world.contents).answer(world.views[1])
        assert set(world.view(1)) != {(n, v) for n in (1, 2) for v in labels}
        assert failures(world) == 0


@pytest.mark.parametrize(
    ("head", "state"),
    [
        ("(PRIORITY BY nope)", "42703"),
        ("(PRIORITY BY sum(v))", "42803"),
        ("(PRIORITY BY (SELECT 1))", "0A000"),
        ("(PRIORITY BY v + (random() * 10)::int)", "0A000"),
        ("(PRIORITY BY 'a'::text)", "42804"),
        ("(PRIORITY BY v, NO PRIORITY)", "42601"),
        ("(PRIORITY BY v, RETURN AT RECURSION LIMIT 3)", "0A000"),
        ("(PRIORITY v)", "42601"),
    ],
)
def test_what_is_wrong_in_an_option(head: str, state: str) -> None:
    with pytest.raises(SqlError) as raised:
        query(block(head=head), CATALOG)
    assert raised.value.sqlstate == state


def test_no_priority_turns_it_off() -> None:
    assert not is_prioritised(block(head="(NO PRIORITY)"))
