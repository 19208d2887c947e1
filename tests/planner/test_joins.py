"""Delta and worst-case optimal joins: random histories against SQLite, what is stored, what a change costs."""

from __future__ import annotations

import cProfile
import pstats
import random
from collections.abc import Iterator
from functools import reduce
from pathlib import Path

import numpy as np
import pytest

from benchmarks.flow import Tables
from ivm.graph import Arrange, AsOf, Bound, DeltaJoin, Join, Span
from ivm.operators.delta_join import DeltaJoinOperator
from ivm.runtime.operator import Operator
from ivm.words import BOOL, INT8, ColumnType
from planner.distributed.hydration_choice import unsupported_by_spark
from planner.expr.functions.table import function_key
from planner.expr.scalar import Call, Column
from planner.logical.nodes import Join as JoinRel
from planner.logical.nodes import JoinKind, Rel, Values
from planner.logical.traversal import TRUE, conjunction
from planner.lower.join_graph import Attributes, attributes, combination, may_be_cyclic, stages
from planner.lower.plan import lower
from planner.lower.state import KnownIndexes
from planner.options import Joins, Planning
from planner.physical.nodes import Map, Plan
from planner.physical.row_programs import MapFilter
from planner.transform.pipeline import optimize
from sql.bind.statement import bind_statement
from sql.statements import queries
from tests.programs.join_histories import Joined, play, random_band
from tests.support.sessions import Client, Server

TRIANGLES = (
    "SELECT x.src AS a, x.dst AS b, y.dst AS c FROM e x JOIN e y ON y.src = x.dst "
    "JOIN e z ON z.src = x.src AND z.dst = y.dst"
)
CHAIN = "SELECT u.id, k.w FROM t, u, k WHERE t.a = u.id AND u.x = k.p AND u.y = k.q"


@pytest.mark.parametrize("first", [*range(0, 20, 4), 708])
def test_views_equal_sqlite(first: int) -> None:
    """After every commit: maintained as delta joins, as worst-case optimal joins and by choice; and run once."""
    assert sum(play(seed) for seed in range(first, first + 4)) == 4 * 6 * 7


@pytest.mark.parametrize("first", range(0, 16, 4))
def test_joins_on_inequalities_equal_sqlite(first: int) -> None:
    assert sum(play(seed, ask=random_band) for seed in range(first, first + 4)) == 4 * 6 * 7


def plan_of(world: Joined, text: str, joins: Joins = Joins.AUTO, one_shot: bool = False) -> Plan:
    world.planning = Planning(joins)
    return lower(optimize(world.bound(text).rel), world.indexes(one_shot))


def kinds(plan: Plan) -> list[int]:
    """For each delta join, the most arrangements that one of its stages intersects."""
    joins = [node for node in plan.nodes if isinstance(node, DeltaJoin)]
    return [max(len(stage) for path in join.paths for stage in path.stages) for join in joins]


def test_what_the_planner_chooses() -> None:
    """Cycles are intersected; a delta join is chosen if it needs no more arrangements; a setting overrides both."""
    world = Joined()
    assert kinds(plan_of(world, TRIANGLES)) == [2]
    assert kinds(plan_of(world, TRIANGLES, one_shot=True)) == [2]
    assert kinds(plan_of(world, TRIANGLES, Joins.DELTA)) == [1]
    assert kinds(plan_of(world, TRIANGLES, Joins.LINEAR)) == []
    assert kinds(plan_of(world, f"{TRIANGLES} WHERE x.src = 3", one_shot=True)) == []
    assert kinds(plan_of(world, CHAIN)) == [1]
    assert kinds(plan_of(world, CHAIN, one_shot=True)) == []
    assert kinds(plan_of(world, "SELECT 1 FROM t, u, k WHERE t.a = u.id")) == []
    assert kinds(plan_of(world, "SELECT 1 FROM t JOIN u ON t.a = u.id")) == []
    # A shared arrangement by the key serves lookups by the key's first columns.
    arranged = [node for node in plan_of(world, TRIANGLES).nodes if isinstance(node, Arrange)]
    assert sorted(node.gather.words for node in arranged) == [(0, 1), (1, 0)]


