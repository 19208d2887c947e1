"""Transactions: one snapshot, one writer at a time, own writes visible, nothing left after a rollback; time."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator

import pytest

import sql.coordination.jobs
import sql.coordination.thread
from tests.support.sessions import Client, Server
from tests.support.waiting import LONG, waits


@pytest.fixture(
    scope="module",
    params=[(math.inf, 0.0), (-1.0, -1.0), (-1.0, 0.05)],
    ids=["by the engine's thread", "begun by the event loop", "by the event loop"],
)
def server(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Server]:
    """Small commits are made in each of the three ways."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sql.coordination.jobs, "ALONE_SECONDS", request.param[0])
        patch.setattr(sql.coordination.thread, "HERE_SECONDS", request.param[1])
        server = Server(tmp_path_factory.mktemp("data"))
        yield server
        server.close()


@pytest.fixture
def pair(server: Server) -> Iterator[tuple[Client, Client]]:
    """Two clients over t(id, x) with rows 1 and 2, and the view v of its sum."""
    a, b = server.client(), server.client()
    a.run("CREATE TABLE t (id int PRIMARY KEY, x int)")
    a.run("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(x) AS s FROM t")
    a.run("INSERT INTO t VALUES (1, 10), (2, 20)")
    yield a, b
    a.close()
    b.close()
    last = server.client()
    last.run("DROP TABLE t CASCADE")
    last.close()


def test_own_writes_show_in_tables_and_views_and_to_nobody_else(pair: tuple[Client, Client]) -> None:
    a, b = pair
    a.run("BEGIN")
    a.run("INSERT INTO t VALUES (3, 30)")
    assert a.rows("SELECT * FROM v") == [("3", "60")]
    a.run("DELETE FROM t WHERE id = 1")
    assert a.rows("SELECT * FROM v") == [("2", "50")]
    assert b.rows("SELECT * FROM v") == [("2", "30")]
    assert b.rows("SELECT count(*) FROM t") == [("2",)]
    a.run("COMMIT")
    assert b.rows("SELECT * FROM v") == [("2", "50")]


def test_its_own_rows_come_in_the_order_of_its_statements(pair: tuple[Client, Client]) -> None:
    """As in PostgreSQL, after those that were there, also of a table with a key."""
    a, _ = pair
    a.run("BEGIN")
    for i in (9, 3, 7, 5):
        a.run(f"INSERT INTO t VALUES ({i}, 0)")
    assert a.rows("SELECT id FROM t") == [("1",), ("2",), ("9",), ("3",), ("7",), ("5",)]
    a.run("DELETE FROM t WHERE id = 3; UPDATE t SET x = 1 WHERE id = 9; DELETE FROM t WHERE id = 1")
    assert a.rows("SELECT id, x FROM t") == [("2", "20"), ("7", "0"), ("5", "0"), ("9", "1")]
    a.run("INSERT INTO t VALUES (1, 10), (3, 5)")
    assert a.rows("SELECT id FROM t WHERE x IN (10, 5, 20)") == [("2",), ("1",), ("3",)]
    assert a.sorted("SELECT id FROM t WHERE id IN (3, 1, 9, 8)") == [("1",), ("3",), ("9",)]
    a.run("CREATE TABLE nothing (); INSERT INTO nothing DEFAULT VALUES")
    assert a.rows("SELECT count(*) FROM nothing") == [("1",)]
    a.run("ROLLBACK")


def test_updates_of_keys_and_of_the_rest_in_one_transaction(pair: tuple[Client, Client]) -> None:
    a, _ = pair
    a.run("BEGIN")
    a.run("UPDATE t SET x = x + 1")
    a.run("UPDATE t SET id = id + 1 WHERE id = 2")
    a.run("UPDATE t SET x = 5 WHERE id = 3")
    a.run("UPDATE t SET id = 2 WHERE id = 1")
    a.run("SAVEPOINT s")
    assert a.state("UPDATE t SET id = 2") == "23505"
    a.run("ROLLBACK TO s")
    a.run("UPDATE t SET id = 5 - id")
    assert a.state("INSERT INTO t VALUES (3, 0)") == "23505"
    a.run("ROLLBACK TO s")
    a.run("UPDATE t SET id = 5 - id")
    a.run("COMMIT")
    assert a.sorted("SELECT * FROM t") == [("2", "5"), ("3", "11")]
    assert a.state("INSERT INTO t VALUES (2, 0)") == "23505"


