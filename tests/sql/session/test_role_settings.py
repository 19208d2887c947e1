"""ALTER ROLE … SET: what a role's sessions begin with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sql.admission.admission import OPEN
from sql.session.session import Session
from tests.support.sessions import Client, Server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    client = server.client()
    client.run("CREATE ROLE ann LOGIN; CREATE ROLE bob LOGIN CREATEROLE; CREATE ROLE top SUPERUSER LOGIN")
    yield client
    client.run("RESET ROLE; DROP ROLE ann, bob, top")
    client.close()


def login(server: Server, user: str, **parameters: str) -> Client:
    async def open_session() -> Session:
        return Session(server.coordinator, user, "postgres", parameters, OPEN)

    return Client(server, server.run(open_session()))


def shown(server: Server, user: str, *names: str, **parameters: str) -> list[str | None]:
    client = login(server, user, **parameters)
    found = [client.rows(f"SHOW {name}")[0][0] for name in names]
    client.close()
    return found


def test_settings_are_those_of_the_next_sessions(server: Server, client: Client) -> None:
    before = login(server, "ann")
    client.run("ALTER ROLE ann SET statement_timeout = '5s'; ALTER USER ann SET search_path TO a, \"B c\"")
    assert before.rows("SHOW statement_timeout") == [("0",)]
    before.close()
    assert shown(server, "ann", "statement_timeout", "search_path") == ["5s", 'a, "B c"']
    assert shown(server, "ann", "statement_timeout", statement_timeout="1s") == ["1s"]
    assert shown(server, "bob", "statement_timeout") == ["0"]
    after = login(server, "ann")
    after.run("SET statement_timeout = '9s'; RESET statement_timeout")
    assert after.rows("SHOW statement_timeout") == [("5s",)]
    after.close()
    client.run("SET ROLE ann")
    assert client.rows("SHOW statement_timeout") == [("0",)]
    client.run("RESET ROLE; ALTER ROLE ann RESET search_path")
    assert shown(server, "ann", "statement_timeout", "search_path") == ["5s", '"$user", public']
    client.run("ALTER ROLE ann RESET ALL")
    assert shown(server, "ann", "statement_timeout") == ["0"]


def test_a_roles_settings_in_a_database_are_stronger(server: Server, client: Client) -> None:
    client.run("ALTER DATABASE postgres SET work_mem = '1MB'; ALTER DATABASE postgres SET statement_timeout = '1s'")
    client.run(
        "ALTER ROLE ann SET statement_timeout = '2s'; ALTER ROLE ann IN DATABASE postgres SET lock_timeout = '3s'"
    )
    assert shown(server, "ann", "work_mem", "statement_timeout", "lock_timeout") == ["1MB", "2s", "3s"]
    client.run("ALTER ROLE ann IN DATABASE postgres SET statement_timeout = '4s'")
    client.run("ALTER ROLE ALL IN DATABASE postgres SET lock_timeout = '9s'")
    assert shown(server, "ann", "statement_timeout", "lock_timeout") == ["4s", "3s"]
    assert shown(server, "bob", "statement_timeout", "lock_timeout") == ["1s", "9s"]
    listed = (
        "SELECT d.oid, r.rolname, s.setconfig FROM pg_db_role_setting s LEFT JOIN pg_roles r ON r.oid = s.setrole "
        "LEFT JOIN pg_database d ON d.oid = s.setdatabase ORDER BY 1, 2"
    )
    assert client.rows(listed) == [
        ("5", "ann", "{lock_timeout=3s,statement_timeout=4s}"),
        ("5", None, "{work_mem=1MB,statement_timeout=1s,lock_timeout=9s}"),
        (None, "ann", "{statement_timeout=2s}"),
    ]
    assert client.rows("SELECT rolconfig FROM pg_roles WHERE rolname = 'ann'") == [("{statement_timeout=2s}",)]
    client.run("ALTER ROLE ann IN DATABASE postgres RESET ALL; ALTER DATABASE postgres RESET ALL")
    assert shown(server, "ann", "statement_timeout", "lock_timeout") == ["2s", "0"]


def test_who_may_set_what(client: Client) -> None:
    for role, statement, expected in (
        ("ann", "ALTER ROLE ann SET work_mem = '1MB'", ""), ("ann", "ALTER ROLE bob SET work_mem = '1MB'", "42501"),
        ("bob", "ALTER ROLE ann SET work_mem = '1MB'", ""), ("bob", "ALTER ROLE top SET work_mem = '1MB'", "42501"),
        ("ann", "ALTER ROLE ALL IN DATABASE postgres SET work_mem = '1MB'", "42501"),
        ("postgres", "ALTER ROLE ann SET nothing = 1", "42704"),
        ("postgres", "ALTER ROLE ann SET statement_timeout = x", "22023"),
        ("postgres", "ALTER ROLE ann SET role = top", "0A000"),
        ("postgres", "ALTER ROLE ann SET is_superuser = on", "55P02"),
        ("postgres", "ALTER ROLE nobody SET work_mem = '1MB'", "42704"),
        ("postgres", "ALTER ROLE ann IN DATABASE nothing SET work_mem = '1MB'", "3D000"),
        ("postgres", "ALTER ROLE ALL SET work_mem = '1MB'", "0A000"),
        ("postgres", "ALTER ROLE pg_monitor RESET ALL", "42939"),
    ):  # fmt: skip
        client.run(f"SET ROLE {role}")
        if expected:
            assert client.state(statement) == expected, statement
        else:
            client.run(statement)
        client.run("RESET ROLE")


def test_settings_survive_a_restart(tmp_path: Path) -> None:
    server = Server(tmp_path)
    server.client().run("CREATE ROLE ann LOGIN; ALTER ROLE ann SET statement_timeout = '5s'")
    server.restart()
    assert shown(server, "ann", "statement_timeout") == ["5s"]
    server.client().run("DROP ROLE ann; CREATE ROLE ann LOGIN")
    assert shown(server, "ann", "statement_timeout") == ["0"]
    server.close()
