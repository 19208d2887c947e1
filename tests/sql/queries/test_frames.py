"""Window functions over frames, maintained and one-shot, against their definition (``model_frames.py``)."""

from __future__ import annotations

import random
from datetime import date, timedelta
from decimal import Decimal

import pytest

from ivm.operators import searched
from planner.frames import changes as changes_of
from planner.frames import layers
from planner.frames import searched as near
from planner.frames.reducer import FramedRows
from tests.support.model_frames import COLUMNS, DDL, Row, literal, query, random_calls, random_row, results
from tests.support.profiles import scaled
from tests.support.sessions import Client, Server


def play(server: Server, seed: int, rows_a_step: int = 8) -> None:
    """A random history: views of random windows, compared with the model after every commit."""
    rnd = random.Random(seed)
    client = server.client()
    client.run("DROP TABLE IF EXISTS t CASCADE")
    client.run(f"CREATE TABLE t ({DDL})")
    repeated = rnd.random() < 0.3
    views = [random_calls(rnd, 1 if repeated else 2) for _ in range(3)]
    alone = random_calls(rnd, 1 if repeated else 2)
    rows: list[Row] = [random_row(rnd, number) for number in range(rnd.choice([0, rows_a_step]))]
    insert(client, rows)
    for i, calls in enumerate(views):
        client.run(f"CREATE MATERIALIZED VIEW v{i} AS {query(calls)}")
    for step in range(5):
        with_transaction = rnd.random() < 0.5
        if with_transaction:
            client.run("BEGIN")
        change(client, rnd, rows, 100 * (step + 1), rows_a_step, repeated)
        if with_transaction:
            client.run("COMMIT")
        for i, calls in enumerate(views):
            assert client.sorted(f"SELECT * FROM v{i}") == results(calls, rows), (seed, step, query(calls))
        assert client.sorted(query(alone)) == results(alone, rows), (seed, step, query(alone))
    for i in range(len(views)):
        assert client.rows(f"VERIFY MATERIALIZED VIEW v{i}") == [], seed
    client.close()


def change(client: Client, rnd: random.Random, rows: list[Row], number: int, most: int, repeated: bool) -> None:
    """Random insertions (``repeated``: some of them twice), deletions and updates."""
    fresh = [random_row(rnd, number + i) for i in range(rnd.randint(0, most))]
    if repeated:
        fresh += [dict(row) for row in fresh if rnd.random() < 0.5]
    insert(client, fresh)
    rows += fresh
    if rows and rnd.random() < 0.7:
        gone = rnd.choice(rows)["id"]
        client.run(f"DELETE FROM t WHERE id = {gone}")
        rows[:] = [r for r in rows if r["id"] != gone]
    if rows and rnd.random() < 0.7:
        number, column = rnd.choice(rows)["id"], rnd.choice(COLUMNS[1:])
        value = random_row(rnd, 0)[column]
        for row in rows:
            if row["id"] == number:
                row[column] = value
        client.run(f"UPDATE t SET {column} = {literal(value)} WHERE id = {number}")


def insert(client: Client, rows: list[Row]) -> None:
    if rows:
        shown = ", ".join(f"({', '.join(literal(r[c]) for c in COLUMNS)})" for r in rows)
        client.run(f"INSERT INTO t VALUES {shown}")


def test_random_histories(server: Server) -> None:
    for seed in range(scaled(8)):
        play(server, seed)


