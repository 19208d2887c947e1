"""What transactions at each level may see of each other, after Adya's and Berenson's catalogues of anomalies."""

from __future__ import annotations

import pytest

from ivm.rows import Words
from sql.coordination.transaction import Transaction
from sql.engine.read_set import Reading
from sql.engine.state import EngineState, TooLongHereError
from tests.support.waiting import Clients, begin, error_of, waits


def test_unrelated_commits_do_not_matter(three: Clients) -> None:
    a, b, _ = three
    begin(a)
    assert a.rows("SELECT x FROM t WHERE id = 1") == [("10",)]
    assert a.rows("SELECT count(*) FROM plain WHERE a = 2") == [("1",)]
    b.run("INSERT INTO other VALUES (5, 5)")
    b.run("UPDATE t SET x = 0 WHERE id = 2")
    b.run("INSERT INTO plain VALUES (1, 'b')")
    a.run("UPDATE t SET x = x + 1 WHERE id = 1")
    assert a.rows("SELECT x FROM t WHERE id = 2") == [("0",)]  # its snapshot has moved on: nothing that it read changed
    b.run("INSERT INTO plain VALUES (3, 'b')")
    a.run("COMMIT")
    assert b.sorted("SELECT * FROM t") == [("1", "11"), ("2", "0"), ("3", "30")]


def test_a_snapshot_stays_while_a_transaction_only_reads(three: Clients) -> None:
    a, b, _ = three
    begin(a)
    assert a.rows("SELECT s FROM sums") == [("60",)]
    b.run("DELETE FROM t WHERE id = 3")
    assert a.rows("SELECT s FROM sums") == [("60",)]
    assert a.rows("SELECT count(*) FROM t") == [("3",)]
    a.run("COMMIT")
    assert a.rows("SELECT s FROM sums") == [("30",)]


READS = [
    ("SELECT x FROM t WHERE id = 1", "UPDATE t SET x = 11 WHERE id = 1"),
    ("SELECT x FROM t WHERE id = 9", "INSERT INTO t VALUES (9, 9)"),
    ("SELECT x FROM t WHERE id IN (7, 8, 9)", "INSERT INTO t VALUES (8, 9)"),
    ("SELECT count(*) FROM t WHERE x > 25", "INSERT INTO t VALUES (9, 26)"),
    ("SELECT count(*) FROM t WHERE x > 25", "UPDATE t SET x = 26 WHERE id = 2"),
    ("SELECT count(*) FROM t WHERE x > 25", "UPDATE t SET x = 0 WHERE id = 3"),
    ("SELECT s FROM sums", "INSERT INTO t VALUES (9, 1)"),
    ("SELECT b FROM plain WHERE b = 'new'", "INSERT INTO plain VALUES (9, 'new')"),
    ("SELECT 1 FROM t JOIN other USING (id) WHERE t.id = 1", "DELETE FROM other WHERE id = 1"),
    ("WITH RECURSIVE r(a) AS (SELECT 1 UNION SELECT a FROM plain) SELECT a FROM r", "INSERT INTO plain VALUES (7)"),
    ("SELECT max(x) FROM t", "DELETE FROM t WHERE id = 1"),
    ("UPDATE t SET x = x + 1 WHERE x > 25", "INSERT INTO t VALUES (9, 30)"),
    ("DELETE FROM plain WHERE b IS NULL", "INSERT INTO plain VALUES (9, NULL)"),
    ("INSERT INTO plain SELECT x, 'i' FROM other WHERE x > 15", "INSERT INTO other VALUES (9, 16)"),
    (
        "WITH i AS (INSERT INTO plain VALUES (50, 'w') RETURNING a) SELECT sum(x) FROM other, i",
        "INSERT INTO other VALUES (9, 16)",
    ),
    ("INSERT INTO plain VALUES (51, 'r') RETURNING (SELECT max(x) FROM t)", "INSERT INTO t VALUES (9, 99)"),
    (
        "INSERT INTO t VALUES (1, 0) ON CONFLICT (id) DO UPDATE SET x = (SELECT max(x) FROM other)",
        "UPDATE other SET x = 77 WHERE id = 2",
    ),
]


@pytest.mark.parametrize(("read", "change"), READS)
def test_what_was_read_must_stay(three: Clients, read: str, change: str) -> None:
    a, b, _ = three
    begin(a)
    a.run(read)
    b.run(change)
    error = a.error("INSERT INTO other VALUES (100, 0)")
    assert (error.sqlstate, error.message) == ("40001", "could not serialize access due to concurrent update")
    a.run("ROLLBACK")


@pytest.mark.parametrize(("read", "change"), READS)
def test_what_was_read_stays_until_the_commit(three: Clients, read: str, change: str) -> None:
    a, b, _ = three
    begin(a)
    a.run("INSERT INTO other VALUES (101, 0)")
    a.run(read)
    b.run(change)
    assert a.error("COMMIT").sqlstate == "40001"
    assert b.rows("SELECT count(*) FROM other WHERE id > 99") == [("0",)]


