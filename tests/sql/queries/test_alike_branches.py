"""UNION ALL of many branches of one form: its rows and errors are those of the branches one by one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from planner.logical.nodes import SetOperation
from planner.logical.traversal import nodes
from planner.transform import branches
from planner.transform.pipeline import optimize
from sql.bind.statement import bind_tree
from sql.parse import parse, split
from tests.sql.queries.test_alike import outcome
from tests.support.bind_fake import FakeCatalog
from tests.support.sessions import Client, Server

TABLE = "a int PRIMARY KEY, b int, s text, n numeric, f float8, d date"
FORMS = [
    "SELECT {i}",
    "SELECT {i}, 'x{i}'",
    "SELECT {i} + 1 AS x, {i}.50",
    "SELECT 1",
    "SELECT 10 / ({i} - 20)",
    "SELECT 1, NULL",
    "SELECT {i} WHERE {i} < 20",
    "SELECT 1.{z}",
    "SELECT {i}, random() < 2",
    "SELECT {m}",
    "SELECT a FROM t WHERE a = {i}",
    "SELECT a + {i}, 'x{i}' FROM t WHERE a = {m}",
    "SELECT a, b FROM t WHERE {i} = b",
    "SELECT * FROM t WHERE b = {m} AND a > {i}",
    "SELECT s || '{i}' FROM t WHERE s = 's{m}'",
    "SELECT a FROM t WHERE a + 1 = {i}",
    "SELECT a FROM t WHERE n = {i}.0",
    "SELECT a, {i}.0 FROM t WHERE n = 1.{z}",
    "SELECT a FROM t WHERE f = {i}",
    "SELECT a FROM t WHERE d = '2024-01-10'::date + {i}",
    "SELECT a FROM t WHERE a = {i} OR b = {m}",
    "SELECT a FROM t WHERE a > {i}",
    "SELECT 10 / (b - {m}) FROM t WHERE a = {i}",
    "SELECT a FROM t WHERE 10 / (a - 7) > {i} AND a = {i}",
    "SELECT a FROM t WHERE a = {i} AND 10 / (a - 7) > {i}",
    "SELECT count(*) FROM t WHERE a = {i}",
    "SELECT a FROM t WHERE a = {i} LIMIT 1",
    "SELECT x.a FROM t x JOIN t y ON x.a = y.b WHERE x.a = {i}",
    "SELECT a FROM t WHERE b = NULL AND a = {i}",
    "SELECT a, random() < {i} + 1 FROM t WHERE a = {i}",
    "SELECT a FROM t WHERE a = {q}",
    "SELECT CASE a WHEN {i} THEN 'x' ELSE s END FROM t WHERE b = {i}",
    "SELECT (SELECT max(b) FROM t u WHERE u.a = t.b + {i}) FROM t WHERE a = {i}",
    "SELECT a FROM t WHERE a IS NOT DISTINCT FROM {i}",
    "SELECT generate_series(1, {m}), a FROM t WHERE a = {i}",
    "SELECT a FROM (SELECT a, b FROM t) u WHERE a = {i}",
    "SELECT missing FROM t WHERE a = {i}",
    "SELECT DISTINCT b FROM t WHERE b = {m}",
    "SELECT a FROM t WHERE a = {i}::bigint",
    "SELECT 'x{i}'::varchar(3)",
    "SELECT row_number() OVER (), {i} FROM t WHERE a = {i}",
]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    server = Server(tmp_path_factory.mktemp("branches"))
    client = server.client()
    client.run(f"CREATE TABLE t ({TABLE})")
    client.run(
        "INSERT INTO t SELECT i, nullif(i % 5, 4), 's' || i % 3, i + (i % 2) / 2.0, i, date '2024-01-01' + i"
        " FROM generate_series(1, 60) i"
    )
    client.run("INSERT INTO t VALUES (100, NULL, NULL, NULL, NULL, NULL)")
    yield client
    server.close()


def united(form: str, between: str = "UNION ALL", count: int = 40) -> str:
    parts = (form.format(i=i, m=i % 4, q=i * 1_000_000_000, z="5" + "0" * (i % 3)) for i in range(count))
    return f" {between} ".join(f"({p})" if "LIMIT" in form else p for p in parts)


@pytest.mark.parametrize("form", FORMS)
def test_the_same_as_one_by_one(client: Client, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    texts = [united(form), united(form, "UNION"), f"SELECT count(*) FROM ({united(form)}) u"]
    texts += [
        f"WITH w AS ({united(form)}) SELECT count(*) FROM w x, w y",
        f"{united(form)} EXCEPT ALL {form.format(i=3, m=3, q=3, z=5)}",
    ]
    found = [outcome(client, text) for text in texts]
    monkeypatch.setattr(branches, "MANY", 1 << 60)
    assert found == [outcome(client, text + " ") for text in texts]


@pytest.mark.parametrize(
    ("form", "one"),
    [
        ("SELECT {i}, 'x{i}'", True),
        ("SELECT a + {i} FROM t WHERE a = {i}", True),
        ("SELECT a FROM t WHERE s = 's{i}'", True),
        ("SELECT a FROM t WHERE a > {i}", False),
        ("SELECT a + {i} FROM t", False),
        ("SELECT random() + {i}", False),
    ],
)
def test_branches_of_one_form_are_one(form: str, one: bool) -> None:
    statement = split(united(form))[0]
    catalog = FakeCatalog(f"CREATE TABLE t ({TABLE.replace(' PRIMARY KEY', '')})")
    rel = optimize(bind_tree(parse(statement), statement, catalog).statement.rel)  # type: ignore[union-attr]
    assert one is not any(isinstance(node, SetOperation) for node in nodes(rel))


def test_a_view_is_maintained(client: Client) -> None:
    client.run(f"CREATE MATERIALIZED VIEW v AS {united('SELECT a, {i} AS x FROM t WHERE b = {i}')}")
    before = client.rows("SELECT count(*) FROM v")
    client.run("INSERT INTO t VALUES (101, 3)")
    assert client.rows("SELECT count(*) FROM v") == [(str(int(before[0][0] or 0) + 1),)]
    client.run("DROP MATERIALIZED VIEW v; DELETE FROM t WHERE a = 101")
