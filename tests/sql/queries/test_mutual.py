"""WITH MUTUALLY RECURSIVE from SQL: rounds, nesting, types, errors, limits that heal, and views that run away."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from time import sleep

import pytest

from ivm.errors import SqlError
from tests.support.sessions import Client, Server

REACH = "r(a int, b int) AS (SELECT x, y FROM e UNION SELECT r.a, e.y FROM r JOIN e ON r.b = e.x)"


@pytest.fixture
def a(server: Server) -> Iterator[Client]:
    client = server.client()
    client.run("CREATE TABLE e (x int, y int)")
    yield client
    client.run("DROP TABLE e CASCADE")


def block(bindings: str, body: str, limit: str = "") -> str:
    return f"WITH MUTUALLY RECURSIVE {limit} {bindings} {body}"


def test_later_bindings_see_the_new_values_earlier_ones_a_round_later(a: Client) -> None:
    """Two bindings that each read both: the state after each round."""
    bindings = (
        "a(n bigint) AS (SELECT count(*) + (SELECT coalesce(max(n), 0) FROM b) FROM a), "
        "b(n bigint) AS (SELECT n * 10 FROM a)"
    )
    states = []
    for rounds in range(1, 5):
        text = block(bindings, "SELECT a.n, b.n FROM a, b", f"(RETURN AT RECURSION LIMIT {rounds})")
        states += a.rows(text)
    n, m, expected, rows = 0, 0, [], 0
    for _ in range(4):
        n, rows = rows + m, 1
        m = 10 * n
        expected.append((str(n), str(m)))
    assert states == expected


def test_negation_is_read_as_of_the_round(a: Client) -> None:
    """A binding that alternates does not end; one that settles does."""
    flip = "p(n int) AS (SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM p))"
    for rounds in (1, 2, 3, 4):
        found = a.rows(block(flip, "SELECT * FROM p", f"(RETURN AT RECURSION LIMIT {rounds})"))
        assert found == ([("1",)] if rounds % 2 else [])
    error = a.error(block(flip, "SELECT * FROM p", "(ERROR AT RECURSION LIMIT 7)"))
    assert (error.sqlstate, error.message) == ("54001", "recursion did not end within 7 rounds")
    assert error.detail == 'Rows of "p" still changing: +(1).'
    error = a.error(block(flip, "SELECT * FROM p", "(RECURSION LIMIT = 8)"))
    assert error.detail == 'Rows of "p" still changing: -(1).'
    won = "won(p int) AS (SELECT x FROM e WHERE y NOT IN (SELECT p FROM won))"
    a.run("INSERT INTO e VALUES (1, 2), (2, 3), (3, 4)")
    assert a.rows(block(won, "SELECT * FROM won ORDER BY p")) == [("1",), ("3",)]


@pytest.mark.parametrize(
    ("text", "state", "words"),
    [
        ("(RECURSION LIMIT 0) r(n int) AS (SELECT 1) SELECT 1", "22023", "greater than zero"),
        ("(RECURSION LIMIT x) r(n int) AS (SELECT 1) SELECT 1", "42601", 'at or near "x"'),
        ("(RECURSIONS 5) r(n int) AS (SELECT 1) SELECT 1", "42601", 'at or near "RECURSIONS"'),
        ("(RETURN AT 5) r(n int) AS (SELECT 1) SELECT 1", "42601", 'at or near "5"'),
        ("r(n int) AS (SELECT 1, 2) SELECT 1", "42601", "declares 1 columns but has 2"),
        ("r(n int) AS (SELECT 1), r(n int) AS (SELECT 1) SELECT 1", "42712", "more than once"),
        ("r(n int) AS (SELECT 'a'::text) SELECT 1", "42804", "is declared integer but is text"),
        ("r(n nope) AS (SELECT 1) SELECT 1", "42704", 'type "nope" does not exist'),
        ("r AS (SELECT 1) SELECT 1", "42601", "syntax error"),
        ("r(n) AS (SELECT 1) SELECT 1", "42601", "syntax error"),
        ("r(n int) AS (SELECT m FROM r) SELECT 1", "42703", 'column "m" does not exist'),
        ("r(n int) AS (DELETE FROM e RETURNING x) SELECT 1", "0A000", "data-modifying"),
        ("r(n int) AS (SELECT 1) SELECT * FROM s", "42P01", 'relation "s" does not exist'),
        ("r(n smallint) AS (SELECT 70000) SELECT * FROM r", "22003", "smallint out of range"),
    ],
)
def test_what_is_refused(a: Client, text: str, state: str, words: str) -> None:
    error = a.error(f"WITH MUTUALLY RECURSIVE {text}")
    assert (error.sqlstate, words in error.message) == (state, True), error.message


def test_values_are_cast_to_the_declared_types_as_by_assignment(a: Client) -> None:
    bindings = "r(a numeric(5,2), b varchar(3), c smallint, d text) AS (SELECT 7.777, 'abc'::text, 7000, NULL)"
    body = "SELECT a, b, c, d, pg_typeof(c)::text FROM r"
    assert a.rows(block(bindings, body)) == [("7.78", "abc", "7000", None, "smallint")]


def test_blocks_stand_wherever_a_query_does(a: Client) -> None:
    up = "r(n int) AS (SELECT v.k UNION SELECT n + 1 FROM r WHERE n < v.k + 3)"
    query = f"SELECT ({block(up, 'SELECT sum(n) FROM r')}) FROM (VALUES (1), (10)) v(k)"
    assert a.sorted(query) == [("10",), ("46",)]
    inner = block("q(a int) AS (SELECT a + 1 FROM q WHERE a < 3 UNION SELECT 1)", "SELECT n, a FROM t, q")
    query = f"WITH RECURSIVE t(n) AS (SELECT 1 UNION SELECT n + a FROM ({inner}) z WHERE n < 5) SELECT * FROM t"
    assert a.sorted(query) == [(str(n),) for n in range(1, 8)]
    inner = "WITH RECURSIVE w(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM w WHERE n < 3) SELECT n FROM w"
    nested = f"r(a int) AS ({inner} UNION SELECT a + 10 FROM r WHERE a < 20)"
    assert len(a.rows(block(nested, "SELECT * FROM r"))) == 9
    a.run("CREATE TABLE made AS " + block("r(n int) AS (SELECT 1 UNION SELECT n + 1 FROM r WHERE n < 4)", "TABLE r"))
    assert a.rows("SELECT sum(n) FROM made") == [("10",)]
    a.run("DROP TABLE made")


def test_a_view_is_printed_explained_verified_and_subscribed(a: Client) -> None:
    a.run("INSERT INTO e VALUES (1, 2), (2, 3)")
    text = block(REACH, "SELECT * FROM r", "(ERROR AT RECURSION LIMIT 30)")
    a.run(f"CREATE MATERIALIZED VIEW m AS {text}")
    a.run(f"CREATE VIEW p AS {text}")
    for view in ("m", "p"):
        ((shown,),) = a.rows(f"SELECT pg_get_viewdef('{view}'::regclass, true)")
        assert " ".join((shown or "").split()) == (
            "WITH MUTUALLY RECURSIVE (RECURSION LIMIT 30) r (a integer, b integer) AS ( SELECT e.x, e.y FROM e UNION "
            "SELECT r_1.a, e.y FROM r r_1 JOIN e ON r_1.b = e.x ) SELECT r.a, r.b FROM r;"
        )
        assert len(a.rows(f"SELECT * FROM {view}")) == 3
    plan = "\n".join(row[0] or "" for row in a.rows(f"EXPLAIN {text}"))
    assert "Variable 0 of loop 0, 30 rounds at most" in plan
    assert "error where r still changes in round 30" in plan
    a.run("BEGIN")
    a.run("DECLARE c CURSOR FOR SUBSCRIBE m")
    assert len(a.rows("FETCH ALL c")) == 3
    a.run("COMMIT")
    a.run("INSERT INTO e VALUES (3, 1)")
    assert a.rows("VERIFY MATERIALIZED VIEW m") == []
    assert a.rows("SELECT count(*) FROM m") == [("9",)]
    a.run("DELETE FROM e WHERE x = 2")
    assert a.sorted("SELECT * FROM m") == [("1", "2"), ("3", "1"), ("3", "2")]


def test_a_view_past_its_limit_has_an_error_and_heals(server: Server, a: Client) -> None:
    """The error names the rows that still change; a view over it has the error too; a restart keeps both."""
    a.run("INSERT INTO e VALUES (1, 2), (2, 3), (3, 4)")
    a.run(f"CREATE MATERIALIZED VIEW m AS {block(REACH, 'SELECT * FROM r', '(ERROR AT RECURSION LIMIT 4)')}")
    a.run("CREATE MATERIALIZED VIEW n AS SELECT count(*) FROM m")
    assert a.rows("SELECT * FROM n") == [("6",)]
    a.run("INSERT INTO e VALUES (4, 5)")
    error = a.error("SELECT * FROM m")
    assert (error.sqlstate, error.detail) == ("54001", 'Rows of "r" still changing: +(1, 5).')
    assert "within 4 rounds" in error.message
    assert a.state("SELECT * FROM n") == "54001"
    expected = [(v, "54001", "recursion did not end within 4 rounds", "+(1, 5)") for v in ("m", "n")]
    assert a.rows("SELECT * FROM freshet.view_errors") == expected
    server.restart()
    b = server.client()
    assert b.state("SELECT * FROM n") == "54001"  # once it is filled
    assert b.rows("SELECT * FROM freshet.view_errors") == expected
    b.run("INSERT INTO e VALUES (5, 6), (6, 7)")
    assert (b.error("SELECT * FROM m").detail or "").endswith("+(1, 5), +(2, 6), +(3, 7).")
    b.run("DELETE FROM e WHERE x = 3")
    assert b.rows("SELECT * FROM n") == [("9",)]
    assert b.rows("SELECT * FROM freshet.view_errors") == []
    assert b.rows("VERIFY MATERIALIZED VIEW m") == []
    a.server, a.session = b.server, b.session


def test_an_inner_error_counts_where_it_stands_at_the_end(a: Client) -> None:
    """The inner loop alternates while the outer binding is empty, which is in the outer one's first round only."""
    inner = block("p(n int) AS (SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM p) AND NOT EXISTS (SELECT 1 FROM o))",
                  "SELECT count(*) FROM p", "(ERROR AT RECURSION LIMIT 5)")  # fmt: skip
    outer = f"o(n bigint) AS (SELECT * FROM ({inner}) q WHERE EXISTS (SELECT 1 FROM e))"
    a.run(f"CREATE MATERIALIZED VIEW m AS {block(outer, 'SELECT * FROM o', '(RETURN AT RECURSION LIMIT 3)')}")
    assert a.state("SELECT * FROM m") == "54001"
    a.run("INSERT INTO e VALUES (1, 1)")
    assert a.rows("SELECT * FROM m") == [("0",)]
    a.run("DELETE FROM e")
    assert a.state("SELECT * FROM m") == "54001"


