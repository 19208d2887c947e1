"""Aggregates computed from scratch, and random histories of groups that are compared with them at every step.

``python -m tests.programs.model_aggregates --count 1000`` plays many; with ``--reference DSN`` a PostgreSQL's answers
check the model too. Shares no code with the engine: exact fractions, sorted lists, counters.
"""

from __future__ import annotations

import argparse
import math
import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import Any

from tests.support.model_extremes import BIG, EXTREMES, FLOATS, HAVING, SPANS, WIDTHS, missing
from tests.support.model_folds import (
    Case,
    bits,
    continuous,
    discrete,
    last_null,
    listed,
    mode,
    moments,
    on,
    pairs,
    root,
    text,
    there,
)  # fmt: skip
from tests.support.sessions import Client, Server

Row = tuple[Any, ...]
COLUMNS = ("g", "x", "f", "s", "n", "b", "m", "d", "z", "q", "w", "i")
DDL = (
    "g int, x int, f float8, s text, n numeric, b bool, m numeric(8,2), d date, "
    "z float8, q bigint, w numeric, i interval"
)


CASES: tuple[Case, ...] = (
    *EXTREMES,
    Case("count(*)", len),
    Case("count(x)", lambda rows: len(there(rows, "x"))),
    Case("count(DISTINCT n)", lambda rows: len(set(there(rows, "n")))),
    Case("sum(x)", on("x", sum)),
    Case("sum(DISTINCT x)", on("x", lambda v: sum(set(v)))),
    Case("sum(f)", on("f", lambda v: sum(map(Fraction, v), Fraction(0)))),
    Case("avg(f)", on("f", lambda v: sum(map(Fraction, v), Fraction(0)) / len(v))),
    Case("avg(n)", on("n", lambda v: sum(map(Fraction, v), Fraction(0)) / len(v))),
    Case("var_pop(f)", on("f", lambda v: moments(v, False))),
    Case("variance(x)", on("x", lambda v: moments(v, True))),
    Case("stddev(f)", on("f", lambda v: root(moments(v, True)))),
    Case("stddev_pop(n)", on("n", lambda v: root(moments(v, False)))),
    Case("bool_and(b)", on("b", all)),
    Case("bool_or(b)", on("b", any)),
    Case("every(x > 0)", on("x", lambda v: all(x > 0 for x in v))),
    Case("bit_and(x)", on("x", lambda v: bits(v, lambda a, b: a & b))),
    Case("bit_or(x)", on("x", lambda v: bits(v, lambda a, b: a | b))),
    Case("bit_xor(x::bigint)", on("x", lambda v: bits(v, lambda a, b: a ^ b))),
    Case("bit_or(x::smallint) FILTER (WHERE b)", lambda rows: on("x", lambda v: bits(v, lambda a, b: a | b))(
        [r for r in rows if r["b"]])),
    Case("covar_pop(f, x)", pairs(lambda n, y, x, yy, xx, xy: xy / n)),
    Case("covar_samp(f, x)", pairs(lambda n, y, x, yy, xx, xy: xy / (n - 1) if n > 1 else None)),
    Case("corr(f, x)", pairs(lambda n, y, x, yy, xx, xy: float(xy) / math.sqrt(xx * yy) if xx and yy else None)),
    Case("regr_slope(f, x)", pairs(lambda n, y, x, yy, xx, xy: xy / xx if xx else None)),
    Case("regr_intercept(f, x)", pairs(lambda n, y, x, yy, xx, xy: y - x * xy / xx if xx else None)),
    Case("regr_r2(f, x)", pairs(lambda n, y, x, yy, xx, xy: (xy * xy / (xx * yy) if yy else 1) if xx else None)),
    Case("regr_avgx(f, x)", pairs(lambda n, y, x, yy, xx, xy: x)),
    Case("regr_avgy(f, x)", pairs(lambda n, y, x, yy, xx, xy: y)),
    Case("regr_sxx(f, x)", pairs(lambda n, y, x, yy, xx, xy: xx)),
    Case("regr_sxy(f, x)", pairs(lambda n, y, x, yy, xx, xy: xy)),
    Case("regr_syy(f, x)", pairs(lambda n, y, x, yy, xx, xy: yy)),
    Case("regr_count(f, x)", lambda rows: sum(r["f"] is not None and r["x"] is not None for r in rows)),
    Case("min(x)", on("x", min)),
    Case("max(s)", on("s", max)),
    Case("min(n)", on("n", min)),
    Case("max(f) FILTER (WHERE x > 0)", lambda rows: on("f", max)([r for r in rows if (r["x"] or 0) > 0])),
    Case("percentile_cont(0.5) WITHIN GROUP (ORDER BY f)", on("f", lambda v: continuous(v, 0.5))),
    Case("percentile_cont(0.3) WITHIN GROUP (ORDER BY x DESC)", on("x", lambda v: -continuous([-a for a in v], 0.3))),
    Case("percentile_disc(0.25) WITHIN GROUP (ORDER BY s)", on("s", lambda v: discrete(v, 0.25))),
    Case("percentile_disc(0.9) WITHIN GROUP (ORDER BY x DESC) FILTER (WHERE NOT b)", lambda rows: on(
        "x", lambda v: discrete(v, 0.9, True))([r for r in rows if r["b"] is False])),
    Case("percentile_disc('{0,0.5,NULL,1}'::float8[]) WITHIN GROUP (ORDER BY x)", on("x", lambda v: listed(
        [None if p is None else discrete(v, p) for p in (0, 0.5, None, 1)]))),
    Case("mode() WITHIN GROUP (ORDER BY x)", on("x", mode)),
    Case("mode() WITHIN GROUP (ORDER BY s) FILTER (WHERE b)", lambda rows: on("s", mode)([r for r in rows if r["b"]])),
    Case("string_agg(s, ';' ORDER BY s)", on("s", lambda v: ";".join(sorted(v)))),
    Case("string_agg(DISTINCT s, ',' ORDER BY s DESC)", on("s", lambda v: ",".join(sorted(set(v), reverse=True)))),
    Case("array_agg(x ORDER BY x)", lambda rows: listed(sorted((r["x"] for r in rows), key=last_null))),
    Case("array_agg(x ORDER BY s, x) FILTER (WHERE f > 0)", lambda rows: listed(
        r["x"] for r in sorted(rows, key=lambda r: (last_null(r["s"]), last_null(r["x"]))) if (r["f"] or 0) > 0)),
    Case("sum(m)", text("m", sum)),
    Case("sum(DISTINCT m)", text("m", lambda v: sum(set(v)))),
    Case("avg(m) FILTER (WHERE b)", lambda rows: on("m", lambda v: Fraction(sum(v)) / len(v))(
        [r for r in rows if r["b"]])),
    Case("min(m)", text("m", min)),
    Case("max(m) FILTER (WHERE x > 0)", lambda rows: text("m", max)([r for r in rows if (r["x"] or 0) > 0])),
    Case("count(DISTINCT m)", lambda rows: len(set(there(rows, "m")))),
    Case("stddev(m)", on("m", lambda v: root(moments(v, True)))),
    Case("var_pop(DISTINCT m)", on("m", lambda v: moments(list(set(v)), False))),
    Case("mode() WITHIN GROUP (ORDER BY m)", text("m", mode)),
    Case("mode() WITHIN GROUP (ORDER BY m DESC)", text("m", lambda v: -mode([-a for a in v]))),
    Case("percentile_disc(0.6) WITHIN GROUP (ORDER BY m)", text("m", lambda v: discrete(v, 0.6))),
    Case("percentile_disc('{0.1,1}'::float8[]) WITHIN GROUP (ORDER BY m DESC)", on("m", lambda v: listed(
        [discrete(v, p, True) for p in (0.1, 1)]))),
    Case("percentile_cont(0.75) WITHIN GROUP (ORDER BY m)", on("m", lambda v: continuous(v, 0.75))),
    Case("array_agg(m ORDER BY m DESC)", lambda rows: listed(sorted(
        (r["m"] for r in rows), key=last_null, reverse=True))),
    Case("array_agg(DISTINCT m)", lambda rows: listed(sorted({r["m"] for r in rows}, key=last_null))),
    Case("string_agg(m::text, ' ' ORDER BY m)", on("m", lambda v: " ".join(map(str, sorted(v))))),
    Case("min(d)", text("d", min)),
    Case("max(d)", text("d", max)),
    Case("count(DISTINCT d)", lambda rows: len(set(there(rows, "d")))),
    Case("mode() WITHIN GROUP (ORDER BY d)", text("d", mode)),
    Case("percentile_disc(0.5) WITHIN GROUP (ORDER BY d DESC)", text("d", lambda v: discrete(v, 0.5, True))),
    Case("array_agg(d ORDER BY d)", lambda rows: listed(sorted(
        (r["d"] for r in rows), key=lambda d: (d is None, d or date.min)))),
    Case("string_agg(DISTINCT d::text, ',' ORDER BY d::text)", on("d", lambda v: ",".join(sorted(map(str, set(v)))))),
    Case("min(s)", on("s", min)),
    Case("count(DISTINCT s)", lambda rows: len(set(there(rows, "s")))),
    Case("mode() WITHIN GROUP (ORDER BY s DESC)", on("s", lambda v: max(
        a for a in v if v.count(a) == v.count(mode(v))))),
    Case("array_agg(s ORDER BY s) FILTER (WHERE x IS NOT NULL)", lambda rows: listed(
        r["s"] for r in sorted(rows, key=lambda r: (r["s"] is None, r["s"] or "")) if r["x"] is not None)),
    Case("array_agg(DISTINCT x)", lambda rows: listed(sorted({r["x"] for r in rows}, key=last_null))),
)  # fmt: skip


