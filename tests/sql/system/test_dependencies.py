"""pg_depend, by which dumps order objects, and what dumps leave out."""

from __future__ import annotations

from tests.support.sessions import Client

_DESCRIBED = """
SELECT pg_describe_object(classid, objid, objsubid), pg_describe_object(refclassid, refobjid, refobjsubid), deptype
FROM pg_depend WHERE refobjid >= 16384 OR objid >= 16384 AND deptype <> 'n'
"""


def test_edges(client: Client) -> None:
    client.run(
        """
        CREATE SCHEMA dep; SET search_path = dep;
        CREATE TYPE mood AS ENUM ('ok');
        CREATE TABLE t (id serial PRIMARY KEY, m mood, CHECK (id > 0));
        CREATE VIEW v AS SELECT id FROM t;
        CREATE MATERIALIZED VIEW w AS SELECT * FROM v;
        CREATE TABLE c (t int REFERENCES t);
        CREATE FUNCTION f(mood) RETURNS int LANGUAGE sql AS 'SELECT 1'
        """
    )
    found = set(client.rows(_DESCRIBED))
    for edge in (
        ("sequence t_id_seq", "column id of table t", "a"),
        ("default value for column id of table t", "sequence t_id_seq", "n"),
        ("column m of table t", "type mood", "n"),
        ("constraint t_pkey on table t", "column id of table t", "a"),
        ("index t_pkey", "constraint t_pkey on table t", "i"),
        ("constraint t_id_check on table t", "column id of table t", "a"),
        ("rule _RETURN on view v", "view v", "i"),
        ("rule _RETURN on view v", "table t", "n"),
        ("rule _RETURN on materialized view w", "view v", "n"),
        ("constraint c_t_fkey on table c", "index t_pkey", "n"),
        ("function f(mood)", "type mood", "n"),
    ):
        assert edge in found, edge
    assert client.rows("SELECT count(*) FROM pg_rewrite WHERE ev_class = 'dep.v'::regclass") == [("1",)]


def test_a_default_set_later_depends_on_its_sequence(client: Client) -> None:
    client.run("CREATE SEQUENCE later; CREATE TABLE numbered (a int)")
    client.run("ALTER TABLE numbered ALTER a SET DEFAULT nextval('later')")
    client.run("INSERT INTO numbered DEFAULT VALUES")
    assert client.rows("SELECT a FROM numbered") == [("1",)]
    assert client.state("DROP SEQUENCE later") == "2BP01"
    client.run("ALTER SEQUENCE later RENAME TO sooner; INSERT INTO numbered DEFAULT VALUES")
    assert client.rows("SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'numbered'::regclass") == [
        ("nextval('sooner'::regclass)",)
    ]
    client.run("ALTER TABLE numbered ALTER a DROP DEFAULT; DROP SEQUENCE sooner")


def test_what_every_server_has_is_of_an_extension(client: Client) -> None:
    unnamed = """
    SELECT count(*) FROM pg_class c WHERE relnamespace = 'freshet'::regnamespace AND NOT EXISTS
      (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e')
    """
    assert client.rows(unnamed) == [("0",)]
    granted = "SELECT count(*) FROM pg_class c JOIN pg_init_privs p ON p.objoid = c.oid WHERE relacl <> initprivs"
    assert client.rows(granted) == [("0",)]


def test_lock_table(client: Client) -> None:
    client.run("CREATE TABLE locked (a int)")
    assert client.state("LOCK TABLE locked IN ACCESS SHARE MODE") == "25P01"
    client.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    assert client.run("LOCK TABLE locked, ONLY locked IN ACCESS SHARE MODE") == "LOCK TABLE"
    client.run("ROLLBACK; BEGIN")
    assert client.run("LOCK locked") == "LOCK TABLE"
    client.run("ROLLBACK; BEGIN")
    assert client.state("LOCK nothing IN ACCESS SHARE MODE NOWAIT") == "42P01"
    client.run("ROLLBACK")
    assert client.state("LOCK locked IN NO SUCH MODE") == "42601"


def test_extensions(client: Client) -> None:
    assert client.rows("SELECT extname FROM pg_extension ORDER BY 1") == [("freshet",), ("plpgsql",)]
    assert client.run("CREATE EXTENSION IF NOT EXISTS plpgsql WITH SCHEMA pg_catalog") == "CREATE EXTENSION"
    assert client.state("CREATE EXTENSION plpgsql") == "42710"
    assert client.error("CREATE EXTENSION IF NOT EXISTS citext").message == 'extension "citext" is not available'
    assert client.state("CREATE EXTENSION citext IN nothing") == "42601"
