"""Sources and sinks as relations of the catalog: their dependencies, and rows made durable with other work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ivm.words import INT8
from sql.catalog.catalog import Relation, RelationKind, TableColumn
from sql.catalog.connection import Connection
from sql.engine.engine import Engine
from sql.engine.writer import Writer
from tests.support.sessions import Server

CONNECTION = Connection("files", (("path", "/x"), ("header", True), ("only", ("a", "b"))), ("a",), ("a",), "upsert", 5)
COLUMNS = (TableColumn("batch", INT8, False), TableColumn("rows", INT8, False))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path)
    yield made
    made.close()


def connect(server: Server, kind: RelationKind, name: str) -> None:
    """Makes a connection of ``t`` with one row as DDL does, in one commit with a row of ``t``."""
    engine = server.coordinator.engine

    def work() -> None:
        writer = Writer.begin(engine)
        table = engine.catalog.names["public", "t"]
        made = Relation(
            engine.next_id(writer.catalog), "public", name, kind, COLUMNS, created=1, dependencies=(table.id,),
            connection=CONNECTION,
        )  # fmt: skip
        writer.create(made, None)
        writer.add(made.id, np.array([[7, 3]], np.int64), np.ones(1, np.int64))
        writer.add(table.id, np.array([[1]], np.int64), np.ones(1, np.int64))
        writer.commit()

    server.run(server.coordinator.jobs.autocommit(work))


def test_a_connections_rows_are_there_after_a_restart_as_its_definition_is(server: Server) -> None:
    client = server.client()
    client.run("CREATE TABLE t (a bigint NOT NULL)")
    connect(server, RelationKind.SOURCE, "s")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT sum(batch) FROM s")
    for _ in range(2):
        assert client.rows("SELECT batch, rows FROM s") == [("7", "3")]
        assert client.rows("SELECT * FROM v") == [("7",)]
        assert client.rows("SELECT count(*) FROM t") == [("1",)]
        catalog = server.coordinator.engine.catalog
        assert {r.connection for r in catalog.relations.values()} == {None, CONNECTION}
        server.restart()
        client = server.client()


def test_a_connections_rows_survive_where_only_the_log_has_them(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.checkpoint.Applier.submit", lambda *_: None)
    server.client().run("CREATE TABLE t (a bigint NOT NULL)")
    connect(server, RelationKind.SOURCE, "s")
    server.restart()
    assert server.client().rows("SELECT batch, rows FROM s") == [("7", "3")]


def test_a_table_that_a_connection_needs_is_not_dropped_without_cascade(server: Server) -> None:
    client = server.client()
    client.run("CREATE TABLE t (a bigint NOT NULL)")
    connect(server, RelationKind.SOURCE, "s")
    needed = client.error("DROP TABLE t")
    assert (needed.sqlstate, needed.detail) == ("2BP01", "source s depends on table t")
    for text in ("INSERT INTO s VALUES (1, 2)", "TRUNCATE s", "DROP TABLE s", "DROP SINK s", "ALTER TABLE s ADD x int"):
        assert client.state(text) == "42809", text
    client.run("DROP TABLE t CASCADE")
    assert client.state("DROP SOURCE s") == "42P01"
    client.run("DROP SOURCE IF EXISTS s")


def test_a_source_follows_its_table_when_the_tables_columns_change(server: Server) -> None:
    client = server.client()
    client.run("CREATE TABLE t (a bigint NOT NULL)")
    connect(server, RelationKind.SOURCE, "s")
    client.run("ALTER TABLE t ADD COLUMN b int")
    engine: Engine = server.coordinator.engine
    table, source = (engine.catalog.names["public", name] for name in ("t", "s"))
    assert source.dependencies == (table.id,)
    assert replace(source, dependencies=()).connection == CONNECTION
    client.run("DROP SOURCE s")
    assert ("public", "s") not in engine.catalog.names