def same(found: str | None, wanted: Any) -> bool:
    """Whether Postgres's text is the model's value; computed fractions are compared to ten digits."""
    if found is None or wanted is None:
        return found is None and wanted is None
    if isinstance(wanted, bool):
        return found == "ft"[wanted]
    if isinstance(wanted, str):
        return found == wanted
    if isinstance(wanted, Decimal):
        return missing(wanted) == (found == "NaN") and (missing(wanted) or Decimal(found) == wanted)
    if not math.isfinite(wanted):
        return repr(float(found)) == repr(float(wanted))
    return math.isclose(float(found), float(wanted), rel_tol=1e-10, abs_tol=1e-10)


def grouped(rows: Sequence[Row], cases: Sequence[Case]) -> dict[Any, list[Any]]:
    ordered = sorted(rows, key=lambda r: last_null(r[0]))
    named = [dict(zip(COLUMNS, row, strict=True)) for row in ordered]
    return {
        key: [case.fold(group) for case in cases]
        for key, members in groupby(named, key=lambda r: r["g"])
        for group in [list(members)]
    }


def shown(value: float) -> str:
    """A double's text."""
    return str(int(value)) if value == int(value) else repr(value)


EXACT = (0.0, 1.5, -2.25, 0.125, 1024.0)
WIDE = (0.0, 1.5, -2.25, 0.1, 1e15, -1e15)
"""Their sums depend on the order of rows in PostgreSQL, so it is no reference for them."""

