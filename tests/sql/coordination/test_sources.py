"""Sources over one Spark: batches arrive once, by key and by event; failures are shown, retried and contained."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from sql.session.sources import Sources
from storage.spark.session import SparkSession
from tests.support.sessions import Client, Server
from tests.support.source_waits import drop_in, until, until_rows

pytestmark = pytest.mark.timeout(900)  # the machine may be slow; these tests do not measure time
FAST = "TRIGGER = '100 milliseconds'"


def begin(server: Server) -> None:
    async def work() -> None:
        Sources(server.coordinator)

    server.run(work())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, local_spark: SparkSession) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("data"), (tmp_path_factory.getbasetemp(),), lent=local_spark, hosts=("*",))
    begin(made)
    yield made
    made.close()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    made = server.client()
    yield made
    made.close()


def test_files_arrive_in_a_table_and_in_the_views_over_it(client: Client, tmp_path: Path) -> None:
    client.run("CREATE TABLE f (id int PRIMARY KEY, name text, price numeric(10,2), noted text DEFAULT 'new')")
    client.run("CREATE MATERIALIZED VIEW fv AS SELECT name, sum(price) AS total FROM f GROUP BY name")
    drop_in(tmp_path / "1 100%.csv", 'id,name,price\n1,a,1.50\n2,"b, c",\n')
    client.run(
        f"CREATE SOURCE fs FROM FILES (PATH '{tmp_path}', FORMAT csv, HEADER) INTO f (id, name, price) WITH ({FAST})"
    )
    until_rows(client, "SELECT * FROM f", [("1", "a", "1.50", "new"), ("2", "b, c", None, "new")])
    drop_in(tmp_path / "2.csv", 'id,name,price\n3,a,2\n4,"",7.25\n')
    until_rows(client, "SELECT * FROM fv", [("a", "3.50"), ("b, c", None), ("", "7.25")])
    assert client.rows('SELECT source, "table", system, state, batch, rows, error, failures FROM freshet.sources') == [
        ("fs", "f", "files", "running", "1", "4", None, "0")
    ]
    assert client.rows("SELECT batch, rows FROM fs") == [("1", "4")]
    client.run("ALTER SOURCE fs PAUSE")
    until_rows(client, "SELECT state FROM freshet.sources", [("paused",)])
    drop_in(tmp_path / "3.csv", "id,name,price\n5,x,9\n")
    client.run("ALTER SOURCE fs RESUME")
    until_rows(client, "SELECT count(*) FROM f", [("5",)])
    client.run("DROP SOURCE fs")
    assert client.rows("SELECT count(*) FROM freshet.sources") == [("0",)]


def state_of(client: Client, source: str) -> tuple[str | None, ...]:
    return client.rows(f"SELECT state, error, failures FROM freshet.sources WHERE source = '{source}'")[0]


def test_a_bad_row_is_shown_and_retried_and_what_is_good_later_heals_it(client: Client, tmp_path: Path) -> None:
    client.run("CREATE TABLE b (id int PRIMARY KEY, v int CHECK (v > 0))")
    drop_in(tmp_path / "1.csv", "1,10\nzwei,20\n")
    client.run(f"CREATE SOURCE bs FROM FILES (PATH '{tmp_path}', FORMAT csv) INTO b WITH ({FAST})")
    _, error, failures = until(lambda: state_of(client, "bs"), lambda found: found[0] == "failed")
    assert (error, int(failures or 0) >= 1) == ('22P02: invalid input syntax for type integer: "zwei"', True)
    (detail,) = client.rows("SELECT detail FROM freshet.sources WHERE source = 'bs'")[0]
    assert "1.csv" in str(detail)
    drop_in(tmp_path / "1.csv", "1,10\n2,-20\n")
    until(lambda: state_of(client, "bs"), lambda found: str(found[1]).startswith("23514"))
    assert client.rows("SELECT count(*) FROM b") == [("0",)]
    drop_in(tmp_path / "1.csv", "1,10\n2,20\n")
    until_rows(client, "SELECT * FROM b", [("1", "10"), ("2", "20")])
    until(lambda: state_of(client, "bs")[::2], lambda found: found == ("running", "0"))
    client.run("DROP TABLE b CASCADE")
    assert client.rows("SELECT count(*) FROM freshet.sources WHERE source = 'bs'") == [("0",)]


def test_changes_by_key_and_events_count_in_the_files_order(client: Client, tmp_path: Path) -> None:
    client.run("CREATE TABLE u (id int PRIMARY KEY, name text)")
    client.run("CREATE TABLE d (id int PRIMARY KEY, name text)")
    (tmp_path / "u").mkdir()
    (tmp_path / "d").mkdir()
    for n, rows in enumerate(([(1, "a"), (2, "b"), (1, "c")], [(2, None), (3, "x")], [(3, "y")])):
        ids, names = [i for i, _ in rows], pa.array([name for _, name in rows], pa.string())
        pq.write_table(pa.table({"id": pa.array(ids, pa.int32()), "name": names}), tmp_path / "u" / f"{n}.parquet")
        os.utime(tmp_path / "u" / f"{n}.parquet", (1_000_000 + n, 1_000_000 + n))
    events = [
        {"op": "c", "before": None, "after": {"id": 1, "name": "a"}},
        {"op": "u", "before": {"id": 1, "name": "a"}, "after": {"id": 5, "name": "a"}},
        {"op": "c", "after": {"id": 2, "name": "b"}},
        {"op": "d", "before": {"id": 2, "name": "b"}, "after": None},
    ]
    drop_in(tmp_path / "d" / "1.json", "\n".join(map(json.dumps, events)))
    for name, format_, envelope in (("u", "parquet", "UPSERT"), ("d", "json", "DEBEZIUM")):
        client.run(
            f"CREATE SOURCE {name}s FROM FILES (PATH '{tmp_path / name}', FORMAT {format_}) INTO {name}"
            f" WITH (ENVELOPE {envelope}, {FAST})"
        )
    until_rows(client, "SELECT * FROM u", [("1", "c"), ("3", "y")])
    until_rows(client, "SELECT * FROM d", [("5", "a")])
    client.run("DROP SOURCE us")
    client.run("DROP SOURCE ds")


def test_the_clock_and_a_table_that_changes_under_its_source(client: Client) -> None:
    client.run("CREATE TABLE r (at timestamptz, n bigint)")
    client.run("CREATE MATERIALIZED VIEW rv AS SELECT count(*) AS n, max(n) AS high FROM r")
    client.run(f"CREATE SOURCE rs FROM RATE (ROWS_PER_SECOND 50) INTO r (at, n) WITH ({FAST})")
    until(lambda: client.rows("SELECT n FROM rv"), lambda found: int(found[0][0] or 0) > 0)
    client.run("ALTER TABLE r ADD COLUMN more int DEFAULT 7")
    before = int(client.rows("SELECT n FROM rv")[0][0] or 0)
    until(lambda: client.rows("SELECT n FROM rv"), lambda found: int(found[0][0] or 0) > before)
    client.run("ALTER SOURCE rs PAUSE")
    until(lambda: state_of(client, "rs"), lambda found: found[0] == "paused")
    ((count, high, low),) = client.rows("SELECT count(*), max(n), min(more) FROM r")
    assert (int(count or 0), low) == (int(high or 0) + 1, "7")
    client.run("ALTER TABLE r DROP COLUMN n CASCADE")
    client.run("ALTER SOURCE rs RESUME")
    _, error, _ = until(lambda: state_of(client, "rs"), lambda found: found[0] == "failed")
    assert str(error).startswith("42703")
    client.run("DROP SOURCE rs")


def test_a_folder_that_is_gone_is_an_error_until_it_is_back(client: Client, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    client.run("CREATE TABLE g (id int)")
    client.run(f"CREATE SOURCE gs FROM FILES (PATH '{folder}', FORMAT csv) INTO g WITH ({FAST})")
    drop_in(folder / "1.csv", "1\n")
    until_rows(client, "SELECT * FROM g", [("1",)])
    shutil.rmtree(folder)
    until(lambda: state_of(client, "gs"), lambda found: found[0] == "failed" and str(found[1]).startswith("58P01"))
    folder.mkdir()
    drop_in(folder / "2.csv", "2\n")
    until_rows(client, "SELECT * FROM g", [("1",), ("2",)])
    client.run("DROP SOURCE gs")


def derby(server: Server, path: Path, *statements: str) -> None:
    """Runs statements on Derby (its jar comes with pyspark) in Spark's Java."""
    with server.coordinator.spark.session() as session:
        connect = session._jvm.java.sql.DriverManager.getConnection
        connection = connect(f"jdbc:derby:{path};create=true")
        for text in statements:
            connection.createStatement().execute(text)
        connection.close()


