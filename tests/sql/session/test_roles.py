"""Roles: who connects, what is kept over a restart, and what each kind of statement asks of the current role."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from ivm.errors import SqlError
from sql.admission.admission import OWN
from sql.catalog.catalog import Catalog
from sql.catalog.roles import BOOTSTRAP_ID
from sql.catalog.stored_form import catalog_from_json, catalog_to_json
from sql.session.session import Session
from tests.support.sessions import Client, Server

TABLES: Final = (
    "CREATE TABLE t (a int PRIMARY KEY, b int); CREATE TABLE u (a int); CREATE SEQUENCE s;"
    "CREATE VIEW v AS SELECT a, b FROM t; CREATE MATERIALIZED VIEW m AS SELECT b, count(*) AS n FROM t GROUP BY b;"
    "CREATE FUNCTION f(int) RETURNS int LANGUAGE sql AS 'SELECT $1'; REVOKE ALL ON FUNCTION f FROM PUBLIC;"
    "CREATE FUNCTION fired() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
    "CREATE TYPE e AS ENUM ('x'); REVOKE ALL ON TYPE e FROM PUBLIC; CREATE SCHEMA sub; CREATE TABLE sub.t (a int)"
)
ROLES: Final = (
    "CREATE ROLE owner; CREATE ROLE member; GRANT owner TO member; CREATE ROLE stranger; CREATE ROLE granted;"
    "CREATE ROLE super SUPERUSER; CREATE ROLE watcher; GRANT pg_monitor TO watcher"
)
GIVEN: Final = (
    *(f"ALTER {kind} {name} OWNER TO owner" for kind, name in (
        ("TABLE", "t"), ("TABLE", "u"), ("SEQUENCE", "s"), ("VIEW", "v"), ("MATERIALIZED VIEW", "m"),
        ("FUNCTION", "f"), ("FUNCTION", "fired"), ("TYPE", "e"), ("SCHEMA", "sub"), ("TABLE", "sub.t"),
    )),
    "GRANT ALL ON t, u, v, m, sub.t TO granted", "GRANT ALL ON SEQUENCE s TO granted",
    "GRANT ALL ON FUNCTION f, fired TO granted", "GRANT ALL ON TYPE e TO granted",
    "GRANT ALL ON SCHEMA sub TO granted", "GRANT CREATE ON SCHEMA public TO owner",
)  # fmt: skip
PRIVILEGED: Final = (
    "SELECT * FROM t", "SELECT * FROM v", "SELECT * FROM m", "SELECT * FROM m AS OF mz_now()", "SELECT count(*) FROM t",
    "EXPLAIN SELECT * FROM t", "INSERT INTO t VALUES (100)", "INSERT INTO v VALUES (101, 1)", "UPDATE t SET b = 1",
    "UPDATE v SET b = 1", "DELETE FROM t", "DELETE FROM v", "TRUNCATE t",
    "MERGE INTO t USING u ON t.a = u.a WHEN NOT MATCHED THEN INSERT VALUES (u.a, 1)",
    "INSERT INTO t VALUES (1, 1) ON CONFLICT (a) DO UPDATE SET b = 2", "WITH x AS (DELETE FROM t RETURNING a) SELECT 1",
    "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM t", "COPY t TO STDOUT", "COPY (SELECT * FROM t) TO STDOUT",
    "CREATE TEMP TABLE mine AS SELECT * FROM t", "SELECT f(1)", "SELECT nextval('s')", "SELECT setval('s', 3)",
    "SELECT * FROM sub.t", "CREATE TABLE sub.made (a int)", "CREATE TEMP TABLE typed (a e)",
    "CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION fired()",
    "CREATE TABLE sub.keyed (a int REFERENCES t)",
)  # fmt: skip
"""What the owner and those may do to whom it was granted."""
OWNED: Final = (
    "ALTER TABLE t ADD COLUMN c int", "ALTER TABLE t RENAME TO tt", "ALTER TABLE t RENAME COLUMN b TO bb",
    "CREATE INDEX ON t (b)", "DROP TABLE u", "DROP VIEW v", "DROP MATERIALIZED VIEW m", "DROP SEQUENCE s",
    "ALTER SEQUENCE s RESTART", "DROP FUNCTION f", "ALTER FUNCTION f(int) STABLE", "DROP TYPE e",
    "ALTER TYPE e ADD VALUE 'y'", "DROP SCHEMA sub CASCADE", "COMMENT ON TABLE t IS 'x'", "REFRESH MATERIALIZED VIEW m",
    "VERIFY MATERIALIZED VIEW m", "ALTER VIEW v SET (security_barrier)", "ALTER TABLE t OWNER TO owner",
    "GRANT SELECT ON t TO stranger",
    "CREATE OR REPLACE FUNCTION f(int) RETURNS int LANGUAGE sql AS 'SELECT 2'",
)  # fmt: skip
"""What only the owner may do. GRANT gives those who hold a privilege a warning."""
SUPER: Final = (
    "CREATE ROLE another", "ALTER ROLE stranger LOGIN", "DROP ROLE stranger", "GRANT owner TO stranger", "VACUUM",
    "VERIFY DICTIONARY",
    "COPY t FROM 'x.csv' (FORMAT csv, HEADER)", "COPY t TO 'out.csv'", "CREATE TABLE l FROM 'x.csv' WITH (HEADER)",
    "CHECKPOINT",
    "CREATE SOURCE src FROM RATE (ROWS_PER_SECOND 1) INTO u", "SELECT * FROM pg_authid",
    "CREATE FUNCTION py(int) RETURNS int LANGUAGE python AS 'def py(n): return n'", "CREATE SCHEMA anew",
)  # fmt: skip
"""What the owner of tables may not do either."""
OTHERWISE: Final = ("25001", "55000")
"""How what may be run fails in a transaction block: VACUUM and the like, and currval of a sequence not yet used."""


@pytest.fixture(scope="module")
def kingdom(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("files")
    (folder / "x.csv").write_text("a,b\n7,8\n")
    server = Server(tmp_path_factory.mktemp("kingdom"), (folder,), python=True, places=(str(folder),))
    client = server.client()
    client.run(TABLES)
    client.run(ROLES)
    for statement in GIVEN:
        client.run(statement)
    yield client
    client.close()
    server.close()


def refused(client: Client, role: str, statement: str) -> bool:
    """Whether a role may not run a statement, which is rolled back."""
    client.run("BEGIN")
    try:
        client.run(f"SET ROLE {role}")
        client.notices()
        client.results(statement)
    except SqlError as error:
        if error.sqlstate not in ("42501", *OTHERWISE):
            raise
        return error.sqlstate == "42501"
    finally:
        client.run("ROLLBACK")
        client.run("RESET ROLE")
    return any("no privileges were granted" in n.message for n in client.notices())


@pytest.mark.parametrize("statement", PRIVILEGED + OWNED + SUPER)
def test_who_may_run_what(kingdom: Client, statement: str) -> None:
    may = {role: not refused(kingdom, role, statement) for role in ("owner", "member", "granted", "stranger", "super")}
    assert may["super"]
    assert not may["stranger"]
    assert may["owner"] is may["member"] is (statement not in SUPER)
    assert may["granted"] is (statement in PRIVILEGED)


def test_predefined_roles(kingdom: Client) -> None:
    assert not refused(kingdom, "watcher", "SELECT * FROM freshet.views")
    assert refused(kingdom, "stranger", "SELECT * FROM freshet.views")
    assert not refused(kingdom, "watcher", "VERIFY MATERIALIZED VIEW m")
    kingdom.run("BEGIN; GRANT pg_read_all_data TO stranger; SET ROLE stranger; SELECT * FROM sub.t; SELECT * FROM t")
    kingdom.run("ROLLBACK")
    kingdom.run("BEGIN; GRANT pg_write_all_data TO stranger; SET ROLE stranger; INSERT INTO sub.t VALUES (1)")
    assert kingdom.state("SELECT * FROM sub.t") == "42501"
    kingdom.run("ROLLBACK")


def test_who_connects(server: Server) -> None:
    client = server.client("anybody")
    assert client.rows("SELECT current_user, session_user, current_setting('is_superuser')") == [
        ("anybody", "anybody", "on")
    ]
    client.run("CREATE ROLE may_login LOGIN; CREATE ROLE may_not; CREATE TABLE kept_away (a int)")
    assert client.state("CREATE ROLE anybody") == "42710"
    other = server.client("may_login")
    assert other.rows("SELECT current_user, current_setting('is_superuser')") == [("may_login", "off")]
    assert other.state("SELECT * FROM kept_away") == "42501"
    assert other.state("SET ROLE postgres") == "42501"
    assert other.state("SELECT pg_terminate_backend(pg_backend_pid() - 1)") == "42501"
    with pytest.raises(SqlError) as refusal:
        server.client("may_not")
    assert (refusal.value.sqlstate, refusal.value.message) == ("28000", 'role "may_not" is not permitted to log in')
    client.run("ALTER ROLE may_login CONNECTION LIMIT 1")
    with pytest.raises(SqlError) as refusal:
        server.client("may_login")
    assert (refusal.value.sqlstate, refusal.value.message) == ("53300", 'too many connections for role "may_login"')
    other.close()
    database = client.rows("SELECT current_database()")[0][0]
    client.run(f"REVOKE CONNECT ON DATABASE {database} FROM PUBLIC")
    with pytest.raises(SqlError) as refusal:
        server.client("may_login")
    assert (refusal.value.sqlstate, refusal.value.detail) == ("42501", "User does not have CONNECT privilege.")
    client.run(f"GRANT CONNECT ON DATABASE {database} TO may_login")
    server.client("may_login").close()
    client.run(f"GRANT CONNECT ON DATABASE {database} TO PUBLIC")
    client.close()


def test_a_revocation_counts_at_once(server: Server) -> None:
    """Also for what another session has prepared."""
    owner = server.client()
    owner.run("CREATE TABLE seen (a int); CREATE ROLE sees LOGIN; GRANT SELECT ON seen TO sees")
    client = server.client("sees")
    client.run("PREPARE p AS SELECT * FROM seen")
    assert client.rows("EXECUTE p") == []
    owner.run("REVOKE SELECT ON seen FROM sees")
    assert client.state("EXECUTE p") == "42501"
    assert client.state("SELECT * FROM seen") == "42501"
    owner.run("GRANT SELECT ON seen TO sees")
    assert client.rows("EXECUTE p") == []
    owner.run("ALTER ROLE sees SUPERUSER")
    client.run("INSERT INTO seen VALUES (1)")
    owner.run("ALTER ROLE sees NOSUPERUSER")
    assert client.state("INSERT INTO seen VALUES (1)") == "42501"
    for each in (client, owner):
        each.close()


def test_they_survive_a_restart(tmp_path: Path) -> None:
    server = Server(tmp_path)
    client = server.client()
    client.run("CREATE ROLE a LOGIN PASSWORD 'secret' CONNECTION LIMIT 3; CREATE ROLE b NOINHERIT; GRANT b TO a")
    client.run("CREATE TABLE t (x int, y int); GRANT SELECT (x) ON t TO a; GRANT INSERT ON t TO b WITH GRANT OPTION")
    client.run("CREATE SCHEMA s AUTHORIZATION a; CREATE VIEW v AS SELECT x FROM t; ALTER VIEW v OWNER TO b")
    client.run("ALTER DEFAULT PRIVILEGES IN SCHEMA s GRANT SELECT ON TABLES TO b")
    shown = (
        "SELECT rolname, rolinherit, rolconnlimit, rolpassword LIKE 'SCRAM-SHA-256$4096:%' FROM pg_authid "
        "WHERE oid > 16000 ORDER BY 1",
        "SELECT relname, relowner::regrole, relacl FROM pg_class WHERE relname IN ('t', 'v') ORDER BY 1",
        "SELECT attname, attacl FROM pg_attribute WHERE attrelid = 't'::regclass ORDER BY attnum",
        "SELECT defaclobjtype, defaclacl FROM pg_default_acl", "SELECT count(*) FROM pg_auth_members",
    )  # fmt: skip
    before = [client.rows(query.replace("relowner::regrole", "pg_get_userbyid(relowner)")) for query in shown]
    for stop in (server.restart, server.restart):
        stop()
        client = server.client()
        assert [client.rows(q.replace("relowner::regrole", "pg_get_userbyid(relowner)")) for q in shown] == before
        client.run("CREATE TABLE s.t (a int)")
        assert client.rows("SELECT relacl FROM pg_class WHERE oid = 's.t'::regclass") == [("{me=arwdDxt/me,b=r/me}",)]
        client.run("SET ROLE a; SELECT x FROM t")
        assert client.state("SELECT y FROM t") == "42501"
        client.run("RESET ROLE; DROP TABLE s.t")
    server.close()


def test_a_catalog_from_before_there_were_roles() -> None:
    stored = json.loads(catalog_to_json(Catalog()))
    del stored["access"]
    found = catalog_from_json(Catalog(), json.dumps(stored).encode())
    assert not found.access.has_others
    assert found.access.is_superuser(10)


def test_the_servers_own_sessions_are_the_superusers_whatever_roles_there_are(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    try:
        client = server.client()
        client.run("CREATE ROLE freshet")

        async def own() -> Session:
            return Session(server.coordinator, "freshet", "freshet", {}, OWN)

        session = server.run(own())
        assert session.state.login == BOOTSTRAP_ID
        server.run(session.close())
        with pytest.raises(SqlError, match="not permitted to log in"):
            server.client("freshet")
    finally:
        server.close()


def test_a_dump_may_ask_for_subscriptions(server: Server) -> None:
    """There are none, and pg_dump asks as any role."""
    client = server.client()
    client.run("CREATE ROLE dumper; SET ROLE dumper")
    assert client.rows("SELECT count(*) FROM pg_subscription WHERE subdbid = 5") == [("0",)]
    client.run("RESET ROLE; DROP ROLE dumper")
    client.close()


def test_the_server_has_a_limit_of_sessions(server: Server, client: Client) -> None:
    client.run("CREATE ROLE one_of_many LOGIN")
    before = server.coordinator.most_sessions
    try:
        server.coordinator.most_sessions = len(server.coordinator.sessions) + 3
        with pytest.raises(SqlError) as refusal:
            server.client("one_of_many")
        assert refusal.value.sqlstate == "53300"
        assert refusal.value.message.startswith("remaining connection slots are reserved")
        others = [server.client() for _ in range(3)]
        with pytest.raises(SqlError) as refusal:
            server.client()
        assert (refusal.value.sqlstate, refusal.value.message) == ("53300", "sorry, too many clients already")
        others.pop().close()
        server.client().close()
        for other in others:
            other.close()
    finally:
        server.coordinator.most_sessions = before
    assert client.rows("SHOW max_connections") == [("5000",)]
    client.run("DROP ROLE one_of_many")