def test_loops_are_nested_only_where_one_reads_the_other(a: Client) -> None:
    """Five and more deep in the text; rounds then have few bits of a time, and more than twelve levels are refused."""

    def nest(depth: int, reads: bool, loops: int = 5, most: int = 3) -> str:
        more = f" UNION SELECT n + 1 FROM b{depth - 1} WHERE n < 2" if reads and depth else ""
        below = nest(depth + 1, reads, loops, most) if depth < loops - 1 else "SELECT 1"
        name = f"b{depth}"
        value = f"SELECT * FROM ({below}) q UNION SELECT n + 1 FROM {name} WHERE n < {most}{more}"
        return block(f"{name}(n int) AS ({value})", f"SELECT * FROM {name}")

    assert a.sorted(nest(0, False)) == [("1",), ("2",), ("3",)]
    assert a.sorted(nest(0, True)) == [("1",), ("2",), ("3",)]
    assert a.sorted(nest(0, True, 8)) == [("1",), ("2",), ("3",)]
    assert a.sorted(nest(0, True, 12)) == [("1",), ("2",), ("3",)]
    error = a.error(nest(0, True, 12, 20))
    assert (error.sqlstate, "recursion did not end within" in error.message) == ("54001", True)
    error = a.error(nest(0, True, 13))
    assert (error.sqlstate, "nested more than 12 deep" in error.message) == ("0A000", True)


