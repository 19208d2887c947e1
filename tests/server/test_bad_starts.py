"""Starts that cannot be: each says why in a line or two, and ends with status 1 or 2."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ivm.errors import SqlError
from storage.files import check_folder
from tests.support.program import ROOT
from tests.support.sessions import Server


def refused(*flags: str) -> tuple[int, list[str]]:
    """The status and the last lines of a server that does not start."""
    command = [sys.executable, str(ROOT / "server.py"), *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=100)
    lines = [line for line in done.stderr.splitlines() if "compiling" not in line and line != "freshet: starting"]
    return done.returncode, lines


@pytest.mark.parametrize("port", ["99999", "-1", "x"])
def test_no_port(port: str, tmp_path: Path) -> None:
    status, lines = refused(f"--port={port}", "--data", str(tmp_path / "data"))
    assert status == 2
    assert f"{port!r} is not a port" in lines[-1]


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, lines = refused("--port", str(port), "--data", str(tmp_path / "data"))
    assert status == 1
    assert len(lines) <= 3
    assert lines[-2:] == [
        f"freshet: cannot listen on 127.0.0.1:{port}: Address already in use",
        "freshet: Another server may use it: --port gives this one another.",
    ]


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("dear")
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "app.log").write_text("started")
    status, lines = refused("--port", "0", "--data", str(tmp_path))
    assert status == 1
    assert lines[0].endswith("is not empty, and no data folder of a server")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["letters.txt", "log"]


def test_folders_that_are_taken(tmp_path: Path) -> None:
    """Empty ones, with the rules of who gets in put there, and those of servers, whatever else is in them."""
    check_folder(tmp_path / "none")
    check_folder(tmp_path)
    (tmp_path / "pg_hba.conf").write_text("")
    (tmp_path / "lost+found").mkdir()
    check_folder(tmp_path)
    (tmp_path / "note").write_text("")
    with pytest.raises(SqlError):
        check_folder(tmp_path)
    (tmp_path / "store.duckdb").write_text("")
    check_folder(tmp_path)


def test_damaged_folders_are_refused(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    client = server.client()
    client.run("CREATE TABLE t (a int)")
    client.run("INSERT INTO t SELECT generate_series(1, 2000)")
    server.restart()
    server.run(server.coordinator.jobs.published_at_least(server.coordinator.engine.clock.now()))
    shutil.copytree(server.folder, tmp_path / "kept")
    server.close()
    store = (tmp_path / "kept" / "store.duckdb").read_bytes()
    states = set()
    for at in (*range(12_288 + 100, len(store), 262_144), 5, 4100, 8200):
        folder = tmp_path / f"at{at}"
        shutil.copytree(tmp_path / "kept", folder)
        damaged = bytearray(store)
        damaged[at] ^= 0x55
        (folder / "store.duckdb").write_bytes(damaged)
        try:
            opened = Server(folder)
        except SqlError as error:
            states.add(error.sqlstate)
        else:
            assert opened.client().rows("SELECT count(*) FROM t") == [("2000",)]
            opened.close()
    assert states == {"XX001"}
    (tmp_path / "kept" / "lease").write_text("yesterday")
    with pytest.raises(SqlError) as caught:
        Server(tmp_path / "kept")
    assert caught.value.sqlstate == "XX001"
