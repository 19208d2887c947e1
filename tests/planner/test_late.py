"""Late materialization: random histories against SQLite, what is chosen, what is stored, what a change costs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ivm.inspect import nodes
from planner.explain import explain
from planner.options import DEFAULT, Joins, Late, Planning
from planner.render.holdings import arrangements
from tests.programs.join_histories import play as play_joins
from tests.programs.late_histories import COLUMNS, FILLS, Wide, play
from tests.support.sessions import Client, Server

FIVE = ", ".join(f"w.h{i}" for i in range(5))
ALL = ", ".join(f"w.{h}" for h in FILLS)
PAIR = f"SELECT w.id, {ALL} FROM s JOIN w ON w.f = s.id WHERE s.x = 1"


@pytest.mark.parametrize("first", range(0, 40, 8))
def test_views_equal_sqlite(first: int) -> None:
    """At every epoch, several per step: inner, outer and semijoins, recursion, with every join method."""
    found = [play(seed) for seed in range(first, first + 8)]
    assert sum(compared for compared, _ in found) > 8 * 18 * 7
    assert sum(late for _, late in found) >= 16


def test_one_column_is_compared_with_two() -> None:
    """The column occurs in the key twice: a linear join."""
    assert play(987)[0] > 18 * 7


@pytest.mark.parametrize("first", [0, 4, 708])
def test_joins_of_all_kinds_fetch_late(first: int) -> None:
    """The histories of ``test_joins`` with late materialization: cycles, where inputs are intersected, and loops."""
    assert sum(play_joins(seed, late=Late.ON) for seed in range(first, first + 4)) == 4 * 6 * 7


def explained(world: Wide, text: str, planning: Planning = DEFAULT) -> list[str]:
    world.planning = planning
    names = {relation.id: name for name, relation in world.catalog.relations.items()}
    return explain(world.bound(text).rel, "physical", world.indexes(False), names.__getitem__).splitlines()


def late(world: Wide, text: str, planning: Planning = DEFAULT) -> list[str]:
    return [line.strip() for line in explained(world, text, planning) if line.strip().startswith("late:")]


def test_a_plan() -> None:
    """The table's ids by the join's key, its rows by the primary key (arranged anyway), filters before both."""
    shown = ", ".join(f"w.h{i}" for i in range(1, 11))
    assert explained(Wide(), f"SELECT w.id, {shown} FROM t JOIN w ON w.f = t.a WHERE w.h0 < 5") == [
        "10 Join delta of 2 inputs",
        "  path 6 > 7 by [1]; words [0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -1] not null [(12, 1), (14, 0)]",
        "  path 7 > 8 by [0] > late 9 by [3]; words [3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, -1] not null [(1, 0)]",
        "  late: columns [4, 5, 6, 7, 8, 9, 10, 11, 12, 13] of w by id [0]",
        "  6 Consolidate",
        "    2 Map filter (#3 < 5) compute [#0, #1, #4, #5, #6, #7, #8, #9, #10, #11, #12, #13]",
        "      1 Table w",
        "  7 Arrange key [0] val [-1]",
        "    4 Table t",
        "  8 Arrange key [0] val [1]",
        "    5 Map filter (#3 < 5) compute [#1, #0]",
        "      node 1 again",
        "  9 Arrange key [0] val [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] (shared)",
        "    node 1 again",
    ]


def test_what_the_planner_chooses() -> None:
    world = Wide()
    assert late(world, PAIR) == [f"late: columns {list(range(3, 15))} of w by id [0]"]
    assert late(world, PAIR, Planning(late=Late.OFF)) == []
    # Five columns are not worth a seek for one arrangement; they are if two would hold them.
    assert late(world, f"SELECT {FIVE} FROM s JOIN w ON w.f = s.id") == []
    assert len(late(world, f"SELECT {FIVE} FROM s JOIN w ON w.f = s.id", Planning(late=Late.ON))) == 1
    assert len(late(world, f"SELECT {FIVE} FROM s, w, t WHERE w.f = s.id AND w.g = t.a")) == 1
    # Nor if an arrangement with all columns exists, nor without a primary key, nor if a filter may fail.
    assert late(world, f"SELECT {ALL} FROM s JOIN w ON w.id = s.x") == []
    assert late(world, PAIR.replace(" w ", " n w ").replace("w.id", "w.f")) == []
    assert late(world, PAIR.replace(" w ON", " (SELECT *, g / f AS q FROM w) w ON").replace("w.id", "w.q")) == []
    # In the key's own order, whatever the join's is; semijoins and the preserved side of outer joins too.
    whole = ", ".join(f"l.{c}" for c in COLUMNS["l"])
    assert late(world, f"SELECT {whole} FROM t JOIN l ON l.f = t.a")[0].endswith("of l by id [2, 1]")
    assert len(late(world, "SELECT * FROM w WHERE f IN (SELECT a FROM t)")) == 1
    assert len(late(world, "SELECT * FROM w LEFT JOIN t ON w.f = t.a")) == 2
    # Loops of linear joins are compiled; and a one-shot query arranges no more than it reads.
    loop = f"WITH RECURSIVE r AS (SELECT a FROM t UNION SELECT {'+'.join(f'w.{h} * 0' for h in FILLS)} FROM r, w"
    assert late(world, f"{loop} WHERE w.f = r.a) SELECT * FROM r") == []
    assert "late" not in explain(world.bound(PAIR).rel, "physical", world.indexes(True))


def test_a_plan_of_first_rows() -> None:
    """Ids are ranked by as many columns as decide ties; then the rows of the first ids are fetched."""
    latest = "SELECT DISTINCT ON (f) * FROM w ORDER BY f, h1 DESC"
    assert explained(Wide(), latest)[:9] == [
        "9 Join linear words [0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, -1]",
        "  7 Arrange key [0] val [1, 2, 3]",
        "    6 Map repeat by count",
        "      5 Reduce top rows",
        "        4 Arrange key [0, 1] val [2, 3, 4, 5, 6, 7, 8, 9]",
        "          3 Map key [#1] words [(#1 is null), order_prefix(#1), (#2 is not null), ~(order_prefix(#2))]"
        " and the row",
        "            2 Project words [0, 1, 4, -1]",
        "              1 Table w",
        "  8 Arrange key [0] val [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] (shared)",
    ]
    assert "Join" not in " ".join(explained(Wide(), latest, Planning(late=Late.OFF)))
    # By the columns before the key's last one, if the order leaves the key out; not without a key, nor for all rows.
    ordered = "SELECT * FROM (SELECT * FROM l ORDER BY h1 LIMIT 3) x"
    assert "Project words [0, 1, 2, 4, -1]" in " ".join(explained(Wide(), ordered))
    assert "Join" not in " ".join(explained(Wide(), ordered.replace(" l ", " n ")))
    numbered = "SELECT *, row_number() OVER (PARTITION BY f ORDER BY h1) AS place FROM w"
    assert "Join" not in " ".join(explained(Wide(), numbered))
    assert "Join" in " ".join(explained(Wide(), f"SELECT * FROM ({numbered}) x WHERE place < 3"))


def test_first_rows_are_ranked_by_ids() -> None:
    """The ranked words of a row do not grow with its columns; changing a column that is not ranked moves no rank."""
    worlds = {}
    for how in (Late.OFF, Late.AUTO):
        world = worlds[how] = Wide()
        world.planning = Planning(late=how)
        world.install(1000, world.bound("SELECT DISTINCT ON (f) * FROM w ORDER BY f, h1 DESC").rel)
        table = world.catalog.relations["w"].id
        world.commit([(table, (i, i % 50, 1, *(i % (80 + k) for k in range(len(FILLS)))), 1) for i in range(2000)])
    eager, lazy = worlds.values()
    assert lazy.view(1000) == eager.view(1000)
    assert held(lazy)["others"] < held(eager)["others"] / 3
    for row in list(lazy.view(1000))[:3]:
        changed = (*row[:5], 1, *row[6:])
        for world in worlds.values():
            world.commit([(table, row, -1), (table, changed, 1)])
        assert lazy.view(1000) == eager.view(1000)
        assert changed in lazy.view(1000)


def filled(rows: int, planning: Planning) -> Wide:
    """Three views over joins of a wide table by different keys."""
    world = Wide()
    world.planning = planning
    for number, key in enumerate(("f", "g", "h0")):
        world.install(1000 + number, world.bound(PAIR.replace("w.f", f"w.{key}")).rel)
    table, small = (world.catalog.relations[name].id for name in "ws")
    world.commit([(table, (i, i % 100, i % 90, *(i % (80 + k) for k in range(len(FILLS)))), 1) for i in range(rows)])
    world.commit([(small, (i, i % 20), 1) for i in range(100)])
    return world


def held(world: Wide) -> dict[str, int]:
    """Bytes per row of the wide table in its own arrangement, and in all others."""
    table = world.catalog.relations["w"].id
    found = arrangements(world.dataflow, world.renderer.stored)
    own = world.renderer.stored[table].arrangements[0,]
    others = [a for a in found if a.reads == (table,) and a.node != own and a.kind == "Arrange"]
    return {"own": sum(a.size for a in found if a.node == own), "others": sum(a.size for a in others)}


def test_wide_columns_are_kept_once() -> None:
    """Three joins store [key | id] three times; another view over other columns stores nothing more of the table."""
    rows = 3000
    eager, lazy = filled(rows, Planning(late=Late.OFF)), filled(rows, DEFAULT)
    assert [lazy.view(v) for v in lazy.views] == [eager.view(v) for v in eager.views]
    assert all(lazy.view(v) for v in lazy.views)
    before, after = held(eager), held(lazy)
    assert before["own"] == after["own"]
    assert before["others"] > 3 * rows * 8 * len(FILLS)
    assert after["others"] < before["others"] / 3
    lazy.install(2000, lazy.bound("SELECT w.g, w.h3, w.h4, w.h5, w.h6, w.h7, w.h8, w.h9, w.h10, w.h11 "
                                  "FROM s JOIN w ON w.f = s.id WHERE s.x = 2").rel)  # fmt: skip
    assert held(lazy) == after
    for view in (1000, 1001, 1002, 2000):
        lazy.renderer.drop_relation(view)
    assert held(lazy) == {"own": after["own"], "others": 0}


def test_a_change_costs_what_it_meets() -> None:
    """A row of the other side costs the ids of its key and a seek for each; columns not shown cost nothing."""
    world = filled(9000, DEFAULT)
    table, small = (world.catalog.relations[name].id for name in "ws")
    before = world.dataflow.counters
    world.commit([(small, (200, 1), 1)])
    world.commit([(small, (7, 7), -1), (small, (7, 1), 1)])
    spent = world.dataflow.counters - before
    found = sum(9000 // n >= 90 for n in (90, 100)) * 100
    assert 180 < spent.matches < 10 * found
    assert spent.seeks < 10 * found
    world.install(3000, world.bound(f"SELECT w.id, {', '.join(f'w.{h}' for h in FILLS[2:])} "
                                    "FROM t JOIN w ON w.f = t.a").rel)  # fmt: skip
    for view in (1000, 1001, 1002):
        world.renderer.drop_relation(view)
    row = (5, 5, 5, *(5 for _ in FILLS))
    before = world.dataflow.counters
    world.commit([(table, row, -1), (table, (5, 5, 5, 1, 2, *row[5:]), 1)])
    spent = world.dataflow.counters - before
    assert (spent.matches, spent.seeks) == (0, 0)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    server = Server(tmp_path)
    client = server.client()
    yield client
    client.close()
    server.close()


ITEMS = (
    "CREATE TABLE item (id int PRIMARY KEY, owner int, a text, b text, c text, d text, e text, f text, g text, h text)"
)
OWNED = "SELECT i.*, o.name FROM item i JOIN owner o ON o.id = i.owner WHERE o.name <> 'nobody'"


def fill(client: Client) -> None:
    client.run(f"{ITEMS}; CREATE TABLE owner (id int PRIMARY KEY, name text)")
    client.run("INSERT INTO owner SELECT i, 'o' || i FROM generate_series(0, 9) i")
    client.run("INSERT INTO item SELECT i, i % 12, 'a' || i, 'b', NULL, 'd', 'e' || i, 'f', 'g', 'h' "
               "FROM generate_series(1, 500) i")  # fmt: skip


def fetching(client: Client, view: str = "owned") -> bool:
    """Whether the view's current dataflow uses late materialization."""
    engine = client.server.coordinator.engine
    found = next(r.id for r in engine.catalog.relations.values() if r.name == view)
    specs = nodes(engine.dataflow)
    paths = [p for n in engine.renderer.stored[found].nodes for p in getattr(specs[n][0], "paths", ())]
    return any(path.late for path in paths)