def banded(world: Joined, text: str, joins: Joins = Joins.AUTO, one_shot: bool = False) -> list[tuple[object, ...]]:
    """For each join on inequalities, the key and span of each of its lookups."""
    nodes = plan_of(world, text, joins, one_shot).nodes
    return [
        tuple((k.key, k.span) for p in n.paths for k in p.lookups)
        for n in nodes
        if isinstance(n, DeltaJoin) and n.spans
    ]


def test_which_inequalities_are_searched() -> None:
    world = Joined()
    low, high = Bound(0), Bound(1)
    points = (((), Span(None, low, low)), ((), Span(low, high)))
    for once in (False, True):
        assert banded(world, "SELECT 1 FROM t, u WHERE t.a BETWEEN u.x AND u.y", one_shot=once) == [points]
    assert banded(world, "SELECT 1 FROM t LEFT JOIN u ON u.x <= t.a AND NOT t.a > u.y") == [points]
    after = (((), Span(Bound(0, strict=True))), ((), Span(None, Bound(0, strict=True))))
    assert banded(world, "SELECT 1 FROM t, u WHERE t.a < u.x") == [after]
    keyed = (((0,), Span(None, Bound(1), Bound(1))), ((0,), Span(Bound(1), Bound(2))))
    assert banded(world, "SELECT 1 FROM t, k WHERE t.a = k.p AND t.b BETWEEN k.q AND k.w") == [keyed]
    overlap = (((), Span(None, Bound(1, strict=True), Bound(0, strict=True))),) * 2
    assert banded(world, "SELECT 1 FROM u, k WHERE u.x < k.w AND k.q < u.y") == [overlap]
    both = "u.x < v.y AND v.x < u.y"
    for on in (f"{both} AND u.id < v.id", f"u.id < v.id AND {both}", f"v.id < u.id AND {both}"):
        assert banded(world, f"SELECT 1 FROM u, u v WHERE {on}") == [overlap]
    later = (((0,), Span(Bound(1, strict=True))), ((0,), Span(None, Bound(1, strict=True))))
    assert banded(world, "SELECT 1 FROM t, e WHERE t.a = e.src AND t.b < e.dst") == [later]
    # one row by its primary key: equality is enough
    assert banded(world, "SELECT 1 FROM t, u WHERE t.a = u.id AND t.b BETWEEN u.x AND u.y") == []
    assert banded(world, "SELECT 1 FROM t, u WHERE t.a = u.id AND t.b < u.x") == []
    assert banded(world, "SELECT 1 FROM t, u WHERE t.a BETWEEN u.x AND u.y", Joins.LINEAR) == []
    # of three inputs that equalities connect, those with a band; a cycle is intersected
    assert banded(world, "SELECT 1 FROM t, k, e WHERE t.a = k.p AND t.b BETWEEN k.q AND k.w AND e.src = k.q") == [keyed]
    chain = f"{CHAIN} AND t.b BETWEEN u.x AND u.y"
    assert kinds(plan_of(world, chain)) == [1]
    assert banded(world, chain) == []
    assert banded(world, f"{TRIANGLES} WHERE y.dst > x.src AND y.dst < x.dst") == []


def test_spark_refuses_joins_on_inequalities() -> None:
    """A part has the rows of some keys, not those of a range."""
    world = Joined()
    refusal = unsupported_by_spark(plan_of(world, "SELECT 1 FROM t, u WHERE t.a BETWEEN u.x AND u.y"))
    assert refusal is not None
    assert refusal.sqlstate == "0A000"
    assert unsupported_by_spark(plan_of(world, TRIANGLES)) is None


RANGED = "CREATE TABLE {} (r int4range, m int4multirange, x int, d date, s text, u timestamp, n numeric, i inet)"


