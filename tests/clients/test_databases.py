"""psql's \\l and \\c, createdb, dropdb, dumps of whole databases and of whole servers, and what Django, SQLAlchemy and
asyncpg do with databases."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.make_psql import prepare
from tests.clients.test_python_clients import ran as python
from tests.clients.versions import PYTHON
from tests.support.program import Program

needed = pytest.mark.skipif(shutil.which("pg_dumpall") is None, reason="pg_dumpall is not installed")
debian = pytest.mark.client("createdb, dropdb, pg_dump -C, pg_restore -C, pg_dumpall", "command:pg_dumpall")


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


@needed
@debian
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


@needed
@debian
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


@needed
@debian
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


SETTINGS = """
DATABASES = {
    name: {"ENGINE": "django.db.backends.postgresql", "HOST": "127.0.0.1", "PORT": %d, "USER": "postgres", "NAME": name}
    for name in ("default", "other")
}
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "books"]
SECRET_KEY = "x"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
"""
MODELS = """
from django.db import models
class Author(models.Model):
    name = models.CharField(max_length=100, unique=True)
class Book(models.Model):
    title = models.CharField(max_length=100)
    author = models.ForeignKey(Author, models.CASCADE)
"""
TESTS = """
from django.db import IntegrityError, connection, connections, transaction
from django.test import TestCase, TransactionTestCase
from books.models import Author, Book
class OfRows(TestCase):
    databases = {"default", "other"}
    @classmethod
    def setUpTestData(cls):
        cls.ann = Author.objects.create(name="ann")
    def test_rows(self):
        Book.objects.create(title="one", author=self.ann)
        self.assertEqual(Author.objects.filter(book__title="one").count(), 1)
        self.assertEqual(Author.objects.using("other").count(), 0)
    def test_rows_are_gone(self):
        self.assertEqual(Book.objects.count(), 0)
    def test_names(self):
        for alias in ("default", "other"):
            with connections[alias].cursor() as cursor:
                cursor.execute("SELECT current_database()")
                self.assertTrue(cursor.fetchone()[0].startswith("test_" + alias))
class OfTransactions(TransactionTestCase):
    def test_unique(self):
        Author.objects.create(name="bob")
        with self.assertRaises(IntegrityError), transaction.atomic():
            Author.objects.create(name="bob")
        self.assertEqual(Author.objects.count(), 1)
    def test_flushed(self):
        self.assertEqual(Author.objects.count(), 0)
"""


@pytest.mark.client("Django", "django")
def test_manage_py_test(program: Program, tmp_path: Path) -> None:
    """It creates its test databases, copies them for each process, and drops them."""
    python(program, "django psycopg", "pass")
    app = tmp_path / "books"
    app.mkdir()
    for file, text in (
        (tmp_path / "manage.py", "from django.core.management import execute_from_command_line as run\n"
                                 "import os, sys\nos.environ['DJANGO_SETTINGS_MODULE'] = 'settings'\nrun(sys.argv)\n"),
        (tmp_path / "settings.py", SETTINGS % program.port), (app / "__init__.py", ""), (app / "models.py", MODELS),
        (app / "tests.py", TESTS),
    ):  # fmt: skip
        file.write_text(text)

    def manage(*words: str) -> str:
        done = subprocess.run(
            [PYTHON, "manage.py", *words], cwd=tmp_path, text=True, capture_output=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    manage("makemigrations", "books")
    for options in ((), ("--parallel", "2"), ("--keepdb",), ("--keepdb",), ()):
        shown = manage("test", "--noinput", *options)
        assert "Ran 5 tests" in shown, shown
        assert ("Cloning test database" in shown) is ("--parallel" in options)
    with program.connect() as connection:
        left = connection.execute("SELECT datname FROM pg_database WHERE datname LIKE 'test%'").fetchall()
        assert left == []


@pytest.mark.client("SQLAlchemy, Alembic", "sqlalchemy", "alembic")
def test_sqlalchemy_creates_and_drops(program: Program) -> None:
    code = """
import sqlalchemy as sa
url = sa.make_url(f"postgresql+psycopg://postgres@127.0.0.1:{port}/postgres")
admin = sa.create_engine(url, isolation_level="AUTOCOMMIT")
with admin.connect() as connection:
    connection.execute(sa.text("CREATE DATABASE by_alchemy ENCODING 'utf8' TEMPLATE template1"))
own = sa.create_engine(url.set(database="by_alchemy"))
table = sa.Table("t", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True))
table.metadata.create_all(own)
with own.begin() as connection:
    connection.execute(sa.text("CREATE ROLE by_alchemy"))
    connection.execute(sa.text("GRANT SELECT ON t TO by_alchemy"))
    print(sa.inspect(connection).get_table_names())
with admin.connect() as connection:
    print(sa.inspect(connection).get_table_names())
    try:
        connection.execute(sa.text("DROP ROLE by_alchemy"))
    except sa.exc.InternalError as error:
        print(str(error.orig).splitlines()[1])
own.dispose()
with admin.connect() as connection:
    connection.execute(sa.text("DROP DATABASE by_alchemy"))
    connection.execute(sa.text("DROP ROLE by_alchemy"))
try:
    own.connect()
except sa.exc.OperationalError as error:
    print("does not exist" in str(error))
"""
    shown = python(program, "sqlalchemy psycopg", code).splitlines()
    assert shown == ["['t']", "[]", "DETAIL:  1 object in database by_alchemy", "True"]


@pytest.mark.client("asyncpg", "asyncpg")
def test_asyncpg_ends_who_is_in_the_way(program: Program) -> None:
    code = """
import asyncio, asyncpg
async def main():
    where = {"host": "127.0.0.1", "port": port, "user": "postgres"}
    admin = await asyncpg.connect(**where, database="postgres")
    print(await admin.execute("CREATE DATABASE by_asyncpg"))
    own = await asyncpg.connect(**where, database="by_asyncpg")
    print(await own.fetchval("SELECT current_database()"))
    try:
        await admin.execute("DROP DATABASE by_asyncpg")
    except asyncpg.ObjectInUseError as error:
        print(error.detail)
    print(await admin.execute("DROP DATABASE by_asyncpg WITH (FORCE)"))
    try:
        await own.fetchval("SELECT 1")
    except (asyncpg.AdminShutdownError, asyncpg.ConnectionDoesNotExistError, asyncpg.InterfaceError):
        print("ended")
    try:
        await asyncpg.connect(**where, database="by_asyncpg")
    except asyncpg.InvalidCatalogNameError as error:
        print(error)
    await admin.close()
asyncio.run(main())
"""
    assert python(program, "asyncpg", code).splitlines() == [
        "CREATE DATABASE", "by_asyncpg", "There is 1 other session using the database.", "DROP DATABASE", "ended",
        'database "by_asyncpg" does not exist',
    ]  # fmt: skip
