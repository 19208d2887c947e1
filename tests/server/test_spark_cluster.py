"""The server with a real cluster: spark:// and sc:// load as the local path does; what is missing is reported early."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ivm.errors import SqlError
from storage.spark import session as spark_session
from storage.spark.cluster import LocalCluster
from storage.spark.reach import addresses, check_reachable
from storage.spark.session import SparkSession, SparkSettings
from tests.support.program import ROOT, Program
from tests.support.source_waits import drop_in
from tests.support.spark_cluster import connect, shared

__all__ = ["connect", "shared"]

pytestmark = pytest.mark.timeout(900)  # the machine may be slow; these tests do not measure time
VIEW = "SELECT note, count(*) AS n, sum(amount) AS total FROM {} GROUP BY note"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder of two Parquet files with NULLs and duplicate rows."""
    folder = tmp_path / "files" / "rows"
    folder.mkdir(parents=True)
    for name, start in (("a", 0), ("b", 3000)):
        ids = [i // 2 for i in range(start, start + 4000)]
        notes = [f"nöte {i % 50}" if i % 7 else None for i in ids]
        pq.write_table(
            pa.table({"id": ids, "note": notes, "amount": [i * 30 for i in ids]}), folder / f"{name}.parquet"
        )
    return folder


Connection = psycopg.Connection[tuple[object, ...]]


def load_both_ways(
    url: str,
    files: Path,
    shared: Path,
    data: Path,
    then: Callable[[Connection, Path], None] | None = None,
) -> None:
    """``then``: what the same server does next."""
    program = Program(data, "--files", str(files.parent), "--spark", url, "--spark-shared", str(shared),
                      "--sinks", str(files.parent), "--spark-memory", "500MiB")  # fmt: skip
    try:
        with program.connect() as client:
            for table, engine in (("here", "local"), ("there", "spark")):
                client.execute(f"CREATE TABLE {table} (id bigint, note text, amount bigint)")
                client.execute(f"CREATE MATERIALIZED VIEW {table}_view AS {VIEW.format(table)}")
                done = client.execute(f"COPY {table} FROM '{files}' WITH (FORMAT parquet, ENGINE {engine})")
                assert done.statusmessage == "COPY 8000"
            for of in ("", "_view"):
                here, there = (
                    client.execute(f"SELECT * FROM {table}{of} ORDER BY 1, 2, 3").fetchall()
                    for table in ("here", "there")
                )
                assert here == there
                assert len(here) == (8000 if not of else 51)
            client.execute("CREATE TABLE small (id smallint, note text, amount smallint)")
            with pytest.raises(psycopg.errors.NumericValueOutOfRange):
                client.execute(f"COPY small FROM '{files}' WITH (FORMAT parquet, ENGINE spark)")
            if then is not None:
                then(client, files.parent)
        assert program.terminate() == 0
    finally:
        program.kill()


def test_a_cluster_loads_what_the_local_path_loads(
    cluster: LocalCluster, files: Path, shared: Path, tmp_path: Path
) -> None:
    load_both_ways(cluster.url, files, shared, tmp_path / "data", a_bad_file_is_told)


def test_a_cluster_without_room_is_said(
    cluster: LocalCluster, shared: Path, monkeypatch: pytest.MonkeyPatch, local_spark: SparkSession
) -> None:
    local_spark.stop()  # there is one Spark per process
    monkeypatch.setattr(spark_session, "EXECUTOR_SECONDS", 1.0)
    greedy = SparkSession(SparkSettings(cluster.url, shared, memory="20g"))
    with pytest.raises(SqlError, match="gave no executor") as raised, greedy:
        pass
    assert raised.value.sqlstate == "58000"
    assert "--spark-memory" in str(raised.value.hint)
    assert not greedy.running


def test_a_cluster_ends_with_its_program_however_that_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "storage.spark.cluster", "--workers", "1", "--memory", "600m"]
    program = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert program.stdout is not None
    assert any(b"Ctrl-C ends it" in line for line in program.stdout)
    javas = children(program.pid)
    assert len(javas) == 3  # the master, a worker, and the process that ends them
    assert list(tmp_path.iterdir())
    program.kill()
    program.wait()
    end = time.monotonic() + 60
    while any(Path(f"/proc/{java}").exists() for java in javas) or list(tmp_path.iterdir()):
        assert time.monotonic() < end, "left behind"
        time.sleep(0.1)


def children(pid: int) -> list[int]:
    return [int(each) for path in Path(f"/proc/{pid}/task").glob("*/children") for each in path.read_text().split()]


def until(client: Connection, text: str, wanted: list[tuple[object, ...]]) -> None:
    """Waits until a query gives these rows."""
    end = time.monotonic() + 70
    while (found := client.execute(text).fetchall()) != wanted:  # type: ignore[call-overload]
        assert time.monotonic() < end, f"{found}, {client.execute('TABLE freshet.sources').fetchall()}"
        time.sleep(0.1)


