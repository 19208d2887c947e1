"""Memory is bounded: queries and views over the limit fail with 53200; commits stay durable and the rest goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ivm.budget import Budget, Share
from ivm.errors import SqlError
from sql.catalog.catalog import Catalog, Relation
from sql.engine.failing import Failing
from sql.engine.guard import Bound
from tests.support.sessions import Server

LIMIT = 8 << 20
GROWING = "WITH RECURSIVE r(n) AS (SELECT 1::bigint UNION ALL SELECT 2 * n + d FROM r, (VALUES (0), (1)) v(d))"
CYCLE = "WITH RECURSIVE r(n) AS (SELECT x FROM e UNION ALL SELECT e.y FROM r JOIN e ON e.x = r.n)"
CHAINS = "SELECT x.x AS p, y.x AS q, z.x AS r, z.y AS s FROM e x, e y, e z WHERE x.y = y.x AND y.y = z.x"
OVER = [
    "SELECT a.x, b.x FROM a JOIN b ON a.k = b.k ORDER BY 1",
    "SELECT DISTINCT a.x * 1000 + b.x FROM a, b",
    "SELECT 1 FROM a, a c, b",
    "SELECT a.x, count(DISTINCT b.x) FROM a, b GROUP BY a.x",
    f"{GROWING} SELECT count(*) FROM r",
    "WITH RECURSIVE r(n) AS (SELECT 'x' UNION ALL SELECT n || 'x' FROM r) SELECT max(n) FROM r",
]


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server with a limit of 8 MiB that is checked all the time."""
    monkeypatch.setattr("ivm.runtime.context.LOOK_SECONDS", 0.0)
    for module in ("arrange", "join", "delta_join"):
        monkeypatch.setattr(f"ivm.operators.{module}.LARGE", 1024)
    server = Server(tmp_path_factory.mktemp("memory") / "data", memory=LIMIT)
    client = server.client()
    client.run("CREATE TABLE a (x int, k int)")
    client.run("CREATE TABLE b (x int, k int)")
    client.run("CREATE TABLE e (x int, y int)")
    for table in ("a", "b"):
        client.run(f"INSERT INTO {table} SELECT i, i % 2 FROM generate_series(1, 900) i")
    client.run("CREATE MATERIALIZED VIEW steady AS SELECT k, count(*) AS n FROM a GROUP BY k")
    yield server
    server.close()


@pytest.mark.parametrize("text", OVER)
def test_a_query_over_the_limit_is_refused(server: Server, text: str) -> None:
    client = server.client()
    error = client.error(text)
    assert error.sqlstate == "53200"
    assert "8 MiB" in (error.detail or "")
    assert "--memory" in (error.hint or "")
    assert server.coordinator.budget.taken == 0
    assert client.rows("SELECT count(*) FROM a, b") == [("810000",)]
    assert client.sorted("SELECT * FROM steady") == [("0", "450"), ("1", "450")]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.x, b.x AS y FROM a JOIN b ON a.k = b.k",
        "SELECT a.x, count(DISTINCT b.x) FROM a, b GROUP BY a.x",
        f"{GROWING} SELECT count(*) FROM r",
    ],
)
def test_a_view_over_the_limit_leaves_nothing(server: Server, text: str) -> None:
    client = server.client()
    dataflow = server.coordinator.engine.dataflow
    before = set(dataflow._operators), set(dataflow._root.members)
    assert client.state(f"CREATE MATERIALIZED VIEW v AS {text}") == "53200"
    client.run("INSERT INTO a VALUES (0, 0)")
    assert (set(dataflow._operators), set(dataflow._root.members)) == before
    assert not dataflow.held
    assert server.coordinator.budget.taken == 0
    assert client.state("SELECT * FROM v") == "42P01"
    assert client.sorted("SELECT * FROM steady") == [("0", "451"), ("1", "450")]


