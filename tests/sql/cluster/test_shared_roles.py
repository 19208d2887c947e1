"""Roles are the server's: made and changed in any database, they count in all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ivm.errors import SqlError
from sql.catalog.catalog import Catalog
from sql.catalog.databases import FIRST_DATABASE
from sql.catalog.stored_form import catalog_to_json
from sql.cluster import cluster
from sql.engine import engine
from tests.support.clusters import Databases
from tests.support.sessions import Client


@pytest.fixture(scope="module")
def clients(databases: Databases) -> Iterator[tuple[Client, Client, Client]]:
    """Sessions of the first database, and of ``one`` and ``two``."""
    first = databases.database()
    first.run("CREATE DATABASE one")
    first.run("CREATE DATABASE two")
    found = first, databases.database("one"), databases.database("two")
    yield found
    for client in found:
        client.close()


Clients = tuple[Client, Client, Client]


def test_a_role_is_everywhere_at_once(clients: Clients, databases: Databases) -> None:
    for i, maker in enumerate(clients):
        maker.run(f"CREATE ROLE made_{i} LOGIN PASSWORD 'secret'")
        for client in clients:
            client.run(f"SET ROLE made_{i}")
            client.run("RESET ROLE")
            client.run(f"CREATE TABLE of_{i} (a int)")
            client.run(f"GRANT SELECT ON of_{i} TO made_{i}")
        maker.run(f"ALTER ROLE made_{i} CONNECTION LIMIT 1")
        held = databases.database("two", f"made_{i}")
        with pytest.raises(SqlError) as refusal:
            databases.database("one", f"made_{i}")
        assert refusal.value.sqlstate == "53300", "its connections are counted in all databases"
        held.close()
        maker.run(f"ALTER ROLE made_{i} RENAME TO named_{i}")
        assert [c.rows(f"SELECT count(*) FROM pg_roles WHERE rolname = 'named_{i}'") for c in clients] == [[("1",)]] * 3


def test_members_are_members_everywhere(clients: Clients, databases: Databases) -> None:
    first, one, two = clients
    one.run("CREATE ROLE crew")
    first.run("CREATE ROLE ann LOGIN")
    two.run("CREATE TABLE crews (a int)")
    two.run("GRANT SELECT ON crews TO crew")
    ann = databases.database("two", "ann")
    assert ann.state("SELECT * FROM crews") == "42501"
    one.run("GRANT crew TO ann")
    assert ann.rows("SELECT * FROM crews") == []
    first.run("REVOKE crew FROM ann")
    assert ann.state("SELECT * FROM crews") == "42501"
    assert ann.state("CREATE ROLE x") == "42501"
    assert ann.state("CREATE DATABASE x") == "42501"
    assert ann.state("DROP DATABASE one") == "42501"
    assert ann.state("ALTER DATABASE one CONNECTION LIMIT 1") == "42501"
    ann.close()


def test_what_keeps_a_role(clients: Clients) -> None:
    first, one, two = clients
    first.run("CREATE ROLE owner")
    one.run("CREATE TABLE owned (a int)")
    one.run("ALTER TABLE owned OWNER TO owner")
    one.run("CREATE TABLE also (a int)")
    one.run("GRANT SELECT ON also TO owner")
    first.run("CREATE TABLE here (a int)")
    first.run("GRANT SELECT ON here TO owner")
    two.run("GRANT CONNECT ON DATABASE one TO owner")
    message = 'role "owner" cannot be dropped because some objects depend on it'
    lines = {
        first: "privileges for database one\nprivileges for table here\n2 objects in database one",
        one: "privileges for database one\nowner of table owned\nprivileges for table also\n"
             "1 object in database postgres",
        two: "privileges for database one\n1 object in database postgres\n2 objects in database one",
    }  # fmt: skip
    for client, detail in lines.items():
        error = client.error("DROP ROLE owner")
        assert (error.sqlstate, error.message, error.detail) == ("2BP01", message, detail)
    one.run("DROP OWNED BY owner")
    assert one.state("SELECT * FROM owned") == "42P01"
    assert two.error("DROP ROLE owner").detail == "1 object in database postgres"
    first.run("DROP OWNED BY owner")
    two.run("DROP ROLE owner")
    assert [c.state("SET ROLE owner") for c in clients] == ["22023"] * 3


def test_databases_are_reassigned(clients: Clients) -> None:
    first, one, two = clients
    first.run("CREATE ROLE before")
    first.run("CREATE ROLE after")
    first.run("CREATE DATABASE theirs OWNER before")
    owner = "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'theirs'"
    assert two.rows(owner) == [("before",)]
    assert one.error("DROP ROLE before").detail == "owner of database theirs"
    one.run("REASSIGN OWNED BY before TO after")
    assert two.rows(owner) == [("after",)]
    first.run("REASSIGN OWNED BY after TO before")
    two.run("ALTER DATABASE theirs OWNER TO postgres")
    assert one.rows(owner) == [("postgres",)]
    for name in ("before", "after"):
        one.run(f"DROP ROLE {name}")
    first.run("DROP DATABASE theirs")


def test_who_may_connect(clients: Clients, databases: Databases) -> None:
    first, one, two = clients
    first.run("CREATE ROLE visitor LOGIN")
    databases.database("one", "visitor").close()
    two.run("REVOKE CONNECT ON DATABASE one FROM PUBLIC")
    with pytest.raises(SqlError) as refusal:
        databases.database("one", "visitor")
    found = refusal.value
    assert (found.sqlstate, found.message, found.detail) == (
        "42501", 'permission denied for database "one"', "User does not have CONNECT privilege."
    )  # fmt: skip
    databases.database("two", "visitor").close()
    one.run("GRANT CONNECT, CREATE ON DATABASE one TO visitor")
    visitor = databases.database("one", "visitor")
    visitor.run("CREATE SCHEMA visited")
    assert visitor.rows("SELECT datacl FROM pg_database WHERE datname = 'one'") == [
        ("{=T/postgres,postgres=CTc/postgres,visitor=Cc/postgres}",)
    ]
    other = databases.database("two", "visitor")
    assert other.error("CREATE SCHEMA visited").message == "permission denied for database two"
    other.close()
    visitor.close()
    first.run("ALTER DATABASE one CONNECTION LIMIT 2")
    visitor = databases.database("one", "visitor")
    with pytest.raises(SqlError) as refusal:
        databases.database("one", "visitor")
    assert (refusal.value.sqlstate, refusal.value.message) == ("53300", 'too many connections for database "one"')
    databases.database("one").close()  # superusers are not counted out
    visitor.close()
    first.run("ALTER DATABASE one CONNECTION LIMIT -1")
    one.run("GRANT CONNECT ON DATABASE one TO PUBLIC")


def test_a_creator_of_databases(clients: Clients, databases: Databases) -> None:
    first, one, _ = clients
    one.run("CREATE ROLE maker LOGIN CREATEDB")
    first.run("CREATE ROLE other")
    maker = databases.database("one", "maker")
    maker.run("CREATE DATABASE made CONNECTION LIMIT 5")
    shown = "SELECT pg_get_userbyid(datdba), datconnlimit FROM pg_database WHERE datname = 'made'"
    assert first.rows(shown) == [("maker", "5")]
    assert maker.error("CREATE DATABASE x OWNER other").message == 'must be member of role "other"'
    assert maker.error("CREATE DATABASE x TEMPLATE two").message == 'permission denied to copy database "two"'
    assert maker.error("DROP DATABASE two").message == "must be owner of database two"
    inside = databases.database("made", "maker")
    inside.run("CREATE SCHEMA own")
    assert inside.rows("SELECT pg_has_role('pg_database_owner', 'usage')") == [("t",)]
    assert maker.rows("SELECT pg_has_role('pg_database_owner', 'usage')") == [("f",)]
    inside.close()
    maker.run("ALTER DATABASE made RENAME TO renamed")
    maker.run("DROP DATABASE renamed")
    maker.close()


def test_a_role_that_ends_others(clients: Clients, databases: Databases) -> None:
    first, one, _ = clients
    one.run("CREATE ROLE weak LOGIN CREATEDB")
    first.run("CREATE DATABASE weaks OWNER weak")
    weak, strong = databases.database("one", "weak"), databases.database("weaks")
    error = weak.error("DROP DATABASE weaks WITH (FORCE)")
    assert (error.sqlstate, error.message) == ("42501", "must be a superuser to terminate superuser process")
    strong.close()
    weak.run("DROP DATABASE weaks WITH (FORCE)")
    weak.close()


def test_no_database_changes_what_a_views_owner_sees(clients: Clients) -> None:
    first, one, _ = clients
    first.run("CREATE ROLE owner; CREATE ROLE club; GRANT club TO owner")
    setup = (
        "CREATE SCHEMA v; GRANT ALL ON SCHEMA v TO owner; CREATE TABLE v.t (a int); GRANT SELECT ON v.t TO owner;"
        "ALTER TABLE v.t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON v.t TO club USING (a < 3);"
        "INSERT INTO v.t VALUES (1), (3); SET ROLE owner"
    )
    first.run(f"{setup}; CREATE MATERIALIZED VIEW v.m AS SELECT a FROM v.t; RESET ROLE")
    one.run(setup)
    assert one.state("CREATE MATERIALIZED VIEW v.m AS SELECT a FROM v.t") == "0A000"
    one.run("RESET ROLE")
    for statement in ("REVOKE club FROM owner", "ALTER ROLE owner BYPASSRLS", "ALTER ROLE owner NOINHERIT"):
        assert [client.state(statement) for client in (first, one)] == ["2BP01", "2BP01"]
    first.run("INSERT INTO v.t VALUES (2), (4)")
    assert first.sorted("SELECT * FROM v.m") == [("1",), ("2",)]
    first.run("DROP SCHEMA v CASCADE")
    one.run("REVOKE club FROM owner")
    one.run("DROP SCHEMA v CASCADE")
    first.run("DROP ROLE owner, club")


def test_a_busy_database_learns_later_but_lets_nobody_in(
    clients: Clients, databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "TELL_SECONDS", 0.2)
    first, one, two = clients
    first.run("CREATE ROLE leaving LOGIN; CREATE ROLE crowd; GRANT crowd TO leaving")
    other = databases.database("one", "leaving")
    one.run("BEGIN")
    one.run("CREATE TABLE holding (a int)")
    first.run("ALTER ROLE leaving NOLOGIN")
    with pytest.raises(SqlError) as refusal:
        databases.database("one", "leaving")
    assert refusal.value.sqlstate == "28000"
    two.run("REVOKE crowd FROM leaving")
    one.run("ROLLBACK")
    databases.woken()
    assert other.state("SET ROLE crowd") == "42501"
    other.close()
    one.run("DROP ROLE leaving, crowd")


def test_a_role_does_not_write_every_catalog(clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    """What others keep is in their memory; a change of their own writes it, and a start asks for it."""
    first, one, _ = clients
    written: list[int] = []

    def counting(catalog: Catalog) -> bytes:
        written.append(catalog.access.database)
        return catalog_to_json(catalog)

    monkeypatch.setattr(engine, "catalog_to_json", counting)
    for i in range(3):
        first.run(f"CREATE ROLE quiet_{i}")
    assert set(written) == {FIRST_DATABASE}
    one.run("SET ROLE quiet_2; RESET ROLE; CREATE TABLE written (a int)")
    assert len(set(written)) == 2
    for i in range(3):
        one.run(f"DROP ROLE quiet_{i}")
