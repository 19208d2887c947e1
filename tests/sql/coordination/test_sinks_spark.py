"""Sinks that Spark writes, to file:// as to an object store; and Spark reading what the server writes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from storage.spark.session import SparkSession
from tests.sql.coordination.test_sinks import HURRY, TYPES, VALUES, caught_up, sink, wait_for
from tests.support.sessions import Client, Server
from tests.support.sink_reader import hashable, latest

pytestmark = pytest.mark.timeout(900)  # the machine may be slow; these tests do not measure time


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, local_spark: SparkSession) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("spark")
    (folder / "out").mkdir()
    made = Server(folder / "data", places=(str(folder / "out"), "s3a://ours/below"), tuning=HURRY, lent=local_spark)
    yield made
    made.close()


def out(server: Server) -> Path:
    return server.folder.parent / "out"


def entries(folder: Path) -> list[dict[str, Any]]:
    """The entries, each a folder with one line of text."""
    found = []
    for entry in sorted((folder / "_changes").iterdir()):
        (part,) = entry.glob("part-*.txt")
        found.append(json.loads(part.read_text()))
    assert [e["version"] for e in found] == list(range(len(found)))
    return found


def parts(folder: Path, found: list[dict[str, Any]]) -> Iterator[Path]:
    for file in (f for e in found for f in e["files"]):
        yield from (folder / file["path"]).glob("part-*")


def written(client: Client, name: str) -> None:
    wait_for(lambda: sink(client, name)["epoch"] or sink(client, name)["error"], 60)
    caught_up(client, name)


def test_spark_writes_what_the_server_writes(server: Server) -> None:
    client = server.client()
    client.run(f"CREATE TABLE t (id int PRIMARY KEY, {', '.join(f'{n} {t}' for n, t in TYPES.items())})")
    for i in range(3):
        row = ", ".join("NULL" if not i else VALUES[n][i % len(VALUES[n])] for n in TYPES)
        client.run(f"INSERT INTO t VALUES ({i}, {row})")
    client.run("CREATE SINK here FROM t INTO 'here' WITH (EVERY = '10ms')")
    client.run("CREATE SINK there FROM t INTO 'there' WITH (EVERY = '10ms', ENGINE = spark)")
    written(client, "there")
    client.run("UPDATE t SET i4 = 7; DELETE FROM t WHERE id = 1")
    caught_up(client, "there")
    caught_up(client, "here")
    folder = out(server) / "there"
    here = [out(server) / "here" / f["path"] for e in latest(out(server) / "here") for f in e["files"]]
    assert _net(parts(folder, entries(folder))) == _net(here)
    client.run("ALTER SINK there RESTART")
    wait_for(lambda: sink(client, "there")["generation"] == "2")
    client.run("DROP SINK there; DROP SINK here")


def _net(paths: Iterable[Path]) -> Counter[Any]:
    """The rows after all changes. Spark has no time of day, so it gets it as text."""
    rows: Counter[Any] = Counter()
    for record in (r for p in paths for r in pq.ParquetFile(p).read().to_pylist()):
        _, diff, *values = [str(v) if k == "ti" and v is not None else v for k, v in record.items()]
        rows[tuple(map(hashable, values))] += diff
    return Counter({row: n for row, n in rows.items() if n})


def test_lines_are_the_same_too(server: Server) -> None:
    client = server.client()
    client.run("CREATE TABLE l (a int, b text); INSERT INTO l VALUES (1, 'x,\"y'), (2, NULL)")
    for format_ in ("jsonl", "csv"):
        client.run(f"CREATE SINK {format_} FROM l INTO '{format_}' FORMAT {format_} WITH (ENGINE = spark)")
    found = {}
    for format_ in ("jsonl", "csv"):
        written(client, format_)
        folder = out(server) / format_
        (part,) = parts(folder, entries(folder))
        found[format_] = part.read_text().splitlines()
    assert found["csv"][0] == "mz_timestamp,mz_diff,a,b"
    assert {line.partition(",")[2] for line in found["csv"][1:]} == {'1,1,"x,""y"', "1,2,"}
    assert {json.loads(line)["b"] for line in found["jsonl"]} == {'x,"y', None}
    client.run("DROP SINK jsonl; DROP SINK csv")


def test_spark_reads_what_the_server_writes(server: Server) -> None:
    client = server.client()
    client.run("CREATE TABLE r (id int PRIMARY KEY, n numeric(9,2), at timestamptz)")
    client.run("INSERT INTO r VALUES (1, 1.25, '2024-01-01 12:00Z'), (2, NULL, NULL)")
    client.run("CREATE SINK kr FROM r INTO 'kr' ENVELOPE DEBEZIUM WITH (EVERY = '10ms')")
    caught_up(client, "kr")
    client.run("DELETE FROM r WHERE id = 2")
    caught_up(client, "kr")
    files = [str(out(server) / "kr" / f["path"]) for e in latest(out(server) / "kr") for f in e["files"]]
    with server.coordinator.spark.session() as session:
        frame = session.read.parquet(*files)
        found = (
            frame.select("op", "before.id", frame["after.id"].alias("new"), "after.n").orderBy("op", "new").collect()
        )
    assert [tuple(map(str, row)) for row in found] == [
        ("d", "2", "None", "None"), ("r", "None", "1", "1.25"), ("r", "None", "2", "None"),
    ]  # fmt: skip
    client.run("DROP SINK kr")


def test_an_object_store_that_cannot_be_reached_is_the_sinks_error(server: Server) -> None:
    client = server.client()
    client.run("CREATE TABLE o (a int)")
    for uri in ("s3a://ours/else", "s3a://ours/below/../x", "s3a://ours/belowx", "s3a://k:s@ours/below/x"):
        assert client.state(f"CREATE SINK ko FROM o INTO '{uri}'") in ("42501", "22023"), uri
    client.run("CREATE SINK ko FROM o INTO 's3a://ours/below/x'")
    wait_for(lambda: sink(client, "ko")["error"], 60)
    assert str(sink(client, "ko")["error"]).startswith("58000")
    client.run("INSERT INTO o VALUES (1)")
    client.run("DROP SINK ko")
