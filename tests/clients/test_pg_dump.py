"""pg_dump and pg_restore of objects of all kinds."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.program import Program

pytestmark = [
    pytest.mark.skipif(shutil.which("pg_dump") is None, reason="pg_dump is not installed"),
    pytest.mark.client("pg_dump, pg_restore", "command:pg_dump"),
]


def dump(dsn: str, *options: str) -> str:
    """A dump as a script, without what differs each time."""
    command = ["pg_dump", *options, "-d", dsn]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return "\n".join(line for line in done.stdout.splitlines() if not line.startswith(("\\restrict", "\\unrestrict")))


def restored(program: Program, script: str) -> None:
    """Run a dump, which must not fail."""
    dsn = program.database("everything")
    command = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", dsn]
    done = subprocess.run(command, input=script, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_restored_dump_dumps_the_same(dsn: str, tmp_path: Path) -> None:
    script = dump(dsn)
    for part in ("CREATE VIEW shop.a_view_of_a_view", "CREATE TRIGGER stamped", "ADD CONSTRAINT item_sale FOREIGN KEY"):
        assert part in script
    assert "freshet." not in script, "what every server has is not dumped"
    other = Program(tmp_path / "other")
    try:
        restored(other, script)
        assert dump(other.database("everything")) == script
    finally:
        other.kill()


def test_an_archive_restores(dsn: str, tmp_path: Path) -> None:
    archive = tmp_path / "all.dump"
    dump(dsn, "-Fc", "-f", str(archive))
    other = Program(tmp_path / "other")
    try:
        to = other.database("everything")
        command = ["pg_restore", "--exit-on-error", "-d", to, str(archive)]
        done = subprocess.run(command, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        assert dump(to) == dump(dsn)
    finally:
        other.kill()


def test_several_connections_dump_and_restore(dsn: str, program: Program, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    dump(dsn, "-Fd", "-j", "4", "-f", str(folder))
    to = program.database("in_parts")
    command = ["pg_restore", "-j", "4", "--exit-on-error", "-d", to, str(folder)]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert dump(to) == dump(dsn)


def test_options(dsn: str) -> None:
    for options in (["--inserts"], ["--clean", "--if-exists"], ["-t", "shop.customer"], ["-s", "-O"], ["-a"]):
        assert "PostgreSQL database dump complete" in dump(dsn, *options)
