"""A change of a window over a large partition costs searches and the rows whose results change: counters at partitions
of 2,000 and 60,000 rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ivm.counters import Counters
from tests.support.sessions import Server

SIZES = (2_000, 60_000)
"""What costs every sixtieth row of a partition exceeds the bounds below at the larger one."""
CALLS = {
    "running sum at its end": ("sum(x) OVER (ORDER BY a)", 1.0),
    "running sum of floats at its end": ("sum(f) OVER (ORDER BY a)", 1.0),
    "running max in the middle": ("max(x) OVER (ORDER BY a)", 0.5),
    "running min of texts in the middle": ("min(s) OVER (ORDER BY a)", 0.5),
    "sum of rows": ("sum(x) OVER (ORDER BY a ROWS 3 PRECEDING)", 0.5),
    "sum of a range": ("sum(x) OVER (ORDER BY a RANGE BETWEEN 5 PRECEDING AND 5 FOLLOWING)", 0.5),
    "sum of groups": ("sum(x) OVER (ORDER BY a GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES)", 0.5),
    "max of a range": ("max(x) OVER (ORDER BY a RANGE BETWEEN 5 PRECEDING AND 5 FOLLOWING)", 0.5),
    "sum of half of the rows at its end": ("sum(x) OVER (ORDER BY a RANGE {half} PRECEDING)", 1.0),
    "variance of half of the rows at its end": ("variance(x) OVER (ORDER BY a ROWS {half} PRECEDING)", 1.0),
    "max of half of the rows at its end": ("max(x) OVER (ORDER BY a RANGE {half} PRECEDING)", 1.0),
    "bool_and to the partition's end": ("bool_and(x > -9) OVER (ORDER BY a DESC ROWS UNBOUNDED PRECEDING)", 0.0),
    "lag and lead": ("lag(x, 2) OVER (ORDER BY a)", 0.5),
    "lag of values": ("lag(x, 2) IGNORE NULLS OVER (ORDER BY a)", 0.5),
    "first_value": ("first_value(x) OVER (ORDER BY a)", 0.5),
    "last_value": ("last_value(x) OVER (ORDER BY a)", 0.5),
    "nth_value": ("nth_value(x, 3) OVER (ORDER BY a)", 0.5),
    "row_number at its end": ("row_number() OVER (ORDER BY a)", 1.0),
    "rank at its end": ("rank() OVER (ORDER BY a)", 1.0),
    "dense_rank at its end": ("dense_rank() OVER (ORDER BY a)", 1.0),
    "ntile in the middle": ("ntile(10) OVER (ORDER BY a)", 0.5),
    "lag by a column": ("lag(x, a % 7) OVER (ORDER BY a)", 0.5),
    "lead by a column, backwards too": ("lead(x, a % 7 - 3) OVER (ORDER BY a)", 0.5),
    "nth_value by a column": ("nth_value(x, a % 7 + 1) OVER (ORDER BY a)", 0.5),
    "string_agg of rows": ("string_agg(s, '') OVER (ORDER BY a ROWS 3 PRECEDING)", 0.5),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("growth") / "data", memory=1 << 30)
    for size in SIZES:
        server.client().run(
            f"CREATE TABLE t{size} (a int, x int, f float8, s text);"
            f"INSERT INTO t{size} SELECT 2 * i, i * 7919 % 1000, i % 77 / 8.0, chr(97 + i % 26)"
            f" FROM generate_series(1, {size}) i"
        )
    yield server
    server.close()


@pytest.mark.parametrize("name", CALLS)
def test_one_row_costs_searches(server: Server, name: str) -> None:
    """Thirty times the rows cost a few more steps of searches in all."""
    small, large = (spent(server, name, size) for size in SIZES)
    assert large.history < 2 * small.history + 900, (small, large)
    assert large.seeks < 4 * small.seeks + 900, (small, large)


def spent(server: Server, name: str, size: int) -> Counters:
    """The cost of inserting a row at some place and deleting it again, once the sums of layers are made."""
    call, place = CALLS[name]
    client = server.client()
    client.run(f"CREATE MATERIALIZED VIEW v AS SELECT a, {call.format(half=size // 2)} FROM t{size}")
    at = 2 * int(size * place) + 1
    flow = server.coordinator.engine.dataflow
    for _ in range(2):
        before = flow.counters
        client.run(f"INSERT INTO t{size} VALUES ({at}, 3, 0.5, 'm')")
        client.run(f"DELETE FROM t{size} WHERE a = {at}")
        found = flow.counters - before
    client.run("DROP MATERIALIZED VIEW v")
    return found
