"""Random joins of three to five inputs under random changes, compared with SQLite on the same text.

``python -m tests.programs.join_histories --count 1000`` plays that many histories. Each has queries of its own,
maintained as delta joins, as worst-case optimal joins and as the planner chooses; they are compared after every commit,
and also run once.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
from collections import Counter
from collections.abc import Callable

from benchmarks.flow import Tables
from planner.options import Joins, Late, Planning
from sql.bind.statement import bind_statement
from sql.statements import queries
from tests.support.planner_bench import Row, World

DDL = (
    "CREATE TABLE t (a int, b int)",
    "CREATE TABLE u (id int PRIMARY KEY, x int, y int)",
    "CREATE TABLE e (src int NOT NULL, dst int NOT NULL)",
    "CREATE TABLE k (p int NOT NULL, q int NOT NULL, w int, PRIMARY KEY (p, q))",
)
COLUMNS = {"t": ("a", "b"), "u": ("id", "x", "y"), "e": ("src", "dst"), "k": ("p", "q", "w")}
KEYS = {"u": (0,), "k": (0, 1)}
CYCLES = (
    ((0, 1), (1, 2), (0, 2)),
    ((0, 1), (1, 2), (2, 3), (3, 0)),
    ((0, 1), (0, 2), (1, 3), (2, 3), (1, 2)),
)
"""Patterns of variables: a triangle, a square, a diamond."""


class Joined(World):
    """Tables whose views are joined by a given implementation."""

    DDL = DDL
    KEYS = KEYS

    def __init__(self) -> None:
        self.catalog = Tables(self.DDL)
        made = self.catalog.relations
        super().__init__({r.id: (r.schema, self.KEYS.get(n, ())) for n, r in made.items()})
        self.sqlite = sqlite3.connect(":memory:")
        for ddl in self.DDL:
            self.sqlite.execute(ddl)

    def bound(self, text: str) -> queries.Query:
        """A query's plan."""
        query = bind_statement(text, self.catalog).statement
        assert isinstance(query, queries.Query)
        return query

    def change(self, rnd: random.Random) -> None:
        """Commit a few inserts, deletes and updates."""
        made: list[tuple[int, Row, int]] = []
        for _ in range(rnd.choice((1, 1, 3, 8))):
            name = rnd.choice(list(COLUMNS))
            table = self.catalog.relations[name].id
            have = list(self.contents[table].elements())
            key = len(KEYS.get(name, ()))
            pending = [row for at, row, _ in made if at == table]
            if have and rnd.random() < 0.4 and not pending:
                row = rnd.choice(have)
                made.append((table, row, -1))
                self.apply(COLUMNS[name], name, row, -1)
                if rnd.random() < 0.5:
                    continue
            row = tuple(
                rnd.choice((0, 1, 2, 3)) if i < key or name == "e" or rnd.random() < 0.8 else None
                for i in range(len(COLUMNS[name]))
            )
            there = [r[:key] for r in (*have, *pending)]
            if key and row[:key] in there:
                continue
            made.append((table, row, 1))
            self.apply(COLUMNS[name], name, row, 1)
        self.commit(made)

    def apply(self, columns: tuple[str, ...], name: str, row: Row, diff: int) -> None:
        """Insert a row into SQLite's table, or delete one."""
        where = " AND ".join(f"{c} IS ?" for c in columns)
        if diff < 0:
            self.sqlite.execute(f"DELETE FROM {name} WHERE rowid = (SELECT min(rowid) FROM {name} WHERE {where})", row)
        else:
            self.sqlite.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)

    def expected(self, text: str) -> Counter[Row]:
        return Counter(self.sqlite.execute(text).fetchall())


