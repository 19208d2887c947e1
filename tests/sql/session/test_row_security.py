"""Row-level security: who sees and changes which rows, as PostgreSQL decides it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ivm.errors import SqlError
from tests.support.sessions import Client, Server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    """A superuser's session over roles, and a table of which ann and bob own rows."""
    client = server.client()
    client.run(
        "CREATE ROLE boss; CREATE ROLE ann; CREATE ROLE bob; CREATE ROLE crew; GRANT crew TO bob;"
        "CREATE ROLE free BYPASSRLS;"
        "CREATE TABLE t (id int PRIMARY KEY, own name, x int); ALTER TABLE t OWNER TO boss;"
        "CREATE TABLE allowed (who name, id int); GRANT SELECT ON allowed TO PUBLIC;"
        "INSERT INTO t VALUES (1, 'ann', 10), (2, 'bob', 0), (3, 'ann', 30), (4, 'eve', 0);"
        "INSERT INTO allowed VALUES ('ann', 4); GRANT ALL ON t TO PUBLIC"
    )
    yield client
    client.run("RESET ROLE; RESET row_security; DROP TABLE t, allowed CASCADE")
    client.run("DROP OWNED BY boss, ann, bob, crew, free CASCADE; DROP ROLE boss, ann, bob, crew, free")
    client.close()


def enable(client: Client, *policies: str) -> None:
    client.run("ALTER TABLE t ENABLE ROW LEVEL SECURITY")
    for policy in policies:
        client.run(policy)


def seen(client: Client, role: str, query: str = "SELECT id FROM t ORDER BY id") -> list[int]:
    client.run(f"SET ROLE {role}")
    found = [int(row[0] or 0) for row in client.rows(query)]
    client.run("RESET ROLE")
    return found


def state(client: Client, role: str, statement: str) -> str:
    client.run(f"SET ROLE {role}")
    found = outcome(client, statement)
    client.run("RESET ROLE")
    return found


def outcome(client: Client, statement: str) -> str:
    """The SQLSTATE; empty for success."""
    try:
        client.run(statement)
    except SqlError as error:
        return error.sqlstate
    return ""


OWN = "CREATE POLICY own ON t USING (own = current_user)"


def test_who_sees_what(client: Client) -> None:
    assert seen(client, "ann") == [1, 2, 3, 4]
    enable(client)
    assert seen(client, "ann") == []
    assert seen(client, "boss") == seen(client, "free") == seen(client, "postgres") == [1, 2, 3, 4]
    client.run(OWN)
    assert seen(client, "ann") == [1, 3]
    assert seen(client, "bob") == [2]
    client.run("ALTER TABLE t FORCE ROW LEVEL SECURITY")
    assert seen(client, "boss") == []
    assert seen(client, "postgres") == [1, 2, 3, 4]
    client.run("ALTER TABLE t NO FORCE ROW LEVEL SECURITY; ALTER TABLE t DISABLE ROW LEVEL SECURITY")
    assert seen(client, "ann") == [1, 2, 3, 4]


def test_permissive_policies_add_and_restrictive_ones_take_away(client: Client) -> None:
    enable(client, OWN, "CREATE POLICY more ON t FOR SELECT TO crew USING (id = 4)")
    assert seen(client, "ann") == [1, 3]
    assert seen(client, "bob") == [2, 4]
    client.run("CREATE POLICY less ON t AS RESTRICTIVE USING (id <> 3)")
    assert seen(client, "ann") == [1]
    client.run("ALTER POLICY less ON t TO bob")
    assert seen(client, "ann") == [1, 3]
    client.run("ALTER POLICY less ON t TO PUBLIC USING (x > 10)")
    assert seen(client, "ann") == [3]
    client.run("DROP POLICY own ON t")
    assert seen(client, "ann") == []


