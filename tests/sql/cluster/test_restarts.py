"""Databases come back after a restart and a kill, whole or not at all."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from sql.cluster.folders import Folders
from sql.coordination.coordinator import Coordinator
from tests.support.clusters import Databases
from tests.support.paths import ROOT
from tests.support.program import Program
from tests.support.sessions import Server


@pytest.fixture
def databases(tmp_path: Path) -> Iterator[Databases]:
    server = Databases(tmp_path / "data")
    yield server
    server.close()


def fill(databases: Databases, name: str, rows: int) -> None:
    client = databases.database(name)
    client.run("CREATE TABLE t (id int PRIMARY KEY, x int)")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(x) AS s FROM t")
    client.run(f"INSERT INTO t SELECT i, i FROM generate_series(1, {rows}) i")
    client.close()


def count(databases: Databases, name: str) -> object:
    client = databases.database(name)
    try:
        return client.rows("SELECT n FROM v")[0][0]
    finally:
        client.close()


def test_everything_comes_back(databases: Databases) -> None:
    client = databases.database()
    client.run("CREATE ROLE ann LOGIN")
    client.run("CREATE DATABASE one OWNER ann CONNECTION LIMIT 9")
    client.run("CREATE DATABASE never_opened")
    client.run("ALTER DATABASE one SET timezone TO 'Asia/Tokyo'")
    client.run("COMMENT ON DATABASE one IS 'first of all'")
    client.run("REVOKE ALL ON DATABASE one FROM PUBLIC")
    shown = """SELECT datname, pg_get_userbyid(datdba), datconnlimit, datacl, setconfig,
        shobj_description(d.oid, 'pg_database')
        FROM pg_database d LEFT JOIN pg_db_role_setting ON setdatabase = d.oid ORDER BY d.oid"""
    before = client.rows(shown)
    client.close()
    fill(databases, "postgres", 7)
    fill(databases, "one", 11)
    fill(databases, "template1", 13)
    databases.restart()
    client = databases.database()
    assert client.rows(shown) == before
    client.run("CREATE ROLE bob")  # while the others are closed
    client.run("ALTER DATABASE one CONNECTION LIMIT 3")
    client.close()
    assert [count(databases, name) for name in ("postgres", "one", "template1")] == ["7", "11", "13"]
    one = databases.database("one")
    assert one.rows("SHOW timezone") == [("Asia/Tokyo",)]
    assert one.rows("SELECT datconnlimit FROM pg_database WHERE datname = 'one'") == [("3",)]
    one.run("SET ROLE bob")
    one.close()
    databases.database("never_opened").close()
    databases.database("never_opened").close()


def test_only_the_first_is_opened_at_the_start(databases: Databases) -> None:
    client = databases.database()
    for name in ("one", "two"):
        client.run(f"CREATE DATABASE {name}")
        fill(databases, name, 3)
    client.close()
    databases.restart()
    assert len(databases.cluster.coordinators) == 1
    databases.database("two").close()
    assert len(databases.cluster.coordinators) == 2


def test_what_has_sources_is_opened_by_the_start(databases: Databases) -> None:
    client = databases.database()
    client.run("CREATE DATABASE quiet")
    client.run("CREATE DATABASE lively")
    client.close()
    fill(databases, "quiet", 3)
    lively = databases.database("lively")
    lively.run("CREATE TABLE t (id bigint, at timestamptz)")
    lively.run("CREATE SOURCE s FROM RATE (ROWS_PER_SECOND 1) INTO t")
    lively.close()
    databases.restart()
    databases.woken()
    assert len(databases.cluster.coordinators) == 2
    lively = databases.database("lively")
    lively.run("DROP SOURCE s")
    lively.close()
    databases.restart()
    databases.woken()
    assert len(databases.cluster.coordinators) == 1


def test_clients_that_come_at_once_open_it_once(databases: Databases, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []
    usual = Coordinator.open

    async def counting(folder: Path, *rest: object) -> Coordinator:
        opened.append(folder)
        return await usual(folder, *rest)  # type: ignore[arg-type]

    client = databases.database()
    client.run("CREATE DATABASE one")
    client.close()
    monkeypatch.setattr(Coordinator, "open", counting)
    entering = [databases.start(databases.cluster.enter("one", "me", _open())) for _ in range(20)]
    assert len({id(entered.result(60)[0]) for entered in entering}) == 1
    assert len(opened) == 1


def _open():  # type: ignore[no-untyped-def]
    from sql.admission.admission import OPEN

    return OPEN


def test_a_database_that_cannot_be_opened_keeps_no_other(databases: Databases) -> None:
    client = databases.database()
    for name in ("good", "bad"):
        client.run(f"CREATE DATABASE {name}")
        fill(databases, name, 3)
    oid = int(str(client.rows("SELECT oid FROM pg_database WHERE datname = 'bad'")[0][0]))
    client.close()
    databases.run(databases.cluster.close())
    folder = Folders(databases.folder).of(oid)
    (folder / "store.duckdb").write_bytes(b"no store" * 1000)
    databases.coordinator = databases.run(databases._open())
    assert count(databases, "good") == "3"
    for _ in range(2):
        with pytest.raises(Exception, match=r"bad|store|damaged"):
            databases.database("bad")
    assert count(databases, "good") == "3"
    client = databases.database("good")
    client.run("DROP DATABASE bad")
    client.close()
    assert not folder.exists()


def test_a_missing_folder_is_no_empty_database(databases: Databases) -> None:
    client = databases.database()
    client.run("CREATE DATABASE lost")
    oid = int(str(client.rows("SELECT oid FROM pg_database WHERE datname = 'lost'")[0][0]))
    client.close()
    Folders(databases.folder).of(oid).rmdir()
    with pytest.raises(Exception, match='database "lost" does not exist') as caught:
        databases.database("lost")
    assert getattr(caught.value, "detail", None) == f'The database subdirectory "databases/{oid}" is missing.'


def test_a_folder_of_one_database_goes_on(tmp_path: Path) -> None:
    """As servers had it before there were several: without databases in its catalog."""
    server = Server(tmp_path / "data")
    client = server.client()
    client.run("CREATE TABLE t (a int)")
    client.run("INSERT INTO t VALUES (1)")
    client.run("CREATE ROLE ann")
    client.run("ALTER DATABASE db OWNER TO ann")
    client.run("GRANT TEMPORARY ON DATABASE db TO ann")
    client.close()
    catalog = server.coordinator.engine.catalog
    server.close()
    from sql.catalog.stored_form import catalog_from_json, catalog_to_json

    body = json.loads(catalog_to_json(catalog))
    own = next(d for d in body["access"].pop("databases") if d["oid"] == 5)
    del body["access"]["database"]
    body["access"]["owners"].append([1262, 5, "d", 0, own["owner"]])
    acl = [[i["grantee"], i["grantor"], i["privileges"], i["options"]] for i in own["acl"]]
    body["access"]["acls"].append([1262, 5, "d", 0, acl])
    body["comments"].append([1262, 5, 0, "an old one"])
    read = catalog_from_json(catalog, json.dumps(body).encode())
    first = read.access.shared.databases[5]
    assert (first.name, first.owner, first.comment) == ("postgres", own["owner"], "an old one")
    assert read.access.acl(read.access.own_database) == catalog.access.acl(catalog.access.own_database)
    assert not [key for key in read.comments if key[0] == 1262]
    databases = Databases(tmp_path / "data")
    client = databases.database()
    assert client.rows("SELECT a FROM t") == [("1",)]
    assert client.rows("SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'postgres'") == [("ann",)]
    client.close()
    databases.close()


def test_what_was_half_made_or_half_removed_goes(databases: Databases) -> None:
    client = databases.database()
    client.run("CREATE DATABASE kept")
    client.close()
    fill(databases, "kept", 3)
    databases.run(databases.cluster.close())
    inside = databases.folder / "databases"
    for name in ("77777", "junk"):
        (inside / name).mkdir()
        (inside / name / "store.duckdb").write_bytes(b"half a copy")
    databases.coordinator = databases.run(databases._open())
    assert len(list(inside.iterdir())) == 1
    assert count(databases, "kept") == "3"


KILLED = """
import asyncio, os, shutil, signal, sys
from pathlib import Path
from sql.cluster.cluster import Cluster, Opening
from sql.cluster import folders, cluster
from sql.admission.admission import OPEN
from sql.session.door import admit
seen = point = 0
def here():
    global seen
    seen += 1
    if seen == point:
        os.kill(os.getpid(), signal.SIGKILL)