@pytest.mark.parametrize(
    ("on", "low", "high", "reach"),
    [
        ("a.r && b.r", 0, 2, 2), ("a.r && b.m", 0, 2, 2), ("b.r @> a.x", 1, 2, 1), ("a.x <@ b.m", 1, 2, 1),
        ("a.s BETWEEN b.s AND b.s || '9'", 1, 2, 1), ("a.d BETWEEN b.u AND b.u + interval '1 day'", 1, 2, 1),
        ("a.n < b.x", 1, 1, 0), ("a.x::numeric(9, 3) > b.n", 1, 1, 0), ("a.i < b.i", 0, 0, 0), ("a.r @> b.r", 0, 0, 0),
    ],
)  # fmt: skip
def test_words_that_sort_weakly_are_searched(on: str, low: int, high: int, reach: int) -> None:
    """How many of both lookups have each bound; the condition itself is tested on what they find."""

    plan = ranged(on)
    spans = [k.span for n in plan.nodes if isinstance(n, DeltaJoin) for p in n.paths for k in p.lookups if k.span]
    found = [sum(getattr(span, bound) is not None for span in spans) for bound in ("lower", "upper", "reach")]
    assert found == [low, high, reach]
    programs = [node.program for node in plan.nodes if isinstance(node, Map)]
    assert any(isinstance(program, MapFilter) and program.predicates for program in programs)


def ranged(on: str) -> Plan:
    catalog = Tables((RANGED.format("a"), RANGED.format("b")))
    query = bind_statement(f"SELECT 1 FROM a JOIN b ON {on}", catalog).statement
    assert isinstance(query, queries.Query)
    return lower(optimize(query.rel), KnownIndexes())


def test_a_semijoin_by_one_inequality_is_an_as_of_join() -> None:
    world = Joined()
    for test in ("EXISTS", "NOT EXISTS"):
        for on in ("u.x > t.a", "u.x = t.b AND u.y <= t.a", "u.x IS NOT DISTINCT FROM t.b AND u.y < t.a + 1"):
            nodes = plan_of(world, f"SELECT a FROM t WHERE {test} (SELECT FROM u WHERE {on})").nodes
            assert sum(isinstance(node, AsOf) for node in nodes) == 1
            assert not any(isinstance(node, Join | DeltaJoin) for node in nodes)


def test_recursion_is_linear_unless_it_is_cyclic() -> None:
    world = Joined()
    recursion = "WITH RECURSIVE r(v, w) AS (SELECT src, dst FROM e UNION SELECT r.v, y.dst FROM r, e x, e y WHERE {})"
    line = recursion.format("r.w = x.src AND x.dst = y.src") + " SELECT * FROM r"
    cycle = recursion.format("r.w = x.src AND x.dst = y.dst AND r.v = y.src") + " SELECT * FROM r"
    assert kinds(plan_of(world, line)) == []
    assert kinds(plan_of(world, cycle)) == [2]


def held(world: Joined) -> int:
    """Rows in all arrangements except the views' own."""
    operators: list[Operator] = list(world.dataflow._operators.values())
    outputs = {world.renderer.output(view) for view in world.views}
    return sum(s.count for operator in operators if operator.id not in outputs for s in operator.spines())


def grown(rnd: random.Random, count: int) -> list[tuple[int, int]]:
    """Distinct edges, concentrated on a few nodes."""
    found: dict[tuple[int, int], None] = {}
    while len(found) < count:
        found[int(300 * rnd.random() ** 3), int(300 * rnd.random() ** 3)] = None
    return list(found)