def test_a_database_is_polled_by_a_column_that_grows(server: Server, client: Client, tmp_path: Path) -> None:
    path = tmp_path / "db"
    derby(server, path, "CREATE TABLE orders (id BIGINT PRIMARY KEY, item VARCHAR(20), price DECIMAL(10,2), seq INT)",
          "INSERT INTO orders VALUES (1, 'a', 1.50, 1), (2, 'b', NULL, 2)")  # fmt: skip
    client.run("CREATE TABLE j (id bigint PRIMARY KEY, item text, price numeric(10,2))")
    client.run("CREATE TABLE k (id bigint PRIMARY KEY, item text)")
    jdbc = f"FROM JDBC (URL 'jdbc:derby:{path}', TABLE 'ORDERS'"
    client.run(f"CREATE SOURCE js {jdbc}) INTO j WITH ({FAST}, KEY = (id))")
    client.run(f"CREATE SOURCE ks {jdbc}, POLL 'seq') INTO k (id, item) WITH ({FAST}, ENVELOPE UPSERT)")
    until_rows(client, "SELECT * FROM j", [("1", "a", "1.50"), ("2", "b", None)])
    until_rows(client, "SELECT * FROM k", [("1", "a"), ("2", "b")])
    derby(server, path, "INSERT INTO orders VALUES (3, 'c', 3, 3)",
          "UPDATE orders SET item = NULL, seq = 4 WHERE id = 1")  # fmt: skip
    until_rows(client, "SELECT id, item FROM j", [("1", "a"), ("2", "b"), ("3", "c")])
    until_rows(client, "SELECT * FROM k", [("2", "b"), ("3", "c")])
    assert client.rows("SELECT batch, rows, position FROM js") == [("1", "3", "3")]
    for name in ("js", "ks"):
        client.run(f"DROP SOURCE {name}")