def test_a_prepared_statement_follows_roles_and_policies(client: Client) -> None:
    enable(client, OWN)
    client.run("PREPARE q AS SELECT id FROM t WHERE id > $1 ORDER BY id")
    for role, ids in (("ann", [1, 3]), ("bob", [2]), ("postgres", [1, 2, 3, 4]), ("ann", [1, 3])):
        assert seen(client, role, "EXECUTE q(0)") == ids
    client.run("ALTER POLICY own ON t USING (id = 4)")
    assert seen(client, "ann", "EXECUTE q(0)") == [4]
    assert seen(client, "ann", "SELECT count(*) FROM t") == [1]
    assert seen(client, "ann", "SELECT id FROM t WHERE id = 1") == []


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM t WHERE 100 / x > 0 ORDER BY id",
        "SELECT id FROM t WHERE 100 / x > 0 AND id > 0 ORDER BY id",
        "SELECT t.id FROM t JOIN allowed a ON 100 / t.x >= a.id - 4 ORDER BY 1",
        "SELECT id FROM (SELECT id, 100 / x AS y FROM t) s WHERE y >= 0 ORDER BY id",
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM allowed WHERE 100 / t.x >= allowed.id - 4) ORDER BY id",
        "SELECT id FROM t WHERE CASE WHEN x = 0 THEN 1 / 0 ELSE 1 END = 1 ORDER BY id",
    ],
)
@pytest.mark.parametrize("policy", ["own = current_user", "id IN (SELECT id FROM t2) AND own <> 'eve'"])
def test_hidden_rows_raise_no_errors(client: Client, query: str, policy: str) -> None:
    """An error would tell what is in them."""
    client.run("CREATE TABLE t2 AS SELECT id FROM t WHERE own <> 'bob'; GRANT SELECT ON t2 TO PUBLIC")
    try:
        enable(client, f"CREATE POLICY p ON t USING ({policy})")
        assert seen(client, "ann", query) == [1, 3]
    finally:
        client.run("DROP POLICY IF EXISTS p ON t; DROP TABLE t2")


def test_policies_with_subqueries(client: Client) -> None:
    enable(
        client, "CREATE POLICY p ON t USING (EXISTS (SELECT FROM allowed a WHERE a.id = t.id AND who = current_user))"
    )
    assert seen(client, "ann") == [4]
    assert seen(client, "bob") == []
    client.run("SET ROLE ann; CREATE TEMP TABLE allowed AS SELECT 'ann'::name AS who, id FROM generate_series(1, 4) id")
    assert seen(client, "ann") == [4], "a name means what it meant"
    client.run("DROP TABLE pg_temp.allowed; ALTER TABLE allowed RENAME TO other")
    assert seen(client, "ann") == [4]
    client.run("ALTER TABLE other RENAME TO allowed; REVOKE SELECT ON allowed FROM PUBLIC")
    assert state(client, "ann", "SELECT * FROM t") == "42501"
    client.run("ALTER POLICY p ON t USING (id IN (SELECT id FROM t))")
    assert state(client, "ann", "SELECT * FROM t") == "42P17"
    assert seen(client, "postgres") == [1, 2, 3, 4]


def test_a_policys_functions_are_those_it_was_made_with(client: Client) -> None:
    client.run("CREATE FUNCTION mine(name) RETURNS bool LANGUAGE sql STABLE AS 'SELECT $1 = current_user';"
               "CREATE SCHEMA trick; GRANT ALL ON SCHEMA trick TO PUBLIC")  # fmt: skip
    enable(client, "CREATE POLICY p ON t USING (mine(own))")
    client.run("SET ROLE ann; CREATE FUNCTION trick.mine(name) RETURNS bool LANGUAGE sql AS 'SELECT true'; RESET ROLE")
    client.run("SET search_path = trick, public")
    assert seen(client, "ann") == [1, 3]
    client.run("RESET search_path; DROP POLICY p ON t; DROP FUNCTION mine(name); DROP SCHEMA trick CASCADE")