SCALED = tuple(map(Decimal, ("0.00", "3.00", "3.10", "-2.50", "0.07", "999999.99", "-999999.99")))
DAYS = (date(1, 1, 1), date(1999, 12, 31), date(2000, 1, 1), date(2024, 2, 29), date(9999, 12, 31))


def new_row(rnd: random.Random, floats: Sequence[float]) -> Row:
    def maybe(value: Any) -> Any:
        return None if rnd.random() < 0.15 else value

    return (
        maybe(rnd.randint(1, 3)), maybe(rnd.choice((0, 1, 2, 3, 3, -4, 7))),
        maybe(rnd.choice(floats)), maybe(rnd.choice("abcd")),
        maybe(rnd.choice((1, 2, 0.5, -3))), maybe(rnd.random() < 0.5),
        maybe(rnd.choice(SCALED)), maybe(rnd.choice(DAYS)),
        maybe(rnd.choice(FLOATS[:rnd.choice((6, 6, 9))])), maybe(rnd.choice(BIG)),
        maybe(rnd.choice(WIDTHS[:rnd.choice((5, 5, 6))])), maybe(rnd.choice(tuple(SPANS))),
    )  # fmt: skip


def literal(value: Any) -> str:
    if value is None:
        return "NULL"
    odd = isinstance(value, float) and (not value or not math.isfinite(value))  # an unquoted -0.0 is 0
    return f"'{value}'" if odd or isinstance(value, str | date | Decimal) else str(value)


