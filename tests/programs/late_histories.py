"""Random joins of wide tables with late materialization, under random changes, compared with SQLite on the same text.

``python -m tests.programs.late_histories --count 1000`` plays that many histories. A history has three joins and a
top-k. Each is maintained with ``late_fetch`` on under every ``join_implementation``, with the planner's choice, and
off; all are compared at every epoch. A step has one to four commits, which insert, delete, and update any columns, keys
included.
"""

from __future__ import annotations

import argparse
import random
from typing import Final

from ivm.graph import DeltaJoin
from planner.options import Joins, Late, Planning
from tests.programs.join_histories import Joined
from tests.support.planner_bench import Row

WIDTH: Final = 12
"""The number of columns that are never joined on."""
_FILL = ", ".join(f"h{i} int" for i in range(WIDTH))
FILLS: Final = tuple(f"h{i}" for i in range(WIDTH))
DDL: Final = (
    f"CREATE TABLE w (id int PRIMARY KEY, f int, g int NOT NULL, {_FILL})",
    f"CREATE TABLE l (f int, b int NOT NULL, a int NOT NULL, {_FILL}, PRIMARY KEY (a, b))",
    f"CREATE TABLE n (f int, g int, {_FILL})",
    "CREATE TABLE s (id int PRIMARY KEY, x int)",
    "CREATE TABLE t (a int, b int)",
)
COLUMNS: Final = {
    "w": ("id", "f", "g", *FILLS),
    "l": ("f", "b", "a", *FILLS),
    "n": ("f", "g", *FILLS),
    "s": ("id", "x"),
    "t": ("a", "b"),
}
KEYS: Final = {"w": (0,), "l": (2, 1), "s": (0,)}
REQUIRED: Final = {"w": (0, 2), "l": (1, 2), "s": (0,)}
LINKS: Final = {"w": 3, "l": 3, "n": 2, "s": 2, "t": 2}
"""The number of leading columns that may be joined on."""


