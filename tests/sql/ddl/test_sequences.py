"""Sequences, SERIAL and identity columns: numbers as Postgres gives them, and never twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sql.catalog.sequences import AHEAD
from sql.engine.engine import Engine
from storage.record import CommitRecord, SequenceMark, decode_record, encode_record
from tests.support.sessions import Client, Server


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("sequences"))
    yield server
    server.close()


@pytest.fixture
def client(shared: Server) -> Iterator[Client]:
    client = shared.client()
    yield client
    client.close()


def column(client: Client, text: str) -> list[str | None]:
    return [row[0] for row in client.rows(text)]


def test_serial_columns_number_rows_in_the_order_of_the_query(client: Client) -> None:
    client.run("CREATE TABLE a (id serial PRIMARY KEY, b text)")
    client.run("CREATE TABLE twice (x int)")
    client.run("INSERT INTO twice VALUES (1), (1), (2), (2), (2)")
    client.run("INSERT INTO a (b) VALUES ('x'), ('y')")
    assert client.rows("INSERT INTO a VALUES (DEFAULT, 'z') RETURNING *") == [("3", "z")]
    client.run("INSERT INTO a (b) SELECT x FROM twice ORDER BY x DESC")
    assert column(client, "SELECT b FROM a WHERE id > 3 ORDER BY id") == ["2", "2", "2", "1", "1"]
    client.results("COPY a (b) FROM STDIN", b"c\nd\n")
    assert column(client, "SELECT id FROM a ORDER BY id") == [str(i) for i in range(1, 11)]
    assert client.state("INSERT INTO a VALUES (NULL, 'null')") == "23502"
    assert client.run("INSERT INTO a (b) SELECT 'many' FROM generate_series(1, 1000)") == "INSERT 0 1000"
    assert client.rows("SELECT max(id), count(*) FROM a") == [("1010", "1010")]


def test_equal_rows_get_a_number_each(client: Client) -> None:
    client.run("CREATE SEQUENCE each_row")
    client.run("CREATE TABLE same (x int)")
    client.run("INSERT INTO same VALUES (7), (7), (8)")
    assert sorted(column(client, "SELECT nextval('each_row') FROM same")) == ["1", "2", "3"]
    assert client.rows("SELECT x, nextval('each_row') + x FROM same ORDER BY x DESC LIMIT 2") == [
        ("8", "12"), ("7", "12"),
    ]  # fmt: skip
    assert column(client, "INSERT INTO same SELECT nextval('each_row') FROM same RETURNING x") == ["6", "7", "8"]


def test_bounds_cycles_and_setval(client: Client) -> None:
    client.run("CREATE SEQUENCE s INCREMENT 5 START 10 MAXVALUE 20 CYCLE")
    assert column(client, "SELECT nextval('s') FROM generate_series(1, 5)") == ["10", "15", "20", "1", "6"]
    assert client.rows("SELECT * FROM s") == [("6", "2", "t")]
    assert client.rows("SELECT currval('s'), lastval()") == [("6", "6")]
    assert client.rows("SELECT setval('s', 12), nextval('s')") == [("12", "17")]
    assert client.rows("SELECT setval('s', 15, false), nextval('s')") == [("15", "15")]
    assert client.state("SELECT setval('s', 99)") == "22003"
    client.run("ALTER SEQUENCE s NO CYCLE INCREMENT -5")
    assert column(client, "SELECT nextval('s') FROM generate_series(1, 2)") == ["10", "5"]
    error = client.error("SELECT nextval('s')")
    assert (error.sqlstate, error.message) == ("2200H", 'nextval: reached minimum value of sequence "s" (1)')
    client.run("ALTER SEQUENCE s RESTART")
    assert client.rows("SELECT last_value, is_called FROM s") == [("10", "f")]


@pytest.mark.parametrize(
    ("text", "state", "message"),
    [
        ("SELECT nextval('nowhere')", "42P01", 'relation "nowhere" does not exist'),
        ("SELECT nextval('tab')", "42809", '"tab" is not a sequence'),
        ("SELECT currval('unused')", "55000", 'currval of sequence "unused" is not yet defined in this session'),
        ("SELECT lastval()", "55000", "lastval is not yet defined in this session"),
        ("CREATE SEQUENCE unused", "42P07", 'relation "unused" already exists'),
        ("CREATE SEQUENCE x INCREMENT 0", "22023", "INCREMENT must not be zero"),
        ("CREATE SEQUENCE x MINVALUE 5 MAXVALUE 4", "22023", "MINVALUE (5) must be less than MAXVALUE (4)"),
        ("CREATE SEQUENCE x START 0", "22023", "START value (0) cannot be less than MINVALUE (1)"),
        ("CREATE SEQUENCE x AS smallint MAXVALUE 40000", "22023",
         "MAXVALUE (40000) is out of range for sequence data type smallint"),
        ("CREATE SEQUENCE x AS text", "22023", "sequence type must be smallint, integer, or bigint"),
        ("CREATE SEQUENCE x START 1 START 2", "42601", "conflicting or redundant options"),
        ("CREATE SEQUENCE x OWNED BY tab", "42601", "invalid OWNED BY option"),
        ("CREATE SEQUENCE x OWNED BY tab.z", "42703", 'column "z" of relation "tab" does not exist'),
        ("CREATE TABLE x (a serial DEFAULT 3)", "42601",
         'multiple default values specified for column "a" of table "x"'),
        ("CREATE TABLE x (a int GENERATED ALWAYS AS IDENTITY DEFAULT 3)", "42601",
         'both default and identity specified for column "a" of table "x"'),
        ("CREATE TABLE x (a text GENERATED ALWAYS AS IDENTITY)", "22023",
         "identity column type must be smallint, integer, or bigint"),
        ("INSERT INTO tab VALUES (1)", "428C9", 'cannot insert a non-DEFAULT value into column "a"'),
        ("INSERT INTO tab SELECT 1", "428C9", 'cannot insert a non-DEFAULT value into column "a"'),
        ("UPDATE tab SET a = 1", "428C9", 'column "a" can only be updated to DEFAULT'),
        ("INSERT INTO unused VALUES (1)", "42809", 'cannot change sequence "unused"'),
        ("DROP SEQUENCE nowhere", "42P01", 'sequence "nowhere" does not exist'),
        ("DROP SEQUENCE tab", "42809", '"tab" is not a sequence'),
        ("DROP SEQUENCE tab_a_seq", "2BP01",
         "cannot drop sequence tab_a_seq because column a of table tab requires it"),
        ("DROP SEQUENCE used", "2BP01", "cannot drop sequence used because other objects depend on it"),
        ("BEGIN READ ONLY; SELECT nextval('unused')", "25006",
         "cannot execute nextval() in a read-only transaction"),
    ],
)  # fmt: skip
def test_mistakes(shared: Server, client: Client, text: str, state: str, message: str) -> None:
    if "unused" not in column(client, "SELECT sequencename FROM pg_sequences"):
        client.run("CREATE SEQUENCE unused")
        client.run("CREATE SEQUENCE used")
        client.run("CREATE TABLE tab (a int GENERATED ALWAYS AS IDENTITY, b int, c int DEFAULT nextval('used'))")
    error = client.error(text)
    assert (error.sqlstate, error.message) == (state, message)


def test_no_materialized_view_over_numbers(client: Client) -> None:
    client.run("CREATE SEQUENCE moving")
    assert client.state("CREATE MATERIALIZED VIEW m AS SELECT nextval('moving')") == "0A000"
    assert client.state("CREATE MATERIALIZED VIEW m AS SELECT last_value FROM moving") == "0A000"
    assert client.rows("SELECT last_value, is_called FROM moving") == [("1", "f")]


def test_identity_columns(client: Client) -> None:
    client.run("CREATE TABLE g (id int GENERATED ALWAYS AS IDENTITY (START 10 INCREMENT 10), x int)")
    client.run("INSERT INTO g (x) VALUES (1), (2)")
    client.run("INSERT INTO g OVERRIDING SYSTEM VALUE VALUES (5, 3)")
    client.run("INSERT INTO g OVERRIDING USER VALUE VALUES (5, 4)")
    client.run("INSERT INTO g OVERRIDING USER VALUE SELECT 6, 5")
    client.run("INSERT INTO g VALUES (DEFAULT, 6)")
    client.run("UPDATE g SET id = DEFAULT WHERE x = 1")
    assert column(client, "SELECT id FROM g ORDER BY x") == ["60", "20", "5", "30", "40", "50"]
    client.run("CREATE TABLE h (id bigint GENERATED BY DEFAULT AS IDENTITY, x int)")
    assert client.rows("INSERT INTO h VALUES (70, 1), (DEFAULT, 2) RETURNING id") == [("70",), ("1",)]
    client.run("TRUNCATE h RESTART IDENTITY")
    assert client.rows("INSERT INTO h (x) VALUES (1) RETURNING id") == [("1",)]
    client.run("TRUNCATE h")
    assert client.rows("INSERT INTO h (x) VALUES (1) RETURNING id") == [("2",)]


def test_a_rollback_burns_numbers_but_takes_back_definitions(client: Client) -> None:
    client.run("CREATE TABLE burnt (id serial, x int)")
    client.run("BEGIN; INSERT INTO burnt (x) VALUES (1), (2); ROLLBACK")
    assert client.rows("INSERT INTO burnt (x) VALUES (3) RETURNING id") == [("3",)]
    client.run("BEGIN; ALTER SEQUENCE burnt_id_seq RESTART 100; INSERT INTO burnt (x) VALUES (4)")
    assert client.rows("SELECT lastval()") == [("100",)]
    client.run("ROLLBACK")
    assert client.rows("INSERT INTO burnt (x) VALUES (5) RETURNING id") == [("4",)]
    client.run("BEGIN; TRUNCATE burnt RESTART IDENTITY; ROLLBACK")
    assert client.rows("INSERT INTO burnt (x) VALUES (5) RETURNING id") == [("5",)]
    client.run("BEGIN; CREATE SEQUENCE never; SELECT nextval('never'); ROLLBACK")
    assert client.state("SELECT nextval('never')") == "42P01"
    client.run("BEGIN; DROP TABLE burnt; ROLLBACK")
    assert client.rows("INSERT INTO burnt (x) VALUES (5) RETURNING id") == [("6",)]


def test_sequences_go_with_their_tables(client: Client) -> None:
    client.run("CREATE TABLE gone (id serial, x int)")
    client.run("CREATE SEQUENCE also OWNED BY gone.x")
    client.run("DROP TABLE gone")
    assert client.rows("SELECT relname FROM pg_class WHERE relname IN ('gone_id_seq', 'also')") == []
    client.run("CREATE TABLE gone_id_seq (x int)")
    client.run("CREATE TABLE gone (id serial)")
    assert client.rows("SELECT pg_get_serial_sequence('gone', 'id')") == [("public.gone_id_seq1",)]
    client.notices()
    client.run("DROP SEQUENCE gone_id_seq1 CASCADE")
    assert [n.message for n in client.notices()] == ["drop cascades to default value for column id of table gone"]
    assert client.state("INSERT INTO gone DEFAULT VALUES") == "23502"


def test_the_catalogs_tell_of_them(client: Client) -> None:
    client.run("CREATE TABLE told (id serial, i int GENERATED BY DEFAULT AS IDENTITY)")
    client.run("INSERT INTO told DEFAULT VALUES")
    assert client.rows("SELECT relkind FROM pg_class WHERE relname = 'told_id_seq'") == [("S",)]
    assert client.rows(
        "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'told'::regclass"
    ) == [("nextval('told_id_seq'::regclass)",)]  # fmt: skip
    assert client.rows(
        "SELECT attname, attidentity, atthasdef FROM pg_attribute WHERE attrelid = 'told'::regclass AND attnum > 0"
        " ORDER BY attnum"
    ) == [("id", "", "t"), ("i", "d", "f")]
    assert client.rows("SELECT data_type::text, last_value FROM pg_sequences WHERE sequencename = 'told_id_seq'") == [
        ("integer", "1")
    ]
    assert client.rows(
        "SELECT column_default, is_identity FROM information_schema.columns WHERE table_name = 'told' ORDER BY 2"
    ) == [("nextval('told_id_seq'::regclass)", "NO"), (None, "YES")]


def test_a_session_takes_its_temporary_sequences_along(shared: Server, client: Client) -> None:
    other = shared.client()
    other.run("CREATE TEMP SEQUENCE passing")
    other.run("CREATE TEMP TABLE passing_table (id serial)")
    assert other.rows("SELECT nextval('passing')") == [("1",)]
    other.close()
    assert client.state("SELECT nextval('passing')") == "42P01"
    assert client.state("SELECT nextval('passing_table_id_seq')") == "42P01"


def test_a_clean_restart_goes_on_where_it_stopped(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    client = server.client()
    client.run("CREATE TABLE t (id serial, x int)")
    client.run("INSERT INTO t (x) VALUES (1), (2)")
    client.run("SELECT nextval('t_id_seq')")
    server.restart()
    client = server.client()
    assert client.rows("INSERT INTO t (x) VALUES (3) RETURNING id") == [("4",)]
    client.run("ALTER SEQUENCE t_id_seq RESTART 50")
    server.restart()
    client = server.client()
    assert client.rows("INSERT INTO t (x) VALUES (3) RETURNING id") == [("50",)]
    server.close()


@pytest.mark.parametrize("applied", [True, False])
def test_after_a_crash_no_number_comes_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, applied: bool) -> None:
    """As after a kill: nothing is written on shutdown. A rolled-back transaction's numbers may go unrecorded."""
    from storage.checkpoint import Applier

    monkeypatch.setattr(Engine, "rest_sequences", lambda self: None)
    if not applied:
        monkeypatch.setattr(Applier, "submit", lambda self, batch: None)
    server = Server(tmp_path / "data")
    client = server.client()
    client.run("CREATE TABLE t (id serial PRIMARY KEY, x int)")
    given = set()
    for turn in range(3):
        for i in range(AHEAD + 2):
            given.add(client.rows(f"INSERT INTO t (x) VALUES ({i}) RETURNING id")[0][0])
            client.run("BEGIN; INSERT INTO t (x) VALUES (0); ROLLBACK")
        given.add(client.rows("SELECT nextval('t_id_seq')")[0][0])
        server.restart()
        client = server.client()
        assert len(given) == (turn + 1) * (AHEAD + 3)
    assert client.rows("INSERT INTO t (x) VALUES (0) RETURNING id")[0][0] not in given
    server.close()