def test_loops_with_limits_leave_their_room_to_the_others(a: Client) -> None:
    """Three deep, unlimited loops have 2,047 rounds each; a single one has most of what the other two do not need."""

    def counting(head: str) -> str:
        inner = block(
            "c(n int) AS (SELECT n FROM a UNION SELECT n FROM b UNION SELECT n + 1 FROM c WHERE n < 3000)",
            "SELECT n FROM c",
        )
        middle = block(
            f"b(n int) AS (SELECT max(n) / 3000 FROM ({inner}) q UNION SELECT n FROM a)", "SELECT n FROM b", head
        )
        return block(f"a(n int) AS (SELECT 1 UNION SELECT n FROM ({middle}) q)", "SELECT max(n) FROM a", head)

    error = a.error(counting(""))
    assert (error.sqlstate, error.message) == ("54001", "recursion did not end within 2047 rounds")
    assert a.rows(counting("(RECURSION LIMIT 9)")) == [("1",)]


def test_a_view_that_runs_away_is_dropped_at_once(server: Server, a: Client) -> None:
    b, c = server.client(), server.client()
    endless = block("r(n bigint) AS (SELECT x FROM e UNION ALL SELECT n + 1 FROM r)", "SELECT count(*) FROM r")
    a.run(f"CREATE MATERIALIZED VIEW m AS {endless}")
    a.run("CREATE MATERIALIZED VIEW total AS SELECT sum(y) FROM e")
    engine = server.coordinator.engine
    insert = threading.Thread(target=lambda: b.run("INSERT INTO e VALUES (1, 1)"))
    insert.start()
    while engine.dataflow._context.running is None:
        sleep(0.01)
    failed = engine.dataflow.failed
    assert c.run("DROP MATERIALIZED VIEW m") == "DROP MATERIALIZED VIEW"
    insert.join()
    assert engine.dataflow.failed > failed, "the loop has not come to its limit"
    assert c.rows("SELECT * FROM total") == [("1",)]
    c.run("INSERT INTO e VALUES (2, 2)")
    assert c.rows("SELECT * FROM total") == [("3",)]


