"""What a database of many tables costs the catalogs and definitions, counted."""

from __future__ import annotations

from typing import Any

import pytest

from sql.catalog import composite, user_types
from sql.system import pg_relations
from tests.support.sessions import Server

COLUMNS = "SELECT attname, attacl FROM pg_attribute WHERE attrelid = '{}'::regclass AND attnum > 0 ORDER BY attnum"


def test_columns_are_listed_anew_where_they_have_changed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    client = server.client()
    client.run("CREATE SCHEMA many; SET search_path = many")
    for i in range(10):
        client.run(f"CREATE TABLE t{i} (a int, b text)")
    made: list[int] = []
    attribute = pg_relations._attribute

    def counted(relation: int, *args: Any, **values: Any) -> Any:
        made.append(relation)
        return attribute(relation, *args, **values)

    monkeypatch.setattr(pg_relations, "_attribute", counted)
    client.run("SELECT count(*) FROM pg_attribute")
    client.run("ALTER TABLE t3 RENAME b TO c; ALTER TABLE t3 ADD d int")
    made.clear()
    assert client.rows(COLUMNS.format("t3")) == [("a", None), ("c", None), ("d", None)]
    assert len(made) == 3
    client.run("BEGIN; ALTER TABLE t4 DROP b")
    assert client.rows(COLUMNS.format("t4")) == [("a", None)]
    assert server.client().rows(COLUMNS.format("many.t4")) == [("a", None), ("b", None)]
    client.run("ROLLBACK; CREATE ROLE reads_b; GRANT SELECT (b) ON t5 TO reads_b")
    assert client.rows(COLUMNS.format("t4")) == [("a", None), ("b", None)]
    assert client.rows(COLUMNS.format("t5")) == [("a", None), ("b", "{reads_b=r/me}")]
    client.run("REVOKE SELECT (b) ON t5 FROM reads_b")
    assert client.rows(COLUMNS.format("t5"))[0] == ("a", None)


def test_a_drop_looks_into_no_plain_types(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    client = server.client()
    for i in range(5):
        client.run(f"CREATE TABLE plain{i} (a int, b text)")
    looked: list[object] = []
    parts = user_types.parts
    monkeypatch.setattr(user_types, "parts", lambda *given: looked.append(given[0]) or parts(*given))
    client.run("DROP TABLE plain0, plain1")
    assert looked == []
    client.run("CREATE TYPE pair AS (a int, b text); CREATE TABLE pairs (p pair[])")
    assert client.state("DROP TYPE pair") == "2BP01"


class _Unread:
    domain = routine = None

    @property
    def columns(self) -> tuple[object, ...]:
        raise AssertionError("read")


def test_fields_are_looked_for_domains_only_if_there_is_one() -> None:
    relations: dict[int, Any] = {1: _Unread()}
    assert composite.with_field_domains(relations) is relations