class Play:
    """One history: a view by group and one without groups, with their expected contents after each step."""

    def __init__(
        self, clients: Sequence[tuple[Client, str]], rnd: random.Random, cases: Sequence[Case] = CASES
    ) -> None:
        self.clients, self.rnd = clients, rnd
        self.rows: list[Row] = []
        self.cases = rnd.sample(cases, 6)
        self.having = rnd.choice(HAVING)
        items = ", ".join(case.sql for case in self.cases)
        names = ", ".join(f"c{i}" for i in range(len(self.cases)))
        self.numbered = (
            rnd.choice(("row_number", "rank", "dense_rank")),
            rnd.random() < 0.5,
            rnd.choice((1, 2, 4, None)),
        )
        self.offset = rnd.choice((0, 1, 2, 3, -1))
        self.all("DROP TABLE IF EXISTS t CASCADE")
        self.all(f"CREATE TABLE t ({DDL})")
        for client, kind in clients:
            client.run(f"CREATE {kind} v (g, {names}) AS SELECT g, {items} FROM t GROUP BY g")
            client.run(f"CREATE {kind} h (g, {names}) AS SELECT g, {items} FROM t GROUP BY g HAVING {self.having.sql}")
            client.run(f"CREATE {kind} w ({names}) AS SELECT {items} FROM t")
            client.run(f"CREATE {kind} z AS {self.numbering}")
            client.run(f"CREATE {kind} o AS {self.windowed}")
            client.run(f"CREATE {kind} l AS {self.neighbours}")

    def all(self, sql: str) -> None:
        for client, _ in self.clients:
            client.run(sql)

    @property
    def numbering(self) -> str:
        """The view of a window function, with or without a bound in an outer query."""
        function, descending, bound = self.numbered
        over = f"PARTITION BY g ORDER BY x {'DESC' if descending else 'ASC'}"
        inner = f"SELECT g, x, {function}() OVER ({over}) AS n FROM t"
        return f"SELECT * FROM ({inner}) q" + ("" if bound is None else f" WHERE n <= {bound}")

    @property
    def over(self) -> list[Case]:
        """The cases that can be window aggregates over whole partitions."""
        return [c for c in self.cases if not any(w in c.sql for w in ("DISTINCT", "ORDER BY", "extract"))]

    @property
    def windowed(self) -> str:
        """The view of rows with the aggregates of their g's partition, and of all rows."""
        items = [f"{c.sql} OVER (PARTITION BY g)" for c in self.over] + ["count(*) OVER ()"]
        names = [f"c{i}" for i in range(len(items))]
        return "SELECT g, x, " + ", ".join(f"{a} AS {b}" for a, b in zip(items, names, strict=True)) + " FROM t"

    def check_windows(self, client: Client, groups: dict[Any, list[Any]]) -> None:
        """Check that each row has the values of its group."""
        place = [self.cases.index(c) for c in self.over]
        found = client.rows("SELECT * FROM o")
        assert Counter(r[:2] for r in found) == Counter(
            tuple(None if v is None else str(v) for v in row[:2]) for row in self.rows
        )
        for g, _, *values, count in found:
            assert count == str(len(self.rows))
            for i, value in zip(place, values, strict=True):
                assert same(value, groups[g][i]), (self.cases[i].sql, g, value, groups[g][i], self.rows)

    @property
    def neighbours(self) -> str:
        """The view of rows with values of other rows in their partition; the order leaves only equal rows unordered."""
        over = f"OVER (PARTITION BY g ORDER BY x {'DESC' if self.numbered[1] else 'ASC'}, f, s, n, b, m, d)"
        calls = (
            "lag(s)",
            f"lag(s, {self.offset}, 'none')",
            f"lead(m, {self.offset})",
            "first_value(d)",
            "row_number()",
            "percent_rank()",
            "cume_dist()",
            "ntile(3)",
        )
        return "SELECT g, x, " + ", ".join(f"{c} {over} AS c{i}" for i, c in enumerate(calls)) + " FROM t"

    def beside(self) -> Counter[Row]:
        """The expected rows of ``neighbours``."""
        sign = -1 if self.numbered[1] else 1
        found: Counter[Row] = Counter()
        rows = [r[:8] for r in self.rows]  # the order has no others
        for group in {r[0] for r in rows}:
            some = sorted(
                (r for r in rows if r[0] == group),
                key=lambda r: ((sign * (r[1] is None), sign * (r[1] or 0)), *map(last_null, r[2:])),
            )
            for i, row in enumerate(some):

                def at(place: int, column: int, default: Any = None, some: list[Row] = some) -> Any:
                    return some[place][column] if 0 <= place < len(some) else default

                k = self.offset
                size, first = len(some), some.index(row)
                shares = shown(first / (size - 1) if size > 1 else 0), shown((first + some.count(row)) / size)
                third = next(t for t in (1, 2, 3) if i < sum(size // 3 + (j < size % 3) for j in range(t)))
                beside = at(i - 1, 3), at(i - k, 3, "none"), at(i + k, 6), some[0][7], i + 1, *shares, third
                found[tuple(None if v is None else str(v) for v in (*row[:2], *beside))] += 1
        return found

    def numbers(self) -> list[tuple[Any, Any, int]]:
        function, descending, bound = self.numbered
        found = []
        for group in {r[0] for r in self.rows}:
            values = sorted((r[1] for r in self.rows if r[0] == group), key=last_null, reverse=descending)
            for i, value in enumerate(values):
                before = values[: values.index(value)]
                n = 1 + {"row_number": i, "rank": len(before), "dense_rank": len(set(before))}[function]
                found += [(group, value, n)] if bound is None or n <= bound else []
        return found

    def step(self) -> None:
        rnd = self.rnd
        chance = rnd.random()
        if self.rows and chance < 0.1:
            group = rnd.choice(self.rows)[0]
            self.rows = [r for r in self.rows if r[0] != group]
            self.all(f"DELETE FROM t WHERE g IS NOT DISTINCT FROM {literal(group)}")
        elif self.rows and chance < 0.3:
            column = rnd.choice((1, 2, 3, 6, 7))
            known = there([dict(zip(COLUMNS, r, strict=True)) for r in self.rows], COLUMNS[column])
            if known:
                extreme = rnd.choice((min, max))(known)
                self.rows = [r for r in self.rows if r[column] != extreme]
                self.all(f"DELETE FROM t WHERE {COLUMNS[column]} = {literal(extreme)}")
        elif self.rows and chance < 0.45:
            old, value = rnd.choice(self.rows)[1], rnd.choice((None, 1, 5, -1))
            self.rows = [(*r[:1], value, *r[2:]) if r[1] == old else r for r in self.rows]
            self.all(f"UPDATE t SET x = {literal(value)} WHERE x IS NOT DISTINCT FROM {literal(old)}")
        else:
            new = [new_row(rnd, EXACT if len(self.clients) > 1 else WIDE) for _ in range(rnd.randint(1, 5))]
            new += [rnd.choice(new)] * rnd.randint(0, 1)
            self.rows += new
            rows = ", ".join("(" + ", ".join(literal(v) for v in row) + ")" for row in new)
            self.all(f"INSERT INTO t VALUES {rows}")

    def check(self) -> None:
        wanted = {None if k is None else str(k): v for k, v in grouped(self.rows, self.cases).items()}
        named = [dict(zip(COLUMNS, row, strict=True)) for row in self.rows]
        whole = [case.fold(named) for case in self.cases]
        for client, _ in self.clients:
            found = {row[0]: row[1:] for row in client.rows("SELECT * FROM v")}
            assert found.keys() == wanted.keys()
            for key, values in wanted.items():
                self.agree(found[key], values, key)
            having = {
                None if k is None else str(k)
                for k in {r[0] for r in self.rows}
                if self.having.fold([r for r in named if r["g"] == k])
            }
            kept = {row[0]: row[1:] for row in client.rows("SELECT * FROM h")}
            assert kept == {key: found[key] for key in having}, (self.having.sql, self.rows)
            (row,) = client.rows("SELECT * FROM w")
            self.agree(row, whole, "all")
            self.check_windows(client, wanted)
            assert Counter(client.rows("SELECT * FROM l")) == self.beside(), (self.neighbours, self.rows)
            numbers = Counter(tuple(None if v is None else str(v) for v in row) for row in self.numbers())
            assert Counter(client.rows("SELECT * FROM z")) == numbers, (self.numbered, self.rows)

    def agree(self, found: Sequence[str | None], wanted: Sequence[Any], key: Any) -> None:
        for case, have, want in zip(self.cases, found, wanted, strict=True):
            assert same(have, want), (case.sql, key, have, want, self.rows)


def play(clients: Sequence[tuple[Client, str]], seed: int, steps: int = 8) -> None:
    """Play a history with its views, checked after each step."""
    history = Play(clients, random.Random(seed))
    for _ in range(steps):
        history.step()
        history.check()


class Reference:
    """A PostgreSQL used as a client."""

    def __init__(self, dsn: str) -> None:
        import psycopg

        self.connection = psycopg.connect(dsn, autocommit=True, prepare_threshold=None)
        self.connection.execute("SET client_min_messages = error")

    def run(self, sql: str) -> None:
        self.connection.execute(sql)

    def rows(self, sql: str) -> list[Any]:
        columns = ", ".join(f"({c.name})::text" for c in self.connection.execute(sql).description or ())
        found = self.connection.execute(sql.replace("*", columns)).fetchall()
        return [tuple({"true": "t", "false": "f"}.get(v, v) for v in row) for row in found]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--reference")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        clients: list[Any] = [(server.client(), "MATERIALIZED VIEW")]
        if arguments.reference:
            clients.append((Reference(arguments.reference), "VIEW"))
        try:
            for seed in range(arguments.first, arguments.first + arguments.count):
                play(clients, seed)
        finally:
            server.close()
    print(f"{arguments.count} histories agree")


if __name__ == "__main__":
    main()