def test_writes(client: Client) -> None:
    enable(client, OWN)
    assert state(client, "ann", "INSERT INTO t VALUES (10, 'bob', 1)") == "42501"
    assert state(client, "ann", "INSERT INTO t VALUES (10, 'ann', 1)") == ""
    assert state(client, "ann", "INSERT INTO t SELECT 11, 'bob', 1") == "42501"
    assert state(client, "ann", "UPDATE t SET own = 'bob' WHERE id = 1") == "42501"
    client.run("SET ROLE ann")
    assert client.run("UPDATE t SET x = x + 1") == "UPDATE 3"
    assert client.run("UPDATE t SET x = 0 WHERE id = 2") == "UPDATE 0"
    assert client.run("UPDATE t SET x = 5 FROM allowed WHERE t.id = 4") == "UPDATE 0"
    assert client.run("DELETE FROM t WHERE id = 2") == "DELETE 0"
    assert client.run("DELETE FROM t") == "DELETE 3"
    error = client.error("INSERT INTO t VALUES (10, 'bob', 1)")
    assert error.message == 'new row violates row-level security policy for table "t"'
    client.run("RESET ROLE")
    assert client.sorted("SELECT id FROM t") == [("2",), ("4",)]


def test_policies_by_command(client: Client) -> None:
    enable(
        client, "CREATE POLICY s ON t FOR SELECT USING (true)", "CREATE POLICY i ON t FOR INSERT WITH CHECK (id > 100)",
        "CREATE POLICY u ON t FOR UPDATE USING (own = current_user) WITH CHECK (x < 100)",
    )  # fmt: skip
    assert seen(client, "ann") == [1, 2, 3, 4]
    assert state(client, "ann", "INSERT INTO t VALUES (5, 'ann', 1)") == "42501"
    assert state(client, "ann", "INSERT INTO t VALUES (101, 'ann', 1)") == ""
    assert state(client, "ann", "UPDATE t SET x = 1000 WHERE id = 1") == "42501"
    client.run("SET ROLE ann")
    assert client.run("UPDATE t SET x = 99") == "UPDATE 3"
    assert client.run("DELETE FROM t") == "DELETE 0"
    client.run("RESET ROLE; CREATE POLICY r ON t AS RESTRICTIVE FOR INSERT WITH CHECK (x > 1); SET ROLE ann")
    assert client.error("INSERT INTO t VALUES (102, 'ann', 1)").message == (
        'new row violates row-level security policy "r" for table "t"'
    )
    client.run("RESET ROLE; ALTER POLICY s ON t USING (id < 100); SET ROLE ann")
    assert client.run("INSERT INTO t VALUES (103, 'ann', 2)") == "INSERT 0 1"
    assert client.state("INSERT INTO t VALUES (104, 'ann', 2) RETURNING id") == "42501"
    client.run("RESET ROLE")


def test_what_policies_do_not_cover_is_refused(client: Client) -> None:
    enable(client, OWN)
    client.run("CREATE TABLE p (id int PRIMARY KEY, own name, x int) PARTITION BY RANGE (id); GRANT ALL ON p TO PUBLIC;"
               "ALTER TABLE p ENABLE ROW LEVEL SECURITY; CREATE POLICY o ON p USING (own = current_user)")  # fmt: skip
    for statement in (
        "COPY t FROM STDIN", "INSERT INTO p VALUES (1, 'ann', 1) ON CONFLICT (id) DO UPDATE SET x = 1",
    ):  # fmt: skip
        client.run("GRANT CREATE ON SCHEMA public TO ann; SET ROLE ann")
        assert client.state(statement) == "0A000", statement
        client.run("RESET ROLE; REVOKE CREATE ON SCHEMA public FROM ann")
    client.run("SET ROLE ann; SET row_security = off")
    error = client.error("SELECT * FROM t")
    assert (error.sqlstate, error.message) == (
        "42501", 'query would be affected by row-level security policy for table "t"'
    )  # fmt: skip
    client.run("SET row_security = on")
    assert client.copy_out("COPY t TO STDOUT") == ["1\tann\t10", "3\tann\t30"]
    assert client.run("INSERT INTO t VALUES (1, 'ann', 1) ON CONFLICT DO NOTHING") == "INSERT 0 0"
    client.run("RESET ROLE; DROP TABLE p")