def around(owner, name):
    usual = getattr(owner, name)
    def hooked(*args, **kwargs):
        here()
        found = usual(*args, **kwargs)
        if not asyncio.iscoroutine(found):
            here()
        return found
    setattr(owner, name, hooked)
for name in ("make", "copy", "remove"):
    around(folders.Folders, name)
for name in ("_change", "_close", "_copy"):
    around(cluster.Cluster, name)
for name in ("insert_database", "remove_database"):
    around(cluster, name)
async def run(session, text):
    async for _ in session.simple(text):
        pass
async def main(folder):
    opened = await Cluster.open(Opening(folder, 256 << 20))
    session = await admit(opened, "postgres", "postgres", {}, OPEN)
    for text in ("CREATE DATABASE plain", "CREATE DATABASE copy TEMPLATE source", "DROP DATABASE source"):
        await run(session, text)
    (folder / "pg_hba.conf").touch()  # it came to the end
    os.kill(os.getpid(), signal.SIGKILL)
prepared = Path(sys.argv[1])
for point in range(1, 100):
    folder = Path(sys.argv[2]) / str(point)
    shutil.copytree(prepared, folder)
    child = os.fork()  # which has imported everything
    if not child:
        try:
            asyncio.run(main(folder))
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status), f"point {point} failed"
    if (folder / "pg_hba.conf").exists():
        break
