"""Equal subplans share a node and an arrangement; dropping a view drops what it alone used; users can see all that."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from ivm.inspect import nodes
from planner.render.holdings import arrangements
from tests.planner.test_views import changes
from tests.support.planner_bench import World
from tests.support.planner_queries import LOOPS, NESTED, PLAIN, TABLES
from tests.support.sessions import Client, Server


@pytest.mark.parametrize("seed", range(3))
def test_what_views_used_goes_with_them(seed: int) -> None:
    """Views are created and dropped in any order: exactly the nodes, bytes and names that the rest need remain."""
    rnd = random.Random(seed)
    world = World(TABLES)
    for _ in range(4):
        world.commit(changes(world, rnd))
    queries = list((PLAIN | NESTED | LOOPS).values())
    empty = state(world)
    alone: dict[int, tuple[int, int]] = {}
    for view in rnd.sample(range(len(queries)), 12):
        world.install(100 + view, queries[view])
        alone[view] = (len(nodes(world.dataflow)) - empty[0], held(world) - empty[1])
        world.install(500 + view, queries[view])
        assert len(set(world.renderer.stored[500 + view].nodes) - set(world.renderer.stored[100 + view].nodes)) <= 2
        world.renderer.drop_relation(500 + view)
        world.renderer.drop_relation(100 + view)
        assert state(world) == empty
    for view in alone:
        world.install(100 + view, queries[view])
    together = len(nodes(world.dataflow)) - empty[0]
    assert together < sum(made for made, _ in alone.values())
    world.views.clear()
    for view in rnd.sample(sorted(alone), len(alone)):
        mine = set(world.renderer.stored[100 + view].nodes)
        others = {n for v, s in world.renderer.stored.items() if v != 100 + view for n in (*s.nodes, s.rows)}
        world.renderer.drop_relation(100 + view)
        assert not (mine - others) & set(nodes(world.dataflow))
        assert others <= set(nodes(world.dataflow))
        world.commit([])
    assert state(world) == empty


def held(world: World) -> int:
    return sum(a.size for a in arrangements(world.dataflow, world.renderer.stored))


def state(world: World) -> tuple[int, int, int, int]:
    """Nodes, bytes, and the names that the renderer knows."""
    return len(nodes(world.dataflow)), held(world), len(world.renderer.known), len(world.renderer.loops)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("data"))
    yield server
    server.close()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    client = server.client()
    client.run("CREATE TABLE cust (id int PRIMARY KEY, city text)")
    client.run("CREATE TABLE orders (id int PRIMARY KEY, cust int, amt int NOT NULL)")
    client.run("INSERT INTO cust SELECT i, 'city' || i % 5 FROM generate_series(1, 100) g(i)")
    client.run("INSERT INTO orders SELECT i, i % 100 + 1, i % 7 FROM generate_series(1, 1000) g(i)")
    yield client
    client.run("DROP TABLE cust, orders CASCADE")
    client.close()


SPENT = "SELECT c.city, sum(o.amt) AS total FROM cust c JOIN orders o ON o.cust = c.id GROUP BY c.city"
ASK = "SELECT name, relation, key, reads, records, users FROM freshet.arrangements ORDER BY operator_id"


def test_arrangements_are_shown_with_their_users(client: Client) -> None:
    before = client.rows(ASK)
    assert before == [
        ("Arrange", "cust", "{id}", "{cust}", "100", "{cust_pkey}"),
        ("Arrange", "orders", "{id}", "{orders}", "1000", "{orders_pkey}"),
    ]
    client.run(f"CREATE MATERIALIZED VIEW a AS {SPENT}")
    client.run(f"CREATE MATERIALIZED VIEW b AS SELECT * FROM ({SPENT}) q WHERE total > 30")
    found = client.rows(ASK)
    assert ("Arrange", "cust", "{id}", "{cust}", "100", "{cust_pkey,a,b}") in found
    assert ("Arrange", None, "{cust}", "{orders}", "700", "{a,b}") in found
    assert ("Output", "a", "{}", "{cust,orders}", "5", "{a}") in found
    client.run("CREATE INDEX by_total ON a (total)")
    assert ("Arrange", "a", "{total}", "{a}", "5", "{by_total}") in client.rows(ASK)
    views = client.rows("SELECT view, status, hydrated, records, shared > 5, own_size < size FROM freshet.views")
    assert views == [("a", "running", "t", "5", "t", "t"), ("b", "running", "t", "5", "t", "t")]
    client.run("INSERT INTO orders VALUES (5000, 1, 3)")
    assert ("Arrange", None, "{cust}", "{orders}", "700", "{a,b}") in [(*r[:4], "700", r[5]) for r in client.rows(ASK)]
    client.run("DELETE FROM orders WHERE id = 5000")
    client.run("DROP MATERIALIZED VIEW a")
    assert ("Arrange", None, "{cust}", "{orders}", "700", "{b}") in [(*r[:4], "700", r[5]) for r in client.rows(ASK)]
    client.run("DROP MATERIALIZED VIEW b")
    assert [row[:4] for row in client.rows(ASK)] == [row[:4] for row in before]


def test_arrangements_in_loops_are_shown(client: Client) -> None:
    client.run(
        "CREATE MATERIALIZED VIEW r AS WITH RECURSIVE r(a, b) AS (SELECT id, cust FROM orders UNION "
        "SELECT r.a, o.cust FROM r JOIN orders o ON r.b = o.id) SELECT * FROM r"
    )
    rows = client.rows("SELECT in_loop, count(*) > 0, sum(size) > 0, bool_and('r' = ANY (users)) FROM "
                       "freshet.arrangements WHERE 'r' = ANY (users) GROUP BY in_loop ORDER BY 1")  # fmt: skip
    assert rows == [("f", "t", "t", "t"), ("t", "t", "t", "t")]


def test_explain_says_what_is_shared(client: Client) -> None:
    """Before a view is created: which of its operators exist already, and which views own them."""
    explain = f"EXPLAIN CREATE MATERIALIZED VIEW b AS SELECT * FROM ({SPENT}) q WHERE total > 30"
    before = [row[0] for row in client.rows(explain)]
    assert before[-1] == "shared: 1 of 10 operators, 1 of 3 arrangements, with cust"
    client.run(f"CREATE MATERIALIZED VIEW a AS {SPENT}")
    lines = [row[0] or "" for row in client.rows(explain)]
    assert lines[-1] == "shared: 9 of 10 operators, 3 of 3 arrangements, with cust, a"
    (reduce,) = [line for line in lines if "Reduce accumulate" in line]
    assert reduce.endswith("(shared: a)")
    assert not any("shared" in line for line in lines[:-1] if "filter" in line)
    count = len(nodes(client.server.coordinator.engine.dataflow))
    client.run("CREATE MATERIALIZED VIEW b AS" + explain.partition(" AS")[2])
    assert len(nodes(client.server.coordinator.engine.dataflow)) == count + 10 - 9 + 2  # and two Outputs: rows, errors
    assert [row[0] for row in client.rows(explain)][-1].startswith("shared: 10 of 10 operators")


def test_explain_of_a_loop_and_of_constants_says_what_is_shared(client: Client) -> None:
    loop = (
        "CREATE MATERIALIZED VIEW {} AS WITH RECURSIVE r(a, b) AS (SELECT id, cust FROM orders UNION "
        "SELECT r.a, o.cust FROM r JOIN orders o ON r.b = o.id) "
        "SELECT * FROM r JOIN (VALUES (1, 'new')) v(x, y) ON a = x"
    )
    size = len(client.server.coordinator.engine.dictionary)
    first = [row[0] for row in client.rows("EXPLAIN " + loop.format("r"))][-1]
    assert len(client.server.coordinator.engine.dictionary) == size
    assert first is not None
    assert first.endswith("with orders")
    client.run(loop.format("r"))
    lines = [row[0] or "" for row in client.rows("EXPLAIN " + loop.format("s"))]
    assert lines[-1].endswith("with orders, r")
    assert all("(shared: r)" in line for line in lines if "Variable" in line or "Constants" in line)


@pytest.mark.parametrize("on", ["y.dst = x.src AND y.src = x.n", "x.n = y.src AND x.src = y.dst"])
def test_a_join_by_all_columns_reads_the_table_as_it_lies(client: Client, on: str) -> None:
    """The key has the columns in the table's order, whatever the order of the conditions."""
    client.run("DROP TABLE IF EXISTS pair CASCADE")
    client.run("CREATE TABLE pair (src int NOT NULL, dst int NOT NULL)")
    plan = [row[0] or "" for row in client.rows(
        f"EXPLAIN CREATE MATERIALIZED VIEW j AS"
        f" SELECT x.src FROM (SELECT src, count(*) AS n FROM pair GROUP BY src) x JOIN pair y ON {on}"
    )]  # fmt: skip
    assert any("Arrange key [0, 1] val [] (shared: pair)" in line for line in plan), plan
