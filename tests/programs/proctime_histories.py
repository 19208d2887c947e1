"""Histories of joins with PROCTIME(), against a model that replays them commit by commit; with restarts, VACUUM and
VERIFY. ``python -m tests.programs.proctime_histories --count 1000`` plays that many."""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import Counter
from pathlib import Path

from tests.programs.histories import InProcess

Key = int | None
Row = tuple[Key, int]
JOIN = "JOIN p FOR SYSTEM_TIME AS OF PROCTIME() ON o.k = p.k"
VIEWS = {
    "met": f"SELECT o.k, o.v, p.t AS w FROM o {JOIN}",
    "all_of": f"SELECT o.k, o.v, p.w FROM o LEFT {JOIN}",
    "counted": f"SELECT o.k, count(*) AS n, sum(p.w) AS w FROM o LEFT {JOIN} AND p.w < 3 GROUP BY o.k",
    "pairs": f"SELECT a.v, b.w FROM (SELECT o.k, o.v FROM o {JOIN}) a JOIN met b ON a.k = b.k AND a.v = b.v",
    "larger": f"SELECT o.k, o.v, p.w FROM o {JOIN} AND p.w > o.v",
    "chain": f"SELECT o.k, p.w, q.w AS next FROM o {JOIN} LEFT JOIN p q FOR SYSTEM_TIME AS OF PROCTIME() ON p.w = q.k",
}
LEFTS = {
    "sifted": "SELECT k, v FROM o WHERE v > 1",
    "grouped": "SELECT k, count(*)::int AS v FROM o GROUP BY k",
    "beside": "SELECT o.k, x.w AS v FROM o JOIN p x ON x.k = o.v",
    "either": "SELECT k, v FROM o UNION ALL SELECT k, w FROM p",
}
"""Left sides that are queries: their rows are inserted, deleted and duplicated as the tables change, also when only p
does."""
VIEWS |= {name: f"SELECT o.k, o.v, p.w FROM ({left}) o LEFT {JOIN}" for name, left in LEFTS.items()}
PREFIX = "a rate of "
"""Texts, so that VACUUM has values to remove."""


class Replayed:
    """The tables, and for each copy of a left row its matches, oldest first."""

    def __init__(self) -> None:
        self.left: dict[Row, list[list[tuple[int, list[int]]]]] = {}
        self.right: Counter[Row] = Counter()

    def change(self, left: Counter[Row], right: Counter[Row]) -> None:
        """Apply a commit's tables."""
        self.right = right
        for row in {*self.left, *left}:
            copies = self.left.setdefault(row, [])
            found = [] if row[0] is None else [(w, self._at(w)) for w in self._at(row[0])]
            copies += [found] * (left[row] - len(copies))
            del copies[: len(copies) - left[row]]

    def _at(self, key: int) -> list[int]:
        return [w for (k, w), n in self.right.items() for _ in range(n) if k == key]

    def kept(self) -> Counter[tuple[object, ...]]:
        """Each copy with the matches that it keeps, or with NULL."""
        copies = [(row, found) for row, many in self.left.items() for found in many]
        return Counter((*row, w) for row, found in copies for w in ([w for w, _ in found] or [None]))

    def tables(self) -> tuple[Counter[Row], Counter[Row]]:
        return Counter({row: len(copies) for row, copies in self.left.items() if copies}), Counter(self.right)

    def views(self) -> dict[str, Counter[tuple[object, ...]]]:
        copies = [(row, [w for w, _ in found]) for row, many in self.left.items() for found in many]
        chain = Counter(
            (row[0], w, after)
            for row, many in self.left.items() for found in many for w, later in found for after in later or [None]
        )  # fmt: skip
        met = Counter((*row, w) for row, found in copies for w in found)
        larger = Counter((*row, w) for row, found in copies for w in found if w > row[1])
        groups: dict[Key, list[int | None]] = {}
        for row, found in copies:
            groups.setdefault(row[0], []).extend([w for w in found if w < 3] or [None])
        sums = {k: [w for w in ws if w is not None] for k, ws in groups.items()}
        counted = Counter((k, len(ws), sum(sums[k]) if sums[k] else None) for k, ws in groups.items())
        pairs: Counter[tuple[object, ...]] = Counter()
        for (k, v, _), n in met.items():
            for (k2, v2, w), m in met.items():
                if (k, v) == (k2, v2):
                    pairs[v, w] += n * m
        return {
            "met": met, "all_of": self.kept(), "larger": larger, "counted": counted, "pairs": pairs, "chain": chain,
        }  # fmt: skip


def lefts(left: Counter[Row], right: Counter[Row]) -> dict[str, Counter[Row]]:
    """The rows of the queries of ``LEFTS`` over the tables."""
    sizes: Counter[Key] = Counter()
    beside: Counter[Row] = Counter()
    for (k, v), n in left.items():
        sizes[k] += n
        for (other, w), m in right.items():
            beside[k, w] += n * m * (other == v)
    return {
        "sifted": Counter({row: n for row, n in left.items() if row[1] > 1}),
        "grouped": Counter((k, n) for k, n in sizes.items() if n),
        "beside": beside,
        "either": left + right,
    }


