"""JOIN … FOR SYSTEM_TIME AS OF PROCTIME() from SQL, against a model that replays the history, over restarts too."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.histories import InProcess, Refused

Key = int | None
Row = tuple[Key, int]
JOIN = "JOIN p FOR SYSTEM_TIME AS OF PROCTIME() ON o.k = p.k"
VIEWS = {
    "met": f"SELECT o.k, o.v, p.w FROM o {JOIN}",
    "all_of": f"SELECT o.k, o.v, p.w FROM o LEFT {JOIN}",
    "counted": f"SELECT o.k, count(*) AS n, sum(p.w) AS w FROM o LEFT {JOIN} AND p.w < 3 GROUP BY o.k",
    "pairs": f"SELECT a.v, b.w FROM (SELECT o.k, o.v FROM o {JOIN}) a JOIN met b ON a.k = b.k AND a.v = b.v",
}


class Replayed:
    """The tables, and for each copy of a left row what it found, oldest first."""

    def __init__(self) -> None:
        self.left: dict[Row, list[list[int]]] = {}
        self.right: Counter[Row] = Counter()

    def change(self, left: Counter[Row], right: Counter[Row]) -> None:
        """What the tables are after a commit."""
        self.right = right
        for row in {*self.left, *left}:
            copies = self.left.setdefault(row, [])
            found = sorted(w for (k, w), n in right.items() for _ in range(n) if k is not None and k == row[0])
            copies += [found] * (left[row] - len(copies))
            del copies[: len(copies) - left[row]]

    def tables(self) -> tuple[Counter[Row], Counter[Row]]:
        return Counter({row: len(copies) for row, copies in self.left.items() if copies}), Counter(self.right)

    def views(self) -> dict[str, Counter[tuple[object, ...]]]:
        copies = [(row, found) for row, many in self.left.items() for found in many]
        met = Counter((*row, w) for row, found in copies for w in found)
        left = Counter((*row, w) for row, found in copies for w in (found or [None]))
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
        return {"met": met, "all_of": left, "counted": counted, "pairs": pairs}


def sql(value: Key) -> str:
    return "NULL" if value is None else str(value)


class Played:
    """One history."""

    def __init__(self, database: InProcess, seed: int) -> None:
        self.database = database
        self.rng = random.Random(seed)
        self.model = Replayed()
        self.created = False
        for table, columns in (("o", "k int, v int"), ("p", "k int, w int")):
            database.execute(f"CREATE TABLE {table} ({columns})")

    def statement(self, left: Counter[Row], right: Counter[Row]) -> str:
        """A statement, done to the tables."""
        rng = self.rng
        table, rows, column = ("o", left, "v") if rng.random() < 0.5 else ("p", right, "w")
        held = sorted((row for row in rows if rows[row]), key=lambda row: (row[0] is None, row))
        choice = rng.choice(["insert", "insert", "insert", "delete", "update"])
        if choice == "insert" or not held:
            many = [(rng.choice([0, 1, 2, 2, None]), rng.randrange(5)) for _ in range(rng.choice([1, 1, 2]))]
            rows.update(many)
            return f"INSERT INTO {table} VALUES {', '.join(f'({sql(k)}, {v})' for k, v in many)}"
        k, v = rng.choice(held)
        where = f"k IS NOT DISTINCT FROM {sql(k)} AND {column} = {v}"
        count = rows.pop((k, v))
        if choice == "delete":
            return f"DELETE FROM {table} WHERE {where}"
        rows[k, 4 - v] += count
        return f"UPDATE {table} SET {column} = {4 - v} WHERE {where}"

    def commit(self) -> None:
        """A transaction of some statements, between which the views may be read, taken back now and then."""
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
        self.model.change(left, right)

    def create(self) -> None:
        left, right = self.model.tables()
        self.model.left = {}
        self.model.change(left, right)
        self.created = True
        for name, query in VIEWS.items():
            self.database.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")

    def compare(self) -> None:
        for name, expected in self.model.views().items():
            rows = self.database.execute(f"SELECT * FROM {name}")
            found = Counter(tuple(None if v is None else int(v) for v in row) for row in rows)
            assert found == +expected, name

    def run(self, steps: int) -> None:
        first = self.rng.randrange(3)
        for step in range(steps):
            if step == first:
                self.create()
            self.commit()
            if step >= first:
                self.compare()
                if self.rng.random() < 0.1:
                    self.database.restart()
                    self.compare()
        self.database.execute("DROP TABLE o, p CASCADE")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    inside = InProcess(tmp_path_factory.mktemp("proctime"))
    yield inside
    inside.end()


@pytest.mark.parametrize("seed", range(12))
def test_histories(database: InProcess, seed: int) -> None:
    Played(database, seed).run(14)


def test_what_is_kept_goes_with_the_view(tmp_path: Path) -> None:
    """A view that is dropped and created again starts anew, over restarts too."""
    inside = InProcess(tmp_path)
    run = inside.execute
    run("CREATE TABLE o (k int, v int); CREATE TABLE p (k int, w int)")
    run("INSERT INTO p VALUES (1, 10); INSERT INTO o VALUES (1, 0)")
    run(f"CREATE MATERIALIZED VIEW met AS {VIEWS['met']}")
    run("UPDATE p SET w = 20")
    persistence = inside.server.coordinator.engine.persistence
    assert persistence is not None
    persistence.flush()
    inside.restart()
    assert run("SELECT * FROM met") == [(1, 0, 10)]
    run("DROP MATERIALIZED VIEW met")
    run(f"CREATE MATERIALIZED VIEW met AS {VIEWS['met']}")
    inside.restart()
    assert run("SELECT * FROM met") == [(1, 0, 20)]
    inside.end()


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        (f"SELECT * FROM o {JOIN}", "0A000"),
        (f"CREATE VIEW x AS SELECT o.v FROM o {JOIN}; SELECT * FROM x", "0A000"),
        (f"BEGIN; CREATE MATERIALIZED VIEW x AS SELECT o.v FROM o {JOIN}", "25001"),
        ("CREATE MATERIALIZED VIEW x AS SELECT 1 FROM o RIGHT " + JOIN, "0A000"),
        ("CREATE MATERIALIZED VIEW x AS SELECT 1 FROM o FOR SYSTEM_TIME AS OF PROCTIME()", "0A000"),
        (f"CREATE MATERIALIZED VIEW x AS SELECT 1 FROM o LEFT {JOIN} AND p.w > o.v", "0A000"),
        (
            "CREATE MATERIALIZED VIEW x AS WITH RECURSIVE r(k) AS (SELECT 1 UNION SELECT p.w FROM r "
            "JOIN p FOR SYSTEM_TIME AS OF PROCTIME() ON r.k = p.k) SELECT * FROM r", "0A000",
        ),
        ("VERIFY MATERIALIZED VIEW kept", "0A000"),
        ("ALTER TABLE o ADD COLUMN x int", "0A000"),
    ],
)  # fmt: skip
def test_what_is_refused(database: InProcess, statement: str, sqlstate: str) -> None:
    run = database.execute
    run("CREATE TABLE o (k int, v int); CREATE TABLE p (k int, w int)")
    run(f"CREATE MATERIALIZED VIEW kept AS {VIEWS['met']}")
    try:
        with pytest.raises(Refused) as refused:
            run(statement)
        assert refused.value.sqlstate == sqlstate
    finally:
        run("ROLLBACK")
        run("DROP TABLE o, p CASCADE")