def test_a_rollback_leaves_nothing(pair: tuple[Client, Client]) -> None:
    a, b = pair
    before = a.rows("SELECT mz_now()")
    a.run("BEGIN")
    a.run("INSERT INTO t VALUES (3, 30)")
    assert a.rows("SELECT * FROM v") == [("3", "60")]
    a.run("UPDATE t SET x = 0")
    a.run("ROLLBACK")
    assert a.rows("SELECT * FROM v") == [("2", "30")]
    assert a.rows("SELECT mz_now()") == before
    b.run("INSERT INTO t VALUES (3, 5)")
    assert b.rows("SELECT * FROM v") == [("3", "35")]
    assert b.rows("VERIFY MATERIALIZED VIEW v") == []


def test_ddl_is_transactional(pair: tuple[Client, Client]) -> None:
    a, b = pair
    a.run("BEGIN")
    a.run("CREATE TABLE w (a int)")
    a.run("INSERT INTO w VALUES (1), (2)")
    a.run("CREATE MATERIALIZED VIEW wv AS SELECT sum(a) + (SELECT sum(x) FROM t) AS s FROM w")
    a.run("INSERT INTO w VALUES (3)")
    a.run("INSERT INTO t VALUES (7, 70)")
    assert a.rows("SELECT * FROM wv") == [("106",)]
    assert b.state("SELECT * FROM w") == "42P01"
    a.run("ROLLBACK")
    assert a.state("SELECT * FROM w") == "42P01"
    a.run("BEGIN")
    a.run("DROP TABLE t CASCADE")
    assert a.state("SELECT * FROM t") == "42P01"
    a.run("ROLLBACK")
    assert a.rows("SELECT * FROM v") == [("2", "30")]
    a.run("BEGIN; CREATE TABLE w (a int); INSERT INTO w VALUES (1); COMMIT")
    assert b.rows("SELECT * FROM w") == [("1",)]
    b.run("DROP TABLE w")


def test_a_snapshot_holds_and_writing_on_an_old_one_fails(pair: tuple[Client, Client]) -> None:
    a, b = pair
    a.run("BEGIN")
    assert a.rows("SELECT sum(x) FROM t") == [("30",)]
    b.run("UPDATE t SET x = 100 WHERE id = 1")
    assert a.rows("SELECT sum(x) FROM t") == [("30",)]
    assert a.state("UPDATE t SET x = 0 WHERE id = 2") == "40001"
    assert a.state("SELECT 1") == "25P02"
    assert a.run("COMMIT") == "ROLLBACK"
    a.run("BEGIN")
    a.run("UPDATE t SET x = 0 WHERE id = 2")
    a.run("COMMIT")
    assert b.rows("SELECT sum(x) FROM t") == [("100",)]


def test_a_writer_waits_for_the_one_before(pair: tuple[Client, Client]) -> None:
    a, b = pair
    a.run("BEGIN")
    a.run("INSERT INTO t VALUES (3, 30)")
    waiting = waits(b, "INSERT INTO t VALUES (3, 31)")
    a.run("COMMIT")
    with pytest.raises(Exception, match="duplicate key"):
        waiting.result(LONG)
    a.run("BEGIN")
    a.run("INSERT INTO t VALUES (4, 40)")
    waiting = waits(b, "INSERT INTO t VALUES (4, 41)")
    a.run("ROLLBACK")
    waiting.result(LONG)
    assert a.rows("SELECT x FROM t WHERE id = 4") == [("41",)]


