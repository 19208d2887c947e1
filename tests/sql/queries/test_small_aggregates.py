"""Aggregates of a few rows are computed without a dataflow, with the dataflow's answers."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from ivm.errors import SqlError
from planner.peek import direct, run
from tests.support.profiles import scaled
from tests.support.sessions import Client, Server

SELECTS = (
    "count(*)", "count(a), sum(a), avg(a)", "sum(n), avg(n), stddev(n)", "sum(f), variance(f), avg(f)",
    "sum(b), sum(d)",
    "bool_and(a > 1), bool_or(a > 3), every(b IS NULL)", "count(DISTINCT a)", "sum(i), avg(i)", "count(s), sum(12 / a)",
    "sum(a) FILTER (WHERE b > 2), count(*) FILTER (WHERE s LIKE 'x%')", "bit_and(a), bit_or(a), regr_slope(f, f)",
)  # fmt: skip
WHERES = ("", "WHERE a = 2", "WHERE a > 100", "WHERE s LIKE 'x%'", "WHERE a IS NULL", "WHERE k BETWEEN 3 AND 20")
GROUPS = (None, "a", "a, b", "s", "a % 3", "coalesce(n, 0)")


def _set_up(client: Client, random: Random) -> None:
    client.run("CREATE TABLE t (k int, a int, b int8, n numeric, f float8, s text, d numeric(9, 2), i interval)")
    rows = []
    for k in range(60):
        a = random.choice((0, 1, 2, 3, 4, "NULL"))
        b = random.choice((1, 2, 9223372036854775807, -9223372036854775807, "NULL"))
        n = random.choice(("0.5", "123456789012345678901234567890.125", "-1e-30", "NULL", "'NaN'", "7"))
        f = random.choice(("1.5", "-1e300", "1e-300", "'NaN'", "NULL", "0.1"))
        s = random.choice(("'x1'", "'x2'", "'y'", "NULL"))
        d = random.choice(("12.34", "-0.01", "NULL"))
        i = random.choice(("'1 day'", "'1 mon 2:00'", "NULL"))
        rows += [f"({k}, {a}, {b}, {n}, {f}, {s}, {d}, {i})"] * random.choice((1, 1, 2))
    client.run(f"INSERT INTO t VALUES {', '.join(rows)}")


def _queries() -> list[str]:
    plain = [f"SELECT {select} FROM t {where}" for select in SELECTS for where in WHERES]
    grouped = [
        f"SELECT {key}, {select} FROM t {where} GROUP BY {key}"
        for select in SELECTS for where in WHERES for key in GROUPS if key is not None
    ]  # fmt: skip
    having = [f"SELECT a, count(*) FROM t {where} GROUP BY a HAVING count(*) > 2 AND max(k) > 3" for where in WHERES]
    nested = ["SELECT avg(c) FROM (SELECT a, count(*) AS c FROM t GROUP BY a) x", "SELECT sum(c) FROM (SELECT 1 c) y"]
    return plain + grouped + having + nested


def _answer(client: Client, text: str) -> object:
    try:
        return client.sorted(text)
    except SqlError as error:
        return error.sqlstate, error.message


def test_the_same_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server, random = Server(tmp_path / "data"), Random(5)
    client = server.client()
    _set_up(client, random)
    queries = _queries()
    for text in random.sample(queries, min(scaled(150), len(queries))):
        answer = _answer(client, text)
        with monkeypatch.context() as patch:
            patch.setattr(direct, "GROUPED", -1)
            assert _answer(client, text) == answer, text
    monkeypatch.setattr(run, "_dataflow", lambda *_: pytest.fail("a dataflow is made"))
    for text in ("SELECT count(*), sum(n), avg(f) FROM t WHERE a = 2", "SELECT a, s, sum(b) FROM t GROUP BY a, s"):
        assert isinstance(_answer(client, text), list)
    server.close()
