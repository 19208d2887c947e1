"""CREATE, ALTER and DROP DATABASE, and what the databases of a server do not see of each other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ivm.errors import SqlError
from tests.support.clusters import Databases
from tests.support.sessions import Client


@contextmanager
def within(databases: Databases, name: str = "postgres", user: str = "postgres") -> Iterator[Client]:
    client = databases.database(name, user)
    try:
        yield client
    finally:
        client.close()


def refusal(databases: Databases, name: str, user: str = "postgres") -> SqlError:
    with pytest.raises(SqlError) as caught:
        databases.database(name, user)
    return caught.value


def known(client: Client) -> list[str | None]:
    return [row[0] for row in client.rows("SELECT datname FROM pg_database ORDER BY 1")]


def test_a_new_server_has_three(databases: Databases) -> None:
    with within(databases) as client:
        assert client.rows(
            "SELECT oid, datname, datistemplate, datallowconn FROM pg_database WHERE oid < 16384 ORDER BY 1"
        ) == [("1", "template1", "t", "t"), ("4", "template0", "t", "f"), ("5", "postgres", "f", "t")]
        assert client.rows("SELECT current_database(), current_catalog") == [("postgres", "postgres")]
    error = refusal(databases, "template0")
    assert (error.sqlstate, error.message) == ("55000", 'database "template0" is not currently accepting connections')
    error = refusal(databases, "missing")
    assert (error.sqlstate, error.message) == ("3D000", 'database "missing" does not exist')


def test_whoever_asks_for_none_gets_the_first(databases: Databases) -> None:
    """libpq asks for the database that is named like the user."""
    with within(databases, "me", "me") as client:
        assert client.rows("SELECT current_database()") == [("postgres",)]
        client.run("CREATE DATABASE me")
    with within(databases, "me", "me") as client:
        assert client.rows("SELECT current_database()") == [("me",)]


def test_same_names_in_two(databases: Databases) -> None:
    with within(databases) as first:
        first.run("CREATE DATABASE one")
        first.run("CREATE DATABASE two")
        body = "BEGIN RETURN (SELECT s FROM v); END"
        with within(databases, "one") as one, within(databases, "two") as two:
            for client, factor in ((first, 1), (one, 10), (two, 100)):
                client.run("CREATE TABLE t (id int PRIMARY KEY, x int)")
                client.run(f"CREATE MATERIALIZED VIEW v AS SELECT sum(x) * {factor} AS s, count(*) AS n FROM t")
                client.run("CREATE TYPE mood AS ENUM ('sad', 'ok')" if factor == 1 else
                           "CREATE TYPE mood AS ENUM ('new', 'old', 'other')")  # fmt: skip
                client.run(f"CREATE FUNCTION f() RETURNS bigint LANGUAGE plpgsql AS '{body}'")
            writes = [
                databases.start(client.work(f"INSERT INTO t VALUES ({i}, {i})"))
                for i in range(100) for client in (first, one, two)
            ]  # fmt: skip
            for write in writes:
                write.result(60)
            one.run("DELETE FROM t WHERE id < 50")
            assert first.rows("SELECT s, n, f() FROM v") == [("4950", "100", "4950")]
            assert one.rows("SELECT s, n, f() FROM v") == [("37250", "50", "37250")]
            assert two.rows("SELECT s, n, f() FROM v") == [("495000", "100", "495000")]
            assert two.rows("SELECT 'old'::mood < 'other'::mood") == [("t",)]
            assert first.state("SELECT 'old'::mood") == "22P02"
            assert one.rows("SELECT DISTINCT table_catalog FROM information_schema.tables") == [("one",)]
            assert "two" in known(one)


def test_what_a_transaction_holds_does_not_hold_up_another_database(databases: Databases) -> None:
    with within(databases, "one") as one, within(databases, "two") as two:
        one.run("BEGIN")
        one.run("LOCK TABLE t")
        one.run("CREATE TABLE own (a int)")
        two.run("INSERT INTO t VALUES (1000, 1000)")
        two.run("CREATE TABLE own (a int)")
        one.run("ROLLBACK")
        assert one.state("SELECT * FROM own") == "42P01"
        assert two.rows("SELECT pg_advisory_lock(1)") == [("",)]
        assert one.rows("SELECT pg_try_advisory_lock(1)") == [("t",)]


def test_listen_is_of_one_database(databases: Databases) -> None:
    with within(databases, "one") as one, within(databases, "one") as other, within(databases, "two") as two:
        for client in (one, two):
            client.run("LISTEN news")
        other.run("NOTIFY news, 'hello'")
        databases.run(_sleep())
        assert len(one.session.inbox.arrived) == 1
        assert len(two.session.inbox.arrived) == 0


async def _sleep() -> None:
    await asyncio.sleep(0.05)


MISTAKES = (
    ("CREATE DATABASE one", "42P04", 'database "one" already exists'),
    ("CREATE DATABASE x OWNER nobody", "42704", 'role "nobody" does not exist'),
    ("CREATE DATABASE x TEMPLATE missing", "3D000", 'template database "missing" does not exist'),
    ("CREATE DATABASE x TEMPLATE postgres", "0A000", None),
    ("CREATE DATABASE x ENCODING 'LATIN1'", "0A000", None),
    ("CREATE DATABASE x LOCALE 'en_US.UTF-8'", "0A000", None),
    ("CREATE DATABASE x LC_COLLATE 'de_DE.UTF-8'", "0A000", None),
    ("CREATE DATABASE x LOCALE_PROVIDER icu", "0A000", None),
    ("CREATE DATABASE x TABLESPACE fast", "42704", 'tablespace "fast" does not exist'),
    ("CREATE DATABASE x STRATEGY quick", "22023", 'invalid create database strategy "quick"'),
    ("CREATE DATABASE x CONNECTION LIMIT -2", "22023", "invalid connection limit: -2"),
    ("CREATE DATABASE x OID 5", "22023", "OIDs less than 16384 are reserved for system objects"),
    ("CREATE DATABASE x COLOUR red", "42601", 'option "colour" not recognized'),
    ("CREATE DATABASE x ENCODING 'UTF8' ENCODING 'UTF8'", "42601", "conflicting or redundant options"),
    ("DROP DATABASE missing", "3D000", 'database "missing" does not exist'),
    ("DROP DATABASE template1", "42809", "cannot drop a template database"),
    ("DROP DATABASE two (quickly)", "42601", "unrecognized DROP DATABASE option"),
    ("ALTER DATABASE missing CONNECTION LIMIT 1", "3D000", 'database "missing" does not exist'),
    ("ALTER DATABASE two RENAME TO one", "42P04", 'database "one" already exists'),
    ("ALTER DATABASE two SET colour = red", "42704", 'unrecognized configuration parameter "colour"'),
    ("ALTER DATABASE two SET TABLESPACE fast", "0A000", None),
    ("ALTER DATABASE two IS_TEMPLATE maybe", "42601", "is_template requires a Boolean value"),
    ("COMMENT ON DATABASE missing IS 'x'", "3D000", 'database "missing" does not exist'),
    ("GRANT CONNECT ON DATABASE missing TO public", "3D000", 'database "missing" does not exist'),
)


@pytest.mark.parametrize(("statement", "state", "message"), MISTAKES)
def test_mistakes(databases: Databases, statement: str, state: str, message: str | None) -> None:
    for name in ("postgres", "one"):
        with within(databases, name) as client:
            error = client.error(statement)
            assert error.sqlstate == state, error
            assert message in (None, error.message)


def test_where_they_cannot_run(databases: Databases) -> None:
    for name in ("postgres", "one"):
        with within(databases, name) as client:
            client.run("BEGIN")
            error = client.error("CREATE DATABASE x")
            assert (error.sqlstate, error.message) == ("25001", "CREATE DATABASE cannot run inside a transaction block")
            client.run("ROLLBACK")
            assert client.state("SELECT 1; DROP DATABASE two") == "25001"
            assert client.state("DO $$ BEGIN DROP DATABASE two; END $$") == "25001"
            error = client.error(f"DROP DATABASE {name}")
            assert (error.sqlstate, error.message) == ("55006", "cannot drop the currently open database")
            error = client.error(f"ALTER DATABASE {name} RENAME TO x")
            assert (error.sqlstate, error.message) == ("0A000", "current database cannot be renamed")
            error = client.error(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            assert (error.sqlstate, error.message) == ("22023", "cannot disallow connections for current database")
    with within(databases, "one") as client:
        assert client.state("DROP DATABASE postgres") == "0A000"


def test_dropping(databases: Databases) -> None:
    with within(databases) as client:
        client.run("CREATE DATABASE going")
        user = databases.database("going")
        user.run("CREATE TABLE t (a int)")
        oid = client.rows("SELECT oid FROM pg_database WHERE datname = 'going'")[0][0]
        folder = databases.cluster.folders.of(int(str(oid)))
        assert (folder / "store.duckdb").exists()
        error = client.error("DROP DATABASE going")
        assert (error.sqlstate, error.message, error.detail) == (
            "55006", 'database "going" is being accessed by other users', "There is 1 other session using the database."
        )  # fmt: skip
        other = databases.database("going")
        assert client.error("ALTER DATABASE going RENAME TO gone").detail == (
            "There are 2 other sessions using the database."
        )
        assert client.error("CREATE DATABASE copy TEMPLATE going").message == (
            'source database "going" is being accessed by other users'
        )
        assert user.rows("SELECT count(*) FROM t") == [("0",)]
        user.close()
        other.close()
        client.run("DROP DATABASE going")
        assert not folder.exists()
        assert refusal(databases, "going").sqlstate == "3D000"
        client.notices()
        client.run("DROP DATABASE IF EXISTS going")
        assert [n.message for n in client.notices()] == ['database "going" does not exist, skipping']
        client.run("CREATE DATABASE going")
        with within(databases, "going") as again:
            assert again.state("SELECT * FROM t") == "42P01"
        client.run("DROP DATABASE going")


def test_dropping_by_force(databases: Databases) -> None:
    with within(databases) as client:
        client.run("CREATE DATABASE forced")
        user = databases.database("forced")
        ended: list[bool] = []

        def signalled(terminate: bool) -> None:  # as the listener does
            ended.append(terminate)
            databases.start(user.session.close())

        user.session.signalled = signalled
        client.run("DROP DATABASE forced WITH (FORCE)")
        assert ended == [True]
        assert "forced" not in known(client)


def test_templates(databases: Databases) -> None:
    with within(databases) as client:
        client.run("CREATE DATABASE source")
        with within(databases, "source") as source:
            source.run("CREATE TABLE t (id int PRIMARY KEY, x text)")
            source.run("INSERT INTO t SELECT i, 'row ' || i FROM generate_series(1, 1000) i")
            source.run("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, max(x) AS m FROM t")
            source.run("CREATE SEQUENCE s")
            assert source.rows("SELECT nextval('s')") == [("1",)]
            source.run("INSERT INTO t VALUES (1001, 'last')")
        client.run("CREATE DATABASE copied TEMPLATE source")
        with within(databases, "copied") as copied, within(databases, "source") as source:
            for one in (copied, source):
                assert one.rows("SELECT * FROM v") == [("1001", "row 999")]
                assert one.rows("SELECT x FROM t WHERE id = 1001") == [("last",)]
            assert copied.rows("SELECT nextval('s')") == [("2",)]
            copied.run("DELETE FROM t WHERE id > 10")
            copied.run("CREATE TABLE more (a int)")
            assert (copied.rows("SELECT n FROM v"), source.rows("SELECT n FROM v")) == ([("10",)], [("1001",)])
            assert source.state("SELECT * FROM more") == "42P01"
        client.run("ALTER DATABASE source IS_TEMPLATE true")
        assert client.state("DROP DATABASE source") == "42809"
        client.run("ALTER DATABASE source IS_TEMPLATE false")
        client.run("DROP DATABASE source")
        client.run("DROP DATABASE copied")


def test_template1_is_a_database(databases: Databases) -> None:
    with within(databases, "template1") as template:
        template.run("CREATE DATABASE from_within")  # it has nothing that would be copied
        template.run("CREATE TABLE everywhere (a int)")
        assert template.state("CREATE DATABASE copy_within") == "0A000"
    with within(databases) as client:
        client.run("CREATE DATABASE after")
        client.run("CREATE DATABASE bare TEMPLATE template0")
    with within(databases, "after") as after, within(databases, "bare") as bare:
        assert after.rows("SELECT count(*) FROM everywhere") == [("0",)]
        assert bare.state("SELECT * FROM everywhere") == "42P01"
    with within(databases, "template1") as template:
        template.run("DROP TABLE everywhere")
    with within(databases) as client:
        for name in ("from_within", "after", "bare"):
            client.run(f"DROP DATABASE {name}")


def test_a_database_with_a_sink_is_not_copied(databases: Databases, tmp_path: Path) -> None:
    with within(databases) as client:
        client.run("CREATE DATABASE feeding")
        with within(databases, "feeding") as feeding:
            feeding.run("CREATE TABLE t (a int)")
            feeding.run("CREATE SOURCE s FROM RATE (ROWS_PER_SECOND 1) INTO t")
        error = client.error("CREATE DATABASE copy TEMPLATE feeding")
        assert (error.sqlstate, "which has source s" in error.message) == ("0A000", True)
        client.run("DROP DATABASE feeding")


def test_altering(databases: Databases) -> None:
    with within(databases) as client, within(databases, "one") as one:
        client.run("CREATE DATABASE changing")
        for admin, zone in ((client, "Europe/Berlin"), (one, "Asia/Tokyo")):
            admin.run(f"ALTER DATABASE changing SET timezone TO '{zone}'")
            admin.run("ALTER DATABASE changing SET work_mem = '7MB'")
            assert admin.rows("SELECT setconfig FROM pg_db_role_setting") == [(f"{{timezone={zone},work_mem=7MB}}",)]
            with within(databases, "changing") as changing:
                assert changing.rows("SHOW timezone") == [(zone,)]
                changing.run("SET timezone TO 'UTC'")
                changing.run("RESET timezone")
                assert changing.rows("SHOW timezone") == [(zone,)]
            admin.run("ALTER DATABASE changing RESET timezone")
            with within(databases, "changing") as changing:
                assert (changing.rows("SHOW timezone"), changing.rows("SHOW work_mem")) == ([("UTC",)], [("7MB",)])
            admin.run("ALTER DATABASE changing RESET ALL")
            assert admin.rows("SELECT * FROM pg_db_role_setting") == []
        one.run("ALTER DATABASE changing RENAME TO changed")
        assert "changed" in known(client)
        assert refusal(databases, "changing").sqlstate == "3D000"
        client.run("COMMENT ON DATABASE changed IS 'a comment'")
        described = "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = 'changed'"
        assert one.rows(described) == client.rows(described) == [("a comment",)]
        one.run("COMMENT ON DATABASE changed IS NULL")
        assert client.rows(described) == [(None,)]
        client.run("ALTER DATABASE changed ALLOW_CONNECTIONS false")
        assert refusal(databases, "changed").sqlstate == "55000"
        client.run("DROP DATABASE changed")


@pytest.mark.parametrize("name", ["postgres", "one"])
def test_transactions_may_change_what_is_shared(databases: Databases, name: str) -> None:
    with within(databases, name) as client, within(databases, "two") as two, within(databases) as first:
        client.run("BEGIN")
        client.run("ALTER DATABASE two CONNECTION LIMIT 7")
        client.run("CREATE ROLE passing")
        client.run("ROLLBACK")
        for other in (first, two):
            assert other.rows("SELECT datconnlimit FROM pg_database WHERE datname = 'two'") == [("-1",)]
        client.run("BEGIN")
        client.run("ALTER DATABASE two CONNECTION LIMIT 7")
        client.run("CREATE ROLE staying")
        client.run("SAVEPOINT s")
        client.run("CREATE ROLE passing")
        client.run("GRANT staying TO passing")
        client.run("ROLLBACK TO s")
        client.run("CREATE TABLE stayed (a int)")
        client.run("ALTER TABLE stayed OWNER TO staying")
        client.run("GRANT CONNECT ON DATABASE two TO staying")
        client.run("COMMIT")
        for other in (first, two):
            assert other.rows("SELECT datconnlimit FROM pg_database WHERE datname = 'two'") == [("7",)]
            assert other.rows("SELECT rolname FROM pg_roles WHERE rolname IN ('passing', 'staying')") == [("staying",)]
        client.run("DROP TABLE stayed; REVOKE CONNECT ON DATABASE two FROM staying; DROP ROLE staying")
        client.run("ALTER DATABASE two CONNECTION LIMIT -1")
        assert first.state("SET ROLE staying") == "22023"


def test_transactions_that_change_the_same(databases: Databases) -> None:
    with within(databases, "one") as one, within(databases, "two") as two:
        one.run("BEGIN")
        one.run("CREATE ROLE fought_over")
        two.run("CREATE ROLE fought_over")
        assert one.state("COMMIT") == "40001"
        one.run("BEGIN")
        one.run("CREATE ROLE another")
        two.run("CREATE ROLE a_third")
        one.run("COMMIT")
        assert two.rows("SELECT count(*) FROM pg_roles WHERE rolname IN ('another', 'a_third')") == [("2",)]
        for role in ("another", "a_third", "fought_over"):
            one.run(f"DROP ROLE {role}")


def test_functions_change_it_in_the_first_only(databases: Databases) -> None:
    with within(databases) as client, within(databases, "one") as one:
        for each in (client, one):
            each.run("CREATE PROCEDURE makes() LANGUAGE plpgsql AS 'BEGIN CREATE ROLE by_function; END'")
        assert one.state("CALL makes()") == "0A000"
        client.run("CALL makes()")
        one.run("SET ROLE by_function")
        one.run("RESET ROLE")
        client.run("DROP ROLE by_function")


def test_what_is_shown_of_others(databases: Databases) -> None:
    with within(databases) as client, within(databases, "one") as one, within(databases, "two") as two:
        shown = "SELECT datname, count(*) FROM pg_stat_activity WHERE datname <> 'me' GROUP BY 1 ORDER BY 1"
        assert client.rows(shown) == one.rows(shown) == [("one", "1"), ("postgres", "1"), ("two", "1")]
        joined = "SELECT d.datname FROM pg_stat_activity a JOIN pg_database d ON d.oid = a.datid WHERE pid = "
        assert one.rows(f"{joined} {two.session.backend_id}") == [("two",)]
        assert one.rows("SELECT numbackends FROM pg_stat_database WHERE datname = 'two'") == [("1",)]
        size = "SELECT pg_database_size('one') > 10000, pg_database_size(5) > 10000, pg_database_size('template0')"
        assert two.rows(size) == [("t", "t", "0")]
        assert two.state("SELECT pg_database_size('missing')") == "3D000"
        assert two.rows("SELECT has_database_privilege('one', 'connect')") == [("t",)]


def test_sessions_of_another_database_can_be_ended(databases: Databases) -> None:
    with within(databases, "one") as one:
        two = databases.database("two")
        heard: list[bool] = []
        two.session.signalled = heard.append
        assert one.rows(f"SELECT pg_cancel_backend({two.session.backend_id})") == [("t",)]
        assert one.rows(f"SELECT pg_terminate_backend({two.session.backend_id})") == [("t",)]
        databases.run(_sleep())
        assert heard == [False, True]
        two.close()
