"""Changes through views: what they do to the table, what they return, check options and defaults. Answers are
PostgreSQL 15's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.sessions import Client, Server


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("views"))
    yield server
    server.close()


@pytest.fixture
def client(shared: Server) -> Iterator[Client]:
    client = shared.client()
    for name in ("t", "other", "p"):
        client.run(f"DROP TABLE IF EXISTS {name} CASCADE")
    client.run("CREATE TABLE t (a int PRIMARY KEY, b text DEFAULT 'table')")
    client.run("INSERT INTO t VALUES (-1, 'm'), (1, 'x'), (2, 'y')")
    client.run("CREATE VIEW v AS SELECT b AS bb, a * 2 AS twice, a FROM t WHERE a > 0")
    yield client
    client.close()


def test_each_statement_and_what_it_returns(client: Client) -> None:
    client.run("CREATE MATERIALIZED VIEW m AS SELECT count(*), sum(twice) FROM v")
    assert client.rows("INSERT INTO v (bb, a) VALUES ('q', 20) RETURNING *") == [("q", "40", "20")]
    assert client.rows("UPDATE v SET bb = bb || twice, a = a + 1 WHERE twice = 40 RETURNING twice, a, bb") == [
        ("42", "21", "q40")
    ]
    assert client.rows("DELETE FROM v WHERE a = 21 RETURNING v.bb, twice") == [("q40", "42")]
    assert client.run("DELETE FROM v WHERE a = -1") == "DELETE 0"
    client.run("CREATE TABLE other (k int, w text)")
    client.run("INSERT INTO other VALUES (2, 'two')")
    text = "UPDATE v SET bb = w FROM other WHERE k = a RETURNING v.*, other.*, (SELECT count(*) FROM t)"
    assert client.rows(text) == [("two", "4", "2", "2", "two", "3")]
    assert client.rows("DELETE FROM v USING other WHERE k = a RETURNING bb, w") == [("two", "two")]
    assert client.rows("SELECT * FROM m") == [("1", "2")]
    assert client.rows("VERIFY MATERIALIZED VIEW m") == []


def test_on_conflict_and_merge(client: Client) -> None:
    text = "INSERT INTO v (a) VALUES (2) ON CONFLICT (a)"
    text += " DO UPDATE SET bb = excluded.bb || v.bb || excluded.twice, a = v.twice"
    assert client.rows(text + " WHERE v.twice = 4 RETURNING *") == [("tabley4", "8", "4")]
    text = """
        MERGE INTO v USING (VALUES (1, 'one'), (9, 'nine')) n (k, w) ON a = k WHEN MATCHED THEN UPDATE SET bb = w
        WHEN NOT MATCHED THEN INSERT (bb, a) VALUES (w, k) WHEN NOT MATCHED BY SOURCE THEN DELETE
        RETURNING merge_action(), v.*
    """
    assert client.sorted(text) == [
        ("DELETE", "tabley4", "8", "4"), ("INSERT", "nine", "18", "9"), ("UPDATE", "one", "2", "1"),
    ]  # fmt: skip
    assert client.sorted("SELECT a FROM t") == [("-1",), ("1",), ("9",)]


def test_views_over_views_with_check_options(client: Client) -> None:
    client.run("CREATE VIEW v1 AS SELECT * FROM t WHERE a > 0 WITH LOCAL CHECK OPTION")
    client.run("CREATE VIEW v2 AS SELECT b, a FROM v1 WHERE a < 10")
    client.run("CREATE VIEW v3 (x, y) AS SELECT a, b FROM v2 WHERE a <> 5 WITH CHECK OPTION")
    for text, view, row in (
        ("INSERT INTO v1 VALUES (-5, 'n')", "v1", "(-5, n)"),
        ("INSERT INTO v3 VALUES (10, 'n')", "v2", "(10, n)"),
        ("UPDATE v3 SET x = 5 WHERE x = 1", "v3", "(5, x)"),
        ("INSERT INTO v3 VALUES (-5, 'n')", "v1", "(-5, n)"),
        ("MERGE INTO v3 USING (VALUES (1)) n (k) ON k = x WHEN MATCHED THEN UPDATE SET x = 50", "v2", "(50, x)"),
        ("INSERT INTO v3 VALUES (1, 'n') ON CONFLICT (x) DO UPDATE SET x = 11", "v2", "(11, x)"),
    ):
        error = client.error(text)
        assert (error.sqlstate, error.message, error.detail) == (
            "44000", f'new row violates check option for view "{view}"', f"Failing row contains {row}.",
        )  # fmt: skip
    assert client.run("INSERT INTO v2 VALUES ('far', 50)") == "INSERT 0 1"
    client.run("ALTER VIEW v3 SET (check_option = local)")
    assert client.run("INSERT INTO v3 VALUES (51, 'far')") == "INSERT 0 1"
    client.run("ALTER VIEW v3 RESET (check_option)")
    assert client.state("INSERT INTO v3 VALUES (-5, 'n')") == "44000"
    assert client.rows("SELECT check_option, is_updatable FROM information_schema.views WHERE table_name = 'v1'") == [
        ("LOCAL", "YES")
    ]


def test_a_condition_with_a_subquery_is_checked(client: Client) -> None:
    client.run("CREATE TABLE other (k int)")
    client.run("INSERT INTO other VALUES (1), (30)")
    client.run("CREATE VIEW w AS SELECT * FROM t WHERE a IN (SELECT k FROM other) WITH CHECK OPTION")
    assert client.run("INSERT INTO w VALUES (30, 'in')") == "INSERT 0 1"
    assert client.state("INSERT INTO w VALUES (31, 'out')") == "44000"
    assert client.rows("SELECT count(*) FROM t WHERE a > 29") == [("1",)]
    assert client.rows("UPDATE w SET b = 'z' RETURNING a") == [("1",), ("30",)]


def test_defaults_of_views(client: Client) -> None:
    client.run("ALTER VIEW v ALTER COLUMN bb SET DEFAULT 'view'")
    assert client.rows("INSERT INTO v (a) VALUES (5) RETURNING bb") == [("view",)]
    assert client.rows("INSERT INTO v (bb, a) VALUES (DEFAULT, 6), ('given', 7) RETURNING bb") == [
        ("view",),
        ("given",),
    ]
    assert client.rows("UPDATE v SET bb = DEFAULT WHERE a = 7 RETURNING bb") == [("view",)]
    client.run("ALTER VIEW v ALTER bb DROP DEFAULT")
    assert client.rows("INSERT INTO v (a) VALUES (8) RETURNING bb") == [("table",)]


def test_partitions_and_tableoid(client: Client) -> None:
    client.run("CREATE TABLE p (k int, w text) PARTITION BY RANGE (k)")
    client.run("CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)")
    client.run("CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20)")
    client.run("CREATE VIEW pv AS SELECT w, k, k + 1 AS next FROM p WHERE k < 15 WITH CHECK OPTION")
    assert client.rows("INSERT INTO pv VALUES ('a', 3) RETURNING *") == [("a", "3", "4")]
    assert client.rows("UPDATE pv SET k = k + 10 RETURNING k, next") == [("13", "14")]
    assert client.rows("SELECT * FROM p2") == [("13", "a")]
    assert client.state("UPDATE pv SET k = 17") == "44000"
    assert client.rows("DELETE FROM pv RETURNING next") == [("14",)]


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ("SELECT DISTINCT a FROM t", "Views containing DISTINCT are not automatically updatable."),
        ("SELECT a FROM t GROUP BY a", "Views containing GROUP BY are not automatically updatable."),
        ("SELECT 1 AS a FROM t HAVING true", "Views containing HAVING are not automatically updatable."),
        (
            "SELECT a FROM t UNION SELECT 1",
            "Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable.",
        ),
        ("WITH w AS (SELECT 1) SELECT a FROM t", "Views containing WITH are not automatically updatable."),
        ("SELECT a FROM t LIMIT 3", "Views containing LIMIT or OFFSET are not automatically updatable."),
        (
            "SELECT t.a FROM t, t u",
            "Views that do not select from a single table or view are not automatically updatable.",
        ),
        ("SELECT max(a) AS a FROM t", "Views that return aggregate functions are not automatically updatable."),
        ("SELECT rank() OVER (), a FROM t", "Views that return window functions are not automatically updatable."),
        ("SELECT a + 1 AS a FROM t", "Views that have no updatable columns are not automatically updatable."),
    ],
)  # fmt: skip
def test_views_that_cannot_be_changed(client: Client, query: str, detail: str) -> None:
    client.run(f"CREATE VIEW w AS {query}")
    for text, message in (
        ("INSERT INTO w (a) VALUES (1)", 'cannot insert into view "w"'),
        ("UPDATE w SET a = 1", 'cannot update view "w"'), ("DELETE FROM w", 'cannot delete from view "w"'),
    ):  # fmt: skip
        error = client.error(text)
        assert (error.sqlstate, error.message, error.detail) == ("55000", message, detail)
    error = client.error(f"CREATE VIEW x AS {query} WITH CHECK OPTION")
    assert (error.sqlstate, error.hint) == ("0A000", detail)


def test_computed_columns(client: Client) -> None:
    detail = "View columns that are not columns of their base relation are not updatable."
    for text, message in (
        ("UPDATE v SET twice = 4", 'cannot update column "twice" of view "v"'),
        ("INSERT INTO v VALUES ('a', 4)", 'cannot insert into column "twice" of view "v"'),
    ):
        error = client.error(text)
        assert (error.sqlstate, error.message, error.detail) == ("0A000", message, detail)
    client.run("CREATE VIEW w AS SELECT a, a AS again FROM t")
    assert client.error("UPDATE w SET a = 3, again = 4").message == 'multiple assignments to same column "a"'
    assert client.rows("INSERT INTO w (again) VALUES (44) RETURNING *") == [("44", "44")]


def test_options_survive_a_restart(tmp_path_factory: pytest.TempPathFactory) -> None:
    server = Server(tmp_path_factory.mktemp("restart"))
    try:
        client = server.client()
        client.run("CREATE TABLE t (a int, b text)")
        client.run("CREATE VIEW v WITH (security_barrier) AS SELECT * FROM t WHERE a > 0 WITH CHECK OPTION")
        client.run("ALTER VIEW v ALTER b SET DEFAULT 'kept'")
        server.restart()
        client = server.client()
        assert client.state("INSERT INTO v VALUES (-1)") == "44000"
        assert client.rows("INSERT INTO v (a) VALUES (1) RETURNING *") == [("1", "kept")]
        options = "SELECT reloptions FROM pg_class WHERE relname = 'v'"
        assert client.rows(options) == [("{security_barrier=true,check_option=cascaded}",)]
    finally:
        server.close()


def test_a_check_option_in_another_schema(client: Client) -> None:
    client.run("CREATE SCHEMA elsewhere; SET search_path = elsewhere; CREATE TABLE base (a int)")
    client.run("CREATE VIEW positive AS SELECT a FROM base WHERE a > 0 WITH CHECK OPTION")
    assert client.state("INSERT INTO positive VALUES (-1)") == "44000"
