"""INSERT, UPDATE and DELETE in WITH: all parts see one snapshot and run once. Answers are PostgreSQL 15's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.sessions import Client, Server


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("with"))
    yield server
    server.close()


@pytest.fixture
def client(shared: Server) -> Iterator[Client]:
    client = shared.client()
    for name in ("a", "b", "log"):
        client.run(f"DROP TABLE IF EXISTS {name} CASCADE")
    client.run("CREATE TABLE a (a int)")
    client.run("INSERT INTO a VALUES (1), (2)")
    client.run("CREATE TABLE b (id int PRIMARY KEY, v text)")
    client.run("INSERT INTO b VALUES (1, 'x'), (2, 'y'), (3, 'z')")
    client.run("CREATE TABLE log (id int, v text)")
    yield client
    client.close()


def test_all_parts_see_what_was_there_before(client: Client) -> None:
    text = """
        WITH i AS (INSERT INTO a VALUES (9) RETURNING a), u AS (UPDATE a SET a = 10 WHERE a = 1 RETURNING a)
        SELECT (SELECT count(*) FROM a), i.*, u.* FROM i, u
    """
    assert client.rows(text) == [("2", "9", "10")]
    assert client.sorted("SELECT * FROM a") == [("10",), ("2",), ("9",)]
    text = "WITH x AS (INSERT INTO a VALUES (70)), y AS (INSERT INTO a VALUES (80)) SELECT count(*) FROM a"
    assert client.rows(text) == [("3",)]
    assert client.rows("SELECT count(*) FROM a") == [("5",)]


def test_rows_move_from_table_to_table(client: Client) -> None:
    text = "WITH d AS (DELETE FROM b WHERE id < 3 RETURNING *) INSERT INTO log SELECT * FROM d RETURNING *"
    assert client.sorted(text) == [("1", "x"), ("2", "y")]
    assert client.rows("SELECT * FROM b") == [("3", "z")]
    assert client.run("WITH x (q) AS (SELECT v FROM log) UPDATE b SET v = q FROM x WHERE q = 'y'") == "UPDATE 1"
    text = "WITH x (q) AS (INSERT INTO a VALUES (7) RETURNING a) UPDATE b SET v = q::text FROM x WHERE id = 3"
    assert client.rows(text + " RETURNING *") == [("3", "7", "7")]
    assert client.state("WITH x AS (INSERT INTO b VALUES (3, 'again')) SELECT 1") == "23505"


def test_a_row_is_changed_by_one_part_only(client: Client) -> None:
    client.run("INSERT INTO a VALUES (2)")
    assert client.run("WITH x AS (DELETE FROM a) DELETE FROM a") == "DELETE 0"
    assert client.rows("SELECT * FROM a") == []
    text = (
        "WITH u AS (UPDATE b SET v = v || '!' RETURNING id), d AS (DELETE FROM b WHERE id = 1) SELECT count(*) FROM u"
    )
    assert client.rows(text) == [("3",)]
    assert client.rows("SELECT * FROM b ORDER BY id") == [("1", "x!"), ("2", "y!"), ("3", "z!")]


def test_what_other_parts_and_foreign_keys_took_away_is_passed_over(client: Client) -> None:
    client.run("CREATE TABLE child (id int, b int REFERENCES b ON DELETE CASCADE)")
    client.run("INSERT INTO child VALUES (1, 1), (2, 1), (3, 2), (3, 2)")
    client.run("CREATE MATERIALIZED VIEW n AS SELECT b, count(*) AS n FROM child GROUP BY b")
    client.run("WITH p AS (DELETE FROM b WHERE id = 1) DELETE FROM child WHERE id > 1")
    assert client.rows("SELECT * FROM child") == []
    assert client.rows("SELECT * FROM n") == []
    text = "WITH i AS (INSERT INTO b VALUES (2, 'new') ON CONFLICT (id) DO UPDATE SET v = excluded.v) "
    client.run(text + "DELETE FROM b WHERE id < 3")
    assert client.rows("SELECT * FROM b ORDER BY id") == [("2", "new"), ("3", "z")]
    client.run("DROP TABLE child CASCADE")


def test_equal_rows_stay_apart(client: Client) -> None:
    text = """
        WITH x AS (INSERT INTO a VALUES (5), (5), (6) RETURNING a),
             y AS (INSERT INTO log SELECT a, 'y' FROM x RETURNING id)
        SELECT sum(id), count(*) FROM y
    """
    assert client.rows(text) == [("16", "3")]
    assert client.rows("WITH x AS (DELETE FROM a WHERE a = 5 RETURNING a) SELECT count(*), min(a) FROM x") == [
        ("2", "5")
    ]


def test_views_follow_and_a_rollback_takes_all_back(client: Client) -> None:
    client.run("CREATE MATERIALIZED VIEW m AS SELECT v, count(*) AS n FROM (TABLE b UNION ALL TABLE log) s GROUP BY v")
    client.run("WITH d AS (DELETE FROM b WHERE id = 1 RETURNING *) INSERT INTO log SELECT id, v || v FROM d")
    assert client.sorted("SELECT * FROM m") == [("xx", "1"), ("y", "1"), ("z", "1")]
    client.run("BEGIN")
    assert client.rows("WITH d AS (DELETE FROM b RETURNING *) SELECT count(*) FROM d") == [("2",)]
    assert client.rows("SELECT * FROM m") == [("xx", "1")]
    client.run("ROLLBACK")
    assert client.sorted("SELECT * FROM m") == [("xx", "1"), ("y", "1"), ("z", "1")]
    assert client.rows("VERIFY MATERIALIZED VIEW m") == []


@pytest.mark.parametrize(
    ("text", "state", "message"),
    [
        ("SELECT * FROM (WITH y AS (DELETE FROM a RETURNING *) SELECT * FROM y) z", "0A000",
         "WITH clause containing a data-modifying statement must be at the top level"),
        ("INSERT INTO a WITH x AS (DELETE FROM a RETURNING *) SELECT * FROM x", "0A000",
         "WITH clause containing a data-modifying statement must be at the top level"),
        ("WITH x AS (DELETE FROM a) SELECT * FROM x", "0A000",
         'WITH query "x" does not have a RETURNING clause'),
        ("WITH RECURSIVE x AS (DELETE FROM a WHERE a IN (SELECT a FROM x) RETURNING *) SELECT * FROM x", "42P19",
         'recursive query "x" must not contain data-modifying statements'),
        ("CREATE VIEW v AS WITH x AS (DELETE FROM a RETURNING *) SELECT * FROM x", "0A000",
         "views must not contain data-modifying statements in WITH"),
        ("CREATE MATERIALIZED VIEW v AS WITH x AS (DELETE FROM a RETURNING *) SELECT * FROM x", "0A000",
         "materialized views must not use data-modifying statements in WITH"),
        ("DECLARE c CURSOR FOR WITH x AS (DELETE FROM a) SELECT 1", "0A000",
         "DECLARE CURSOR must not contain data-modifying statements in WITH"),
    ],
)  # fmt: skip
def test_mistakes(client: Client, text: str, state: str, message: str) -> None:
    error = client.error(text)
    assert (error.sqlstate, error.message) == (state, message)
