"""psql's \\l and \\c, createdb, dropdb, and dumps of whole databases and of whole servers."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.make_psql import prepare
from tests.support.program import Program

pytestmark = pytest.mark.skipif(shutil.which("pg_dumpall") is None, reason="pg_dumpall is not installed")


def ran(program: Program, *command: str, given: str | None = None) -> tuple[str, str]:
    """What a client of the server prints, and what it complains of."""
    place = {"PGHOST": "127.0.0.1", "PGPORT": str(program.port), "PGUSER": "postgres"}
    done = subprocess.run(
        command, text=True, capture_output=True, check=False, input=given, env={**os.environ, **place}, timeout=120
    )  # fmt: skip
    return done.stdout, done.stderr


def plain(script: str) -> str:
    return "\n".join(line for line in script.splitlines() if not line.startswith(("\\restrict", "\\unrestrict")))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """A server with a database of objects of all kinds, with settings, a comment and privileges of its own."""
    program = Program(tmp_path_factory.mktemp("shop"))
    assert prepare(program.database("shop")) == ""
    with program.connect() as connection:
        for text in (
            "ALTER DATABASE shop SET timezone TO 'Europe/Berlin'", "COMMENT ON DATABASE shop IS 'the shop'",
            "CREATE ROLE seller", "GRANT CONNECT, TEMPORARY ON DATABASE shop TO seller",
            "REVOKE CONNECT ON DATABASE shop FROM PUBLIC", "ALTER DATABASE shop CONNECTION LIMIT 7",
        ):  # fmt: skip
            connection.execute(text.encode())
    yield program
    program.kill()


def test_createdb_dropdb_and_psql(shop: Program) -> None:
    assert ran(shop, "createdb", "-T", "template0", "-E", "UTF8", "-l", "C", "made", "a comment") == ("", "")
    assert "already exists" in ran(shop, "createdb", "made")[1]
    listed, _ = ran(shop, "psql", "-X", "-At", "-c", "\\l made", "postgres")
    assert listed == "made|postgres|UTF8|C|C||libc|\n"
    assert "a comment" in ran(shop, "psql", "-X", "-c", "\\l+", "postgres")[0]
    script = "CREATE TABLE t (a int);\n\\c made\nCREATE TABLE t (b text);\n\\d t\n\\c postgres\n\\d t\nDROP TABLE t;\n"
    out, err = ran(shop, "psql", "-X", "-q", "-At", "postgres", given=script)
    assert err == ""
    assert [line.split("|")[0] for line in out.splitlines() if "|" in line] == ["b", "a"]
    assert 'database "missing" does not exist' in ran(shop, "psql", "-X", "missing")[1]
    assert ran(shop, "dropdb", "made") == ("", "")
    assert 'database "made" does not exist' in ran(shop, "dropdb", "made")[1]
    assert "skipping" in ran(shop, "dropdb", "--if-exists", "made")[1]


def test_a_dump_makes_its_database(shop: Program, tmp_path: Path) -> None:
    script = plain(ran(shop, "pg_dump", "-C", "shop")[0])
    archive = str(tmp_path / "shop.dump")
    assert ran(shop, "pg_dump", "-Fc", "-C", "-f", archive, "shop") == ("", "")
    other = Program(tmp_path / "other")
    try:
        ran(other, "psql", "-X", "-q", "-c", "CREATE ROLE seller", "postgres")
        _, err = ran(other, "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "postgres", given=script)
        assert "ERROR" not in err
        assert plain(ran(other, "pg_dump", "-C", "shop")[0]) == script
        for options in (("--clean", "--if-exists"), ()):
            assert ran(other, "pg_restore", "-C", *options, "-d", "postgres", archive) == ("", "")
            assert plain(ran(other, "pg_dump", "-C", "shop")[0]) == script
            ran(other, "dropdb", "shop")
    finally:
        other.kill()


def test_a_dump_of_the_server(shop: Program, tmp_path: Path) -> None:
    out, err = ran(shop, "pg_dumpall")
    script = plain(out)
    assert err == ""
    other = Program(tmp_path / "other")
    try:
        _, err = ran(other, "psql", "-X", "-q", "postgres", given=script)
        assert [line for line in err.splitlines() if "ERROR" in line] == [
            line for line in err.splitlines() if line.endswith('role "postgres" already exists')
        ]
        assert plain(ran(other, "pg_dumpall")[0]) == script
    finally:
        other.kill()
