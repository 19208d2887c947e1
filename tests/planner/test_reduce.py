"""Aggregates in maintained views against the model, and sums that do not drift."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from examples.ivm import spread
from ivm.errors import SqlError
from ivm.words import FLOAT8, INT8, NUMERIC, ColumnType
from planner.expr.scalar import Aggregate, Column
from planner.logical.nodes import Get, Reduce
from storage.types.codec import float_to_word
from tests.planner.test_reduce_growth import feed
from tests.programs.model_aggregates import play
from tests.support.bind_fake import FakeCatalog, query
from tests.support.planner_bench import World
from tests.support.profiles import scaled
from tests.support.sessions import Server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.close()


def test_random_histories_of_groups(server: Server) -> None:
    clients = [(server.client(), "MATERIALIZED VIEW")]
    for seed in range(scaled(10)):
        play(clients, seed)


@pytest.mark.parametrize("kind", ["interval", "uuid", "numeric", "bytea", "text", "float8"])
def test_a_percentile_where_nothing_counts_is_null(server: Server, kind: str) -> None:
    """Without rows, or with NULLs only, there is no word to read a value from."""
    client = server.client()
    client.run(f"CREATE TABLE t (g int, v {kind})")
    call = "percentile_disc(0.5) WITHIN GROUP (ORDER BY v DESC)"
    client.run(f"CREATE MATERIALIZED VIEW whole AS SELECT {call} FROM t")
    client.run(f"CREATE MATERIALIZED VIEW each AS SELECT g, {call} FROM t GROUP BY g")
    assert client.rows("SELECT * FROM whole") == [(None,)]
    client.run("INSERT INTO t VALUES (1, NULL), (1, NULL), (2, NULL)")
    assert client.rows("SELECT * FROM whole") == [(None,)]
    assert sorted(client.rows("SELECT * FROM each")) == [("1", None), ("2", None)]


def test_sums_do_not_drift() -> None:
    """After four hundred thousand retractions in any order, the sum's word is the same to the last bit."""
    rnd = np.random.default_rng(7)
    values = rnd.normal(0, 1, 100_000) * 10.0 ** rnd.integers(-30, 30, 100_000)
    world = World({1: ((ColumnType(INT8, False), ColumnType(FLOAT8, False), ColumnType(INT8, False)), ())})
    get = Get(1, world.tables[1][0])
    value, number = Column(1, FLOAT8, False), Column(2, INT8, False)
    calls = tuple(
        Aggregate(f, (value if "float8" in f else number,), t)
        for f, t in (("sum(float8)", FLOAT8), ("stddev(float8)", FLOAT8), ("sum(int8)", NUMERIC))
    )
    world.install(100, Reduce(get, (Column(0, INT8, False),), calls))
    words = np.stack(
        [np.zeros(100_000, np.int64), float_to_word(values), rnd.integers(-(2**62), 2**62, 100_000)], axis=1
    )
    kept = words[:1000]
    feed(world, kept, 1)
    before = world.view(100)
    for _ in range(4):
        feed(world, words, 1)
        order = rnd.permutation(len(words))
        for part in np.array_split(order, 5):
            feed(world, words[part], -1)
    assert world.view(100) == before
    (row,) = before
    assert row[1] == float(sum(map(Fraction, values[:1000].tolist())))
    assert row[3] == sum(kept[:, 2].tolist())


def test_the_documented_operator() -> None:
    assert spread.main() == [
        "at 1: +(7, 0)", "at 2: -(7, 0), +(7, 7)", "at 3: +(8, 0)", "at 4: +(7, 0), -(7, 7)", "at 5: -(7, 0)",
    ]  # fmt: skip


def test_the_mode_of_a_scaled_numeric_is_of_its_scale(server: Server) -> None:
    """mode() returns numeric without a scale; its argument has one, so their words differ."""
    client = server.client()
    client.run("CREATE TABLE scaled (k int, p numeric(10, 2))")
    client.run(
        "CREATE MATERIALIZED VIEW modes AS SELECT k, mode() WITHIN GROUP (ORDER BY p DESC) FROM scaled GROUP BY k"
    )
    client.run("INSERT INTO scaled VALUES (1, 3), (1, 3), (1, 9), (2, NULL), (3, 1.5), (3, 2.5)")
    assert client.rows("SELECT * FROM modes ORDER BY k") == [("1", "3.00"), ("2", None), ("3", "2.50")]
    client.run("DELETE FROM scaled WHERE p IN (3, 2.5)")
    assert client.rows("SELECT * FROM modes ORDER BY k") == [("1", "9.00"), ("2", None), ("3", "1.50")]
    assert client.rows("VERIFY MATERIALIZED VIEW modes") == []
    client.run("DROP TABLE scaled CASCADE")
    client.close()


@pytest.mark.parametrize(("text", "state", "message"), [
    ("sum(DISTINCT x) OVER ()", "0A000", "DISTINCT is not implemented for window functions"),
    ("array_agg(x ORDER BY x) OVER ()", "0A000", "aggregate ORDER BY is not implemented for window functions"),
    ("row_number() FILTER (WHERE true) OVER ()", "0A000",
     "FILTER is not implemented for non-aggregate window functions"),
    ("percentile_cont(0.5) WITHIN GROUP (ORDER BY x) OVER ()", "0A000",
     "OVER is not supported for ordered-set aggregate percentile_cont"),
    ("sum(x) OVER (ORDER BY x RANGE (SELECT 1) PRECEDING)", "0A000",
     "a subquery in the offset of RANGE is not supported"),
    ("sum(x) IGNORE NULLS OVER ()", "0A000", "function sum does not allow RESPECT/IGNORE NULLS"),
    ("ntile(1.5) OVER ()", "42883", "function ntile(numeric) does not exist"),
    ("lag() OVER (ORDER BY x)", "42883", "function lag() does not exist"),
    ("lag(x, 1, true) OVER (ORDER BY x)", "42883", "function lag(integer, integer, boolean) does not exist"),
    ("lead(x)", "42809", "window function lead requires an OVER clause"),
    ("abs(x) OVER ()", "42809", "OVER specified, but abs is not a window function nor an aggregate function"),
    ("no_such(x) OVER ()", "42883", "function no_such(integer) does not exist"),
    ("sum(sum(x) OVER ()) OVER ()", "42P20", "window function calls cannot be nested"),
    ("sum(x) OVER (PARTITION BY sum(x) OVER ())", "42P20", "window functions are not allowed in window definitions"),
    ("sum(sum(x) OVER ())", "42803", "aggregate function calls cannot contain window function calls"),
])  # fmt: skip
def test_windows_that_are_refused(text: str, state: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        query(f"SELECT {text} FROM t", FakeCatalog("CREATE TABLE t (g int, x int)"))
    assert (caught.value.sqlstate, caught.value.message) == (state, message)
