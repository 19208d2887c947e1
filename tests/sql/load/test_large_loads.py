"""Large loads, which enter sorted, behave as small ones: the same rows, errors and views."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ivm.errors import SqlError
from sql.engine.engine import Engine
from sql.session import copy_files
from storage.load.collector import RowCollector
from tests.support.sessions import Client, Server

ROWS = 2500
COLUMNS = ("a", "b", "c")
TABLES = {
    "plain": "a bigint, b int, c text",
    "first": "a bigint PRIMARY KEY, b int, c text",
    "second": "a bigint NOT NULL, b int, c text PRIMARY KEY",
    "both": "a bigint NOT NULL, b int NOT NULL, c text, PRIMARY KEY (b, a)",
    "classed": "a numeric PRIMARY KEY, b int, c text",
    "another": "a bigint PRIMARY KEY, b int, c text, UNIQUE (b, c)",
    "refers": "a bigint, b int REFERENCES parents, c text",
    "checked": "a bigint, b int CHECK (b < 90), c text CHECK (c <> 'c17')",
    "filled": "a bigint, b int, c text, d int DEFAULT 7, e text DEFAULT 'x'",
    "parted": "a bigint, b int, c text) PARTITION BY LIST (b",
}
VIEWS = {
    "groups": "SELECT b, count(*) AS n, sum(a) AS s, max(c) AS m FROM {t} GROUP BY b",
    "pairs": "SELECT x.a, count(*) AS n FROM {t} x JOIN {t} y ON x.a = y.a WHERE x.b < 30 GROUP BY x.a",
    "distinct_c": "SELECT DISTINCT c FROM {t}",
}


def write(folder: Path, name: str, seed: int, twice: bool, distinct: bool) -> None:
    """Writes rows with NULLs. ``twice``: some are repeated; ``distinct``: every a and c identifies one row."""
    draw = random.Random(seed)
    rows: list[tuple[int | None, int | None, str | None]] = []
    for i in range(ROWS):
        a = i * 7 % ROWS + seed * (10 * ROWS) if distinct else draw.randrange(ROWS // 3)
        rows.append((a, draw.randrange(80), f"c{a}") if distinct else
                    (a, draw.choice([None, *range(80)]), draw.choice([None, f"c{a % 50}"])))  # fmt: skip
    if twice:
        rows += draw.choices(rows, k=40)
    draw.shuffle(rows)
    columns = {name: [row[i] for row in rows] for i, name in enumerate(COLUMNS)}
    types = {"a": pa.int64(), "b": pa.int32(), "c": pa.string()}
    pq.write_table(pa.table({n: pa.array(v, types[n]) for n, v in columns.items()}), folder / f"{name}.parquet")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    write(folder, "distinct", 1, twice=False, distinct=True)
    write(folder, "others", 2, twice=False, distinct=True)
    write(folder, "twice", 1, twice=True, distinct=True)
    write(folder, "mixed", 3, twice=True, distinct=False)
    return folder


@pytest.fixture
def server(tmp_path: Path, files: Path) -> Iterator[Server]:
    server = Server(tmp_path / "data", files=(files,))
    yield server
    server.close()


class Arranged:
    """Counts how often the engine was fed rows arranged beside it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.times = 0
        original = Engine.feed_arranged

        def feed(engine: Engine, *given: object) -> None:
            self.times += 1
            original(engine, *given)  # type: ignore[arg-type]

        monkeypatch.setattr(Engine, "feed_arranged", feed)


def make(client: Client, name: str, prefix: str) -> str:
    table = f"{prefix}_{name}"
    client.run(f"CREATE TABLE {table} ({TABLES[name]})")
    if name == "parted":
        client.run(f"CREATE TABLE {table}_1 PARTITION OF {table} FOR VALUES IN (1, 2, 3)")
        client.run(f"CREATE TABLE {table}_2 PARTITION OF {table} DEFAULT")
    for view, query in VIEWS.items():
        client.run(f"CREATE MATERIALIZED VIEW {table}_{view} AS {query.format(t=table)}")
    return table


def copy(client: Client, table: str, file: str) -> tuple[str, str, str | None]:
    """A load's result: its tag, or the error with the table's name normalised."""
    columns = "(a, b, c)" if table.endswith("filled") else ""
    try:
        return client.run(f"COPY {table} {columns} FROM '{file}.parquet' WITH (FORMAT parquet)"), "", None
    except SqlError as error:
        short = table.partition("_")[2]
        return error.sqlstate, error.message.replace(table, short), (error.detail or "").replace(table, short)