"""


def test_killed_anywhere_databases_are_whole(databases: Databases, tmp_path: Path) -> None:
    """A process is killed before and after each thing that CREATE and DROP DATABASE do."""
    client = databases.database()
    client.run("CREATE DATABASE source")
    client.close()
    fill(databases, "source", 5)
    databases.restart()
    databases.run(databases.cluster.close())
    places = tmp_path / "killed"
    places.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(databases.folder), str(places)], cwd=ROOT, text=True,
        capture_output=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    databases.coordinator = databases.run(databases._open())
    left: list[frozenset[str]] = [_after_a_kill(folder) for folder in places.iterdir()]
    assert len(left) > 15
    assert {frozenset({"source"}), frozenset({"plain", "copy"})} <= set(left)


def _after_a_kill(folder: Path) -> frozenset[str]:
    """The databases that are left, each of which is whole, and the only ones with folders."""
    databases = Databases(folder)
    client = databases.database()
    found = dict(client.rows("SELECT datname, oid FROM pg_database WHERE oid >= 16384"))
    names = frozenset(map(str, found))
    assert {f.name for f in (folder / "databases").iterdir()} == set(found.values())
    for name in names - {"plain"}:
        assert count(databases, name) == "5"
    if "plain" in names:
        databases.database("plain").close()
    assert names <= {"plain", "copy", "source"}
    assert "source" in names or "copy" in names, "the copy was whole before the source went"
    client.run("CREATE DATABASE another")
    client.close()
    databases.close()
    return names


def test_a_killed_server_keeps_what_each_database_acknowledged(tmp_path: Path) -> None:
    program = Program(tmp_path / "data")
    names = ("one", "two")
    dsns = [program.database(name) for name in names]
    connections = [psycopg.connect(dsn, autocommit=True) for dsn in dsns]
    for connection in connections:
        connection.execute("CREATE TABLE t (a int)")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
    for i in range(50):
        for connection in connections:
            connection.execute("INSERT INTO t VALUES (%s)", (i,))
    program.kill()
    program = Program(tmp_path / "data")
    for name in names:
        with psycopg.connect(f"host=127.0.0.1 port={program.port} user=me dbname={name}") as connection:
            assert connection.execute("SELECT n FROM v").fetchone() == (50,)
    program.kill()