def test_write_skew(three: Clients) -> None:
    a, b, _ = three
    begin(a, b)
    a.run("UPDATE t SET x = 0 WHERE id = 1 AND (SELECT sum(x) FROM t WHERE id < 3) > 25")
    b.run("UPDATE t SET x = 0 WHERE id = 2 AND (SELECT sum(x) FROM t WHERE id < 3) > 25")
    a.run("COMMIT")
    assert b.error("COMMIT").sqlstate == "40001"
    begin(a, b, level="READ COMMITTED")
    a.run("UPDATE t SET x = 1 WHERE id = 1 AND (SELECT sum(x) FROM t) > 25")
    b.run("UPDATE t SET x = 1 WHERE id = 2 AND (SELECT sum(x) FROM t) > 25")
    a.run("COMMIT")
    b.run("COMMIT")


def test_a_lost_update(three: Clients) -> None:
    a, b, _ = three
    begin(a, b)
    assert a.rows("SELECT x FROM t WHERE id = 1") == b.rows("SELECT x FROM t WHERE id = 1") == [("10",)]
    a.run("UPDATE t SET x = 11 WHERE id = 1")
    second = waits(b, "UPDATE t SET x = 12 WHERE id = 1")
    a.run("COMMIT")
    assert error_of(second).sqlstate == "40001"
    b.run("ROLLBACK")


def test_increments_of_one_row_need_no_second_try(three: Clients) -> None:
    a, b, c = three
    begin(a, b)
    a.run("UPDATE t SET x = x + 1 WHERE id = 1")
    b.run("UPDATE t SET x = x + 1 WHERE id = 2")
    second = waits(b, "UPDATE t SET x = x + 1 WHERE id = 1")
    a.run("COMMIT")
    second.result(20)
    b.run("COMMIT")
    assert c.sorted("SELECT x FROM t") == [("12",), ("21",), ("30",)]


def test_what_a_first_try_has_read_is_forgotten(three: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = three
    begin(a, b)
    a.run("UPDATE t SET x = x + 1 WHERE id = 1")
    b.run("UPDATE t SET x = x + 1 WHERE id = 2")
    note, tries = Transaction.note_reading, 0

    def too_long(transaction: Transaction, reading: Reading) -> None:
        nonlocal tries
        note(transaction, reading)
        tries += 1
        if transaction.jobs.engine.rests:  # on the event loop's thread, as on a busy machine
            raise TooLongHereError

    monkeypatch.setattr(Transaction, "note_reading", too_long)
    second = waits(b, "UPDATE t SET x = x + 1 WHERE id = 1 AND x > 0")
    assert tries > 1
    a.run("COMMIT")
    second.result(20)
    b.run("COMMIT")
    assert c.sorted("SELECT x FROM t") == [("12",), ("21",), ("30",)]


def test_many_changes_go_and_come_back_as_one(three: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a transaction leave the dataflow when another writes: once for each table, not for each statement."""
    a, b, c = three
    begin(a, level="READ COMMITTED")
    for i in range(50):
        a.run(f"UPDATE t SET x = x + {i} WHERE id = {i % 3 + 1}")
        a.run(f"INSERT INTO plain VALUES ({i}, NULL)")
    assert a.rows("SELECT s FROM sums") == [(str(60 + sum(range(50))),)]
    feed, fed = EngineState.feed, list[int]()

    def counted(engine: EngineState, relation: int, rows: Words, diffs: Words, ordinal: int) -> None:
        fed.append(relation)
        feed(engine, relation, rows, diffs, ordinal)

    monkeypatch.setattr(EngineState, "feed", counted)
    b.run("INSERT INTO other VALUES (7, 7)")
    assert c.rows("SELECT s FROM sums") == [("60",)]
    assert a.rows("SELECT s, n FROM sums") == [(str(60 + sum(range(50))), "3")]
    assert len(fed) == 5, "two tables twice, and another's change"
    a.run("SAVEPOINT here")
    for i in range(20):
        a.run(f"DELETE FROM plain WHERE a = {i}")
        a.rows("SELECT count(*) FROM plain")
    fed.clear()
    a.run("ROLLBACK TO here")
    assert len(fed) <= 1
    assert a.rows("SELECT count(*) FROM plain") == [("53",)]
    a.run("COMMIT")
    assert c.rows("SELECT count(*) FROM plain") == [("53",)]
    assert c.rows("VERIFY MATERIALIZED VIEW sums") == []


def test_read_committed_sees_each_commit(three: Clients) -> None:
    a, b, _ = three
    begin(a, level="READ COMMITTED")
    assert a.rows("SELECT s FROM sums") == [("60",)]
    b.run("INSERT INTO t VALUES (4, 40)")
    assert a.rows("SELECT s FROM sums") == [("100",)]
    a.run("UPDATE t SET x = x + 1")
    b.run("INSERT INTO t VALUES (5, 1)")
    assert a.rows("SELECT s, n FROM sums") == [("105", "5")]
    assert a.rows("SELECT sum(x) FROM t") == [("105",)]
    a.run("COMMIT")
    assert b.rows("VERIFY MATERIALIZED VIEW sums") == []


def test_nobody_sees_what_is_not_committed(three: Clients) -> None:
    a, b, _ = three
    for level in ("READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ"):
        begin(a, b, level=level)
        a.run("UPDATE t SET x = x + 1000")
        a.run("INSERT INTO plain SELECT i, 'many' FROM generate_series(1, 200) i")
        assert a.rows("SELECT s FROM sums") == [("3060",)]
        assert b.rows("SELECT s FROM sums") == [("60",)]
        assert b.rows("SELECT sum(x) FROM t") == [("60",)]
        assert b.rows("SELECT count(*) FROM plain") == [("3",)]
        a.run("ROLLBACK")
        b.run("COMMIT")