def test_views_are_their_owners(client: Client) -> None:
    enable(client, OWN)
    client.run("CREATE VIEW v AS SELECT * FROM t; GRANT ALL ON v TO PUBLIC;"
               "CREATE VIEW w WITH (security_invoker) AS SELECT * FROM t; GRANT ALL ON w TO PUBLIC;"
               "CREATE VIEW b AS SELECT * FROM t; ALTER VIEW b OWNER TO bob; GRANT ALL ON b TO PUBLIC;"
               "CREATE MATERIALIZED VIEW m AS SELECT * FROM t; GRANT ALL ON m TO PUBLIC")  # fmt: skip
    assert seen(client, "ann", "SELECT id FROM v ORDER BY id") == [1, 2, 3, 4]
    assert seen(client, "ann", "SELECT id FROM w ORDER BY id") == [1, 3]
    assert seen(client, "ann", "SELECT id FROM b ORDER BY id") == [1, 3], "the policies of its owner ask who it is"
    assert seen(client, "ann", "SELECT id FROM m ORDER BY id") == [1, 2, 3, 4]
    client.run("ALTER POLICY own ON t TO bob USING (id = 4)")
    assert seen(client, "ann", "SELECT id FROM b ORDER BY id") == [4]
    client.run("SET ROLE ann")
    assert client.run("UPDATE b SET x = 7") == "UPDATE 1"
    assert client.state("INSERT INTO b VALUES (9, 'ann', 1)") == "42501"
    assert client.run("DELETE FROM w") == "DELETE 0"
    assert client.run("INSERT INTO v VALUES (9, 'ann', 1)") == "INSERT 0 1"
    client.run("RESET ROLE; DROP VIEW v, w, b; DROP MATERIALIZED VIEW m")


def test_definitions(client: Client) -> None:
    enable(client, OWN)
    for statement, expected in (
        (OWN, "42710"), ("CREATE POLICY p ON nothing USING (true)", "42P01"),
        ("CREATE POLICY p ON pg_class USING (true)", "42501"), ("CREATE POLICY p ON t USING (1)", "42804"),
        ("CREATE POLICY p ON t USING (count(*) > 1)", "42803"),
        ("CREATE POLICY p ON t TO nobody USING (true)", "42704"),
        ("CREATE POLICY p ON t FOR SELECT WITH CHECK (true)", "42601"),
        ("CREATE POLICY p ON t FOR INSERT USING (true)", "42601"), ("CREATE POLICY p ON t AS x USING (true)", "42601"),
        ("CREATE POLICY p ON t USING (y = 1)", "42703"), ("DROP POLICY p ON t", "42704"),
        ("DROP POLICY IF EXISTS p ON t", ""), ("ALTER POLICY p ON t USING (true)", "42704"),
        ("ALTER POLICY own ON t RENAME TO mine", ""), ("ALTER POLICY mine ON t RENAME TO own", ""),
        ("ALTER TABLE t DROP COLUMN own", "2BP01"), ("DROP ROLE ann", ""),
    ):  # fmt: skip
        assert outcome(client, statement) == expected, statement
    client.run("CREATE ROLE ann")
    assert state(client, "ann", "CREATE POLICY p ON t USING (true)") == "42501"
    assert state(client, "ann", "ALTER TABLE t DISABLE ROW LEVEL SECURITY") == "42501"
    assert state(client, "ann", "DROP POLICY own ON t") == "42501"
    client.run("CREATE POLICY p ON t AS RESTRICTIVE FOR DELETE TO ann, bob USING (x > 1)")
    assert client.state("DROP ROLE bob") == "2BP01"
    assert client.rows("SELECT policyname, permissive, roles, cmd, qual, with_check FROM pg_policies ORDER BY 1") == [
        ("own", "PERMISSIVE", "{public}", "ALL", "(own = CURRENT_USER)", None),
        ("p", "RESTRICTIVE", "{ann,bob}", "DELETE", "(x > 1)", None),
    ]
    assert client.rows("SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE relname = 't'") == [("t", "f")]
    assert client.rows("SELECT rowsecurity FROM pg_tables WHERE tablename = 't'") == [("t",)]
    client.run("DROP POLICY p ON t; ALTER TABLE t RENAME COLUMN own TO whose")
    client.run("UPDATE t SET whose = 'ann'")
    assert seen(client, "ann") == [1, 2, 3, 4]
    client.run("ALTER TABLE t DROP COLUMN whose CASCADE")
    assert client.rows("SELECT polname FROM pg_policy") == []
    assert seen(client, "ann") == []


