"""Clients of other encodings than UTF8, beside PostgreSQL's answers: statements, parameters, results, COPY, errors."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from typing import Any

import psycopg
import pytest
from psycopg import pq

from ivm.errors import SqlError
from storage.encodings.encoding import CODECS, Encoding, encoding_named
from storage.encodings.names import NAMES, most_bytes
from tests.answers import make_client_encodings
from tests.answers.make_encodings import characters
from tests.support.program import Program

KNOWN = json.loads(make_client_encodings.ANSWERS.read_text())
TEXT, BINARY = 0, 1


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    program = Program(tmp_path_factory.mktemp("encodings"))
    with program.connect() as connection:
        connection.execute("CREATE TABLE t (k int PRIMARY KEY, s text, a text[], j jsonb)")
    yield program
    program.kill()


def connect(program: Program, encoding: str) -> psycopg.Connection[Any]:
    return psycopg.connect(program.dsn, autocommit=True, client_encoding=encoding)


def values(result: pq.PGresult) -> list[bytes | None]:
    assert result.status == pq.ExecStatus.TUPLES_OK, result.error_message
    return [result.get_value(row, i) for row in range(result.ntuples) for i in range(result.nfields)]


@cache
def texts(name: str) -> list[str]:
    """Texts of 100 characters each: up to 2,000 printable ones of all parts of an encoding, that it gives back."""
    known = encoding_named(name)
    tried = characters(name)[:: 1 if most_bytes(name) == 1 else 7]
    found = [c for c in tried if c.isprintable() and _given_back(known, c)][:2000]
    return ["".join(found[at : at + 100]) for at in range(0, len(found), 100)]


def _given_back(known: Encoding, character: str) -> bool:
    try:
        return known.text_of(known.bytes_of(character)) == character
    except SqlError:
        return False


@pytest.mark.parametrize("encoding", KNOWN)
def test_statements_are_answered_as_by_postgres(program: Program, encoding: str) -> None:
    with connect(program, encoding) as connection:
        for statement, known in zip(make_client_encodings.STATEMENTS[encoding], KNOWN[encoding], strict=True):
            assert make_client_encodings.told(connection, statement) == known, statement


@pytest.mark.parametrize("encoding", CODECS)
def test_characters_go_there_and_back(program: Program, encoding: str) -> None:
    known = encoding_named(encoding)
    parts = texts(encoding)
    raws = [known.bytes_of(part) for part in parts]
    assert raws
    with connect(program, encoding) as connection, program.connect() as utf8:
        utf8.execute("TRUNCATE t")
        pgconn = connection.pgconn
        insert = b"INSERT INTO t SELECT $1, $2, ARRAY[$2, 'x'], to_jsonb($2::text)"
        for k, raw in enumerate(raws):
            form = k % 2
            number = str(k).encode() if form == TEXT else k.to_bytes(4, "big")
            done = pgconn.exec_params(insert, [number, raw], [23, 25], [form, form])
            assert done.status == pq.ExecStatus.COMMAND_OK, done.error_message
        assert [row[0] for row in utf8.execute("SELECT s FROM t ORDER BY k")] == parts
        assert values(pgconn.exec_(b"SELECT s FROM t ORDER BY k")) == raws
        rows = b"SELECT s, a[1], s || 'x' FROM t ORDER BY k"
        for form in (TEXT, BINARY):
            found = values(pgconn.exec_params(rows, [], [], [], form))
            assert found == [value for raw in raws for value in (raw, raw, raw + b"x")]
        many = values(pgconn.exec_(b"SELECT s FROM t, generate_series(1, 30) ORDER BY k"))
        assert many == [raw for raw in raws for _ in range(30)]
        quoted = raws[0].replace(b"'", b"''")
        found = values(pgconn.exec_(b"SELECT k, '" + quoted + b"' AS n FROM t WHERE s = '" + quoted + b"'"))
        assert found == [b"0", raws[0]]
        assert values(pgconn.exec_params(b"SELECT a, j FROM t WHERE k = 0", [], [], [], BINARY)) == [
            b"\0\0\0\1\0\0\0\0\0\0\0\x19\0\0\0\2\0\0\0\1" + len(raws[0]).to_bytes(4, "big") + raws[0] + b"\0\0\0\1x",
            b'\1"' + raws[0] + b'"',
        ]


@pytest.mark.parametrize("encoding", ["LATIN1", "SJIS", "EUC_JP", "GB18030", "KOI8R"])
@pytest.mark.parametrize("form", ["text", "csv, header", "binary"])
def test_copied_both_ways(program: Program, encoding: str, form: str) -> None:
    known = encoding_named(encoding)
    parts = texts(encoding)
    with connect(program, encoding) as connection, program.connect() as utf8:
        utf8.execute("CREATE TABLE c (k int, s text)")
        utf8.cursor().executemany("INSERT INTO c VALUES (%s, %s)", list(enumerate(parts)))
        with connection.cursor().copy(f"COPY (SELECT * FROM c ORDER BY k) TO STDOUT (FORMAT {form})") as out:
            data = b"".join(bytes(block) for block in out)
        assert all(known.bytes_of(part[:5]) in data for part in parts)
        utf8.execute("TRUNCATE c")
        with connection.cursor().copy(f"COPY c FROM STDIN (FORMAT {form})") as into:
            for at in range(0, len(data), 7):
                into.write(data[at : at + 7])
        assert [row[0] for row in utf8.execute("SELECT s FROM c ORDER BY k")] == parts
        if form == "text":
            with utf8.cursor().copy(f"COPY (SELECT * FROM c ORDER BY k) TO STDOUT (ENCODING '{encoding}')") as out:
                assert b"".join(bytes(block) for block in out) == data
            with connection.cursor().copy("COPY c TO STDOUT (ENCODING 'utf8')") as out:
                assert parts[0].encode() in b"".join(bytes(block) for block in out)
        utf8.execute("DROP TABLE c")


def test_copy_names_the_line_of_what_is_wrong(program: Program) -> None:
    with connect(program, "SJIS") as connection:
        connection.execute("CREATE TEMPORARY TABLE c (s text)")

        def refused(data: bytes, options: str = "") -> tuple[str | None, str, str | None]:
            with (
                pytest.raises(psycopg.Error) as caught,
                connection.cursor().copy(f"COPY c FROM STDIN {options}") as copy,
            ):
                copy.write(data)
            return caught.value.sqlstate, str(caught.value).splitlines()[0], caught.value.diag.message_detail

        invalid = 'invalid byte sequence for encoding "SJIS": '
        assert refused(b"a\n\x83\x5c\nb\x83\x01\n\n\n") == ("22021", invalid + "0x83 0x01", "COPY c, line 3")
        assert refused(b"a\nb\x83") == ("22021", invalid + "0x83", "COPY c, line 2")
        assert refused(b"a\0\n" + b"x" * 100) == ("22021", invalid + "0x00", "COPY c, line 1")
        missing = 'character with byte sequence 0x81 in encoding "WIN1252" has no equivalent in encoding "UTF8"'
        assert refused(b"a\n\xe9\n\x81\n", "(ENCODING 'win1252')") == ("22P05", missing, "COPY c, line 3")
        assert refused(b"", "(ENCODING 'nosuch')")[0] == "22023"
        assert refused(b"", "(ENCODING 'mule_internal')")[0] == "0A000"
        state, message, _ = refused(b"", "(ENCODING 'win1252', FORMAT nosuch)")
        assert (state, message) == ("22023", 'COPY format "nosuch" not recognized')
        with pytest.raises(psycopg.Error) as caught:
            connection.execute("COPY c FROM '/nowhere' (ENCODING 'latin1')")
        assert caught.value.sqlstate == "0A000"


def test_every_name_is_taken_or_refused_where_a_session_starts(program: Program) -> None:
    for name in NAMES:
        if name in ("EUC_TW", "MULE_INTERNAL"):
            with pytest.raises(psycopg.OperationalError, match=f"Conversion between {name} and UTF8 is not supported"):
                psycopg.connect(program.dsn, client_encoding=name)
            continue
        with connect(program, name) as connection:
            assert connection.pgconn.parameter_status(b"client_encoding") == name.encode()
    with pytest.raises(psycopg.OperationalError, match='invalid value for parameter "client_encoding": "nosuch"'):
        psycopg.connect(program.dsn, client_encoding="nosuch")


def test_a_change_holds_from_the_next_message_on_and_is_undone(program: Program) -> None:
    with connect(program, "UTF8") as connection:
        pgconn = connection.pgconn
        results = "SELECT 'é'; SET client_encoding = latin1; SELECT 'é'; SET client_encoding = utf8; SELECT 'é'"
        pgconn.send_query(results.encode())
        found = []
        while result := pgconn.get_result():
            found += [result.get_value(0, 0)] if result.ntuples else []
        assert found == ["é".encode(), b"\xe9", "é".encode()]
        with connection.transaction(force_rollback=True):
            pgconn.exec_(b"SET client_encoding = latin1")
            assert pgconn.parameter_status(b"client_encoding") == b"LATIN1"
            pgconn.prepare(b"named_\xe9", b"SELECT $1 || '\xe9'", [25])
            assert values(pgconn.exec_prepared(b"named_\xe9", [b"\xfc"])) == [b"\xfc\xe9"]
            assert pgconn.describe_prepared(b"named_\xe9").nfields == 1
        assert pgconn.parameter_status(b"client_encoding") == b"UTF8"
        assert values(pgconn.exec_prepared("named_é".encode(), ["ü".encode()])) == ["üé".encode()]


def test_short_statements_are_answered_in_the_encoding(program: Program) -> None:
    with program.connect() as utf8:
        utf8.execute("TRUNCATE t")
        utf8.execute("INSERT INTO t VALUES (1, 'é')")
    for encoding, raw in (("LATIN1", b"\xe9"), ("SQL_ASCII", "é".encode()), ("UTF8", "é".encode())):
        with connect(program, encoding) as connection:
            pgconn = connection.pgconn
            pgconn.prepare(b"read", b"SELECT s FROM t WHERE k = $1", [23])
            pgconn.prepare(b"write", b"UPDATE t SET s = $1 WHERE k = 1", [25])
            for _ in range(3):
                assert values(pgconn.exec_prepared(b"read", [b"1"])) == [raw]
                assert pgconn.exec_prepared(b"write", [raw]).command_tuples == 1


def test_a_notification_that_the_encoding_lacks_is_a_warning(program: Program) -> None:
    with connect(program, "LATIN1") as listener, program.connect() as other:
        notices: list[str | None] = []
        listener.add_notice_handler(lambda found: notices.append(found.sqlstate))
        listener.execute("LISTEN n")
        other.execute("SELECT pg_notify('n', 'я'), pg_notify('n', 'é')")
        assert [n.payload for n in listener.notifies(timeout=30, stop_after=1)] == ["é"]
        assert notices == ["22P05"]


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
@pytest.mark.parametrize(("encoding", "raw"), [("LATIN1", b"\xe9"), ("WIN1252", b"\x80\x99")])
def test_psql_by_its_environment(program: Program, encoding: str, raw: bytes) -> None:
    statement = b"SELECT '%b', length('%b'), chr(%d)" % (raw, raw, ord(raw.decode("cp1252")[0]))
    done = subprocess.run(
        ["psql", "-X", "-A", "-t", program.dsn, "-c", statement], capture_output=True, check=True,
        env={**os.environ, "PGCLIENTENCODING": encoding},
    )  # fmt: skip
    assert done.stdout == raw + b"|" + str(len(raw)).encode() + b"|" + raw[:1] + b"\n"
