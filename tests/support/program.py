"""server.py as a process on a free port, for tests."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import psycopg

from tests.support.nursery import Forked, forked
from tests.support.paths import ROOT


def _started(flags: tuple[str, ...]) -> subprocess.Popen[str]:
    command = [sys.executable, str(ROOT / "server.py"), *flags]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)


class Program:
    """A running server; the constructor returns when the server reports that it is ready. ``alone``: started by
    itself, as users do."""

    def __init__(self, data: Path, *flags: str, alone: bool = False) -> None:
        given = ("--port", "0", "--data", str(data), *flags)
        self.process: subprocess.Popen[str] | Forked = forked("server", *given) if not alone else _started(given)
        self.lines: list[str] = []
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if line.startswith("ready on "):
                self.port = int(line.strip().rpartition(":")[2])
                break
        else:
            raise AssertionError("".join(self.lines))
        self._drain = threading.Thread(target=lambda: self.lines.extend(self.process.stderr or ()), daemon=True)
        self._drain.start()

    @property
    def dsn(self) -> str:
        """The connection string."""
        return f"host=127.0.0.1 port={self.port} user=me dbname=postgres"

    def database(self, name: str) -> str:
        """The connection string of another database, which is created if need be."""
        with self.connect() as connection:
            if connection.execute("SELECT FROM pg_database WHERE datname = %s", (name,)).fetchone() is None:
                connection.execute(f'CREATE DATABASE "{name}"'.encode())
        return f"host=127.0.0.1 port={self.port} user=postgres dbname={name}"

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        """An autocommit connection."""
        return psycopg.connect(self.dsn, autocommit=True)

    def terminate(self) -> int:
        """Send SIGTERM; the exit status."""
        self.process.terminate()
        return self.process.wait(10)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.process.kill()
        self.process.wait()
