"""User-defined aggregates in Python: random histories of groups, compared with the built-in aggregates and a model.

``python -m tests.programs.user_aggregates --count 1000`` plays many. The functions in SQL and those of the model share
nothing: the former are text that the server runs, the latter read the history's rows.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ivm.errors import SqlError
from tests.programs.model_aggregates import Play
from tests.support.model_folds import Case, discrete, last_null, listed, on, pairs, text, there
from tests.support.sessions import Client, Server

DEFINITIONS = (
    "py_sum(int) RETURNS bigint LANGUAGE python AS $$ def py_sum(values): return sum(values) $$",
    "py_sum(numeric) RETURNS numeric LANGUAGE python AS $$ def py_sum(values): return sum(values) $$",
    "py_count(int) RETURNS bigint LANGUAGE python CALLED ON NULL INPUT AS $$"
    " def py_count(values): return sum(v is not None for v in values) $$",
    "py_max(text) RETURNS text LANGUAGE python AS $$ def py_max(values): return max(values) $$",
    "py_min(date) RETURNS date LANGUAGE python AS $$ def py_min(values): return min(values) $$",
    "py_or(boolean) RETURNS boolean LANGUAGE python AS $$ def py_or(values): return any(values) $$",
    "py_array(int) RETURNS int[] LANGUAGE python CALLED ON NULL INPUT AS $$"
    " def py_array(values): return values or None $$",
    """py_avg(double precision) RETURNS double precision LANGUAGE python AS $$
from fractions import Fraction

def py_avg(values):
    return float(sum(map(Fraction, values)) / len(values))
$$""",
    """py_slope(y double precision, x double precision) RETURNS double precision LANGUAGE python AS $$
from fractions import Fraction

def py_slope(ys, xs):
    ys, xs = [list(map(Fraction, v)) for v in (ys, xs)]
    y, x = (sum(v) / len(v) for v in (ys, xs))
    sxx = sum((a - x) ** 2 for a in xs)
    return float(sum((a - x) * (b - y) for a, b in zip(xs, ys)) / sxx) if sxx else None
$$""",
    """widest_gap(date) RETURNS interval LANGUAGE python AS $$
from datetime import timedelta

def widest_gap(days):
    return max((b - a for a, b in zip(days, days[1:])), default=timedelta())
$$""",
    """runs(text) RETURNS text LANGUAGE python AS $$
from itertools import groupby

def runs(letters):
    return "".join(f"{len(list(part))}{letter}" for letter, part in groupby(letters))
$$""",
    """middle(numeric) RETURNS numeric LANGUAGE python AS $$
def middle(values):
    kept = sorted(values)[1:-1]
    return sum(kept) / len(kept) if kept else None
$$""",
    "py_top(bigint) RETURNS bigint LANGUAGE python AS $$ def py_top(values): return max(values) $$",
    """picky(int) RETURNS int LANGUAGE python AS $$
def picky(values):
    if -4 in values:
        raise ValueError("minus four")
    return "many" if len(values) > 6 else len(values)
