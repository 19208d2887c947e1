"""Plausible mistakes over the real wire: PostgreSQL's SQLSTATE, a hint, and a connection that still works.

The SQLSTATEs come from a real PostgreSQL 15 (``tests/answers/make_mistakes.py``); those of Freshet's
own features, and of what it does not support yet (0A000, naming it), are written here.
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import socket
import struct
import subprocess
from collections.abc import Iterator
from typing import Any, Final

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from tests.answers.make_mistakes import SETUP, error_of
from tests.programs.crashes import Program
from tests.support.paths import ANSWERS

Connection = psycopg.Connection[tuple[Any, ...]]
CASES: Final = json.loads((ANSWERS / "mistakes.json").read_text())
CHAIN: Final = "SELECT " + "NOT " * 50_000 + "true"
OURS: Final = {
    "SELECT * FROM totals AS OF 9000000000000000000": ("22023", "future", "microseconds"),
    "SELECT * FROM totals AS OF 1700000000000": ("22023", "no history", "milliseconds"),
    "SELECT * FROM totals AS OF now() WHERE true": ("42601", 'at or near "WHERE"', "at the end of the query"),
    "SELECT * FROM totals AS OF now() JOIN totals t ON true": ("42601", 'near "JOIN"', "at the end of the query"),
    "SELECT * FROM totals AS OF 'x'": ("22007", "timestamp with time zone", ""),
    "SELECT * FROM totals AS OF 1e30": ("22003", "bigint out of range", ""),
    "SELECT * FROM totals AS OF upper('x')": ("42804", "epoch (bigint) or a timestamp", ""),
    "SELECT * FROM totals AS OF '2000-01-01'": ("22023", "no history", "RETAIN HISTORY"),
    "SELECT * FROM totals AS OF date '2000-01-01'": ("22023", "as of 946684800000000: no history", "RETAIN HISTORY"),
    "COPY (SUBSCRIBE totals UP TO 'x') TO STDOUT": ("22007", "timestamp with time zone", ""),
    "EXPLAIN CREATE INDEX ON people (id)": ("0A000", "EXPLAIN of what is no query", ""),
    "EXPLAIN (cost off) SELECT 1": ("42601", 'unrecognized EXPLAIN option "cost"', ""),
    CHAIN: ("54001", "stack depth limit exceeded", ""),
    "REFRESH MATERIALIZED VIEW nosuch": ("42P01", "does not exist", ""),
    "REFRESH MATERIALIZED VIEW people": ("42809", "not a materialized view", ""),
    "WITH MUTUALLY RECURSIVE (RECURSION LIMIT 3, RECURSION LIMIT 2) r (a int) AS (SELECT 1) TABLE r": (
        "42601",
        "conflicting or redundant options",
        "",
    ),
    "CREATE AGGREGATE none() RETURNS int LANGUAGE python AS ''": ("0A000", "aggregates without arguments", ""),
    "CREATE EVENT TRIGGER x ON ddl_command_start EXECUTE FUNCTION f()": ("0A000", "event triggers", ""),
    "CREATE RULE r AS ON INSERT TO people DO NOTHING": ("0A000", "rules", ""),
    "CREATE PUBLICATION p FOR ALL TABLES": ("0A000", "CREATE PUBLICATION", ""),
    "CREATE MATERIALIZED VIEW v AS SELECT now() AS n": ("0A000", "now()", "Its result changes"),
    "SUBSCRIBE totals": ("0A000", "SUBSCRIBE", "COPY (SUBSCRIBE"),
    "COPY people FROM '/etc/passwd'": ("42501", "", "--files"),
    "VERIFY MATERIALIZED VIEW people": ("42809", "not a materialized view", ""),
}
HINTS: Final = {
    "unknown column": "name",
    "unknown function": "explicit type casts",
    "unknown table": "people",
    "comparison of different types": "type cast",
    "insert of the wrong type": "rewrite or cast",
    "drop of what a view needs": "CASCADE",
    "drop of a view as a table": "DROP VIEW",
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    program = Program(tmp_path_factory.mktemp("mistakes") / "data", ())
    program.wait()
    with program.connect() as connection:
        for text in SETUP:
            connection.execute(text)  # type: ignore[call-overload]
    yield program
    program.kill()


@pytest.fixture
def connection(program: Program) -> Iterator[Connection]:
    with program.connect() as connection:
        yield connection


def _contents(connection: Connection) -> list[Any]:
    queries = ("SELECT * FROM people", "SELECT * FROM orders", "SELECT * FROM adults", "SELECT * FROM totals",
               "SELECT relname FROM pg_class WHERE relname = 'spare'")  # fmt: skip
    return [sorted(connection.execute(query).fetchall(), key=repr) for query in queries]  # type: ignore[call-overload]


def _check(connection: Connection, case: dict[str, Any], expected: str) -> psycopg.Error:
    before = _contents(connection)
    for text in case.get("before", ()):
        with contextlib.suppress(psycopg.Error):
            connection.execute(text)
    error = error_of(connection, case)
    assert error is not None, "no error"
    assert error.sqlstate == expected, f"{error.sqlstate} {error}, not {expected}"
    assert error.diag.message_primary
    state = connection.info.transaction_status
    in_block = case.get("before", [""])[0].startswith("BEGIN")
    assert state is (TransactionStatus.INERROR if in_block else TransactionStatus.IDLE)
    connection.execute("ROLLBACK")
    assert _contents(connection) == before
    return error


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"].replace(" ", "-"))
def test_a_mistake(connection: Connection, case: dict[str, Any]) -> None:
    error = _check(connection, case, case["sqlstate"])
    hint = HINTS.get(case["name"])
    if hint is not None:
        assert hint in (error.diag.message_hint or "")
    if "before" in case:
        return
    inside = {**case, "before": ["BEGIN", "UPDATE people SET age = age + 1"]}
    if case["name"] not in ("cursor outside of a transaction", "unknown savepoint outside"):
        _check(connection, inside, case["sqlstate"])


@pytest.mark.parametrize("text", list(OURS))
def test_a_mistake_of_our_own(connection: Connection, text: str) -> None:
    state, message, hint = OURS[text]
    error = _check(connection, {"sql": text}, state)
    assert message.lower() in str(error.diag.message_primary).lower()
    assert hint in (error.diag.message_hint or "")


def test_errors_as_psql_shows_them(program: Program) -> None:
    psql = shutil.which("psql")
    if psql is None:
        pytest.skip("no psql here")
    lines = ("SELECT nme FROM people", "SELEC 1", "SELECT 1/0", "BEGIN", "SELECT 1/0", "SELECT 1", "ROLLBACK",
             "SELECT 41 + 1")  # fmt: skip
    script = "".join(f"{line};\n" for line in lines)
    command = [
        psql,
        "-X",
        "-v",
        "VERBOSITY=verbose",
        "-h",
        "127.0.0.1",
        "-p",
        str(program.port),
        "-U",
        "u",
        "-d",
        "postgres",
    ]
    done = subprocess.run([*command, "-f", "-"], input=script, capture_output=True, text=True, timeout=30, check=False)
    states = [line.split("ERROR:  ")[1][:5] for line in done.stderr.splitlines() if "ERROR:" in line]
    assert states == ["42703", "42601", "22012", "22012", "25P02"]
    assert "LINE 1: SELECT nme FROM people;\n               ^" in done.stderr
    assert "42" in done.stdout


# Garbage.

# fmt: off
WORDS: Final = (  # noqa: SIM905 - far easier to read so
    "SELECT FROM WHERE people orders id name amount GROUP BY HAVING count ( ) * , . ;"
    " ' \" $1 $ 1 2.5 1e400 NULL JOIN ON AND OR NOT"
    " IN EXISTS UNION"
    " ALL EXCEPT WITH RECURSIVE AS r ( VALUES CASE WHEN END :: int text [ ] { } || -> @ # % ^ & ~ !"
    " INSERT INTO UPDATE SET DELETE CREATE TABLE VIEW MATERIALIZED DROP COPY BEGIN COMMIT ROLLBACK SAVEPOINT SUBSCRIBE"
    " OF EXPLAIN SHOW DECLARE FETCH CAST -- /* */ E'\\x' $$ é 日 \x01 ORDER LIMIT"
    " OFFSET DISTINCT over partition array row"
).split(" ")
# fmt: on


def test_random_statements_never_kill_the_server(program: Program) -> None:
    source, said = random.Random(5), [""]
    connection = program.connect()
    for _ in range(600):
        text = " ".join(source.choices(WORDS, k=source.randint(1, 14)))
        try:
            connection.execute(text.encode())
        except psycopg.Error as error:
            said.append(f"{error.sqlstate} {text}: {error}")
        if connection.closed:
            connection = program.connect()
        elif connection.info.transaction_status is not TransactionStatus.IDLE:
            connection.execute("ROLLBACK")
    connection.close()
    assert not [line for line in said if line.startswith("XX000")]
    _alive(program)


def test_mutated_statements_never_kill_the_server(program: Program) -> None:
    source, said = random.Random(6), [""]
    connection = program.connect()
    for _ in range(600):
        text = list(source.choice(CASES)["sql"])
        for _ in range(source.randint(1, 4)):
            place = source.randrange(len(text) + 1)
            text[place : place + source.randint(0, 3)] = source.choice(WORDS)
        try:
            with connection.cursor() as cursor:
                cursor.execute("".join(text).encode())
        except psycopg.Error as error:
            said.append(f"{error.sqlstate} {''.join(text)}: {error}")
        if connection.closed or connection.info.transaction_status is TransactionStatus.ACTIVE:
            connection.close()
            connection = program.connect()
        elif connection.info.transaction_status is not TransactionStatus.IDLE:
            connection.execute("ROLLBACK")
    connection.close()
    assert not [line for line in said if line.startswith("XX000")]
    _alive(program)


def test_random_bytes_never_kill_the_server(program: Program) -> None:
    source = random.Random(7)
    startup = struct.pack("!i", 196608) + b"user\0u\0database\0d\0\0"
    opening = struct.pack("!i", len(startup) + 4) + startup
    for turn in range(150):
        with socket.create_connection(("127.0.0.1", program.port), timeout=5) as raw:
            if turn % 3:
                raw.sendall(opening)
            for _ in range(source.randint(1, 4)):
                body = source.randbytes(source.randint(0, 60))
                kind = source.choice(b"QPBEDSCHXdcfpF\x00\xff")
                length = source.choice((len(body) + 4, source.randint(0, 80), -1, 2**31 - 1))
                message = bytes([kind]) + struct.pack("!I", length & 0xFFFFFFFF) + body
                try:
                    raw.sendall(message if turn % 2 else source.randbytes(source.randint(1, 200)))
                except OSError:
                    break
    _alive(program)


def _alive(program: Program) -> None:
    assert program.process.poll() is None
    with program.connect() as connection:
        assert connection.execute("SELECT count(*) FROM people").fetchone() == (2,)
        connection.execute("CREATE TABLE alive (a int)")
        connection.execute("DROP TABLE alive")
    assert not [line for line in program.lines if "Traceback" in line], "\n".join(program.lines[-40:])


def test_programs_read_what_was_violated(program: Program) -> None:
    with program.connect() as connection:
        connection.execute("CREATE TABLE named (id int PRIMARY KEY, n int NOT NULL, CONSTRAINT small CHECK (n < 9))")
        connection.execute("INSERT INTO named VALUES (1, 1)")
        for text, column, constraint in (
            ("INSERT INTO named VALUES (1, 1)", None, "named_pkey"),
            ("INSERT INTO named VALUES (2, NULL)", "n", None),
            ("INSERT INTO named VALUES (2, 10)", None, "small"),
        ):
            with pytest.raises(psycopg.errors.IntegrityError) as caught:
                connection.execute(text)  # type: ignore[call-overload]
            told = caught.value.diag
            assert (told.schema_name, told.table_name) == ("public", "named")
            assert (told.column_name, told.constraint_name) == (column, constraint)
        connection.execute("DROP TABLE named")