def random_query(rnd: random.Random) -> str:
    """A join: its rows, its distinct rows or their count by group; or a recursion with a join in its step."""
    if rnd.random() < 0.2:
        return _recursive(rnd)
    sources, conditions = _cyclic(rnd, None) if rnd.random() < 0.4 else _tree(rnd)
    chosen = [_column(rnd, source) for source in rnd.sample(sources, min(len(sources), 3))]
    body = _from(rnd, sources, conditions)
    kind = rnd.randrange(4)
    if kind == 0:
        return f"SELECT {chosen[0]}, count(*) FROM {body} GROUP BY {chosen[0]}"
    names = ", ".join(f"{c} AS c{i}" for i, c in enumerate(chosen))
    return f"SELECT {'DISTINCT ' if kind == 1 else ''}{names} FROM {body}"


Source = tuple[str, str]
"""A table and its alias."""


def _column(rnd: random.Random, source: Source) -> str:
    return f"{source[1]}.{rnd.choice(COLUMNS.get(source[0], ('v', 'w')))}"


def _from(rnd: random.Random, sources: list[Source], conditions: list[str]) -> str:
    items = [f"{table} {alias}" for table, alias in sources]
    if rnd.random() < 0.3:
        items = [f"(SELECT * FROM {t} WHERE {COLUMNS[t][0]} < 3) {a}" if rnd.random() < 0.3 else f"{t} {a}"
                 for t, a in sources]  # fmt: skip
    return f"{', '.join(items)} WHERE {' AND '.join(conditions)}"


def _tree(rnd: random.Random) -> tuple[list[Source], list[str]]:
    """Inputs, each joined with an earlier one, sometimes with more conditions."""
    count = rnd.randint(3, 5)
    sources = [(rnd.choice(list(COLUMNS)), f"s{i}") for i in range(count)]
    conditions = []
    for i in range(1, count):
        one, two = _column(rnd, sources[rnd.randrange(i)]), _column(rnd, sources[i])
        form = rnd.random()
        conditions.append(f"{one} + 1 = {two}" if form < 0.1 else f"{one} = {two}")
    for _ in range(rnd.choice((0, 0, 1, 2))):
        pair = rnd.sample(sources, 2)
        how = rnd.choice(("=", "=", "<", "<>", "IS NOT DISTINCT FROM"))
        conditions.append(f"{_column(rnd, pair[0])} {how} {_column(rnd, pair[1])}")
    return sources, conditions


def _cyclic(rnd: random.Random, first: str | None) -> tuple[list[Source], list[str]]:
    """A pattern over the first two columns of some tables; ``first``: the first input's columns."""
    pattern = rnd.choice(CYCLES)
    tables = [rnd.choice(("e", "e", "t", "k")) for _ in pattern]
    if first is not None:
        tables[0] = first
    sources = [(table, f"s{i}") for i, table in enumerate(tables)]
    held: dict[int, str] = {}
    conditions = []
    for (table, alias), variables in zip(sources, pattern, strict=True):
        for column, variable in zip(COLUMNS.get(table, ("v", "w")), variables, strict=False):
            name = f"{alias}.{column}"
            if variable in held:
                conditions.append(f"{held[variable]} = {name}")
            held[variable] = name
    return sources, conditions


def _recursive(rnd: random.Random) -> str:
    sources, conditions = _cyclic(rnd, "r")
    items = ", ".join(f"{table} {alias}" for table, alias in sources)
    last = sources[-1]
    step = f"SELECT s0.v, {last[1]}.{COLUMNS[last[0]][rnd.randrange(2)]} FROM {items} WHERE {' AND '.join(conditions)}"
    return f"WITH RECURSIVE r(v, w) AS (SELECT src, dst FROM e UNION {step}) SELECT v, w FROM r"


