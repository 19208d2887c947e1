"""Functions and casts over many distinct values, one-shot, beside PostgreSQL.

``python -m benchmarks.values [names]``. A figure is the server's CPU time (all threads, user and system) of
``SELECT count(expression) FROM t``, scan included, divided by the rows: the least of a few runs that alternate with the
same statement in PostgreSQL, whose backend is measured the same way. PostgreSQL runs where the connection
string ``FRESHET_POSTGRES`` says (``host=… user=…``), on this machine; without one there is nothing to compare with.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import psycopg

from benchmarks.report import HERE, Row
from benchmarks.server import started

ROWS: Final = 50_000
TIMES: Final = 3
SLOW: Final = 5.0
"""Microseconds a row from which on one run is enough."""
ENOUGH: Final = 1.5
"""Microseconds a row that are few whatever PostgreSQL takes."""
MICROSECONDS: Final = "µs/row"
Cost = Callable[[str], float]
"""An expression → microseconds of CPU a row."""
TABLE: Final = (
    "id int PRIMARY KEY, i int, n numeric(12,2), u numeric, f float8, s text, w text, k text, y text, t timestamp, "
    "z timestamptz, d date, v interval, j jsonb, a int[]"
)
FILL: Final = (
    "SELECT g, g * 7 % 100003, (g * 37 % 1000003)::numeric / 100, (g * 13 % 100003)::numeric / 1000, g * 1.25, "
    "'item ' || g || ' of the list', 'Grüße aus Köln ' || g, (g * 31 % 100003)::text, "
    "'2024-01-01'::date + g % 20000 || '', "
    "'2001-02-03 04:05:06'::timestamp + g * interval '1 hour 13 seconds', "
    "'2001-02-03 04:05:06+00'::timestamptz + g * interval '1 hour 13 seconds', '1970-01-01'::date + g % 40000, "
    "g * interval '1 minute', "
    '(\'{"a": "x\' || g || \'", "b": {"c": \' || g || \'}, "d": [1, 2, \' || g || \']}\')::jsonb, '
    "ARRAY[g, g + 1, g + 2] FROM generate_series(1, {rows}) AS x(g)"
)
EXPRESSIONS: Final = (
    "s", "i + 1", "f * 2", "n + 1", "n * 1.5", "n / 3", "u / 3", "u % 7", "round(n, 1)", "round(u, 1)", "floor(n)",
    "abs(n)", "trunc(u, 1)", "s || 'x'", "s || w || k", "concat(s, i)", "concat_ws('-', s, k)", "upper(s)", "lower(w)",
    "substr(s, 3, 5)", "left(s, 6)", "right(w, 4)", "length(s)", "length(w)", "octet_length(s)",
    "s LIKE 'item 1%list'", "s LIKE '%9 of%'", "s NOT LIKE '%x'", "replace(s, 'of', 'in')",
    "split_part(s, ' ', 2)", "strpos(s, 'of')", "lpad(k, 10, '0')", "rpad(s, 30)", "trim(s)", "ltrim(k, '12')",
    "starts_with(s, 'item 1')", "reverse(s)", "repeat(k, 2)", "md5(s)", "s < w", "s = w", "initcap(s)",
    "translate(s, 'eo', 'xy')", "coalesce(NULLIF(s, 'item'), w)", "CASE WHEN i % 2 = 0 THEN s ELSE w END",
    "greatest(s, w)", "k::int", "k::bigint", "k::numeric", "k::float8", "i::text", "n::text", "u::text", "f::text",
    "d::text", "t::text", "z::text", "y::date", "f::int", "f::numeric", "t::date", "t + interval '1 day'",
    "t + i * interval '1 second'", "t - interval '1 month'", "z + interval '1 day'", "t - '2001-01-01'",
    "d + interval '1 month'", "d + i", "v * 2", "v + v", "date_bin('15 minutes', t, '2001-01-01')",
    "date_trunc('hour', t)", "date_trunc('month', t)", "date_trunc('day', z)", "extract(year FROM t)",
    "extract(epoch FROM t)", "extract(hour FROM z)", "extract(dow FROM d)", "age(t, '2001-01-01')",
    "to_char(t, 'YYYY-MM-DD HH24:MI:SS')", "to_char(n, 'FM999990.00')", "t AT TIME ZONE 'Europe/Berlin'",
    "z AT TIME ZONE 'America/New_York'", "to_timestamp(i)", "to_date(y, 'YYYY-MM-DD')", "j->>'a'", "j->'b'",
    "j #>> '{b,c}'", "(j->'b'->>'c')::int", "j @> '{\"a\": \"x7\"}'", "j ? 'a'", "jsonb_array_length(j->'d')", "a[2]",
    "array_length(a, 1)", "cardinality(a)", "a || 5", "3 = ANY(a)", "array_to_string(a, ',')", "row_to_json(x)",
    "to_json(s)", "jsonb_build_object('a', i)", "sqrt(f)", "i % 7", "power(f, 2)", "regexp_replace(s, '[0-9]+', '#')",
    "s ~ '1[0-9]+ of'",
)  # fmt: skip


def spent(process: int) -> float:
    """Seconds of CPU that a process of this machine has used, threads that have ended included (Linux's clock id)."""
    return time.clock_gettime((~process << 3) | 2)


def filled(connection: psycopg.Connection[Any], rows: int) -> None:
    """The table, in a database that may have one of an earlier run."""
    connection.execute("SET timezone = 'Europe/Berlin'")
    connection.execute("DROP TABLE IF EXISTS t")
    connection.execute(f"CREATE TABLE t ({TABLE})")  # type: ignore[arg-type]
    connection.execute(f"INSERT INTO t {FILL.replace('{rows}', str(rows))}")  # type: ignore[arg-type]


@contextmanager
def postgres(rows: int) -> Iterator[Cost | None]:
    """What gives the microseconds a row of an expression in PostgreSQL."""
    where = os.environ.get("FRESHET_POSTGRES")
    if not where:
        yield None
        return
    with psycopg.connect(where, autocommit=True) as connection:
        connection.execute("SET max_parallel_workers_per_gather = 0")
        filled(connection, rows)
        connection.execute("VACUUM ANALYZE t")
        process = connection.info.backend_pid
        yield lambda expression: cost(connection, process, expression, rows)


def cost(connection: psycopg.Connection[Any], process: int, expression: str, rows: int) -> float:
    """Microseconds of CPU a row."""
    before = spent(process)
    connection.execute(f"SELECT count({expression}) FROM t AS x")  # type: ignore[arg-type]
    return 1e6 * (spent(process) - before) / rows


def measure(expressions: Sequence[str], rows: int = ROWS) -> Iterator[Row]:
    """A row for each expression, as it is measured."""
    with started() as running, psycopg.connect(running.dsn, autocommit=True) as connection, postgres(rows) as theirs:
        filled(connection, rows)
        for expression in expressions:
            yield _compared(expression, lambda e: cost(connection, running.process, e, rows), theirs)


def _compared(expression: str, ours: Cost, theirs: Cost | None) -> Row:
    own: list[float] = []
    rival: list[float] = []
    while len(own) < TIMES and not (len(own) > 1 and min(own) > SLOW):
        own.append(ours(expression))
        if theirs is not None:
            rival.append(theirs(expression))
    shown = f"`{expression}`".replace("|", "\\|")
    if not rival:
        return Row("values", shown, MICROSECONDS, min(own))
    met = min(own) <= max(ENOUGH, 3 * min(rival))
    figures = {f"PostgreSQL{HERE}": min(rival)}
    return Row("values", shown, MICROSECONDS, min(own), figures, min(own) / min(rival), f"≤ {ENOUGH} or 3×", met)


def main() -> None:
    """Prints each figure when it is there; arguments are expressions, or parts of listed ones."""
    wanted = [e for e in EXPRESSIONS if not sys.argv[1:] or any(part in e for part in sys.argv[1:])]
    for row in measure(wanted or sys.argv[1:]):
        theirs = next(iter(row.rivals.values()), float("nan"))
        print(f"{row.ours:8.2f} {theirs:8.2f} {row.ratio or float('nan'):7.1f}  {row.case}", flush=True)


if __name__ == "__main__":
    main()
