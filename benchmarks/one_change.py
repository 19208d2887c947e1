"""What one change costs in a group of 10³, 10⁵ and 10⁶ rows, for each window function and ordered aggregate.

``python -m benchmarks.one_change [--sizes 1000 …] [--only NAME …] [--write]``: deletes a row of the group and puts it
back, either anywhere in its order or among the last rows, where a stream's changes are. Prints a line a kind and size
and, with ``--write``, the table of ``docs/reference/cost-of-a-change.md``.
"""

from __future__ import annotations

import argparse
import gc
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.flow import Flow, Words
from ivm.words import FLOAT8, TEXT
from storage.types import codec

TABLE: Final = (
    "CREATE TABLE t (g bigint NOT NULL, k bigint NOT NULL, v bigint, f double precision NOT NULL, s text NOT NULL)"
)
PAGE: Final = Path(__file__).parents[1] / "docs" / "reference" / "cost-of-a-change.md"
MARKS: Final = ("<!-- begin: measured by benchmarks.one_change -->", "<!-- end -->")
SIZES: Final = (1_000, 100_000, 1_000_000)
LAST: Final = 20
"""A change among the last rows is at one of the last so many."""
SOME: Final = 9
"""Values that modes and DISTINCT see are few, and so are texts."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A view whose change is measured. ``long``: its result is a value as long as the group."""

    name: str
    query: str
    long: bool = False


def _window(name: str, call: str, over: str = "") -> Kind:
    return Kind(name, f"SELECT k, {call} OVER (PARTITION BY g ORDER BY k{over}) FROM t")


def _first(query: str) -> str:
    return f"SELECT * FROM ({query}) x"


def _aggregate(name: str, call: str, long: bool = False) -> Kind:
    return Kind(name, f"SELECT g, {call} FROM t GROUP BY g", long)


WINDOWS: Final = (
    _window("sum, running", "sum(v)"),
    _window("sum of floats, running", "sum(f)"),
    _window("avg, running", "avg(v)"),
    _window("sum, sliding ROWS", "sum(v)", " ROWS BETWEEN 5 PRECEDING AND 5 FOLLOWING"),
    _window("sum of floats, sliding ROWS", "sum(f)", " ROWS BETWEEN 5 PRECEDING AND 5 FOLLOWING"),
    _window("sum, sliding RANGE", "sum(v)", " RANGE BETWEEN 20 PRECEDING AND CURRENT ROW"),
    _window("sum, sliding GROUPS", "sum(v)", " GROUPS BETWEEN 5 PRECEDING AND 5 FOLLOWING"),
    _window("sum, EXCLUDE CURRENT ROW", "sum(v)", " ROWS BETWEEN 5 PRECEDING AND 5 FOLLOWING EXCLUDE CURRENT ROW"),
    _window("sum, EXCLUDE TIES", "sum(v)", " ROWS BETWEEN 5 PRECEDING AND 5 FOLLOWING EXCLUDE TIES"),
    _window("max, running", "max(v)"),
    _window("min, sliding", "min(v)", " ROWS BETWEEN 5 PRECEDING AND 5 FOLLOWING"),
    _window("max of text, sliding", "max(s)", " ROWS BETWEEN 5 PRECEDING AND 5 FOLLOWING"),
    _window("string_agg, sliding", "string_agg(s, ',')", " ROWS BETWEEN 5 PRECEDING AND CURRENT ROW"),
    _window("row_number", "row_number()"),
    _window("rank", "rank()"),
    _window("dense_rank", "dense_rank()"),
    _window("percent_rank", "percent_rank()"),
    _window("cume_dist", "cume_dist()"),
    _window("ntile", "ntile(10)"),
    _window("lag", "lag(v)"),
    _window("lead by 3", "lead(v, 3, 0)"),
    _window("lag by a column", "lag(v, (k % 5)::int)"),
    _window("lag, IGNORE NULLS", "lag(v) IGNORE NULLS"),
    _window("first_value", "first_value(v)"),
    _window("last_value, sliding", "last_value(v)", " ROWS BETWEEN CURRENT ROW AND 5 FOLLOWING"),
    _window("nth_value", "nth_value(v, 3)"),
    _window("nth_value by a column", "nth_value(v, (k % 5)::int + 1)", " ROWS BETWEEN CURRENT ROW AND 5 FOLLOWING"),
    _window("last_value, IGNORE NULLS", "last_value(v) IGNORE NULLS"),
)  # fmt: skip