def random_band(rnd: random.Random) -> str:
    """A query with joins on inequalities: of any kind, of two or three inputs, or in a recursion."""
    sources = [(rnd.choice(list(COLUMNS)), f"s{i}") for i in range(3)]
    kind = rnd.randrange(5)
    if kind == 0:
        table, alias = sources[1]
        on = _inequalities(rnd, ("r", "s0"), sources[1])
        step = f"SELECT s0.v, {alias}.{COLUMNS[table][1]} FROM r s0, {table} {alias} WHERE {on}"
        return f"WITH RECURSIVE r(v, w) AS (SELECT src, dst FROM e UNION {step}) SELECT v, w FROM r"
    on = _inequalities(rnd, sources[0], sources[1])
    some = [f"{table} {alias}" for table, alias in sources]
    if kind == 1:
        test = f"{rnd.choice(('', 'NOT '))}EXISTS (SELECT 1 FROM {some[1]} WHERE {on})"
        return f"SELECT {_column(rnd, sources[0])} AS c0 FROM {some[0]} WHERE {test}"
    body = f"{some[0]} {rnd.choice(('JOIN', 'JOIN', 'LEFT JOIN'))} {some[1]} ON {on}"
    if kind == 2:
        body += f" JOIN {some[2]} ON {_inequalities(rnd, sources[rnd.randrange(2)], sources[2])}"
    chosen = ", ".join(f"{_column(rnd, source)} AS c{i}" for i, source in enumerate(sources[: 3 if kind == 2 else 2]))
    return f"SELECT {chosen} FROM {body}"


def _inequalities(rnd: random.Random, one: Source, two: Source) -> str:
    """A condition of one or two inequalities and sometimes an equality between two inputs, in any order."""
    if rnd.random() < 0.5:
        one, two = two, one
    x, y = _column(rnd, one), _column(rnd, one)
    low, high = _column(rnd, two), _column(rnd, two)
    found = rnd.choice(
        (
            f"{x} BETWEEN {low} AND {high}", f"{low} < {x} AND {x} <= {high} + 1", f"{x} < {high} AND {low} < {y}",
            f"{x} <= {high} AND {y} >= {low}", f"{x} < {low}", f"{x} >= {low} AND {y} > {low}",
        )
    )  # fmt: skip
    form = rnd.random()
    if form < 0.5:
        found += f" AND {_column(rnd, one)} {'=' if form < 0.4 else 'IS NOT DISTINCT FROM'} {_column(rnd, two)}"
    return f"{found} AND {x} <> 2" if form > 0.9 else found


def play(seed: int, steps: int = 7, late: Late = Late.AUTO, ask: Callable[[random.Random], str] = random_query) -> int:
    """Play one history; the number of comparisons."""
    rnd = random.Random(seed)
    world = Joined()
    for _ in range(4):
        world.change(rnd)
    views: list[tuple[int, str]] = []
    for i in range(2):
        text = ask(rnd)
        for joins in (Joins.DELTA, Joins.WCO, Joins.AUTO):
            world.planning = Planning(joins, late=late)
            views.append((1000 + 3 * i + len(views) % 3, text))
            world.install(views[-1][0], world.bound(text).rel)
    compared = 0
    for step in range(steps):
        for view, text in views:
            expected = world.expected(text)
            assert world.view(view) == expected, (seed, step, view, text)
            compared += 1
        world.planning = Planning(rnd.choice((Joins.DELTA, Joins.WCO, Joins.AUTO)), late=late)
        text = rnd.choice(views)[1]
        assert world.query(world.bound(text).rel) == world.expected(text), (seed, step, world.planning, text)
        world.change(rnd)
        if rnd.random() < 0.5:
            world.dataflow.allow_compaction(world.ordinal)
    return compared


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--bands", action="store_true", help="joins on inequalities only")
    parser.add_argument("--late", choices=[late.value for late in Late], default=Late.AUTO.value)
    given = parser.parse_args()
    compared = 0
    for seed in range(given.first, given.first + given.count):
        compared += play(seed, late=Late(given.late), ask=random_band if given.bands else random_query)
        if seed % 50 == 49:
            print(f"{seed + 1}: {compared} comparisons", flush=True)


if __name__ == "__main__":
    main()