def test_a_record_holds_where_sequences_stand() -> None:
    record = CommitRecord(5, load="x", sequences=(SequenceMark(1, -7, True), SequenceMark(2, 1 << 62, False)))
    assert decode_record(encode_record(record)).sequences == record.sequences


def test_alter_table_keeps_what_numbers_a_column(client: Client) -> None:
    client.run("CREATE TABLE moved (id serial, i int GENERATED BY DEFAULT AS IDENTITY, x int)")
    client.run("INSERT INTO moved (x) VALUES (1)")
    client.run("ALTER TABLE moved ADD COLUMN y int")
    client.run("ALTER TABLE moved DROP COLUMN x")
    assert client.rows("INSERT INTO moved (y) VALUES (1) RETURNING id, i") == [("2", "2")]
    assert client.state("ALTER TABLE moved ALTER COLUMN i SET DEFAULT 3") == "42601"
    client.run("ALTER TABLE moved ADD COLUMN z serial")
    assert client.sorted("SELECT z FROM moved") == [("1",), ("2",)]
    client.run("TRUNCATE moved RESTART IDENTITY")
    assert client.rows("INSERT INTO moved (y) VALUES (1) RETURNING id, i") == [("1", "1")]
    client.run("ALTER TABLE moved ALTER COLUMN id SET DEFAULT 7")
    assert client.rows("INSERT INTO moved (y) VALUES (1) RETURNING id") == [("7",)]
    client.run("ALTER TABLE moved DROP COLUMN i")
    assert client.state("SELECT nextval('moved_i_seq')") == "42P01"
    client.run("DROP TABLE moved")
    assert client.state("SELECT nextval('moved_id_seq')") == "42P01"


def test_sequences_live_in_schemas(client: Client) -> None:
    client.run("CREATE SCHEMA elsewhere")
    client.run("CREATE TABLE elsewhere.t (id serial)")
    assert client.rows("INSERT INTO elsewhere.t DEFAULT VALUES RETURNING id") == [("1",)]
    assert client.rows("SELECT nextval('elsewhere.t_id_seq')") == [("2",)]
    assert client.rows(
        "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'elsewhere.t'::regclass"
    ) == [("nextval('elsewhere.t_id_seq'::regclass)",)]  # fmt: skip
    client.run("CREATE TABLE outside (a int DEFAULT nextval('elsewhere.t_id_seq'))")
    client.run("DROP SCHEMA elsewhere CASCADE")
    assert client.rows("INSERT INTO outside DEFAULT VALUES RETURNING a") == [(None,)]