def test_a_drop_does_not_end_the_loop_of_another_view(server: Server, a: Client) -> None:
    """DROP waits if the running loop belongs to another view, until that is left to be filled beside the engine."""
    b = server.client()
    a.run("INSERT INTO e SELECT i, i + 1 FROM generate_series(1, 400) i")
    a.run(f"CREATE MATERIALIZED VIEW m AS {block(REACH, 'SELECT * FROM r')}")
    a.run(f"CREATE MATERIALIZED VIEW same AS {block(REACH, 'SELECT * FROM r')}")
    a.run("CREATE MATERIALIZED VIEW other AS SELECT count(*) FROM e")
    engine = server.coordinator.engine
    change = threading.Thread(target=lambda: b.run("UPDATE e SET y = 1000 WHERE x = 200"))
    change.start()
    assert a.run("DROP MATERIALIZED VIEW other") == "DROP MATERIALIZED VIEW"
    assert a.run("DROP MATERIALIZED VIEW same") == "DROP MATERIALIZED VIEW"
    change.join()
    assert {error.sqlstate for error in engine.failures.values()} <= {"55000"}
    assert a.rows("VERIFY MATERIALIZED VIEW m") == []


def test_a_one_shot_query_that_runs_away_is_cancelled(a: Client) -> None:
    a.run("SET statement_timeout = '200ms'")
    endless = block("r(n bigint) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r)", "SELECT count(*) FROM r")
    with pytest.raises(SqlError) as raised:
        a.rows(endless)
    assert raised.value.sqlstate == "57014"
    a.run("SET statement_timeout = 0")


def test_a_recursive_query_that_does_not_end_is_named(a: Client) -> None:
    endless = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT"
    a.run("SET recursion_limit = 500")
    error = a.error(f"{endless} count(*) FROM t")
    assert (error.sqlstate, error.message) == ("54001", 'recursive query "t" did not end within 500 rounds')
    assert error.detail == 'Rows of "t" still changing: +(501).'
    assert a.rows(f"{endless} n FROM t WHERE n > 498 LIMIT 1") == [("499",)]
    assert a.error(f"{endless} n FROM t WHERE n > 600 LIMIT 1").sqlstate == "54001"
    assert a.error("SET recursion_limit = -1").sqlstate == "22023"
    a.run("RESET recursion_limit")


def test_a_limit_that_may_stop_a_query_does_not_stop_a_check_or_a_change(a: Client) -> None:
    """Where two runs must agree, LIMIT takes the least rows of the whole."""
    down = "SELECT n FROM generate_series(9000, 1, -1) n LIMIT 3"
    a.run(f"CREATE MATERIALIZED VIEW least AS {down}")
    assert a.rows("VERIFY MATERIALIZED VIEW least") == []
    a.run("DROP MATERIALIZED VIEW least")
    rows = a.rows(
        f"WITH x AS ({down}), i AS (INSERT INTO e SELECT n, 0 FROM x RETURNING x) "
        "SELECT count(*) FROM i JOIN x ON n = x, (SELECT generate_series(1, 5) LIMIT 1) s"
    )
    assert rows == [("3",)]
    a.run("DELETE FROM e")