def test_random_histories_of_searched_partitions(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """All partitions as if they were large: only what changes is recomputed."""
    monkeypatch.setattr(searched, "FEW", 0)
    monkeypatch.setattr(FramedRows, "least", 1)
    monkeypatch.setattr(changes_of, "FIRST", 1)
    monkeypatch.setattr(near, "NEAR", 2)
    searches = []
    changes = FramedRows.changes
    monkeypatch.setattr(FramedRows, "changes", lambda *given: searches.append(1) or changes(*given))
    for seed in range(100, 100 + scaled(7)):
        play(server, seed)
    assert len(searches) > 70


def test_a_large_partition_changes_as_if_recomputed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions of thousands of rows in several layers, some of whose rows are retracted in others."""
    monkeypatch.setattr(layers, "BLOCK", 16)
    monkeypatch.setattr(layers, "PART", 256)
    monkeypatch.setattr(FramedRows, "least", 100)
    for seed in range(200, 200 + scaled(1)):
        rnd = random.Random(seed)
        client = server.client()
        client.run("DROP TABLE IF EXISTS t CASCADE")
        client.run(f"CREATE TABLE t ({DDL})")
        rows = [large_row(rnd, number) for number in range(1200)]
        for i in range(0, len(rows), 300):
            insert(client, rows[i : i + 300])
        calls = [random_calls(rnd, 1) for _ in range(3)]
        for i, view in enumerate(calls):
            client.run(f"CREATE MATERIALIZED VIEW v{i} AS {query(view)}")
        for step in range(5):
            change(client, rnd, rows, 10_000 * (step + 1), 3, False)
            if step == 2:  # the greatest values are no longer there, but still in a layer
                client.run("DELETE FROM t WHERE x > 900 OR d > '2030-01-01'")
                rows[:] = [r for r in rows if not (r["x"] or 0) > 900 and not (r["d"] or date.min) > date(2030, 1, 1)]
            for i, view in enumerate(calls):
                assert client.rows(f"VERIFY MATERIALIZED VIEW v{i}") == [], (seed, step, query(view))
        client.close()


def large_row(rnd: random.Random, number: int) -> Row:
    """A row of two large partitions, with values that are mostly different."""
    row = random_row(rnd, number)
    values = {
        "a": rnd.randint(0, 2000), "n": Decimal(rnd.randint(-4000, 4000)) / 4 + Decimal("0.00"),
        "d": date(2024, 2, 20) + timedelta(days=rnd.randint(0, 3000)), "f": rnd.randint(-4000, 4000) / 4,
        "x": rnd.randint(-1000, 1000), "s": "".join(rnd.choices("abcd", k=3)),
    }  # fmt: skip
    return {k: v if k not in values or v is None or rnd.random() < 0.02 else values[k] for k, v in row.items()}


def test_equal_rows_are_counted(server: Server) -> None:
    client = server.client()
    client.run("CREATE TABLE twice (x int)")
    client.run("CREATE MATERIALIZED VIEW sums AS SELECT x, sum(x) OVER (ORDER BY x ROWS 1 PRECEDING) FROM twice")
    client.run("INSERT INTO twice VALUES (1), (1), (1), (2)")
    assert client.sorted("SELECT * FROM sums") == [("1", "1"), ("1", "2"), ("1", "2"), ("2", "3")]
    client.run("INSERT INTO twice VALUES (2), (1)")
    client.run("DELETE FROM twice WHERE x = 2")
    assert client.sorted("SELECT * FROM sums") == [("1", "1"), ("1", "2"), ("1", "2"), ("1", "2")]
    assert client.rows("VERIFY MATERIALIZED VIEW sums") == []


def test_a_row_fails_alone(server: Server) -> None:
    """An argument that is wrong for one row is an error of the view while the row is there."""
    client = server.client()
    client.run("CREATE TABLE nths (x int, n int)")
    client.run("CREATE MATERIALIZED VIEW nth AS SELECT x, nth_value(x, n) OVER (ORDER BY x) FROM nths")
    client.run("INSERT INTO nths VALUES (1, 1), (2, 0)")
    assert client.error("SELECT * FROM nth").message.startswith("argument of nth_value must be greater than zero")
    client.run("UPDATE nths SET n = 2 WHERE n = 0")
    assert client.sorted("SELECT * FROM nth") == [("1", "1"), ("2", "2")]


def test_windows_over_groups_views_and_subqueries(server: Server) -> None:
    client = server.client()
    client.run("CREATE TABLE sales (day int, shop text, amount int)")
    client.run(
        "CREATE MATERIALIZED VIEW daily AS SELECT day, sum(amount) AS total, sum(sum(amount)) OVER w AS running"
        " FROM sales GROUP BY day WINDOW w AS (ORDER BY day)"
    )
    client.run(
        "CREATE MATERIALIZED VIEW trend AS SELECT day, avg(running) OVER (ORDER BY day ROWS 1 PRECEDING) FROM daily"
        " WHERE running > 1 UNION ALL SELECT -1, (SELECT max(m) FROM (SELECT max(total) OVER (ORDER BY day) AS m"
        " FROM daily) q)"
    )
    client.run("INSERT INTO sales VALUES (1, 'a', 1), (1, 'b', 2), (2, 'a', 5), (4, 'b', 1)")
    assert client.rows("SELECT * FROM daily ORDER BY day") == [("1", "3", "3"), ("2", "5", "8"), ("4", "1", "9")]
    shown = [("-1", "5"), ("1", "3.0000000000000000"), ("2", "5.5000000000000000"), ("4", "8.5000000000000000")]
    assert client.rows("SELECT * FROM trend ORDER BY 1") == shown
    client.run("DELETE FROM sales WHERE day = 2")
    assert client.rows("SELECT * FROM daily ORDER BY day") == [("1", "3", "3"), ("4", "1", "4")]
    assert client.rows("SELECT * FROM trend ORDER BY 1")[0] == ("-1", "3")
    for view in ("daily", "trend"):
        assert client.rows(f"VERIFY MATERIALIZED VIEW {view}") == []


def test_a_functions_argument_is_an_offset(server: Server) -> None:
    """Of a maintained view too; an offset that depends on a row is refused by name."""
    client = server.client()
    client.run("CREATE TABLE offsets (i int, n int); INSERT INTO offsets VALUES (1, 1), (2, 2), (2, NULL), (NULL, 3)")
    body = "SELECT i, sum(i) OVER (ORDER BY i ROWS BETWEEN k PRECEDING AND CURRENT ROW) FROM offsets"
    client.run(f"CREATE FUNCTION sliding(k int) RETURNS TABLE (i int, s bigint) LANGUAGE sql AS '{body}'")
    client.run("CREATE MATERIALIZED VIEW slid AS SELECT * FROM sliding(1 + 1)")
    for change in ("INSERT INTO offsets VALUES (3, 0), (2, 0)", "DELETE FROM offsets WHERE i = 1",
                   "UPDATE offsets SET i = i + 1 WHERE n = 2"):  # fmt: skip
        client.run(change)
        assert client.rows("VERIFY MATERIALIZED VIEW slid") == []
        assert client.sorted("SELECT * FROM slid") == client.sorted(body.replace("k P", "2 P"))
    error = client.error("SELECT s.* FROM offsets, sliding(n) s")
    assert (error.sqlstate, "offset" in error.message) == ("0A000", True)
    client.close()