def test_kafka_without_its_connector_says_so(client: Client, server: Server) -> None:
    client.run("CREATE TABLE kt (id int PRIMARY KEY, name text)")
    client.run("CREATE SOURCE kafkas FROM KAFKA (BROKERS '127.0.0.1:1', TOPIC 'x') INTO kt WITH (ENVELOPE UPSERT)")
    _, error, _ = until(lambda: state_of(client, "kafkas"), lambda found: found[0] == "failed")
    with server.coordinator.spark.session() as session:
        jars = str(session.sparkContext._jsc.sc().listJars()) + str(list(Path(pyspark.__file__).parent.glob("jars/*")))
    if "spark-sql-kafka" not in jars:
        assert error == "58000: this Spark has no connector for Kafka"
        ((detail,),) = client.rows("SELECT detail FROM freshet.sources WHERE source = 'kafkas'")
        assert f"needs the package org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}." in str(detail)
        assert "PYSPARK_SUBMIT_ARGS" in str(detail)
    client.run("DROP SOURCE kafkas")


def test_sources_go_on_where_they_were_after_a_restart(server: Server, tmp_path: Path) -> None:
    client = server.client()
    client.run("CREATE TABLE again (id int)")
    client.run(f"CREATE SOURCE a FROM FILES (PATH '{tmp_path}', FORMAT csv) INTO again WITH ({FAST})")
    drop_in(tmp_path / "1.csv", "1\n")
    until_rows(client, "SELECT * FROM again", [("1",)])
    server.restart()
    drop_in(tmp_path / "2.csv", "2\n")
    begin(server)
    client = server.client()
    until_rows(client, "SELECT * FROM again", [("1",), ("2",)])
    assert client.rows("SELECT batch, rows FROM a") == [("1", "2")]
    client.run("DROP SOURCE a")