def test_from_a_client(client: Client) -> None:
    """EXPLAIN says so, the relation of arrangements shows ids only, transactions see their own writes in the view."""
    fill(client)
    lines = [row[0] or "" for row in client.rows(f"EXPLAIN CREATE MATERIALIZED VIEW owned AS {OWNED}")]
    assert [line.strip() for line in lines if "late:" in line] == [
        "late: columns [2, 3, 4, 5, 6, 7, 8, 9] of item by id [0]"
    ]
    client.run(f"CREATE MATERIALIZED VIEW owned AS {OWNED}")
    assert fetching(client)
    size = "SELECT key::text, size FROM freshet.arrangements WHERE reads = '{item}' AND name = 'Arrange'"
    (_, ids), (_, rows) = sorted(client.rows(size), key=lambda row: row[0] != "{owner}")
    assert 3 * int(ids or 0) < int(rows or 0)
    assert client.sorted("SELECT * FROM owned") == client.sorted(OWNED)
    client.run("BEGIN; UPDATE item SET a = 'x', owner = 3 WHERE id < 20; DELETE FROM owner WHERE id = 4")
    client.run("UPDATE item SET id = id + 1000 WHERE id % 7 = 0; INSERT INTO owner VALUES (11, NULL), (12, 'late')")
    changed = client.sorted("SELECT * FROM owned")
    assert changed == client.sorted(OWNED)
    client.run("ROLLBACK")
    assert client.sorted("SELECT * FROM owned") == client.sorted(OWNED) != changed
    client.run("VACUUM FULL")
    client.run("UPDATE item SET c = 'c' WHERE id % 3 = 0; DELETE FROM item WHERE id % 5 = 0")
    assert client.sorted("SELECT * FROM owned") == client.sorted(OWNED)
    assert client.state("SET late_fetch = 'soon'") == "22023"