def a_bad_file_is_told(client: Connection, folder: Path) -> None:
    """The error is reported, however verbosely a cluster's executors say so."""
    (folder / "bad").mkdir()
    drop_in(folder / "bad" / "1.csv", f"1,a\n{'x' * 20_000},b\n")
    client.execute("CREATE TABLE good (id int PRIMARY KEY, note text)")
    client.execute("CREATE SOURCE bads FROM FILES (PATH 'bad', FORMAT csv) INTO good"
                   " WITH (ENVELOPE UPSERT, TRIGGER = '200 ms')")  # fmt: skip
    until(client, "SELECT left(error, 5) FROM freshet.sources", [("22P02",)])
    drop_in(folder / "bad" / "1.csv", "1,a\n2,b\n")
    until(client, "SELECT * FROM good ORDER BY id", [(1, "a"), (2, "b")])
    client.execute("DROP TABLE good CASCADE")


def all_that_spark_does(client: Connection, folder: Path) -> None:
    """Sources, hydration, sinks and a view that Spark maintains."""
    (folder / "bag").mkdir()
    drop_in(folder / "bag" / "1.csv", "1,a\n2,b\n")
    client.execute("CREATE TABLE bag (id int, note text)")
    client.execute("CREATE MATERIALIZED VIEW kept WITH (MAINTAIN = spark, PARTITIONS = 2) AS SELECT note, count(*) AS n"
                   " FROM bag GROUP BY note")  # fmt: skip
    client.execute("CREATE SINK k FROM bag INTO 'k' WITH (ENGINE = spark, EVERY = '100 ms')")
    client.execute("CREATE SOURCE bags FROM FILES (PATH 'bag', FORMAT csv) INTO bag WITH (TRIGGER = '200 ms')")
    until(client, "SELECT * FROM bag ORDER BY id", [(1, "a"), (2, "b")])
    drop_in(folder / "bag" / "2.csv", "3,a\nx,b\n")
    until(client, "SELECT error FROM freshet.sources", [('22P02: invalid input syntax for type integer: "x"',)])
    drop_in(folder / "bag" / "2.csv", "3,a\n4,b\n")
    until(client, "SELECT count(*) FROM bag", [(4,)])
    client.execute("CREATE MATERIALIZED VIEW joined WITH (HYDRATE = spark) AS SELECT a.note, count(*) AS n FROM bag a"
                   " JOIN bag b ON a.note = b.note GROUP BY a.note")  # fmt: skip
    assert client.execute("VERIFY MATERIALIZED VIEW joined").fetchall() == []
    assert client.execute("SELECT * FROM joined ORDER BY note").fetchall() == [("a", 4), ("b", 4)]
    assert client.execute("SELECT * FROM kept ORDER BY note").fetchall() == [("a", 2), ("b", 2)]
    client.execute("CREATE MATERIALIZED VIEW followed WITH (HYDRATE = spark) AS WITH RECURSIVE f(id) AS"
                   " (SELECT 1 UNION SELECT b.id FROM f JOIN bag b ON b.id = f.id + 1) SELECT id FROM f")  # fmt: skip
    assert client.execute("SELECT * FROM followed ORDER BY id").fetchall() == [(1,), (2,), (3,), (4,)]
    until(client, "SELECT rows, error FROM freshet.sinks", [(4, None)])
    client.execute("DROP SOURCE bags")
    client.execute("DROP TABLE bag CASCADE")


def test_spark_connect_does_what_the_local_path_does(connect: str, files: Path, shared: Path, tmp_path: Path) -> None:
    load_both_ways(connect, files, shared, tmp_path / "data", all_that_spark_does)


@pytest.mark.parametrize("scheme", ["spark", "sc"])
def test_what_is_not_there_is_said_within_seconds(scheme: str, shared: Path) -> None:
    start = time.monotonic()
    nowhere = SparkSession(SparkSettings(f"{scheme}://127.0.0.1:1", shared))
    with pytest.raises(SqlError, match=f"cannot reach Spark at {scheme}://127.0.0.1:1") as raised, nowhere:
        pass
    assert raised.value.sqlstate == "58000"
    assert time.monotonic() - start < 10


def test_settings_that_cannot_be(shared: Path) -> None:
    for master, text in (("yarn", "is no Spark"), ("spark://h:7077", "need a folder"), ("sc://h", "need a folder")):
        with pytest.raises(SqlError, match=text) as raised:
            SparkSettings(master)
        assert raised.value.sqlstate == "22023"
    assert addresses("spark://a:1,b") == [("a", 1), ("b", 7077)]
    assert addresses("sc://c/;token=x") == [("c", 15002)]
    for master in ("spark://", "sc://a:b", "spark://a:99999"):
        with pytest.raises(SqlError, match="names no host"):
            check_reachable(master)