GROUPS: Final = (
    Kind("whole partition: count", "SELECT k, count(*) OVER (PARTITION BY g) FROM t"),
    Kind(
        "row_number <= 10",
        _first("SELECT k, row_number() OVER (PARTITION BY g ORDER BY k DESC) AS n FROM t") + " WHERE n <= 10",
    ),
    Kind("ORDER BY … LIMIT 10", _first("SELECT k, v FROM t ORDER BY k DESC LIMIT 10")),
    Kind("ORDER BY … LIMIT 10 OFFSET 400", _first("SELECT k, v FROM t ORDER BY k DESC LIMIT 10 OFFSET 400")),
    Kind("DISTINCT ON", "SELECT DISTINCT ON (g) g, k, v FROM t ORDER BY g, k DESC"),
    Kind("DISTINCT", "SELECT DISTINCT g, v % 9 FROM t"),
    _aggregate("count, sum, avg", "count(*), sum(v), avg(v)"),
    _aggregate("sum of floats", "sum(f)"),
    _aggregate("stddev, corr", "stddev(f), corr(f, v)"),
    _aggregate("count(DISTINCT)", "count(DISTINCT v % 9)"),
    _aggregate("bit_or", "bit_or(v)"),
    _aggregate("min, max", "min(k), max(k)"),
    _aggregate("min of text", "min(s)"),
    _aggregate("percentile_cont", "percentile_cont(0.5) WITHIN GROUP (ORDER BY f)"),
    _aggregate("percentile_disc, three", "percentile_disc(ARRAY[0.1, 0.5, 0.99]) WITHIN GROUP (ORDER BY v)"),
    _aggregate("mode", "mode() WITHIN GROUP (ORDER BY v % 9)"),
    _aggregate("rank WITHIN GROUP", "rank(500) WITHIN GROUP (ORDER BY v)"),
    _aggregate("string_agg, ordered", "string_agg(s, ',' ORDER BY k)", True),
    _aggregate("array_agg, ordered", "array_agg(v ORDER BY k)", True),
    _aggregate("jsonb_agg, ordered", "jsonb_agg(v ORDER BY k)", True),
    _aggregate("jsonb_object_agg", "jsonb_object_agg(k, v)", True),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cell:
    """One change, medians: rows that it read or searched for, rows of the view that came or went, CPU milliseconds."""

    read: float
    shown: float
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Line:
    """A kind at one size: CPU seconds of the first contents, a change anywhere, a change among the last rows."""

    filled: float
    anywhere: Cell
    last: Cell


class Group:
    """A view over one group of rows, which are laid out in the order of k and arrive shuffled."""

    def __init__(self, kind: Kind, size: int) -> None:
        self.flow = Flow([TABLE], kind.query)
        numbers = np.arange(size, dtype=np.int64)
        random = np.random.default_rng(7)
        values = random.integers(0, 10 * size, size)
        floats = codec.encode(FLOAT8, random.normal(0, 1000, size).tolist(), self.flow.dictionary).words
        texts = codec.encode(TEXT, [f"t{i}" for i in range(SOME)], self.flow.dictionary).words
        self.rows: Words = np.column_stack(
            [numbers * 0, 3 * numbers, values, floats, texts[values % SOME], numbers * 0]
        )  # fmt: skip
        begun = time.process_time()
        self._commit(random.permutation(self.rows), 1)
        self.filled = time.process_time() - begun

    def _commit(self, rows: Words, diff: int) -> int:
        self.flow.ordinal += 1
        self.flow.feed("t", rows, np.full(len(rows), diff, np.int64))
        return len(self.flow.step().diffs)

    def change(self, place: int) -> tuple[Cell, Cell]:
        """Deletes a row and puts it back."""
        row = self.rows[place : place + 1]
        return self._measured(row, -1), self._measured(row, 1)

    def _measured(self, row: Words, diff: int) -> Cell:
        before, begun = self.flow.flow.counters, time.process_time()
        shown = self._commit(row, diff)
        spent = 1e3 * (time.process_time() - begun)
        work = self.flow.flow.counters - before
        return Cell(work.history + work.seeks + work.matches, shown, spent)

    def median(self, places: list[int]) -> Cell:
        """Of changes at these places."""
        cells = [cell for place in places for cell in self.change(place)]
        return Cell(*(float(np.median([getattr(c, name) for c in cells])) for name in Cell.__slots__))


def measure(kind: Kind, size: int, changes: int = 30, seconds: float = 4.0) -> Line:
    """A kind at a size. ``seconds``: of CPU that changes may take, but at least one of each sort is made."""
    group = Group(kind, size)
    begun = time.process_time()
    group.change(size // 2)
    each = time.process_time() - begun
    if each < seconds:  # the first change may make sums that later ones use
        begun = time.process_time()
        group.change(size // 3)
        each = time.process_time() - begun
    count = int(min(changes, max(1, seconds / max(each, 1e-6))))
    anywhere = group.median([step * 7919 * 131 % size for step in range(1, count + 1)])
    last = group.median([size - 1 - step * 7 % LAST for step in range(count)])
    return Line(group.filled, anywhere, last)


def grows(lines: list[Line], sizes: list[int], long: bool) -> bool:
    """Whether rows read for each row that the view shows grow faster than log n between the last two sizes."""
    (a, b), room = lines[-2:], 1.5 * math.log(sizes[-1]) / math.log(sizes[-2])
    return not long and any(
        large.read / (large.shown + 1) > room * max(small.read / (small.shown + 1), 256 / (small.shown + 1))
        for small, large in ((a.last, b.last), (a.anywhere, b.anywhere))
    )


def table(found: dict[str, list[Line]], sizes: list[int]) -> str:
    """The table, in Markdown."""

    def head(text: str) -> str:
        return " | ".join(f"{text}, n = {size:,}" for size in sizes)

    out = [f"| kind | {head('anywhere')} | {head('last rows')} |", "|---|" + "---|" * 2 * len(sizes)]
    for name, lines in found.items():
        cells = [_text(line.anywhere) for line in lines] + [_text(line.last) for line in lines]
        out.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(out)


def _text(cell: Cell) -> str:
    digits = 2 if cell.milliseconds < 10 else 0
    return f"{cell.read:,.0f} → {cell.shown:,.0f}, {cell.milliseconds:,.{digits}f} ms"


def main() -> None:
    """Prints a line a kind and size, then the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    found: dict[str, list[Line]] = {}
    for kind in (*WINDOWS, *GROUPS):
        if args.only and kind.name not in args.only:
            continue
        for size in args.sizes:
            line = measure(kind, size)
            found.setdefault(kind.name, []).append(line)
            shown = f"filled {line.filled:6.1f} s  anywhere {_text(line.anywhere):32} last {_text(line.last)}"
            print(f"{kind.name:32} {size:>9,}  {shown}", flush=True)
            gc.collect()
        if len(args.sizes) > 1 and grows(found[kind.name], list(args.sizes), kind.long):
            print(f"{kind.name}: GROWS", flush=True)
    if args.write:
        before, rest = PAGE.read_text().split(MARKS[0])
        _, after = rest.split(MARKS[1])
        PAGE.write_text(f"{before}{MARKS[0]}\n\n{table(found, list(args.sizes))}\n\n{MARKS[1]}{after}")


if __name__ == "__main__":
    main()
