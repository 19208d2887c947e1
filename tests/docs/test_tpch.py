"""TPC-H's 22 queries as maintained views, against DuckDB's answers to the same text over the same files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from examples.tpch.oracle import Oracle
from examples.tpch.refresh import changes, comes, goes
from examples.tpch.run import create_views, load, start_server
from examples.tpch.script import make_files, views

SCALE = 0.01


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tpch")
    make_files(SCALE, folder)
    return folder


@pytest.fixture(scope="module")
def freshet(files: Path) -> Iterator[psycopg.Connection]:
    server, dsn = start_server(files / "data", files, [])
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection
    server.terminate()
    assert server.wait(timeout=60) == 0


@pytest.fixture(scope="module")
def oracle(files: Path) -> Oracle:
    return Oracle(files)


def compare(freshet: psycopg.Connection, oracle: Oracle) -> int:
    """Every view against the oracle's answer; how many rows there were."""
    count = 0
    for name in views():
        rows, unlike = oracle.difference(freshet, name)
        assert not unlike, name
        count += rows
    return count


def test_the_views_are_what_another_database_answers(freshet: psycopg.Connection, oracle: Oracle, files: Path) -> None:
    load(freshet, files, "local")
    create_views(freshet, "local")
    assert len(views()) == 22
    assert compare(freshet, oracle) > 500
    for number in range(1, 4):
        for statement in (*comes(number), *goes(number), *changes(number)):
            found = freshet.execute(statement).rowcount  # type: ignore[arg-type]
            oracle.change([statement])
            assert found > 0, statement
        compare(freshet, oracle)
    for name in views():
        assert freshet.execute(f"VERIFY MATERIALIZED VIEW {name}").fetchall() == []  # type: ignore[arg-type]