$$""",
)

EQUAL = (
    ("py_sum(x)", "sum(x)"), ("py_sum(m)", "sum(m)"), ("py_count(x)", "count(x)"), ("py_max(s)", "max(s)"),
    ("py_min(d)", "min(d)"), ("py_or(b)", "bool_or(b)"), ("py_array(x ORDER BY x)", "array_agg(x ORDER BY x)"),
    ("py_array(DISTINCT x)", "array_agg(DISTINCT x)"), ("py_sum(x) FILTER (WHERE b)", "sum(x) FILTER (WHERE b)"),
    ("py_avg(f)", "avg(f)"),
)  # fmt: skip
"""Aggregates, each with a built-in one that gives the same words."""

LOOP = (
    "WITH MUTUALLY RECURSIVE r(g int, n bigint) AS (SELECT g, {count}(x) FROM t GROUP BY g UNION "
    "SELECT q.g + 1, q.n FROM (SELECT g, {top}(n) AS n FROM r WHERE g < 6 GROUP BY g) q), "
    "s(n bigint) AS (SELECT {top}(n) FROM r) SELECT r.g, r.n, s.n AS top FROM r, s"
)


def gap(values: Sequence[date]) -> str:
    days = sorted(values)
    widest = max(((b - a).days for a, b in pairwise(days)), default=0)
    return f"{widest} day{'' if widest == 1 else 's'}" if widest else "00:00:00"


def letters(values: Sequence[str]) -> str:
    counts = Counter(values)
    return "".join(f"{counts[letter]}{letter}" for letter in sorted(counts))


def trimmed(values: Sequence[Decimal]) -> Fraction | None:
    kept = sorted(values)[1:-1]
    return Fraction(sum(kept)) / len(kept) if kept else None


CASES = (
    Case("py_sum(x)", on("x", sum)),
    Case("py_sum(m)", text("m", sum)),
    Case("py_sum(m) FILTER (WHERE b)", lambda rows: text("m", sum)([r for r in rows if r["b"]])),
    Case("py_sum(DISTINCT m)", text("m", lambda v: sum(set(v)))),
    Case("py_count(x)", lambda rows: len(there(rows, "x"))),
    Case("py_max(s)", on("s", max)),
    Case("py_min(d)", text("d", min)),
    Case("py_or(b)", on("b", any)),
    Case("py_avg(f)", on("f", lambda v: sum(map(Fraction, v), Fraction(0)) / len(v))),
    Case("py_array(x)", lambda rows: listed(sorted((r["x"] for r in rows), key=last_null))),
    Case("py_array(x ORDER BY d DESC, x) FILTER (WHERE d IS NOT NULL)", lambda rows: listed(r["x"] for r in sorted(
        (r for r in rows if r["d"] is not None), key=lambda r: (-r["d"].toordinal(), last_null(r["x"]))))),
    Case("py_slope(f, x)", pairs(lambda n, y, x, yy, xx, xy: xy / xx if xx else None)),
    Case("widest_gap(d)", on("d", gap)),
    Case("runs(s)", on("s", letters)),
    Case("runs(s ORDER BY s DESC)", on("s", lambda v: "".join(
        f"{n}{a}" for a, n in sorted(Counter(v).items(), reverse=True)))),
    Case("runs(DISTINCT s)", on("s", lambda v: "".join(f"1{a}" for a in sorted(set(v))))),
    Case("middle(m)", on("m", trimmed)),
    Case("middle(n)", on("n", lambda v: trimmed([Decimal(a) for a in v]))),
    Case("percentile_disc(0.5) WITHIN GROUP (ORDER BY m)", text("m", lambda v: discrete(v, 0.5))),
)  # fmt: skip


class UserPlay(Play):
    """A history whose views use user-defined aggregates. Some views compare them with built-in ones, fail while a group
    has some value, nest groups, or aggregate in a loop."""

    def __init__(self, client: Client, rnd: random.Random) -> None:
        super().__init__([(client, "MATERIALIZED VIEW")], rnd, CASES)
        self.client = client
        self.equal = rnd.sample(EQUAL, 3)
        items = ", ".join(f"{a} AS a{i}, {b} AS b{i}" for i, (a, b) in enumerate(self.equal))
        client.run(f"CREATE MATERIALIZED VIEW equal AS SELECT g, {items} FROM t GROUP BY g")
        client.run("CREATE MATERIALIZED VIEW fails AS SELECT g, picky(x) FROM t GROUP BY g")
        for name, count, top in (("mine", "py_count", "py_top"), ("theirs", "count", "max")):
            client.run(f"CREATE MATERIALIZED VIEW {name} AS {LOOP.format(count=count, top=top)}")
        inner = "SELECT g, py_count(x)::int AS n FROM t GROUP BY g HAVING py_count(x) > 1"
        client.run(f"CREATE MATERIALIZED VIEW twice AS SELECT n % 2 AS k, py_sum(n) FROM ({inner}) q GROUP BY n % 2")

    def check(self) -> None:
        super().check()
        differs = " OR ".join(f"a{i} IS DISTINCT FROM b{i}" for i in range(len(self.equal)))
        assert self.client.rows(f"SELECT * FROM equal WHERE {differs}") == [], self.equal
        assert self.client.sorted("SELECT * FROM mine") == self.client.sorted("SELECT * FROM theirs")
        self._check_failing()
        counts = Counter(r[0] for r in self.rows if r[1] is not None)
        sums: dict[int, int] = {}
        for n in (n for n in counts.values() if n > 1):
            sums[n % 2] = sums.get(n % 2, 0) + n
        assert sorted(self.client.rows("SELECT * FROM twice")) == sorted((str(k), str(v)) for k, v in sums.items())

    def _check_failing(self) -> None:
        groups: dict[Any, list[int]] = {}
        for row in self.rows:
            groups.setdefault(row[0], []).extend([] if row[1] is None else [row[1]])
        failing = [key for key, values in groups.items() if -4 in values or len(values) > 6]
        if failing:
            with pytest.raises(SqlError) as caught:
                self.client.rows("SELECT * FROM fails")
            assert caught.value.sqlstate in ("38000", "22P02")
            assert "aggregate picky(integer)" in caught.value.message
        else:
            wanted = {(None if k is None else str(k), str(len(v)) if v else None) for k, v in groups.items()}
            assert set(self.client.rows("SELECT * FROM fails")) == wanted


def define(client: Client) -> None:
    """Create the histories' aggregates."""
    for definition in DEFINITIONS:
        assert client.run(f"CREATE OR REPLACE AGGREGATE {definition}") == "CREATE AGGREGATE"


def play(server: Server, seed: int, steps: int = 8) -> None:
    """Play a history, checked after each step; one in three restarts the server in it."""
    rnd = random.Random(seed)
    client = server.client()
    client.run("DROP TABLE IF EXISTS t CASCADE")
    define(client)
    history = UserPlay(client, rnd)
    restart = rnd.randrange(3 * steps)
    for step in range(steps):
        if step == restart:
            server.restart()
            history.client = server.client()
            history.clients = [(history.client, "MATERIALIZED VIEW")]
        history.step()
        history.check()
    for view in ("v", "w", "equal", "twice"):
        assert history.client.rows(f"VERIFY MATERIALIZED VIEW {view}") == []


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder), python=True)
        try:
            for seed in range(arguments.first, arguments.first + arguments.count):
                play(server, seed)
        finally:
            server.close()
    print(f"{arguments.count} histories agree")


if __name__ == "__main__":
    main()