def test_a_waiting_writer_can_be_cancelled(pair: tuple[Client, Client]) -> None:
    a, b = pair
    a.run("BEGIN")
    a.run("INSERT INTO t VALUES (3, 30)")
    b.run("SET statement_timeout = '100ms'")
    assert b.state("INSERT INTO t VALUES (3, 50)") == "57014"
    a.run("COMMIT")
    assert b.run("INSERT INTO t VALUES (5, 50)") == "INSERT 0 1"


def test_an_idle_holder_loses_its_locks(pair: tuple[Client, Client]) -> None:
    a, b = pair
    a.run("SET idle_in_transaction_session_timeout = '100ms'")
    a.run("BEGIN; INSERT INTO t VALUES (3, 30)")
    assert b.run("INSERT INTO t VALUES (3, 31)") == "INSERT 0 1"
    assert a.state("SELECT 1") == "25P03"


def test_savepoints(pair: tuple[Client, Client]) -> None:
    a, _ = pair
    a.run("BEGIN")
    a.run("SAVEPOINT s")
    a.run("INSERT INTO t VALUES (3, 30)")
    a.run("SAVEPOINT s2")
    assert a.state("INSERT INTO t VALUES (1, 1)") == "23505"
    a.run("ROLLBACK TO s2")
    assert a.rows("SELECT * FROM v") == [("3", "60")]
    a.run("ROLLBACK TO s")
    assert a.rows("SELECT * FROM v") == [("2", "30")]
    a.run("INSERT INTO t VALUES (3, 31)")
    a.run("RELEASE s")
    assert a.state("ROLLBACK TO s") == "3B001"
    a.run("ROLLBACK")
    assert a.rows("SELECT * FROM v") == [("2", "30")]


def test_a_query_string_is_one_transaction(pair: tuple[Client, Client]) -> None:
    a, _ = pair
    assert a.state("INSERT INTO t VALUES (3, 30); INSERT INTO t VALUES (3, 30)") == "23505"
    assert a.rows("SELECT * FROM v") == [("2", "30")]
    a.run("INSERT INTO t VALUES (3, 30); INSERT INTO t SELECT id + 10, x FROM t")
    assert a.rows("SELECT * FROM v") == [("6", "120")]


