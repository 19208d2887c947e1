"""INSERT … ON CONFLICT as PostgreSQL 15 does it: DO NOTHING, DO UPDATE, its target and its errors."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator

import pytest

from tests.support.sessions import Client, Server

MATCHING = "matching the ON CONFLICT specification"
OF = 'of relation "t"'


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    client = server.client()
    client.run("CREATE TABLE t (a int PRIMARY KEY, b int DEFAULT 5)")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(b) AS s FROM t")
    client.run("INSERT INTO t VALUES (1, 1), (2, 2)")
    yield client
    client.results("ROLLBACK")
    client.run("DROP TABLE t CASCADE")
    client.close()


def test_a_row_that_is_there_is_changed(client: Client) -> None:
    text = "INSERT INTO t VALUES (3, 30), (1, 10), (4, 40) ON CONFLICT (a) DO UPDATE SET b = t.b + excluded.b"
    assert client.rows(f"{text} RETURNING *") == [("3", "30"), ("1", "11"), ("4", "40")]
    assert client.sorted("SELECT * FROM t") == [("1", "11"), ("2", "2"), ("3", "30"), ("4", "40")]
    assert client.run(text.replace("(3, 30), (1, 10), ", "")) == "INSERT 0 1"
    assert client.rows("SELECT * FROM v") == [("4", "123")]
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []
    assert client.run("INSERT INTO t (a) VALUES (2) ON CONFLICT (a) DO UPDATE SET b = DEFAULT") == "INSERT 0 1"
    assert client.run("INSERT INTO t VALUES (2, 7) ON CONFLICT (a) DO UPDATE SET (a, b) = (9, excluded.b)")
    assert client.sorted("SELECT * FROM t WHERE a IN (2, 9)") == [("9", "7")]


def test_where_leaves_rows_alone(client: Client) -> None:
    text = "INSERT INTO t AS o VALUES (1, 5), (2, 5), (3, 5) ON CONFLICT (a) DO UPDATE SET b = excluded.b WHERE o.b > 1"
    assert client.rows(f"{text} RETURNING a, b") == [("2", "5"), ("3", "5")]
    assert client.sorted("SELECT * FROM t") == [("1", "1"), ("2", "5"), ("3", "5")]
    assert client.run("INSERT INTO t VALUES (1, 2), (1, 3) ON CONFLICT (a) DO UPDATE SET b = 0 WHERE false") == (
        "INSERT 0 0"
    )


def test_a_source_may_be_a_query(client: Client) -> None:
    client.run("INSERT INTO t SELECT i, i FROM generate_series(1, 500) i ON CONFLICT (a) DO UPDATE SET b = -excluded.b")
    assert client.rows("SELECT count(*), min(b), max(b) FROM t") == [("500", "-2", "500")]
    assert client.run("INSERT INTO t SELECT i, i FROM generate_series(400, 600) i ON CONFLICT DO NOTHING") == (
        "INSERT 0 100"
    )
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []


def test_the_transactions_own_rows_count(client: Client) -> None:
    client.run("BEGIN")
    for _ in range(3):
        client.run("INSERT INTO t VALUES (7, 1) ON CONFLICT (a) DO UPDATE SET b = t.b + 1")
    client.run("DELETE FROM t WHERE a = 1")
    client.run("INSERT INTO t VALUES (1, 100) ON CONFLICT (a) DO UPDATE SET b = -1")
    assert client.sorted("SELECT * FROM t") == [("1", "100"), ("2", "2"), ("7", "3")]
    client.run("ROLLBACK")
    assert client.sorted("SELECT * FROM t") == [("1", "1"), ("2", "2")]


def test_keys_with_equality_classes(client: Client) -> None:
    client.run("CREATE TABLE k (x numeric, y float8, n int, PRIMARY KEY (x, y))")
    client.run("INSERT INTO k VALUES (1.0, 0, 1)")
    client.run("INSERT INTO k VALUES (1.00, '-0', 2) ON CONFLICT (y, x) DO UPDATE SET n = excluded.n")
    assert client.rows("SELECT * FROM k") == [("1.0", "0", "2")]
    client.run("DROP TABLE k")


@pytest.mark.parametrize(
    ("text", "state", "message"),
    [
        ("(zz) DO NOTHING", "42703", 'column "zz" does not exist'),
        ("(b) DO NOTHING", "42P10", f"there is no unique or exclusion constraint {MATCHING}"),
        ("DO UPDATE SET b = 1", "42601", "ON CONFLICT DO UPDATE requires inference specification or constraint name"),
        ("(a) DO UPDATE SET b = b + 1", "42702", 'column reference "b" is ambiguous'),
        ("(a) DO UPDATE SET zz = 1", "42703", 'column "zz" of relation "t" does not exist'),
        ("ON CONSTRAINT x DO NOTHING", "42704", 'constraint "x" for table "t" does not exist'),
        ("(a) DO UPDATE SET a = NULL", "23502", f'null value in column "a" {OF} violates not-null constraint'),
        ("(a) DO UPDATE SET a = 2", "23505", 'duplicate key value violates unique constraint "t_pkey"'),
        ("(a) DO UPDATE SET b = 1/0", "22012", "division by zero"),
        ("((a + 1)) DO NOTHING", "42P10", f"there is no unique or exclusion constraint {MATCHING}"),
    ],
)
def test_mistakes(client: Client, text: str, state: str, message: str) -> None:
    error = client.error(f"INSERT INTO t VALUES (1, 2) ON CONFLICT {text}")
    assert (error.sqlstate, error.message) == (state, message)
    assert client.sorted("SELECT * FROM t") == [("1", "1"), ("2", "2")]


@pytest.mark.parametrize("rows", ["(1, 2), (1, 3)", "(3, 1), (3, 2)"])
def test_no_row_is_changed_twice(client: Client, rows: str) -> None:
    error = client.error(f"INSERT INTO t VALUES {rows} ON CONFLICT (a) DO UPDATE SET b = excluded.b")
    assert error.sqlstate == "21000"
    assert error.message == "ON CONFLICT DO UPDATE command cannot affect row a second time"
    assert client.sorted("SELECT * FROM t") == [("1", "1"), ("2", "2")]
    on_constraint = "ON CONFLICT ON CONSTRAINT t_pkey DO UPDATE SET b = excluded.b"
    assert client.run(f"INSERT INTO t VALUES (1, 8) {on_constraint}") == "INSERT 0 1"


def test_do_update_reads_subqueries(client: Client) -> None:
    text = "WITH w AS (SELECT 1 AS a, 70 AS b) INSERT INTO t VALUES (1, 3) ON CONFLICT (a) DO UPDATE SET (b, a) ="
    assert client.rows(f"{text} (SELECT b, a FROM w) RETURNING *") == [("1", "70")]
    text = "INSERT INTO t VALUES (3, 30), (2, 5), (1, 9) ON CONFLICT (a) DO UPDATE SET"
    assert client.rows(f"{text} b = (SELECT i.b + excluded.b FROM t i WHERE i.a = t.a) RETURNING *") == [
        ("3", "30"), ("2", "7"), ("1", "79"),
    ]  # fmt: skip
    assert client.rows(f"{text} b = (SELECT sum(i.b) FROM t i WHERE i.a < excluded.a), a = t.a RETURNING *") == [
        ("3", "86"), ("2", "79"), ("1", None),
    ]  # fmt: skip
    where = "WHERE EXISTS (SELECT FROM t i WHERE i.b = t.b AND i.a > 2)"
    assert client.rows(f"{text} b = 0 {where} RETURNING *") == [("3", "0")]
    assert client.rows(f"{text} b = 1 WHERE t.a IN (SELECT 2) OR excluded.b = ALL (SELECT 9) RETURNING a") == [
        ("2",), ("1",),
    ]  # fmt: skip
    assert client.state(f"{text} b = (SELECT b FROM t)") == "21000"
    assert client.sorted("SELECT * FROM t") == [("1", "1"), ("2", "1"), ("3", "0")]
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []


Change = Callable[[dict[int, int], int, int], int | None]
CHANGES: tuple[tuple[str, Change], ...] = (
    ("UPDATE t SET b = b + {n} WHERE a = {k}", lambda t, k, n: t[k] + n if k in t else None),
    ("INSERT INTO t VALUES ({k}, {n}) ON CONFLICT (a) DO UPDATE SET b = t.b * 2 + excluded.b",
     lambda t, k, n: t[k] * 2 + n if k in t else n),
    ("UPDATE t SET b = -b WHERE a BETWEEN {k} AND {k}", lambda t, k, n: -t[k] if k in t else None),
    ("MERGE INTO t USING (VALUES ({k}, {n})) s (k, n) ON a = k WHEN MATCHED THEN UPDATE SET b = b - n "
     "WHEN NOT MATCHED THEN INSERT VALUES (k, n)", lambda t, k, n: t[k] - n if k in t else n),
    ("DELETE FROM t WHERE a = {k}", lambda t, k, n: None),
)  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_a_transaction_sees_its_own_changes_whichever_way_they_were_made(client: Client, seed: int) -> None:
    rnd, held = random.Random(seed), {1: 1, 2: 2}
    for _ in range(20):
        client.run("BEGIN")
        for _ in range(rnd.randint(2, 6)):
            (text, change), k, n = rnd.choice(CHANGES), rnd.randint(1, 3), rnd.randint(-9, 9)
            client.run(text.format(k=k, n=n))
            new = change(held, k, n)
            held.pop(k, None)
            if new is not None:
                held[k] = new
        client.run("COMMIT")
        assert client.sorted("SELECT * FROM t") == sorted((str(k), str(v)) for k, v in held.items())
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []


@pytest.mark.parametrize("seed", range(3))
def test_a_taken_key_is_seen_however_the_row_came_or_went(client: Client, seed: int) -> None:
    rnd, held = random.Random(seed), {1, 2}
    for _ in range(25):
        client.run("BEGIN")
        before = set(held)
        for _ in range(rnd.randint(1, 6)):
            k, n = rnd.randint(1, 4), rnd.randint(0, 9)
            client.run("SAVEPOINT s")
            if rnd.random() < 0.3:
                client.run(f"DELETE FROM t WHERE a = {k}")
                held.discard(k)
            elif k in held:
                assert client.state(f"INSERT INTO t VALUES ({k}, {n})") == "23505"
                client.run("ROLLBACK TO s")
            else:
                client.run(f"INSERT INTO t VALUES ({k}, {n})")
                if rnd.random() < 0.3:
                    client.run("ROLLBACK TO s")
                else:
                    held.add(k)
        if rnd.random() < 0.2:
            client.run("ROLLBACK")
            held = before
        else:
            client.run("COMMIT")
        assert client.sorted("SELECT a FROM t") == sorted((str(k),) for k in held)


def test_clients_at_once_lose_no_change(server: Server, client: Client) -> None:
    others = [server.client() for _ in range(4)]
    texts = (
        "UPDATE t SET b = b + 1 WHERE a = 1",
        "INSERT INTO t VALUES (1, 0) ON CONFLICT (a) DO UPDATE SET b = t.b + 1",
    )

    async def together() -> None:
        await asyncio.gather(*(other.work(texts[i % 2]) for i, other in enumerate(others)))

    for _ in range(40):
        server.run(together())
    assert client.rows("SELECT b FROM t WHERE a = 1") == [("161",)]
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []
    for other in others:
        other.close()


def test_returning_reads_what_was_there_before(client: Client) -> None:
    text = "RETURNING a, (SELECT count(*) FROM t), (SELECT i.b FROM t i WHERE i.a = t.a)"
    assert client.rows(f"INSERT INTO t VALUES (5, 5), (4, NULL) {text}") == [("5", "2", None), ("4", "2", None)]
    assert client.rows(f"UPDATE t SET b = 50 WHERE a > 3 {text}, b IN (SELECT 50)") in (
        [("5", "4", "5", "t"), ("4", "4", None, "t")],
        [("4", "4", None, "t"), ("5", "4", "5", "t")],
    )
    exists = "EXISTS (SELECT FROM t i WHERE i.a = t.a)"
    assert client.rows(f"DELETE FROM t WHERE a = 1 RETURNING a, {exists}, (SELECT sum(b) FROM t)") == [
        ("1", "t", "103")
    ]
    text = "INSERT INTO t VALUES (5, 0) ON CONFLICT (a) DO UPDATE SET b = (SELECT -b FROM t i WHERE i.a = excluded.a)"
    assert client.rows(f"WITH c AS ({text} RETURNING b, (SELECT max(b) FROM t)) SELECT * FROM c") == [("-50", "50")]
    assert client.rows("UPDATE t SET b = 0 WHERE false RETURNING (SELECT 1)") == []
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []


def test_subqueries_in_a_transaction_see_its_own_rows(client: Client) -> None:
    client.run("BEGIN")
    client.run("INSERT INTO t VALUES (8, 80)")
    assert client.rows("INSERT INTO t VALUES (9, 1) RETURNING (SELECT sum(b) FROM t)") == [("83",)]
    text = "INSERT INTO t VALUES (8, 0) ON CONFLICT (a) DO UPDATE SET b = (SELECT count(*) FROM t) RETURNING b"
    assert client.rows(text) == [("4",)]
    client.run("ROLLBACK")
    assert client.rows("SELECT * FROM v") == [("2", "3")]


def test_subqueries_over_columns_that_are_not_null(client: Client) -> None:
    client.run("CREATE TABLE bt (a int PRIMARY KEY, b text)")
    client.run("INSERT INTO bt VALUES (1, 'x'), (2, 'y')")
    found = client.sorted(
        "INSERT INTO bt VALUES (1, 'p'), (2, 'q'), (3, 'r') ON CONFLICT (a) DO UPDATE "
        "SET b = bt.b || (SELECT max(b) || min(a) FROM bt x WHERE x.a <= excluded.a) || (SELECT excluded.b) "
        "WHERE (SELECT bt.a) = 2 OR EXISTS (SELECT 1 FROM bt y WHERE y.b = bt.b) RETURNING *"
    )
    assert found == [("1", "xx1p"), ("2", "yy1q"), ("3", "r")]
