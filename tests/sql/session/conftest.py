"""Three sessions over small tables and a view of one of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.sessions import Server
from tests.support.waiting import Clients


@pytest.fixture
def three(server: Server) -> Iterator[Clients]:
    clients = server.client(), server.client(), server.client()
    a = clients[0]
    a.run("CREATE SCHEMA locks")
    for client in clients:
        client.run("SET search_path TO locks")
    a.run("CREATE TABLE t (id int PRIMARY KEY, x int)")
    a.run("CREATE TABLE other (id int PRIMARY KEY, x int)")
    a.run("CREATE TABLE plain (a int, b text)")
    a.run("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)")
    a.run("INSERT INTO other VALUES (1, 10), (2, 20)")
    a.run("INSERT INTO plain VALUES (1, 'a'), (1, 'a'), (2, NULL)")
    a.run("CREATE MATERIALIZED VIEW sums AS SELECT sum(x) AS s, count(*) AS n FROM t")
    yield clients
    for client in clients[1:]:
        client.close()
    a.run("DROP SCHEMA locks CASCADE")
    a.close()