def test_read_only_transactions_do_not_write(pair: tuple[Client, Client]) -> None:
    a, _ = pair
    a.run("BEGIN READ ONLY")
    assert a.state("INSERT INTO t VALUES (3, 30)") == "25006"
    a.run("ROLLBACK")
    a.run("BEGIN")
    a.run("SET TRANSACTION READ ONLY")
    assert a.rows("SHOW transaction_read_only") == [("on",)]
    assert a.state("INSERT INTO t VALUES (3, 30)") == "25006"
    a.run("ROLLBACK")
    a.run("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
    assert a.state("INSERT INTO t VALUES (3, 30)") == "25006"
    a.run("BEGIN READ WRITE; INSERT INTO t VALUES (3, 30); ROLLBACK")
    a.run("RESET default_transaction_read_only")
    a.run("INSERT INTO t VALUES (3, 30)")


def test_transaction_modes_show_what_was_asked_for(pair: tuple[Client, Client]) -> None:
    a, _ = pair
    a.run("BEGIN ISOLATION LEVEL READ COMMITTED, DEFERRABLE")
    assert a.rows("SHOW transaction_isolation") == [("read committed",)]
    assert a.rows("SELECT current_setting('transaction_deferrable')") == [("on",)]
    a.run("COMMIT")
    assert a.rows("SHOW transaction_isolation") == [("serializable",)]
    a.run("SET default_transaction_isolation = 'repeatable read'")
    assert a.rows("SHOW TRANSACTION ISOLATION LEVEL") == [("repeatable read",)]
    a.run("RESET default_transaction_isolation")
    assert a.state("SET default_transaction_isolation = 'none'") == "22023"
    a.notices()
    a.run("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
    assert a.notices()[0].sqlstate == "25P01"


def test_transaction_warnings(pair: tuple[Client, Client]) -> None:
    a, _ = pair
    a.run("COMMIT")
    assert a.notices()[0].sqlstate == "25P01"
    a.run("BEGIN")
    a.run("BEGIN")
    assert a.notices()[0].sqlstate == "25001"
    assert a.session.transaction_status == "T"
    assert a.state("SELECT 1/0") == "22012"
    assert a.session.transaction_status == "E"
    assert a.run("COMMIT") == "ROLLBACK"
    assert a.session.transaction_status == "I"


def test_as_of_reads_every_epoch(pair: tuple[Client, Client]) -> None:
    a, _ = pair
    seen = []
    for i in range(3, 9):
        a.run(f"INSERT INTO t VALUES ({i}, {i})")
        ((epoch, n),) = a.rows("SELECT mz_now(), n FROM v")
        seen.append((epoch, n))
        if i == 5:
            engine = a.server.coordinator.engine
            assert engine.persistence is not None
            engine.persistence.flush()
    for epoch, n in seen:
        assert a.rows(f"SELECT count(*) FROM t AS OF {epoch}") == [(n,)]
        assert a.rows(f"SELECT n FROM v AS OF {epoch}") == [(n,)]
    assert a.rows("SELECT n FROM v AS OF now()") == [("8",)]
    assert a.rows("SELECT n FROM v AS OF AT LEAST 5") is not None
    error = a.error("SELECT n FROM v AS OF 5")
    assert error.sqlstate == "22023"
    assert error.detail is not None
    assert "can be read from" in error.detail


def test_commits_after_a_read_in_the_present_lie_above_it(pair: tuple[Client, Client]) -> None:
    a, _ = pair
    engine = a.server.coordinator.engine
    for i in range(3, 30):
        ((now,),) = a.rows("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        before = a.rows(f"SELECT * FROM v AS OF {now}")
        a.run(f"INSERT INTO t VALUES ({i}, 1)")
        assert engine.published.epoch > int(str(now))
        assert a.rows(f"SELECT * FROM v AS OF {now}") == before


def test_subscribe_through_a_cursor(pair: tuple[Client, Client]) -> None:
    a, b = pair
    a.run("BEGIN")
    a.run("DECLARE c CURSOR FOR SUBSCRIBE v")
    assert [row[1:] for row in a.rows("FETCH ALL FROM c")] == [("1", "2", "30")]
    b.run("INSERT INTO t VALUES (3, 1)")
    b.run("INSERT INTO t VALUES (4, 1)")
    rows = a.rows("FETCH ALL FROM c WITH (timeout = '1s')")
    changes = [(row[1:]) for row in rows]
    assert sorted(changes) == sorted([("-1", "2", "30"), ("1", "3", "31"), ("-1", "3", "31"), ("1", "4", "32")])
    assert [int(str(r[0])) for r in rows] == sorted(int(str(r[0])) for r in rows)
    a.run("COMMIT")


def test_subscribe_to_a_query_and_its_progress(pair: tuple[Client, Client]) -> None:
    a, b = pair
    a.run("BEGIN")
    a.run("DECLARE c CURSOR FOR SUBSCRIBE (SELECT x / 10 AS y FROM t WHERE x > 10) WITH (PROGRESS)")
    first = a.rows("FETCH ALL FROM c")
    assert [row[1:] for row in first] == [("f", "1", "2"), ("t", None, None)]
    b.run("INSERT INTO t VALUES (3, 90)")
    rows = a.rows("FETCH ALL FROM c WITH (timeout = '1s')")
    assert [row[1:] for row in rows] == [("f", "1", "9"), ("t", None, None)]
    assert int(str(rows[1][0])) > int(str(rows[0][0]))
    a.run("COMMIT")
    b.run("INSERT INTO t VALUES (4, 90)")


def test_subscribe_as_of_and_up_to(pair: tuple[Client, Client]) -> None:
    a, b = pair
    ((start,),) = a.rows("SELECT mz_now()")
    b.run("INSERT INTO t VALUES (3, 1)")
    b.run("DELETE FROM t WHERE id = 1")
    ((end,),) = a.rows("SELECT mz_now() + 1")
    lines = a.copy_out(f"COPY (SUBSCRIBE t AS OF {start} UP TO {end}) TO STDOUT")
    assert [line.split("\t")[1:] for line in lines[:2]] in ([["1", "1", "10"], ["1", "2", "20"]],)
    assert [line.split("\t")[1:] for line in lines[2:]] == [["1", "3", "1"], ["-1", "1", "10"]]


def test_a_copied_subscription_ends_by_cancel(pair: tuple[Client, Client]) -> None:
    a, b = pair
    lines: list[str] = []
    begun, got = threading.Event(), threading.Event()

    async def follow() -> None:
        async for result in a.session.simple("COPY (SUBSCRIBE v) TO STDOUT"):
            async for chunk in result.data:  # type: ignore[union-attr]
                lines.extend(bytes(chunk).decode().splitlines())
                begun.set()
                if len(lines) >= 3:
                    got.set()

    following = a.server.start(follow())
    assert begun.wait(LONG)
    b.run("INSERT INTO t VALUES (3, 1)")
    assert got.wait(LONG)
    a.server.run(a.session.cancel())
    with pytest.raises(Exception, match="user request"):
        following.result(LONG)
    assert sorted(line.split("\t")[1] for line in lines) == ["-1", "1", "1"]


def test_a_view_whose_recursion_never_ends_is_taken_down_and_comes_back(pair: tuple[Client, Client]) -> None:
    a, b = pair
    a.run("CREATE TABLE e (x int, y int)")
    a.run("INSERT INTO e VALUES (1, 2), (2, 3)")
    step = "SELECT 1 UNION ALL SELECT y FROM r JOIN e ON e.x = r.n"
    a.run(f"CREATE MATERIALIZED VIEW r AS WITH RECURSIVE r(n) AS ({step}) SELECT * FROM r")
    a.run("CREATE MATERIALIZED VIEW rr AS SELECT sum(n) AS s FROM r")
    watch = a.server.coordinator.engine.watch
    watch.seconds = 0.3
    try:
        a.run("INSERT INTO e VALUES (3, 1)")
    finally:
        watch.seconds = 120.0
    assert a.state("SELECT * FROM r") == "54001"
    assert b.state("SELECT * FROM rr") == "54001"
    assert {row[:2] for row in b.rows("SELECT * FROM freshet.view_errors")} == {("r", "54001"), ("rr", "54001")}
    b.run("INSERT INTO t VALUES (3, 30)")
    assert b.rows("SELECT * FROM v") == [("3", "60")]
    a.run("DELETE FROM e WHERE x = 3")
    assert a.sorted("SELECT * FROM r") == [("1",), ("2",), ("3",)]
    assert a.rows("SELECT * FROM rr") == [("6",)]
    a.run("INSERT INTO e VALUES (3, 7)")
    assert a.rows("SELECT * FROM rr") == [("13",)]
    a.run("DROP TABLE e CASCADE")


def test_a_commit_that_does_not_end_can_be_cancelled(pair: tuple[Client, Client]) -> None:
    a, b = pair
    a.run("CREATE TABLE e (x int, y int)")
    a.run("INSERT INTO e VALUES (1, 2)")
    step = "SELECT 1 UNION ALL SELECT y FROM r JOIN e ON e.x = r.n"
    a.run(f"CREATE MATERIALIZED VIEW r AS WITH RECURSIVE r(n) AS ({step}) SELECT * FROM r")
    a.run("DELETE FROM e WHERE x = 1")  # a step has shown what a row costs, so that the next one's is not stepped first
    a.run("INSERT INTO e VALUES (1, 2)")
    a.run("SET statement_timeout = '300ms'")
    a.run("INSERT INTO e VALUES (2, 1)")
    a.run("SET statement_timeout = 0")
    assert a.rows("SELECT count(*) FROM e") == [("2",)]
    assert a.state("SELECT * FROM r") == "54001"
    assert b.run("DROP TABLE e CASCADE") == "DROP TABLE"


def test_statements_of_one_transaction_see_each_other_without_a_step(server: Server) -> None:
    a = server.client()
    a.run("CREATE TABLE p (id int PRIMARY KEY, x int)")
    a.run("CREATE TABLE q (a int, b text)")
    a.run("CREATE MATERIALIZED VIEW pv AS SELECT q.b, sum(p.x) AS s FROM p JOIN q ON p.id = q.a GROUP BY q.b")
    a.run("INSERT INTO p SELECT i, i FROM generate_series(1, 100) AS g(i)")
    a.run("INSERT INTO q SELECT i % 5, 'b' FROM generate_series(1, 50) AS g(i)")
    for turn in range(4):  # plans are cached from the second turn on: only then do statements read pending changes
        a.run("BEGIN")
        assert a.run("UPDATE p SET x = x + 1 WHERE id = ANY(ARRAY[1, 2, 3])") == "UPDATE 3"
        assert a.run("UPDATE p SET x = x + 1 WHERE id = ANY(ARRAY[3, 4])") == "UPDATE 2"
        assert a.run("DELETE FROM p WHERE id = ANY(ARRAY[4, 5])") == "DELETE 2"
        assert a.run("DELETE FROM p WHERE id = ANY(ARRAY[4, 5])") == "DELETE 0"
        assert a.run("INSERT INTO p VALUES (4, 4), (5, 5)") == "INSERT 0 2"
        a.run("SAVEPOINT s")
        assert a.run("DELETE FROM q WHERE a = 1") == ("DELETE 10" if turn == 0 else "DELETE 11")
        assert a.run("DELETE FROM q WHERE a = 1") == "DELETE 0"
        a.run("ROLLBACK TO s")
        assert a.run("INSERT INTO q VALUES (1, 'b'), (1, 'b')") == "INSERT 0 2"
        assert a.run("DELETE FROM q WHERE a = 1") == ("DELETE 12" if turn == 0 else "DELETE 13")
        a.run("INSERT INTO q SELECT 1, 'b' FROM generate_series(1, 11)")
        assert a.state("INSERT INTO p VALUES (5, 0)") == "23505"
        a.run("ROLLBACK")
        if turn == 0:
            a.run("INSERT INTO q VALUES (1, 'b')")
        assert a.rows("VERIFY MATERIALIZED VIEW pv") == []
    a.run("BEGIN")
    a.run("UPDATE p SET x = 0 WHERE id = 7")
    a.run("DELETE FROM p WHERE id = 7")
    a.run("INSERT INTO p VALUES (7, 70)")
    a.run("COMMIT")
    assert a.rows("SELECT x FROM p WHERE id = 7") == [("70",)]
    assert a.rows("SELECT count(*) FROM p") == [("100",)]
    assert a.rows("VERIFY MATERIALIZED VIEW pv") == []
    a.close()


def test_a_key_stays_taken_over_a_rollback_to_a_savepoint(pair: tuple[Client, Client]) -> None:
    a, _ = pair
    a.run("BEGIN")
    a.run("INSERT INTO t VALUES (3, 30)")
    a.run("SAVEPOINT s")
    a.run("INSERT INTO t VALUES (4, 40)")
    a.run("ROLLBACK TO s")
    assert a.state("INSERT INTO t VALUES (3, 31)") == "23505"
    a.run("ROLLBACK TO s")
    a.run("INSERT INTO t VALUES (4, 41)")
    a.run("COMMIT")
    assert a.rows("SELECT * FROM v") == [("4", "101")]
    assert a.rows("SELECT count(*) FROM t") == [("4",)]
    a.run("DELETE FROM t WHERE id > 2")
    assert a.rows("SELECT count(*), count(*) FROM t") == [("2", "2")]
    assert a.rows("SELECT count(*) AS n FROM t LIMIT 0") == []


def test_counts_follow_commits_groups_and_rollbacks(pair: tuple[Client, Client]) -> None:
    a, b = pair
    for i in range(10, 40):
        a.run(f"INSERT INTO t VALUES ({i}, {i})")
        assert b.rows("SELECT count(*) FROM t") == [(str(i - 7),)]
    a.run("CREATE MATERIALIZED VIEW w AS SELECT x FROM t WHERE x > 20")
    assert b.rows("SELECT count(*) FROM w") == [("19",)]
    a.run("BEGIN")
    a.run("DELETE FROM t WHERE x > 30")
    assert a.rows("SELECT count(*) FROM w") == [("10",)]
    assert b.rows("SELECT count(*) FROM w") == [("19",)]
    a.run("ROLLBACK")
    a.run("TRUNCATE t")
    assert b.rows("SELECT count(*) FROM w") == [("0",)]
    assert b.rows("SELECT count(*) FROM t") == [("0",)]
    a.run("INSERT INTO t VALUES (1, 10), (2, 20)")


def test_reads_by_key_between_writes_take_no_step(pair: tuple[Client, Client]) -> None:
    a, b = pair
    a.run("PREPARE find AS SELECT x FROM t WHERE id = $1")
    a.rows("EXECUTE find (1)")
    engine = a.server.coordinator.engine
    a.run("BEGIN")
    a.run("UPDATE t SET x = x + 1 WHERE id = 1")
    steps = engine.steps
    assert a.rows("EXECUTE find (1)") == [("11",)]
    a.run("UPDATE t SET x = x + 1 WHERE id = 1")
    a.run("INSERT INTO t VALUES (3, 30)")
    assert a.rows("EXECUTE find (1)") == [("12",)]
    assert a.rows("EXECUTE find (3)") == [("30",)]
    a.run("DELETE FROM t WHERE id = 2")
    assert a.rows("EXECUTE find (2)") == []
    assert a.rows("SELECT x + 1 FROM t WHERE id = 3") == [("31",)]
    assert engine.steps == steps
    assert a.rows("SELECT * FROM v") == [("2", "42")]
    assert b.rows("SELECT x FROM t WHERE id = 1") == [("10",)]
    a.run("COMMIT")
    assert b.rows("SELECT * FROM v") == [("2", "42")]
    assert b.sorted("SELECT * FROM t") == [("1", "12"), ("3", "30")]


def test_transaction_control_that_the_protocol_has_prepared(pair: tuple[Client, Client]) -> None:
    a, b = pair
    for name, text in (("back", "ROLLBACK"), ("end_", "COMMIT"), ("point", "SAVEPOINT s")):
        a.server.run(a.session.parse(name, text, ()))
    a.run("BEGIN")
    a.run("INSERT INTO t VALUES (70, 1)")
    assert a.run("EXECUTE back") == "ROLLBACK"
    assert a.rows("SELECT * FROM t WHERE id = 70") == []
    a.run("BEGIN")
    a.run("INSERT INTO t VALUES (70, 1)")
    assert a.run("EXECUTE point") == "SAVEPOINT"
    assert a.run("EXECUTE end_") == "COMMIT"
    assert b.rows("SELECT count(*) FROM t WHERE id = 70") == [("1",)]
    assert a.state("EXECUTE point") == "25P01"
    assert a.state("PREPARE r AS ROLLBACK") == "42601"


def test_prepare_transaction_is_refused_and_rolls_back(pair: tuple[Client, Client]) -> None:
    a, _ = pair
    a.run("BEGIN")
    a.run("INSERT INTO t VALUES (3, 30)")
    assert a.state("PREPARE TRANSACTION 'x'") == "55000"
    assert a.rows("SELECT count(*) FROM t WHERE id = 3") == [("0",)]
    a.run("BEGIN")
    assert a.state("SELECT 1 / 0") == "22012"
    assert a.run("PREPARE TRANSACTION 'x'") == "ROLLBACK"
    assert a.run("PREPARE TRANSACTION 'x'") == "ROLLBACK"
