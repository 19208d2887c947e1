"""A table of 30 columns joined in three ways by four views, then the latest of its rows by group: what is held, and
what a change costs, with its rows in every arrangement (``late_fetch = off``) and kept once (``auto``).

``python -m benchmarks.wide [--rows 300000]``. Both dataflows live in one process and take the same changes by turns.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np

from benchmarks.flow import Flow
from ivm.rows import Words
from planner.options import Late, Planning
from planner.render.holdings import arrangements

FILLS: Final = 26
DIMENSIONS: Final = {"owner": 5000, "shop": 2000, "kind": 500}
DDL: Final = (
    f"CREATE TABLE item (id bigint PRIMARY KEY, owner bigint NOT NULL, shop bigint NOT NULL, kind bigint NOT NULL, "
    f"{', '.join(f'c{i} bigint NOT NULL' for i in range(FILLS))})",
    "CREATE TABLE owner (id bigint PRIMARY KEY, level bigint NOT NULL)",
    "CREATE TABLE shop (id bigint PRIMARY KEY, level bigint NOT NULL)",
    "CREATE TABLE kind (id bigint PRIMARY KEY, level bigint NOT NULL)",
)


def _view(table: str, first: int, last: int) -> str:
    shown = ", ".join(f"i.c{k}" for k in range(first, last))
    return f"SELECT i.id, {shown} FROM {table} t JOIN item i ON i.{table} = t.id WHERE t.level = 7"


VIEWS: Final = (_view("owner", 0, 16), _view("shop", 4, 20), _view("kind", 0, 24), _view("owner", 12, 25))
LATEST: Final = ("SELECT DISTINCT ON (shop) * FROM item ORDER BY shop, c10 DESC",)


class Side:
    """Views, planned in one way."""

    def __init__(self, views: Sequence[str], late: Late) -> None:
        planning = Planning(late=late)
        self.flow = Flow(DDL, views[0], planning)
        for number, view in enumerate(views[1:], 1):
            self.flow.install(view, number, planning)
        self.spent = 0.0

    def feed(self, table: str, rows: Words, diffs: Words) -> None:
        """Steps one commit of one table and adds up its CPU time."""
        start = time.thread_time()
        self.flow.ordinal += 1
        self.flow.feed(table, rows, diffs)
        self.flow.step()
        self.spent += time.thread_time() - start

    def held(self) -> tuple[int, int]:
        """Bytes of all arrangements: the tables' own ones, and the others."""
        tables = {s.arrangements[s.primary_key] for s in self.flow.renderer.stored.values() if s.primary_key}
        found = arrangements(self.flow.flow, self.flow.renderer.stored)
        own = sum(a.size for a in found if a.node in tables)
        return own, sum(a.size for a in found) - own

    def shown(self) -> list[int]:
        """How many rows each view has."""
        root = self.flow.flow.publish()
        return [root[self.flow.renderer.output(view)].count for view in self.flow.views]


Change = tuple[str, Words, Words]
DIFFS: Final = np.array([-1, 1], np.int64)


def _update(draw: random.Random, items: Words, column: int) -> Change:
    old = items[draw.randrange(len(items))]
    new = old.copy()
    new[column] = draw.randrange(DIMENSIONS["owner"]) if column == 1 else draw.randrange(1 << 40)
    both = np.stack([old.copy(), new])
    old[:] = new
    return "item", both, DIFFS


def _together(batch: Sequence[Change]) -> Change:
    return "item", np.concatenate([rows for _, rows, _ in batch]), np.tile(DIFFS, len(batch))


def _flip(draw: random.Random, table: str, size: int) -> Change:
    """Turns a row that a view filters out into one that it keeps, or the reverse."""
    key = 100 * draw.randrange(size // 100)
    level = _levels.get((table, key), 0)
    _levels[table, key] = new = 7 - level
    return table, np.array([[key, level], [key, new]], np.int64), DIFFS


_levels: dict[tuple[str, int], int] = {}


def compare(views: Sequence[str], rows: int, changes: int, told: Callable[[str], None]) -> list[Side]:
    """Compares both ways after all changes; ``told`` gets a line for each measurement."""
    sides = [Side(views, Late.OFF), Side(views, Late.AUTO)]
    rnd = np.random.default_rng(1)
    items = rnd.integers(0, 1 << 40, (rows, FILLS + 4))
    items[:, 0] = np.arange(rows)
    _levels.clear()

    def play(name: str, played: Sequence[Change]) -> None:
        told(f"{name + ', µs of CPU':40}{_told(*_by_turns(sides, played))}")

    for place, (table, size) in enumerate(DIMENSIONS.items(), 1):
        items[:, place] = rnd.integers(0, size, rows)
        keys = np.arange(size, dtype=np.int64)
        _by_turns(sides, [(table, np.stack([keys, keys % 100], axis=1), np.ones(size, np.int64))])
    play("load of item", [("item", items, np.ones(rows, np.int64))])
    held = [side.held() for side in sides]
    told(f"{'bytes of the tables':40}{_told(*(own for own, _ in held))}")
    told(f"{'bytes of all else':40}{_told(*(others for _, others in held))}")
    draw = random.Random(2)
    for name, changed in {"a column that is shown": 10, "a column that is not": 29, "a key": 1}.items():
        play(f"item: {name} changes", [_update(draw, items, changed) for _ in range(changes)])
    batches = [[_update(draw, items, 10) for _ in range(changes)] for _ in range(20)]
    play(f"item: {len(batches[0]):,} rows change", [_together(batch) for batch in batches])
    for table, size in DIMENSIONS.items() if views is VIEWS else ():
        play(f"{table}: a row enters or leaves", [_flip(draw, table, size) for _ in range(changes)])
    return sides


def _by_turns(sides: Sequence[Side], changes: Sequence[Change]) -> list[float]:
    """Plays the changes on all sides by turns; microseconds of CPU time for one of them."""
    for side in sides:
        side.spent = 0.0
    for change in changes:
        for side in sides:
            side.feed(*change)
    return [1e6 * side.spent / len(changes) for side in sides]


def _told(off: float, late: float) -> str:
    return f"{off:>16,.0f}{late:>16,.0f}{late / off:>8.2f}x"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--changes", type=int, default=1000)
    given = parser.parse_args()
    print(f"{'':40}{'off':>16}{'auto':>16}")
    for views in (VIEWS, LATEST):
        off, late = compare(views, given.rows, given.changes, partial(print, flush=True))
        print(f"rows of the views: {off.shown()}, {late.shown()}")


if __name__ == "__main__":
    main()