def test_a_view_keeps_how_it_was_planned(client: Client) -> None:
    """Over a restart, and when a change of a table rebuilds it, whatever the session's setting is then."""
    fill(client)
    server = client.server
    for how in ("auto", "off", "on"):
        client.run(f"SET late_fetch = {how}; CREATE MATERIALIZED VIEW owned_{how} AS {OWNED}")
    narrow = "SELECT i.a, o.name FROM item i JOIN owner o ON o.id = i.owner"
    client.run(f"CREATE MATERIALIZED VIEW narrow AS {narrow}")
    (line,) = client.rows(f"EXPLAIN CREATE MATERIALIZED VIEW v AS {OWNED}")[-1]
    assert line == "planned with late_fetch = on, which is kept with the view"
    client.run("SET late_fetch = off")
    planned = {"owned_auto": True, "owned_off": False, "owned_on": True, "narrow": True}

    def check(other: Client) -> None:
        assert {view: fetching(other, view) for view in planned} == planned
        for view in ("owned_auto", "owned_off", "owned_on"):
            assert other.sorted(f"SELECT id, owner, a, h, name FROM {view}") == other.sorted(
                OWNED.replace("i.*", "i.id, i.owner, i.a, i.h")
            )
        assert other.sorted("SELECT * FROM narrow") == other.sorted(narrow)

    check(client)
    server.restart()
    again = server.client()
    for view in planned:  # a read waits until the view is filled
        again.rows(f"SELECT * FROM {view}")
    check(again)
    again.run("UPDATE item SET owner = 2, a = NULL WHERE id < 50; ALTER TABLE item ADD COLUMN more text DEFAULT 'm'")
    check(again)
    again.close()