@pytest.mark.parametrize("name", TABLES)
def test_what_a_small_load_does(server: Server, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    client = server.client()
    client.run("CREATE TABLE parents (id int PRIMARY KEY)")
    client.run("INSERT INTO parents SELECT generate_series(0, 79)")
    arranged = Arranged(monkeypatch)
    small, large = make(client, name, "small"), make(client, name, "large")
    monkeypatch.setattr(copy_files, "FROM_ROWS", sys.maxsize)
    monkeypatch.setattr(copy_files, "RowCollector", partial(RowCollector, run=300))
    for step, file in enumerate(["distinct", "others", "distinct", "twice", "mixed", "mixed"]):
        expected = copy(client, small, file)
        assert arranged.times == 0
        with monkeypatch.context() as patch:
            patch.setattr(copy_files, "FROM_ROWS", 1000)
            found = copy(client, large, file)
        assert (found[0], found[1]) == (expected[0], expected[1]), (step, file)
        assert client.sorted(f"SELECT * FROM {large}") == client.sorted(f"SELECT * FROM {small}")
        for view in VIEWS:
            assert client.rows(f"VERIFY MATERIALIZED VIEW {large}_{view}") == []
        if step == 1:
            for table in (small, large):
                client.run(f"DELETE FROM {table} WHERE b = 5")
                client.run(f"UPDATE {table} SET b = 79 WHERE b = 6")
        entered = arranged.times
        arranged.times = 0
        assert entered == (0 if name == "parted" or not found[0].startswith("COPY") else 1), (step, file)
    client.run("BEGIN")
    with monkeypatch.context() as patch:
        patch.setattr(copy_files, "FROM_ROWS", 1000)
        before = client.sorted(f"SELECT * FROM {large}")
        copy(client, large, "others")
    client.run("ROLLBACK")
    assert client.sorted(f"SELECT * FROM {large}") == before
    for view in VIEWS:
        assert client.rows(f"VERIFY MATERIALIZED VIEW {large}_{view}") == []
    server.restart()
    client = server.client()
    assert client.sorted(f"SELECT * FROM {large}") == before
    for view in VIEWS:
        assert client.rows(f"VERIFY MATERIALIZED VIEW {large}_{view}") == []
    assert not list((server.folder / "loads").glob("*")), "files go when the store has the rows"


def test_the_error_names_a_key_that_is_there_twice(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy_files, "FROM_ROWS", 1000)
    client = server.client()
    client.run("CREATE TABLE t (a bigint PRIMARY KEY, b int, c text)")
    error = client.error("COPY t FROM 'twice.parquet' WITH (FORMAT parquet)")
    assert error.sqlstate == "23505"
    assert error.detail is not None
    assert error.detail.startswith("Key (a)=(")
    assert client.rows("SELECT count(*) FROM t") == [("0",)]
    assert client.run("COPY t FROM 'distinct.parquet' WITH (FORMAT parquet)") == f"COPY {ROWS}"


def test_a_large_load_beside_other_writes_to_its_table(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a transaction with rows before and after it, and on a table that another statement changes meanwhile."""
    monkeypatch.setattr(copy_files, "FROM_ROWS", 1000)
    client = server.client()
    client.run("CREATE TABLE t (a bigint, b int, c text)")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT b, count(*) AS n FROM t GROUP BY b")
    client.run("BEGIN")
    client.run("INSERT INTO t VALUES (-1, 1000, 'before')")
    client.run("COPY t FROM 'mixed.parquet' WITH (FORMAT parquet)")
    client.run("INSERT INTO t VALUES (-2, 1000, 'after')")
    client.run("COPY t FROM 'mixed.parquet' WITH (FORMAT parquet)")
    assert client.rows("SELECT n FROM v WHERE b = 1000") == [("2",)]
    client.run("SAVEPOINT s")
    client.run("COPY t FROM 'distinct.parquet' WITH (FORMAT parquet)")
    client.run("ROLLBACK TO s")
    client.run("COMMIT")
    assert client.rows("SELECT count(*) FROM t") == [(str(2 * (ROWS + 40) + 2),)]
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []
    first = client.rows("SELECT count(*), count(DISTINCT (a, b, c)), sum(a) FROM t")
    server.restart()
    assert server.client().rows("SELECT count(*), count(DISTINCT (a, b, c)), sum(a) FROM t") == first