class Wide(Joined):
    """Wide tables with a key of one column, of two or none, and narrow tables."""

    DDL = DDL
    KEYS = KEYS

    def change(self, rnd: random.Random) -> None:
        """Commit a few inserts, deletes, and updates of some columns."""
        made: list[tuple[int, Row, int]] = []
        for _ in range(rnd.choice((1, 1, 3, 8))):
            name = rnd.choice(list(COLUMNS))
            table = self.catalog.relations[name].id
            rows = self.contents[table].copy()
            for at, row, diff in made:
                rows[row] += diff if at == table else 0
            have = list(rows.elements())
            old = rnd.choice(have) if have and rnd.random() < 0.6 else None
            new = None
            if old is None:
                new = tuple(self._value(rnd, name, i) for i in range(len(COLUMNS[name])))
            elif rnd.random() < 0.7:
                changed = rnd.sample(range(len(old)), rnd.choice((1, 1, 2, 4, len(old) // 2)) if len(old) > 4 else 1)
                new = tuple(self._value(rnd, name, i) if i in changed else v for i, v in enumerate(old))
            key = KEYS.get(name, ())
            taken = [tuple(r[k] for k in key) for r in have if r != old]
            if new is not None and key and tuple(new[k] for k in key) in taken:
                continue
            for row, diff in ((old, -1), (new, 1)):
                if row is not None:
                    made.append((table, row, diff))
                    self.apply(COLUMNS[name], name, row, diff)
        self.feed(made)

    def _value(self, rnd: random.Random, name: str, column: int) -> int | None:
        free = column not in REQUIRED.get(name, ()) and rnd.random() < 0.2
        wide = column in KEYS.get(name, ()) and len(KEYS[name]) == 1
        return None if free else rnd.randrange(8 if wide else 4)

    def fetching(self) -> int:
        """The number of joins that fetch rows by id."""
        specs = [spec for spec in self.dataflow._specs.values() if isinstance(spec, DeltaJoin)]
        return sum(any(path.late for path in spec.paths) for spec in specs)


def random_query(rnd: random.Random) -> str:
    """An inner join of two to four, an outer join, a semijoin or antijoin, or a recursion over a wide table."""
    kind = rnd.random()
    if kind < 0.1:
        return _recursive(rnd)
    if kind < 0.35:
        return _outer(rnd)
    if kind < 0.55:
        return _semi(rnd)
    sources = [(rnd.choice(("w", "w", "l", "n", "s", "t")), f"s{i}") for i in range(rnd.randint(2, 4))]
    conditions = []
    for i in range(1, len(sources)):
        conditions.append(f"{_link(rnd, sources[rnd.randrange(i)])} = {_link(rnd, sources[i])}")
    for _ in range(rnd.choice((0, 0, 1, 2))):
        pair = rnd.sample(sources, 2)
        how = rnd.choice(("=", "=", "<", "IS NOT DISTINCT FROM"))
        conditions.append(f"{_any(rnd, pair[0])} {how} {_any(rnd, pair[1])}")
    items = ", ".join(_item(rnd, source) for source in sources)
    shown = ", ".join(f"{_any(rnd, rnd.choice(sources))} AS c{i}" for i in range(rnd.choice((1, 3, 6))))
    distinct = "DISTINCT " if rnd.random() < 0.2 else ""
    return f"SELECT {distinct}{shown} FROM {items} WHERE {' AND '.join(conditions)}"


def first_rows(rnd: random.Random) -> tuple[str, str]:
    """The first rows of a table or of each group of it; the second text, for SQLite, breaks ties by all columns."""
    table, alias = source = rnd.choice(("w", "w", "l", "n")), "a"
    columns = COLUMNS[table]
    item = _item(rnd, source)
    by = [f"{_link(rnd, source)} {rnd.choice(('ASC', 'DESC'))} NULLS {rnd.choice(('FIRST', 'LAST'))}" for _ in "ab"]
    ties = [f"{alias}.{c} NULLS LAST" for c in columns]
    if rnd.random() < 0.5:
        slice_ = f"LIMIT {rnd.choice((1, 3, 6))} OFFSET {rnd.choice((0, 0, 2))}"
        ours, whole = (f"SELECT * FROM (SELECT * FROM {item} ORDER BY {', '.join(o)} {slice_}) f"
                       for o in (by[:1], [*by[:1], *ties]))  # fmt: skip
        return ours, whole
    group = _any(rnd, source)
    ours = f"SELECT DISTINCT ON ({group}) * FROM {item} ORDER BY {group}, {', '.join(by)}"
    ranked = f"row_number() OVER (PARTITION BY {group} ORDER BY {', '.join((*by, *ties))}) AS rank"
    shown = ", ".join(columns)
    return ours, f"SELECT {shown} FROM (SELECT a.*, {ranked} FROM {item}) r WHERE rank = 1"


Source = tuple[str, str]
"""A table and its alias."""


def _link(rnd: random.Random, source: Source) -> str:
    return f"{source[1]}.{rnd.choice(COLUMNS[source[0]][: LINKS[source[0]]])}"


def _any(rnd: random.Random, source: Source) -> str:
    return f"{source[1]}.{rnd.choice(COLUMNS[source[0]])}"


def _item(rnd: random.Random, source: Source) -> str:
    """A table, or its rows filtered by a few columns; sometimes with a computed column."""
    table, alias = source
    if rnd.random() < 0.5:
        return f"{table} {alias}"
    column = rnd.choice(COLUMNS[table])
    where = rnd.choice((f"{column} < 3", f"{column} IS NOT NULL", f"{column} = 1 OR {COLUMNS[table][1]} = 2"))
    first, *rest = COLUMNS[table]
    shown = f"coalesce({first}, 1) AS {first}" if first != "id" and rnd.random() < 0.3 else first
    return f"(SELECT {', '.join((shown, *rest))} FROM {table} WHERE {where}) {alias}"


def _pair(rnd: random.Random) -> tuple[Source, Source]:
    one, two = (rnd.choice(("w", "w", "l")), "a"), (rnd.choice(("w", "l", "s", "t", "n")), "b")
    return (one, two) if rnd.random() < 0.5 else ((two[0], "a"), (one[0], "b"))


def _outer(rnd: random.Random) -> str:
    one, two = _pair(rnd)
    how = rnd.choice(("LEFT", "RIGHT", "FULL"))
    on = f"{_link(rnd, one)} = {_link(rnd, two)}"
    if rnd.random() < 0.4:
        on += f" AND {_any(rnd, one)} < {_any(rnd, two)}"
    shown = ", ".join(f"{_any(rnd, rnd.choice((one, two)))} AS c{i}" for i in range(5))
    return f"SELECT {shown} FROM {_item(rnd, one)} {how} JOIN {_item(rnd, two)} ON {on}"


def _semi(rnd: random.Random) -> str:
    one, two = _pair(rnd)
    shown = ", ".join(f"{_any(rnd, one)} AS c{i}" for i in range(5))
    on = f"{_link(rnd, two)} = {_link(rnd, one)}"
    if rnd.random() < 0.3:
        on += f" AND {_any(rnd, two)} <> {_any(rnd, one)}"
    word = rnd.choice(("EXISTS", "EXISTS", "NOT EXISTS"))
    return f"SELECT {shown} FROM {_item(rnd, one)} WHERE {word} (SELECT 1 FROM {two[0]} b WHERE {on})"


def _recursive(rnd: random.Random) -> str:
    """The nodes reached over a wide table's rows; in some queries the loop joins two of its rows."""
    target = _any(rnd, ("w", "x"))
    more = f", w y WHERE r.v = x.g AND x.f = y.g AND y.{rnd.choice(FILLS)} < 3" if rnd.random() < 0.4 else (
        f" WHERE r.v = x.{rnd.choice(('f', 'g'))} AND x.{rnd.choice(FILLS)} < 3"
    )  # fmt: skip
    return f"WITH RECURSIVE r(v) AS (SELECT a FROM t UNION SELECT {target} FROM r, w x{more}) SELECT v FROM r"


PLANNINGS: Final = (
    *(Planning(joins, late=Late.ON) for joins in Joins),
    Planning(),
    Planning(late=Late.OFF),
)


def play(seed: int, steps: int = 7) -> tuple[int, int]:
    """Play one history; the numbers of comparisons and of joins with late materialization."""
    rnd = random.Random(seed)
    world = Wide()
    for _ in range(rnd.choice((0, 6, 20))):
        world.change(rnd)
    world.dataflow.step()
    views: list[tuple[int, str]] = []
    texts = [(text, text) for text in (random_query(rnd) for _ in range(3))]
    for i, (text, told) in enumerate((*texts, first_rows(rnd))):
        for k, planning in enumerate(PLANNINGS):
            world.planning = planning
            views.append((1000 + 10 * i + k, told))
            world.install(views[-1][0], world.bound(text).rel)
    compared = 0
    for step in range(steps):
        expected = {world.ordinal: [world.expected(text) for _, text in views]}
        for _ in range(rnd.choice((1, 1, 2, 4))):
            world.change(rnd)
            expected[world.ordinal] = [world.expected(text) for _, text in views]
        world.dataflow.step()
        for at, rows in expected.items():
            for (view, text), known in zip(views, rows, strict=True):
                assert world.view(view, at) == known, (seed, step, at, view, text)
                compared += 1
        if rnd.random() < 0.5:
            world.dataflow.allow_compaction(world.ordinal)
    return compared, world.fetching()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    compared = late = 0
    for seed in range(given.first, given.first + given.count):
        more, fetching = play(seed)
        compared += more
        late += fetching
        if seed % 50 == 49:
            print(f"{seed + 1}: {compared} comparisons, {late} joins that fetch late", flush=True)


if __name__ == "__main__":
    main()