def test_a_triangle_view_keeps_the_edges_only() -> None:
    """Two arrangements of the edges, although paths of two edges are many times more; and what a change costs."""
    world = Joined()
    edges = grown(random.Random(1), 4000)
    table = world.catalog.relations["e"].id
    empty = held(world)
    world.install(1000, world.bound(TRIANGLES).rel)
    world.commit([(table, edge, 1) for edge in edges])
    out = np.bincount([a for a, _ in edges], minlength=300)
    into = np.bincount([b for _, b in edges], minlength=300)
    assert int((out * into).sum()) > 10 * len(edges)
    # The table's own arrangement by whole rows is one of the two.
    assert held(world) - empty == 2 * len(edges)
    for a, b in edges[:20]:
        before = world.dataflow.counters
        world.commit([(table, (a, b), -1)])
        spent = world.dataflow.counters - before
        # Each of the three paths scans the smaller of two neighbourhoods, in a few layers.
        lesser = min(out[a], out[b]) + min(into[a], into[b]) + min(out[a], into[b])
        assert spent.matches + spent.seeks < 20 * lesser + 200
    assert held(world) - empty <= 2 * len(edges) + 40


def test_a_change_costs_what_it_meets() -> None:
    """In a delta join of three tables of thousands of rows, one row of each touches a few."""
    world = Joined()
    world.install(1000, world.bound(CHAIN).rel)
    assert any(isinstance(operator, DeltaJoinOperator) for operator in world.dataflow._operators.values())
    t, u, k = (world.catalog.relations[name].id for name in ("t", "u", "k"))
    world.commit([(u, (i, i % 50, i % 40), 1) for i in range(3000)] + [(t, (i % 3000, i), 1) for i in range(6000)])
    world.commit([(k, (p, q, p + q), 1) for p in range(50) for q in range(40)])
    for change in ((t, (7, 1), 1), (u, (3001, 4, 5), 1), (k, (49, 39, 88), -1)):
        before = world.dataflow.counters
        world.commit([change])
        spent = world.dataflow.counters - before
        assert spent.matches + spent.seeks < 400


def test_ears_and_stages() -> None:
    def of(*edges: str) -> Attributes:
        return Attributes(tuple({ord(a): Column(i, INT8) for i, a in enumerate(edge)} for edge in edges), ())

    for edges in (("ab", "bc", "ca"), ("ab", "bc", "cd", "da"), ("ab", "ac", "bd", "cd", "bc")):
        assert of(*edges).cyclic
    for edges in (("ab", "bc", "cd"), ("ab", "ac", "ad"), ("ab", "bc", "abc"), ("abc", "abd", "ab")):
        assert not of(*edges).cyclic
        assert of(*edges).connected
    assert not of("ab", "bc", "de").connected
    course = stages(0, of("ab", "bc", "ca").of, True, lambda i, key: 0)
    assert [[visit.input for visit in stage] for stage in course] == [[1, 2]]
    course = stages(0, of("ab", "bc", "cd", "da").of, True, lambda i, key: 0)
    assert sorted(len(stage) for stage in course) == [1, 2]


def test_few_equalities_are_not_a_cycle() -> None:
    """What is not asked further is not connected, or not cyclic; random trees and graphs of equalities."""
    draw = random.Random(5)
    asked = 0
    for _ in range(2000):
        count = draw.randint(3, 6)
        inputs = tuple(Values((), (ColumnType(INT8, False),) * 3) for _ in range(count))
        columns = [Column(i, INT8, False) for i in range(3 * count)]
        equalities = draw.randint(count - 2, count + 1)
        pairs = [draw.sample(columns, 2) for _ in range(equalities)]
        on = tuple(Call(function_key("=", (INT8, INT8)), tuple(pair), BOOL, False) for pair in pairs)
        product: Rel = reduce(lambda left, right: JoinRel(JoinKind.INNER, left, right, TRUE), inputs[1:-1], inputs[0])
        joined = JoinRel(JoinKind.INNER, product, inputs[-1], conjunction(on))
        flat = combination(joined)
        assert flat is not None
        found = attributes(flat)
        asked += found.connected and found.cyclic
        assert may_be_cyclic(joined) or not (found.connected and found.cyclic)
    assert asked > 20


