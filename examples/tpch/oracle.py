"""DuckDB with the same tables and changes, which runs the 22 queries for comparison."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import duckdb
import psycopg

from examples.tpch.script import TABLES, statements, views

_KEY: Final = re.compile(r",?\s*PRIMARY KEY(\s*\([^)]*\))?")


class Oracle:
    """The tables of some Parquet files, without keys, in memory or, with a ``folder``, in a file there."""

    def __init__(self, files: Path, folder: Path | None = None) -> None:
        path = None if folder is None else folder / "oracle.duckdb"
        if path is not None:
            path.unlink(missing_ok=True)
        self._database = duckdb.connect(str(path or ":memory:"), config={"memory_limit": "2GB", "threads": 1})
        for statement in statements("tables.sql"):
            self._database.execute(_KEY.sub("", statement))  # an index of six million keys takes long to change
        for name in TABLES:
            self._database.execute(f"INSERT INTO {name} FROM '{files}/{name}.parquet'")

    def change(self, made: Iterable[str]) -> None:
        """Runs statements of ``examples.tpch.refresh``."""
        for statement in made:
            self._database.execute(statement)

    def difference(self, freshet: psycopg.Connection, name: str) -> tuple[int, int]:
        """How many rows a view has, and how many rows of the view and of the oracle's answer are not in the other."""
        query = views()[name].partition(" AS\n")[2]
        found = [*map(plain, freshet.execute(f"SELECT * FROM {name}").fetchall())]  # type: ignore[arg-type]
        expected = [*map(plain, self._database.execute(query).fetchall())]
        unlike = (Counter(found) - Counter(expected)) + (Counter(expected) - Counter(found))
        return len(found), unlike.total()


def plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """DuckDB divides and averages in doubles, Freshet in numerics: nine digits of each."""
    return tuple(
        f"{float(v):.9g}" if isinstance(v, Decimal | float | int) else str(v) if isinstance(v, datetime.date) else v
        for v in row
    )