def test_policies_survive_a_restart(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    client = server.client()
    client.run("CREATE ROLE ann; CREATE TABLE u (a int); CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2);"
               "INSERT INTO u VALUES (2); GRANT ALL ON t, u TO ann; ALTER TABLE t ENABLE ROW LEVEL SECURITY;"
               "CREATE POLICY p ON t TO ann USING (a IN (SELECT a FROM u)) WITH CHECK (a > 5)")  # fmt: skip
    server.restart()
    client = server.client()
    client.run("SET ROLE ann")
    assert client.rows("SELECT * FROM t") == [("2",)]
    assert client.state("INSERT INTO t VALUES (3)") == "42501"
    client.run("INSERT INTO t VALUES (6)")
    server.close()


def test_subscriptions_and_functions_see_what_their_role_does(client: Client) -> None:
    enable(client, "CREATE POLICY p ON t USING (own = 'ann')")
    client.run("CREATE FUNCTION counted() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM t';"
               "CREATE FUNCTION looped() RETURNS bigint LANGUAGE plpgsql AS "
               "'BEGIN RETURN (SELECT count(*) FROM t); END';"
               "CREATE FUNCTION whole() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS "
               "'BEGIN RETURN (SELECT count(*) FROM t); END'")  # fmt: skip
    for function, count in (("counted", 2), ("looped", 2), ("whole", 4)):
        assert seen(client, "ann", f"SELECT {function}()") == [count]
        assert seen(client, "postgres", f"SELECT {function}()") == [4]
    client.run("SET ROLE ann; BEGIN; DECLARE c CURSOR FOR SUBSCRIBE t")
    assert sorted(row[2] for row in client.rows("FETCH 2 c")) == ["1", "3"]
    client.run("COMMIT")
    client.run("RESET ROLE; ALTER POLICY p ON t USING (own = current_user); SET ROLE ann")
    client.run("BEGIN")
    client.run("DECLARE c CURSOR FOR SUBSCRIBE t")
    assert sorted(row[2] for row in client.rows("FETCH 2 c")) == ["1", "3"]
    client.run("ROLLBACK; RESET ROLE; DROP FUNCTION counted, looped, whole")


def test_rows_of_a_family_are_seen_by_the_policies_of_the_table_that_is_named(client: Client) -> None:
    client.run("CREATE TABLE p (a int, own name) PARTITION BY RANGE (a); CREATE TABLE p1 PARTITION OF p FOR VALUES "
               "FROM (0) TO (10); CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);"
               "INSERT INTO p VALUES (1, 'ann'), (2, 'bob'), (11, 'ann'); GRANT ALL ON p, p1 TO PUBLIC;"
               "ALTER TABLE p ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON p USING (own = current_user)"
               )  # fmt: skip
    assert seen(client, "ann", "SELECT a FROM p ORDER BY a") == [1, 11]
    assert seen(client, "ann", "SELECT a FROM p1 ORDER BY a") == [1, 2]
    assert state(client, "ann", "INSERT INTO p VALUES (3, 'bob')") == "42501"
    assert state(client, "ann", "UPDATE p SET own = 'bob'") == "42501"
    client.run("SET ROLE ann")
    assert client.run("UPDATE p SET a = a + 1") == "UPDATE 2"
    assert client.run("DELETE FROM p WHERE a > 0") == "DELETE 2"
    client.run("RESET ROLE; DROP TABLE p")


def test_policies_come_before_constraints_and_in_order(client: Client) -> None:
    """A constraint's error would tell of a row that the policies hide."""
    enable(
        client, OWN, *(f"CREATE POLICY {name} ON t AS RESTRICTIVE USING (x > {x})" for name, x in (("b", 0), ("a", 1)))
    )
    client.run("SET ROLE ann")
    for statement in ("INSERT INTO t VALUES (2, 'bob', 5)", "UPDATE t SET id = 2, own = 'bob' WHERE id = 1"):
        assert client.error(statement).message == 'new row violates row-level security policy for table "t"'
    assert client.error("INSERT INTO t VALUES (2, 'ann', 0)").message == (
        'new row violates row-level security policy "a" for table "t"'
    )
    assert client.state("INSERT INTO t VALUES (2, 'ann', 5)") == "23505"
    client.run("RESET ROLE")


def test_a_statement_that_reads_nothing_needs_no_policy_for_select(client: Client) -> None:
    enable(
        client, "CREATE POLICY s ON t FOR SELECT USING (x = 10)", "CREATE POLICY u ON t FOR UPDATE USING (own = 'ann')",
        "CREATE POLICY d ON t FOR DELETE USING (own = 'bob')",
    )  # fmt: skip
    client.run("SET ROLE ann")
    assert client.state("UPDATE t SET x = 11 WHERE id > 0") == "42501"
    assert client.run("UPDATE t SET x = x") == "UPDATE 1"
    assert client.run("UPDATE t SET x = 12") == "UPDATE 2"
    assert client.run("DELETE FROM t WHERE id > 0") == "DELETE 0"
    assert client.run("DELETE FROM t") == "DELETE 1"
    client.run("RESET ROLE")
    assert client.sorted("SELECT id, x FROM t") == [("1", "12"), ("3", "12"), ("4", "0")]


def test_what_policies_need_is_kept(client: Client) -> None:
    client.run("CREATE FUNCTION yes(int) RETURNS bool LANGUAGE sql AS 'SELECT $1 > 0'")
    enable(
        client, "CREATE POLICY p ON t USING (id IN (SELECT id FROM allowed))", "CREATE POLICY q ON t USING (yes(id))"
    )
    error = client.error("DROP TABLE allowed")
    assert (error.sqlstate, error.detail) == ("2BP01", "policy p on table t depends on table allowed")
    assert client.state("DROP FUNCTION yes") == "2BP01"
    assert client.rows("SELECT count(*) FROM pg_policy") == [("2",)]
    client.run("DROP FUNCTION yes CASCADE; DROP TABLE allowed CASCADE")
    assert client.rows("SELECT count(*) FROM pg_policy") == [("0",)]
    client.run("CREATE TABLE allowed (); CREATE POLICY p ON t TO ann USING (true)")
    client.run("CREATE POLICY q ON t TO ann, bob USING (true); DROP OWNED BY ann")
    assert client.rows("SELECT policyname, roles FROM pg_policies") == [("q", "{bob}")]


def test_row_security_active(client: Client) -> None:
    query = "SELECT row_security_active('t')::int"
    assert seen(client, "ann", query) == [0]
    enable(client)
    assert seen(client, "ann", query) == [1]
    assert seen(client, "boss", query) == seen(client, "free", query) == seen(client, "postgres", query) == [0]
    assert seen(client, "ann", "SELECT row_security_active('t'::regclass::oid)::int") == [1]


def test_privileges_come_before_what_is_refused(client: Client) -> None:
    enable(client, OWN)
    client.run("REVOKE ALL ON t FROM PUBLIC")
    for statement in ("COPY t FROM STDIN", "SELECT * FROM t"):
        assert state(client, "ann", statement) == "42501"
    client.run("SET ROLE ann; SET row_security = off")
    assert client.error("SELECT * FROM t").message == "permission denied for table t"
    client.run("RESET ROLE; GRANT ALL ON t TO PUBLIC")
    client.run("CREATE POLICY loop ON t USING (id IN (SELECT id FROM t)); SET ROLE ann")
    client.run("CREATE TEMP VIEW later AS SELECT * FROM t; RESET ROLE")


def test_on_conflict_do_update(client: Client) -> None:
    enable(
        client, "CREATE POLICY s ON t FOR SELECT USING (id <> 4)",
        "CREATE POLICY i ON t FOR INSERT WITH CHECK (x < 50)",
        "CREATE POLICY u ON t FOR UPDATE USING (own = current_user) WITH CHECK (x < 100)",
    )  # fmt: skip
    client.run("SET ROLE ann")
    upsert = "INSERT INTO t VALUES ({}) ON CONFLICT (id) DO UPDATE SET x = excluded.x + 60"
    assert client.run(upsert.format("1, 'ann', 5")) == "INSERT 0 1"
    assert client.run(upsert.format("20, 'bob', 5")) == "INSERT 0 1"
    hidden = 'new row violates row-level security policy (USING expression) for table "t"'
    for row, message in (
        ("1, 'ann', 70", 'new row violates row-level security policy for table "t"'),
        ("1, 'ann', 45", 'new row violates row-level security policy for table "t"'),
        ("2, 'ann', 5", hidden), ("4, 'ann', 5", 'new row violates row-level security policy for table "t"'),
    ):  # fmt: skip
        assert client.error(upsert.format(row)).message == message, row
    assert client.run(upsert.format("2, 'ann', 5") + " WHERE t.x > 0") == "INSERT 0 0"
    assert client.run("INSERT INTO t VALUES (4, 'ann', 5) ON CONFLICT DO NOTHING") == "INSERT 0 0"
    assert client.state("INSERT INTO t VALUES (4, 'ann', 5) ON CONFLICT (id) DO NOTHING") == "42501"
    client.run("RESET ROLE")
    assert client.sorted("SELECT id, x FROM t WHERE id IN (1, 2, 20)") == [("1", "65"), ("2", "0"), ("20", "5")]


def test_merge(client: Client) -> None:
    enable(
        client, "CREATE POLICY s ON t FOR SELECT USING (id <> 4)",
        "CREATE POLICY i ON t FOR INSERT WITH CHECK (x < 50)",
        "CREATE POLICY u ON t FOR UPDATE USING (own = current_user) WITH CHECK (x < 100)",
        "CREATE POLICY d ON t FOR DELETE USING (id = 3)",
    )  # fmt: skip
    client.run("SET ROLE ann")
    target = 'target row violates row-level security policy (USING expression) for table "t"'
    new = 'new row violates row-level security policy for table "t"'
    merge = "MERGE INTO t USING (VALUES ({})) v(i) ON t.id = v.i WHEN {}"
    for i, when, expected in (
        (1, "MATCHED THEN UPDATE SET x = 99", "MERGE 1"), (1, "MATCHED THEN UPDATE SET x = 100", new),
        (2, "MATCHED THEN UPDATE SET x = 1", target), (4, "MATCHED THEN UPDATE SET x = 1", "MERGE 0"),
        (1, "MATCHED THEN DELETE", target), (3, "MATCHED THEN DELETE", "MERGE 1"),
        (9, "NOT MATCHED THEN INSERT VALUES (9, 'bob', 49)", "MERGE 1"),
        (10, "NOT MATCHED THEN INSERT VALUES (10, 'bob', 50)", new), (2, "MATCHED THEN DO NOTHING", "MERGE 0"),
    ):  # fmt: skip
        statement = merge.format(i, when)
        found = client.error(statement).message if "violates" in expected else client.run(statement)
        assert found == expected, statement
    assert client.state(merge.format(4, "NOT MATCHED THEN INSERT VALUES (4, 'ann', 1)")) == "23505"
    client.run("RESET ROLE")
    assert client.sorted("SELECT id, x FROM t") == [("1", "99"), ("2", "0"), ("4", "0"), ("9", "49")]


def test_checks_with_subqueries(client: Client) -> None:
    allowed = "id IN (SELECT id FROM allowed WHERE who = current_user)"
    enable(client, f"CREATE POLICY p ON t USING ({allowed})")
    client.run("INSERT INTO allowed VALUES ('ann', 1), ('ann', 20)")
    client.run("SET ROLE ann")
    for statement, expected in (
        ("INSERT INTO t VALUES (20, 'ann', 1)", ""), ("INSERT INTO t VALUES (21, 'ann', 1)", "42501"),
        ("UPDATE t SET x = 5", ""), ("UPDATE t SET id = 21 WHERE id = 20", "42501"),
        ("INSERT INTO t VALUES (1, 'ann', 1) ON CONFLICT (id) DO UPDATE SET x = 6", ""),
        ("INSERT INTO t VALUES (2, 'ann', 1) ON CONFLICT (id) DO UPDATE SET x = 6", "42501"),
        ("INSERT INTO t VALUES (1, 'ann', 1) ON CONFLICT (id) DO UPDATE SET id = 22", "42501"),
        ("MERGE INTO t USING (VALUES (1)) v(i) ON id = i WHEN MATCHED THEN UPDATE SET x = 7", ""),
        ("MERGE INTO t USING (VALUES (1)) v(i) ON id = i WHEN MATCHED THEN UPDATE SET id = 8", "42501"),
        ("MERGE INTO t USING (VALUES (30)) v(i) ON id = i WHEN NOT MATCHED THEN INSERT VALUES (30, 'ann', 1)", "42501"),
        ("MERGE INTO t USING (VALUES (1)) v(i) ON id = i WHEN MATCHED THEN DELETE", ""),
    ):  # fmt: skip
        assert outcome(client, statement) == expected, statement
    client.run("RESET ROLE")
    assert client.sorted("SELECT id, x FROM t") == [("2", "0"), ("20", "5"), ("3", "30"), ("4", "5")]


def test_a_policy_is_shown_as_postgresql_shows_it(client: Client) -> None:
    """What pg_dump writes means the same again."""
    client.run("CREATE SCHEMA sc; CREATE FUNCTION sc.f(int) RETURNS bool LANGUAGE sql AS 'SELECT $1 > 0'")
    for number, condition in enumerate((
        "EXISTS (SELECT FROM allowed b WHERE b.id = t.id AND who = current_user AND x > 3)",
        "x <= (SELECT max(id) FROM allowed WHERE id = x)", "x IN (SELECT id FROM allowed)",
        "sc.f(x) OR x IS NULL", "true",
    )):  # fmt: skip
        client.run(f"CREATE POLICY p{number} ON t USING ({condition})")
    shown = "SELECT pg_get_expr(polqual, polrelid) FROM pg_policy ORDER BY polname"
    texts = [row[0] for row in client.rows(shown)]
    assert texts == [
        "(EXISTS ( SELECT\n   FROM allowed b\n  WHERE ((b.id = t.id) AND (b.who = CURRENT_USER) AND (t.x > 3))))",
        "(x <= ( SELECT max(allowed.id) AS max\n   FROM allowed\n  WHERE (allowed.id = t.x)))",
        "(x IN ( SELECT allowed.id\n   FROM allowed))", "(sc.f(x) OR (x IS NULL))", "true",
    ]  # fmt: skip
    for number, text in enumerate(texts):
        client.run(f"DROP POLICY p{number} ON t; CREATE POLICY p{number} ON t USING ({text})")
    assert [row[0] for row in client.rows(shown)] == texts
    client.run("SET search_path = sc")
    assert "public.allowed b" in str(client.rows(shown)[0][0])
    client.run("RESET search_path; DROP SCHEMA sc CASCADE")


def test_comments(client: Client) -> None:
    client.run(OWN)
    client.run("COMMENT ON POLICY own ON t IS 'mine'")
    shown = "SELECT obj_description(oid, 'pg_policy') FROM pg_policy"
    assert client.rows(shown) == [("mine",)]
    assert client.state("COMMENT ON POLICY other ON t IS 'x'") == "42704"
    assert state(client, "ann", "COMMENT ON POLICY own ON t IS 'x'") == "42501"
    client.run("COMMENT ON POLICY own ON t IS NULL")
    assert client.rows(shown) == [(None,)]


def test_rows_that_are_locked_are_those_that_may_be_updated(client: Client) -> None:
    enable(
        client, "CREATE POLICY s ON t FOR SELECT USING (true)",
        "CREATE POLICY u ON t FOR UPDATE USING (own = current_user)",
    )  # fmt: skip
    client.run("GRANT UPDATE ON allowed TO ann")
    assert seen(client, "ann", "SELECT id FROM t ORDER BY id") == [1, 2, 3, 4]
    for lock in ("UPDATE", "SHARE", "NO KEY UPDATE"):
        assert seen(client, "ann", f"SELECT id FROM t ORDER BY id FOR {lock}") == [1, 3]
    assert seen(client, "ann", "SELECT t.id FROM t JOIN t u USING (id) ORDER BY 1 FOR UPDATE OF u") == [1, 3]
    assert seen(client, "ann", "SELECT t.id FROM t, allowed ORDER BY 1 FOR UPDATE OF allowed") == [1, 2, 3, 4]
