"""TPC-H's 22 queries as maintained views, against DuckDB's answers to the same text over the same files."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from examples.tpch.refresh import changes, comes, goes
from examples.tpch.run import TABLES, create_views, load, make_files, start_server, statements, views

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
def oracle(files: Path) -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    for statement in statements("tables.sql"):
        made.execute(statement)
    for name in TABLES:
        made.execute(f"INSERT INTO {name} FROM '{files}/{name}.parquet'")
    return made


def plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """DuckDB divides and averages in doubles, Freshet in numerics: nine digits of each."""
    return tuple(
        f"{float(v):.9g}" if isinstance(v, Decimal | float | int) else str(v) if isinstance(v, datetime.date) else v
        for v in row
    )


def compare(freshet: psycopg.Connection, oracle: duckdb.DuckDBPyConnection) -> int:
    """Every view against the oracle's answer; how many rows there were."""
    count = 0
    for name, statement in views().items():
        expected = oracle.execute(statement.partition(" AS\n")[2]).fetchall()
        found = freshet.execute(f"SELECT * FROM {name}").fetchall()  # type: ignore[arg-type]
        assert sorted(map(plain, found), key=repr) == sorted(map(plain, expected), key=repr), name
        count += len(found)
    return count


def test_the_views_are_what_another_database_answers(
    freshet: psycopg.Connection, oracle: duckdb.DuckDBPyConnection, files: Path
) -> None:
    load(freshet, files, "local")
    create_views(freshet, "local")
    assert len(views()) == 22
    assert compare(freshet, oracle) > 500
    for number in range(1, 4):
        for statement in (*comes(number), *goes(number), *changes(number)):
            found = freshet.execute(statement).rowcount  # type: ignore[arg-type]
            oracle.execute(statement)
            assert found > 0, statement
        compare(freshet, oracle)
    for name in views():
        assert freshet.execute(f"VERIFY MATERIALIZED VIEW {name}").fetchall() == []  # type: ignore[arg-type]
