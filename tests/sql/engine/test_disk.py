"""A disk that is full or fails: reads go on, writes get 53100 or 58030, and the server resumes by itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ivm.errors import SqlError
from sql.coordination import thread
from sql.engine.persist import RESERVED_BYTES, Tuning
from storage.checkpoint import Pace
from storage.files import ForgetfulFiles
from tests.support.sessions import Client, Server

NUMBER = "SELECT count(*), sum(a) FROM t"


@pytest.fixture
def disk() -> ForgetfulFiles:
    return ForgetfulFiles()


@pytest.fixture
def server(tmp_path: Path, disk: ForgetfulFiles, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(thread, "RETRY_SECONDS", 0.05)
    server = Server(tmp_path / "data", tuning=Tuning(disk))
    client = server.client()
    client.run("CREATE TABLE t (a int PRIMARY KEY, s text)")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
    client.run("CREATE SEQUENCE numbers")
    client.run("INSERT INTO t VALUES (1, 'one')")
    yield server
    disk.full = disk.fail_sync = False
    server.close()


def _wait(server: Server, blocked: bool) -> None:
    for _ in range(400):
        if server.coordinator.jobs._thread._blocked == blocked:
            return
        time.sleep(0.01)
    raise AssertionError


@pytest.mark.parametrize(("flag", "state"), [("full", "53100"), ("fail_sync", "58030")])
@pytest.mark.parametrize("block", [False, True])
def test_commits_wait_and_others_are_refused(
    server: Server, disk: ForgetfulFiles, flag: str, state: str, block: bool
) -> None:
    one, other, reader = server.client(), server.client(), server.client()
    if block:
        one.run("BEGIN")
        one.run("INSERT INTO t VALUES (2, 'two')")
        assert one.rows("SELECT n FROM v") == [("2",)]
    setattr(disk, flag, True)
    waiting = server.start(one.work("COMMIT" if block else "INSERT INTO t VALUES (2, 'two')"))
    _wait(server, True)
    for _ in range(3):
        assert other.state("INSERT INTO t VALUES (3, 'three')") == state
        assert other.state("CREATE TABLE u (a int)") == state
        assert reader.rows("SELECT n FROM v") == [("1",)]
        assert reader.rows(NUMBER) == [("1", "1")]
    assert other.state("SELECT nextval('numbers')") == state
    assert not waiting.done()
    setattr(disk, flag, False)
    waiting.result(10)
    other.run("INSERT INTO t VALUES (3, 'three')")
    assert reader.rows("SELECT n FROM v") == [("3",)]
    assert reader.rows(NUMBER) == [("3", "6")]
    server.restart()
    client = server.client()
    assert client.rows(NUMBER) == [("3", "6")]
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []


def test_what_was_not_acknowledged_is_lost_by_a_power_cut(server: Server, disk: ForgetfulFiles, tmp_path: Path) -> None:
    client = server.client()
    disk.fail_sync = True
    server.start(client.work("INSERT INTO t VALUES (2, 'two')"))
    _wait(server, True)
    shutil.copytree(server.folder, tmp_path / "later")
    later = Server(tmp_path / "later")
    assert later.client().rows(NUMBER) == [("1", "1")]
    later.close()


def test_room_is_kept(server: Server, disk: ForgetfulFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    client = server.client()
    free = [RESERVED_BYTES + 100_000]
    monkeypatch.setattr(disk, "free", lambda folder: free[0])
    client.run("INSERT INTO t VALUES (2, 'two')")
    assert client.state("INSERT INTO t SELECT i, 'x' FROM generate_series(10, 50000) i") == "53100"
    client.run("BEGIN")
    client.run("INSERT INTO t SELECT i, 'x' FROM generate_series(10, 50000) i")
    assert client.state("COMMIT") == "53100"
    assert client.rows(NUMBER) == [("2", "3")]
    client.run("INSERT INTO t VALUES (3, 'three')")
    free[0] = RESERVED_BYTES - 1
    assert client.state("INSERT INTO t VALUES (4, 'four')") == "53100"
    assert client.rows("SELECT n FROM v") == [("3",)]
    free[0] = 1 << 40
    client.run("INSERT INTO t SELECT i, 'x' FROM generate_series(10, 50000) i")
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 48 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=False)


def _fill(place: Path, leave: int) -> Path:
    """A file that takes everything but so many bytes."""
    path = place / "ballast"
    found = os.statvfs(place)
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(found.f_bavail * found.f_frsize - leave, 4096))
    return path


def _commit_until_refused(client: Client, number: int) -> int:
    """Commits rows of 20 kB until the disk is full; the number of the last row."""
    for i in range(number + 1, number + 5000):
        try:
            client.run(f"INSERT INTO t SELECT {i}, string_agg(md5(j::text || {i}), '') FROM generate_series(1, 640) j")
        except SqlError as error:
            if error.sqlstate != "53100":
                raise
            return i - 1
    raise AssertionError("the disk did not get full")


@pytest.mark.parametrize("leave", [0, RESERVED_BYTES + (1 << 20)])
def test_a_small_disk(small_disk: Path, leave: int) -> None:
    """With ``leave`` 0 the store's own transactions fail too."""
    server = Server(small_disk / "data", tuning=Tuning(pace=Pace(seconds=0.2, retry_seconds=0.1)))
    client, reader = server.client(), server.client()
    client.run("CREATE TABLE t (a int PRIMARY KEY, s text)")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
    last = 0
    for _ in range(2):
        client.run(f"INSERT INTO t VALUES ({last + 1}, 'small')")
        ballast = _fill(small_disk, leave)
        last = _commit_until_refused(client, last + 1)
        for _ in range(10):
            assert reader.rows("SELECT n FROM v") == [(str(last),)]
            assert reader.rows("SELECT max(a) FROM t") == [(str(last),)]
            assert client.state("INSERT INTO t VALUES (0, 'x')") == "53100"
            time.sleep(0.05)
        ballast.unlink()
        for _ in range(100):
            try:
                client.run("DELETE FROM t WHERE a = 0")
                client.run("UPDATE t SET s = 'short'")
                break
            except SqlError:
                time.sleep(0.1)
        client.run("VACUUM")
    client.run(f"INSERT INTO t VALUES ({last + 1}, 'last')")
    server.restart()
    client = server.client()
    assert client.rows("SELECT count(*), max(a) FROM t") == [(str(last + 1), str(last + 1))]
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []
    server.close()