def test_without_the_key_rows_are_kept_whole(client: Client) -> None:
    """Dropping the primary key rebuilds the view; equal rows are then counted separately."""
    fill(client)
    client.run(f"CREATE MATERIALIZED VIEW owned AS {OWNED}")
    assert fetching(client)
    client.run("ALTER TABLE item DROP CONSTRAINT item_pkey; INSERT INTO item SELECT * FROM item WHERE id < 9")
    assert client.sorted("SELECT * FROM owned") == client.sorted(OWNED)
    client.run("UPDATE item SET id = 1; DELETE FROM owner WHERE id = 3")
    assert client.sorted("SELECT * FROM owned") == client.sorted(OWNED)


def test_joins_with_every_setting_agree(client: Client) -> None:
    """A view created beside running ones, for each way of joining three tables."""
    fill(client)
    client.run("CREATE TABLE tag (item int, tag text); INSERT INTO tag SELECT i % 600, 't' || i % 3 FROM "
               "generate_series(1, 900) i")  # fmt: skip
    text = "SELECT i.*, o.name, t.tag FROM item i, owner o, tag t WHERE o.id = i.owner AND t.item = i.id"
    for joins in Joins:
        client.run(f"SET join_implementation = {joins.value}; CREATE MATERIALIZED VIEW v_{joins.value} AS {text}")
    for change in (
        "UPDATE item SET e = 'changed' WHERE id % 3 = 1",
        "UPDATE item SET owner = owner + 1, id = id + 500 WHERE id % 5 = 0",
        "DELETE FROM owner WHERE id = 2",
        "INSERT INTO owner VALUES (2, 'back'), (10, 'new')",
        "DELETE FROM tag WHERE tag = 't1'",
    ):
        client.run(change)
        for joins in Joins:
            assert client.sorted(f"SELECT * FROM v_{joins.value}") == client.sorted(text)