def test_a_long_chain_is_looked_at_once() -> None:
    """The work of planning grows with the number of tables, not with its square."""

    def calls(count: int) -> int:
        joins = " ".join(f"JOIN e x{i} ON x{i}.src = x{i - 1}.dst" for i in range(1, count))
        profile = cProfile.Profile()
        profile.enable()
        plan_of(Joined(), f"SELECT x0.src FROM e x0 {joins}", one_shot=True)
        profile.disable()
        return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]

    calls(4)
    assert calls(40) < 6 * calls(10)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    server = Server(tmp_path)
    client = server.client()
    yield client
    client.close()
    server.close()


def test_from_a_client(client: Client) -> None:
    """EXPLAIN names the chosen join and its paths, and the setting forces another."""
    client.run("CREATE TABLE e (src bigint NOT NULL, dst bigint NOT NULL, note text)")
    client.run("INSERT INTO e VALUES (1, 2, 'x'), (2, 3, NULL), (1, 3, 'y'), (1, 3, 'y')")
    for joins, named in (("auto", "wco"), ("wco", "wco"), ("delta", "delta"), ("linear", "linear")):
        client.run(f"SET join_implementation = {joins}")
        lines = [row[0] for row in client.rows(f"EXPLAIN CREATE MATERIALIZED VIEW v AS {TRIANGLES}")]
        assert any(f"Join {named}" in (line or "") for line in lines)
        assert sum("path " in (line or "") for line in lines) == (0 if named == "linear" else 3)
        client.run(f"CREATE MATERIALIZED VIEW v_{joins} AS {TRIANGLES}")
        assert client.rows(f"SELECT * FROM v_{joins}") == [("1", "2", "3")] * 2
        assert client.rows(TRIANGLES) == [("1", "2", "3")] * 2
    client.run("INSERT INTO e VALUES (3, 1, 'back'), (2, 1, NULL)")
    client.run("DELETE FROM e WHERE src = 2 AND dst = 3")
    for joins in ("auto", "wco", "delta", "linear"):
        assert client.sorted(f"SELECT * FROM v_{joins}") == client.sorted(TRIANGLES)
    assert client.state("SET join_implementation = 'hash'") == "22023"


def test_a_view_keeps_how_it_was_planned(client: Client) -> None:
    """Over a restart, and when a change of a table rebuilds it, whatever the session's setting is then."""
    server = client.server
    client.run("CREATE TABLE e (src bigint NOT NULL, dst bigint NOT NULL)")
    client.run("INSERT INTO e VALUES (1, 2), (2, 3), (1, 3)")
    for joins in ("auto", "linear", "delta"):
        client.run(f"SET join_implementation = {joins}; CREATE MATERIALIZED VIEW v_{joins} AS {TRIANGLES}")
    (line,) = client.rows(f"EXPLAIN CREATE MATERIALIZED VIEW v AS {TRIANGLES}")[-1]
    assert line == "planned with join_implementation = delta, which is kept with the view"

    def kinds() -> list[str]:
        """The kind of join of each view."""
        engine = server.coordinator.engine
        stored = {r.name: engine.renderer.stored[r.id] for r in engine.catalog.relations.values() if r.definition}
        specs = [[engine.dataflow._specs[n] for n in stored[name].nodes] for name in sorted(stored)]
        found = [s for nodes in specs for s in nodes if isinstance(s, DeltaJoin | Join)]
        return [type(s).__name__ for s in found]

    planned = kinds()
    assert planned == ["DeltaJoin", "DeltaJoin", "Join", "Join"]
    server.restart()
    again = server.client()
    for joins in ("auto", "linear", "delta"):  # a read waits until the view is filled
        again.rows(f"SELECT * FROM v_{joins}")
    assert kinds() == planned
    again.run("ALTER TABLE e ADD COLUMN note text")
    assert kinds() == planned
    for joins in ("auto", "linear", "delta"):
        assert again.rows(f"SELECT * FROM v_{joins}") == [("1", "2", "3")]
    again.close()