def sql(value: Key) -> str:
    return "NULL" if value is None else str(value)


def _number(value: object) -> int | None:
    return None if value is None else int(str(value).removeprefix(PREFIX))


class Played:
    """One history."""

    def __init__(self, database: InProcess, seed: int) -> None:
        self.database = database
        self.rng = random.Random(seed)
        self.model = Replayed()
        self.others: dict[str, Replayed] = {}
        self.created = False
        for table, columns in (("o", "k int, v int"), ("p", "k int, w int, t text")):
            database.execute(f"CREATE TABLE {table} ({columns})")

    def statement(self, left: Counter[Row], right: Counter[Row]) -> str:
        """A random statement, applied to the model's tables."""
        rng = self.rng
        table, rows, column = ("o", left, "v") if rng.random() < 0.5 else ("p", right, "w")
        held = sorted((row for row in rows if rows[row]), key=lambda row: (row[0] is None, row))
        choice = rng.choice(["insert", "insert", "insert", "delete", "update", "touch"])
        if choice == "insert" or not held:
            many = [(rng.choice([0, 1, 2, 2, None]), rng.randrange(5)) for _ in range(rng.choice([1, 1, 2]))]
            rows.update(many)
            texts = [f", '{PREFIX}{v}'" if table == "p" else "" for _, v in many]
            return f"INSERT INTO {table} VALUES " + ", ".join(
                f"({sql(k)}, {v}{text})" for (k, v), text in zip(many, texts, strict=True)
            )
        k, v = rng.choice(held)
        where = f"k IS NOT DISTINCT FROM {sql(k)} AND {column} = {v}"
        if choice == "touch":  # changes nothing, so matches are kept
            return f"UPDATE {table} SET {column} = {column} WHERE {where}"
        count = rows.pop((k, v))
        if choice == "delete":
            return f"DELETE FROM {table} WHERE {where}"
        rows[k, 4 - v] += count
        text = f", t = '{PREFIX}{4 - v}'" if table == "p" else ""
        return f"UPDATE {table} SET {column} = {4 - v}{text} WHERE {where}"

    def commit(self) -> None:
        """Run a transaction of some statements. The views may be read in between; it is sometimes rolled back."""
        rng = self.rng
        left, right = self.model.tables()
        if rng.random() < 0.5:
            self.database.execute(self.statement(left, right))
        else:
            self.database.execute("BEGIN")
            for _ in range(rng.randrange(1, 4)):
                self.database.execute(self.statement(left, right))
                if rng.random() < 0.4 and self.created:
                    self.database.execute("SELECT * FROM met")
            if rng.random() < 0.2:
                self.database.execute("ROLLBACK")
                return
            self.database.execute("COMMIT")
        self.change(left, right)

    def change(self, left: Counter[Row], right: Counter[Row]) -> None:
        """Apply a commit's tables."""
        self.model.change(left, right)
        for name, rows in lefts(left, right).items():
            self.others.setdefault(name, Replayed()).change(rows, right)

    def create(self) -> None:
        left, right = self.model.tables()
        self.model.left = {}
        self.others = {}
        self.change(left, right)
        self.created = True
        for name, query in VIEWS.items():
            self.database.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")

    def compare(self) -> None:
        views = self.model.views() | {name: other.kept() for name, other in self.others.items()}
        assert views.keys() == VIEWS.keys()
        for name, expected in views.items():
            rows = self.database.execute(f"SELECT * FROM {name}")
            found = Counter(tuple(_number(v) for v in row) for row in rows)
            assert found == +expected, name

    def disturb(self) -> None:
        """Run something that must change nothing."""
        match self.rng.choice(["restart", "vacuum", "vacuum full", "verify"]):
            case "restart":
                self.database.restart()
            case "verify":
                for name in VIEWS:
                    assert self.database.execute(f"VERIFY MATERIALIZED VIEW {name}") == []
            case statement:
                self.database.execute(statement)

    def run(self, steps: int) -> None:
        first = self.rng.randrange(3)
        for step in range(steps):
            if step == first:
                self.create()
            self.commit()
            if step >= first:
                self.compare()
                if self.rng.random() < 0.2:
                    self.disturb()
                    self.compare()
        self.database.execute("DROP TABLE o, p CASCADE")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--steps", type=int, default=14)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="freshet-proctime-") as folder:
        database = InProcess(Path(folder))
        for seed in range(given.first, given.first + given.count):
            try:
                Played(database, seed).run(given.steps)
            except BaseException:
                print(f"seed {seed} fails", flush=True)
                raise
            if seed % 50 == 49:
                print(f"{seed + 1 - given.first} histories", flush=True)
        database.end()


if __name__ == "__main__":
    main()
