"""Django, SQLAlchemy, Alembic, asyncpg, pandas, polars, ADBC, pgcli and JupySQL, each in a process of its own.

They are no dependencies of the project: `make clients` installs them, or CLIENTSPYTHON names an interpreter.
"""

from __future__ import annotations

import subprocess

import pytest

from tests.clients.versions import PYTHON
from tests.support.program import Program


def ran(program: Program, modules: str, code: str) -> str:
    """What a script prints, with ``port`` in it. Skips where a module is not installed."""
    for module in modules.split():
        found = subprocess.run([PYTHON, "-c", f"import {module}"], cwd="/", capture_output=True, check=False)
        if found.returncode:
            pytest.skip(f"{module} is not installed")
    script = f"port = {program.port}\n{code}"
    done = subprocess.run([PYTHON, "-c", script], cwd="/", text=True, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.client("Django", "django")
def test_django_migrates_its_own_applications(program: Program) -> None:
    program.database("django")
    code = """
import django
from django.conf import settings
settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "HOST": "127.0.0.1", "PORT": port,
                           "USER": "postgres", "NAME": "django"}},
    INSTALLED_APPS=[f"django.contrib.{a}" for a in
                    "admin auth contenttypes flatpages redirects sessions sites messages staticfiles".split()],
    SITE_ID=1, STATIC_URL="static/", SECRET_KEY="x", USE_TZ=True,
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField", ROOT_URLCONF="__main__",
    MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware",
                "django.contrib.auth.middleware.AuthenticationMiddleware",
                "django.contrib.messages.middleware.MessageMiddleware"],
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True, "OPTIONS": {
        "context_processors": ["django.template.context_processors.request",
                               "django.contrib.auth.context_processors.auth",
                               "django.contrib.messages.context_processors.messages"]}}],
    ALLOWED_HOSTS=["testserver"],
)
django.setup()
from django.contrib import admin
from django.core.management import call_command
from django.test import Client
from django.urls import path
urlpatterns = [path("admin/", admin.site.urls)]
call_command("migrate", verbosity=0)
call_command("migrate", verbosity=0)
from django.contrib.auth.models import Group, User
User.objects.create_superuser("root", "root@example.org", "secret")
client = Client()
assert client.login(username="root", password="secret")
for address in ("", "auth/user/?q=ro&o=1", "auth/user/1/change/", "auth/group/add/", "sites/site/"):
    assert client.get("/admin/" + address).status_code == 200, address
answer = client.post("/admin/auth/group/add/", {"name": "staff", "permissions": [1, 2]})
assert answer.status_code == 302
print(Group.objects.get(name="staff").permissions.count(), User.objects.filter(username__icontains="OO").count())
call_command("inspectdb", "auth_user")
call_command("makemigrations", check=True, dry_run=True, verbosity=0)
"""
    shown = ran(program, "django psycopg", code)
    assert shown.startswith("2 1\n")
    assert "username = models.CharField(unique=True, max_length=150)" in shown


@pytest.mark.client("SQLAlchemy, Alembic", "sqlalchemy", "alembic")
def test_sqlalchemy_reflects_and_alembic_finds_no_difference(dsn: str, program: Program) -> None:
    code = """
import sqlalchemy as sa
engine = sa.create_engine(f"postgresql+psycopg://postgres@127.0.0.1:{port}/everything")
found = sa.inspect(engine)
print(sorted(found.get_table_names("shop")))
print(sorted(found.get_view_names("shop")), found.get_materialized_view_names("shop"))
key = found.get_pk_constraint("sale", "shop")
print(found.get_foreign_keys("sale", "shop")[0]["options"], key["constrained_columns"])
print([e["name"] for e in found.get_enums("shop")], [d["name"] for d in found.get_domains("shop")])
checks = found.get_check_constraints("customer", "shop")
print(found.get_table_comment("customer", "shop")["text"], [c["name"] for c in checks])
metadata = sa.MetaData(schema="shop")
metadata.reflect(engine, views=False)
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
with engine.connect() as connection:
    context = MigrationContext.configure(connection, opts={
        "include_schemas": True, "include_name": lambda name, kind, _: kind != "schema" or name == "shop"})
    print([d for d in compare_metadata(context, metadata) if "Odd" not in str(d)])
    customer = metadata.tables["shop.customer"]
    row = connection.execute(sa.select(customer).where(customer.c.id == 1)).one()
    print(row.tags, row.data, row.amount)
"""
    lines = ran(program, "sqlalchemy alembic psycopg", code).splitlines()
    assert "'customer'" in lines[0]
    assert lines[1] == "['a_view_of_a_view', 'rich'] ['totals']"
    assert lines[2] == "{'onupdate': 'RESTRICT', 'ondelete': 'CASCADE'} ['customer', 'line']"
    assert lines[3:5] == ["['mood'] ['positive']", "customers ['named', 'not_negative']"]
    assert lines[5:] == ["[]", "['a', 'b c'] {'a': [1, None]} 7.50"]


@pytest.mark.client("asyncpg")
def test_asyncpg_knows_the_types(dsn: str, program: Program) -> None:
    code = """
import asyncio, asyncpg
async def main():
    c = await asyncpg.connect(host="127.0.0.1", port=port, user="postgres", database="everything")
    row = await c.fetchrow("SELECT * FROM shop.customer WHERE id = $1", 1)
    print(row["mood"], row["tags"], tuple(row["detail"]), row["stars"], row["amount"], row["period"].lower.year)
    await c.execute("CREATE TEMP TABLE copied (a int, b text)")
    print(await c.copy_records_to_table("copied", records=[(i, str(i)) for i in range(1000)]))
    async with c.transaction():
        print(sum([r["a"] async for r in c.cursor("SELECT a FROM copied", prefetch=50)]))
    await c.close()
asyncio.run(main())
"""
    assert ran(program, "asyncpg", code).splitlines() == [
        "ok ['a', 'b c'] (1, 'x', 'sad') 3 7.50 2024", "COPY 1000", "499500",
    ]  # fmt: skip


@pytest.mark.client("pandas, polars, ADBC", "pandas", "polars", "adbc-driver-postgresql")
def test_frames_are_written_and_read(program: Program) -> None:
    program.database("frames")
    code = """
import datetime, pandas, polars, sqlalchemy
import adbc_driver_postgresql.dbapi as adbc
url = f"postgresql://postgres@127.0.0.1:{port}/frames"
engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
one = pandas.DataFrame({"a": [1, 2], "b": ["x", None], "c": [0.5, 1.5], "d": pandas.to_datetime(["2024-01-02", None])})
one.to_sql("by_pandas", engine, index=False, if_exists="replace")
print(pandas.read_sql("SELECT * FROM by_pandas ORDER BY a", engine).equals(one) or
      pandas.read_sql("SELECT * FROM by_pandas ORDER BY a", engine).values.tolist())
two = polars.DataFrame({"a": [1, 2], "b": ["x", None], "c": [0.5, 1.5], "d": [datetime.date(2024, 1, 2), None]})
two.write_database("by_polars", url, engine="adbc")
print(polars.read_database_uri("SELECT * FROM by_polars ORDER BY a", url, engine="adbc").equals(two))
with adbc.connect(url) as connection, connection.cursor() as cursor:
    cursor.adbc_ingest("by_adbc", two.to_arrow(), mode="create")
    connection.commit()
    cursor.execute("SELECT count(*), sum(c) FROM by_adbc")
    print(cursor.fetchone())
    print(connection.adbc_get_table_schema("by_adbc").names)
"""
    lines = ran(program, "pandas polars adbc_driver_postgresql sqlalchemy psycopg pyarrow", code).splitlines()
    assert lines[1:] == ["True", "(2, 2.0)", "['a', 'b', 'c', 'd']"]


@pytest.mark.client("pgcli")
def test_pgcli_completes_and_describes(dsn: str, program: Program) -> None:
    code = """
from pgcli.pgexecute import PGExecute
from pgspecial.main import PGSpecial
there = PGExecute(database="everything", user="postgres", password="", host="127.0.0.1", port=str(port))
shop = lambda rows: [r for r in rows if r[0] == "shop"]
print(len(shop(there.tables())), len(shop(there.views())), len(shop(there.table_columns())))
print(sorted(f.func_name for f in there.functions() if f.schema_name == "shop"), len(shop(there.datatypes())))
keys = sorted({(k.parenttable, k.childtable) for k in there.foreignkeys() if k.childschema == "shop"})
print(keys, there.search_path(), len(list(there.casing())) > 10)
for command in (r"\\d+ shop.sale", r"\\dt shop.*", r"\\df shop.add", r"\\dx", "SELECT 1"):
    for title, rows, headers, status, _, right, _ in there.run(command, PGSpecial()):
        print(command, len(list(rows or ())), right)
"""
    assert ran(program, "pgcli", code).splitlines() == [
        "12 3 56", "['add', 'joined', 'listed', 'moody', 'product', 'sell', 'several'] 5",
        "[('customer', 'sale'), ('sale', 'item')] ['pg_catalog', 'public'] True",
        *(f"\\{c} True" for c in ("d+ shop.sale 5", "dt shop.* 12", "df shop.add 1", "dx 2")),
        "SELECT 1 1 True",
    ]  # fmt: skip


@pytest.mark.client("JupySQL", "jupysql")
def test_jupysql_runs_cells(dsn: str, program: Program) -> None:
    code = """
import os
os.environ["PLOOMBER_STATS_ENABLED"] = "false"
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "sql")
shell.run_line_magic("config", "SqlMagic.feedback = 0")
shell.run_line_magic("config", "SqlMagic.displaycon = False")
shell.run_line_magic("sql", f"postgresql+psycopg://postgres@127.0.0.1:{port}/everything")
one = shell.run_cell_magic("sql", "", "SELECT id, name FROM shop.customer ORDER BY id LIMIT 2")
said = [[row[0] for row in one], one.DataFrame().shape]
said.append("customer" in str(shell.run_line_magic("sqlcmd", "tables --schema shop")))
said.append("amount" in str(shell.run_line_magic("sqlcmd", "columns --schema shop --table customer")))
shell.run_cell_magic("sql", "--save big --no-execute", "SELECT id, amount FROM shop.customer WHERE amount > 1")
said.append(len(shell.run_cell_magic("sql", "--with big", "SELECT * FROM big")) > 0)
print(said)
"""
    shown = ran(program, "sql.magic psycopg pandas", code).splitlines()
    assert "[[1, 2], (2, 2), True, True, True]" in shown


@pytest.mark.client("SQLAlchemy, Alembic")
def test_alembic_makes_what_it_generates(program: Program) -> None:
    program.database("generated")
    code = """
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata, produce_migrations
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.operations.ops import OpContainer
one, two = sa.MetaData(), sa.MetaData()
kind = sa.Enum("a", "b", name="kind")
for metadata, more in ((one, ()), (two, (sa.Column("note", sa.Text, server_default="none", comment="why"),))):
    sa.Table("person", metadata, sa.Column("id", sa.Integer, sa.Identity(), primary_key=True),
             sa.Column("name", sa.String(40 + 10 * len(more)), nullable=bool(more)), sa.Column("kind", kind),
             sa.Column("data", sa.dialects.postgresql.JSONB), sa.Column("at", sa.DateTime(timezone=True)),
             sa.CheckConstraint("id > 0", name="positive"), sa.UniqueConstraint("name", name="named"), *more,
             comment="people")
    sa.Table("visit", metadata, sa.Column("person", sa.ForeignKey("person.id", name="of", ondelete="CASCADE")),
             sa.Column("day", sa.Date, index=not more), sa.Index("by_both", "person", sa.text("day DESC")))
engine = sa.create_engine(f"postgresql+psycopg://postgres@127.0.0.1:{port}/generated")
def run(ops, operations):
    for op in ops:
        if isinstance(op, OpContainer):
            run(op.ops, operations)
        else:
            operations.invoke(op)
for metadata in (one, two, one):
    with engine.begin() as connection:
        context = MigrationContext.configure(connection, opts={"compare_server_default": True})
        run(produce_migrations(context, metadata).upgrade_ops.ops, Operations(context))
    with engine.begin() as connection:
        context = MigrationContext.configure(connection, opts={"compare_server_default": True})
        print(len(sa.inspect(connection).get_table_names()), compare_metadata(context, metadata))
"""
    shown = ran(program, "sqlalchemy alembic psycopg", code).splitlines()
    assert shown == ["2 []", "2 []", "2 []"]
