"""A server that clients connect to, and the objects of everything.sql in it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.clients.make_psql import prepare
from tests.support.program import Program


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """A server as a program."""
    program = Program(tmp_path_factory.mktemp("data"))
    yield program
    program.kill()


@pytest.fixture(scope="module")
def dsn(program: Program) -> str:
    """A connection string; the database has the objects of everything.sql. Skips without psql."""
    if shutil.which("psql") is None:
        pytest.skip("psql is not installed")
    dsn = program.database("everything")
    assert prepare(dsn) == ""
    return dsn