def test_a_commit_that_takes_a_view_over_the_limit_stands(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    client = server.client()
    dataflow = server.coordinator.engine.dataflow
    client.run("CREATE TABLE c (x int, k int)")
    client.run("INSERT INTO c VALUES (1, 1), (2, 0)")
    before = set(dataflow._operators)
    client.run("CREATE MATERIALIZED VIEW pairs AS SELECT c.x, b.x AS y FROM c JOIN b ON c.k = b.k")
    client.run("CREATE MATERIALIZED VIEW over AS SELECT y, count(*) AS n FROM pairs GROUP BY y")
    client.run(f"CREATE MATERIALIZED VIEW chains AS {CHAINS}")
    client.run("INSERT INTO c SELECT i, i % 2 FROM generate_series(3, 900) i")
    for view in ("pairs", "over"):
        error = client.error(f"SELECT * FROM {view}")
        assert error.sqlstate == "53200"
        assert "comes back" in (error.hint or "")
    assert client.sorted("SELECT view, sqlstate FROM freshet.view_errors") == [("over", "53200"), ("pairs", "53200")]
    assert client.state("CREATE MATERIALIZED VIEW more AS SELECT count(*) FROM pairs") == "53200"
    assert client.rows("SELECT count(*) FROM c") == [("900",)]
    assert client.sorted("SELECT * FROM steady") == [("0", "450"), ("1", "450")]
    client.run("INSERT INTO e SELECT i, j FROM generate_series(1, 24) i, generate_series(1, 24) j")
    assert client.state("SELECT * FROM chains") == "53200"
    assert set(dataflow._operators) == before, "what is down is not kept up"
    attempts: list[str] = []
    make_anew = Failing._make_anew

    def counted(self: Failing, view: Relation, catalog: Catalog, seconds: float, bound: Bound) -> SqlError | None:
        attempts.append(view.name)
        return make_anew(self, view, catalog, seconds, bound)

    monkeypatch.setattr(Failing, "_make_anew", counted)
    client.run("INSERT INTO b VALUES (901, 1)")
    client.run("CREATE TABLE other (x int)")
    client.run("INSERT INTO other VALUES (1)")
    client.run("UPDATE other SET x = 2")
    assert attempts == [], "nothing went that they read"
    client.run("DELETE FROM c WHERE x = 900")
    assert attempts == ["pairs"]
    server.restart()
    client = server.client()
    assert client.state("SELECT * FROM over") == "53200"
    assert client.rows("SELECT count(*) FROM c") == [("899",)]
    assert client.sorted("SELECT * FROM steady") == [("0", "450"), ("1", "450")]
    client.run("DELETE FROM c WHERE x > 4")
    assert client.rows("SELECT count(*) FROM pairs") == [("1802",)]
    assert client.rows("SELECT count(*), max(n) FROM over") == [("901", "2")]
    assert client.sorted("SELECT view FROM freshet.view_errors") == [("chains",)]
    client.run("DELETE FROM e")
    assert client.rows("SELECT count(*) FROM freshet.view_errors") == [("0",)]
    client.run("INSERT INTO c VALUES (7, 1)")
    for view in ("pairs", "over", "chains", "steady"):
        assert client.rows(f"VERIFY MATERIALIZED VIEW {view}") == []


def test_a_recursion_that_grows_past_the_limit_is_taken_down(server: Server) -> None:
    """It fails on its loop's memory, long before a step's time limit."""
    client = server.client()
    client.run("INSERT INTO e VALUES (1, 2), (2, 3)")
    client.run(f"CREATE MATERIALIZED VIEW round AS {CYCLE} SELECT n, count(*) AS n_ FROM r GROUP BY n")
    client.run("INSERT INTO e VALUES (3, 1)")
    assert client.state("SELECT * FROM round") == "53200"
    client.run("INSERT INTO e SELECT i, i FROM generate_series(9, 40) i")  # enough to fill the memory within a second
    client.run("DELETE FROM e WHERE x = 3")
    assert client.state("SELECT * FROM round") == "53200"
    client.run("DELETE FROM e WHERE x >= 9")
    assert client.sorted("SELECT * FROM round") == [("1", "1"), ("2", "2"), ("3", "2")]
    client.run("INSERT INTO e VALUES (3, 4)")
    assert client.rows("VERIFY MATERIALIZED VIEW round") == []


def test_a_transaction_over_the_limit_is_taken_back(server: Server) -> None:
    client = server.client()
    client.run("CREATE TABLE c (x int, k int)")
    client.run("INSERT INTO c VALUES (1, 1), (2, 0)")
    client.run("CREATE MATERIALIZED VIEW pairs AS SELECT c.x, b.x AS y FROM c JOIN b ON c.k = b.k")
    client.run("BEGIN")
    client.run("INSERT INTO c SELECT i, i % 2 FROM generate_series(3, 900) i")
    assert client.state("SELECT count(*) FROM pairs") == "53200"
    client.run("ROLLBACK")
    assert client.rows("SELECT count(*) FROM pairs") == [("900",)]
    assert client.rows("VERIFY MATERIALIZED VIEW pairs") == []


def test_what_an_operator_refuses_takes_down_its_views_only(server: Server) -> None:
    """Neither the server nor its next start fails: the commit is durable by then."""
    client = server.client()
    client.run("CREATE TABLE s (n int)")
    client.run("CREATE MATERIALIZED VIEW series AS SELECT count(*) AS n FROM s, generate_series(1, s.n) g")
    client.run("INSERT INTO s VALUES (60000000)")
    assert client.state("SELECT * FROM series") == "54000"
    assert client.rows("SELECT count(*) FROM s") == [("1",)]
    server.restart()
    client = server.client()
    assert client.state("SELECT * FROM series") == "54000"
    client.run("INSERT INTO s VALUES (3)")
    client.run("DELETE FROM s WHERE n > 3")
    assert client.rows("SELECT * FROM series") == [("3",)]


def test_a_budget_is_shared() -> None:
    budget = Budget(100)
    one, two = Share(budget), Share(budget)
    assert one.hold(60) is None
    refused = two.hold(50)
    assert refused is not None
    assert "beside" in (refused.detail or "")
    assert two.hold(40) is None
    assert one.hold(61) is not None
    one.release()
    assert budget.taken == 40
    two.release()
    assert budget.taken == 0
    assert Share(Budget()).hold(1 << 60) is None
