"""Asks a real PostgreSQL 15 for the answers to families of queries over tables that change: changing/*.json.

``python -m tests.answers.make_changing 'host=127.0.0.1 port=5499 user=postgres dbname=oracle' [family …]``

A family is a module of ``tests.answers.changing``: ``SETUP`` and ``CHANGES`` (statements) and ``queries()``. Each query
is answered before and after the changes: its rows, sorted, or the SQLSTATE with which it fails.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Protocol

import psycopg

FOLDER = Path(__file__).parent / "changing"
FAMILIES = sorted(p.stem for p in FOLDER.glob("[a-z]*.py"))
Answer = str | list[list[str | None]]
Case = tuple[str, Answer, Answer]
"""A query with its answers before and after the changes."""


class Family(Protocol):
    """A family's module."""

    SETUP: tuple[str, ...]
    CHANGES: tuple[str, ...]

    @staticmethod
    def queries() -> list[str]:
        """The queries, always the same."""


def family(name: str) -> Family:
    """The family of a name."""
    module: Family = import_module(f"tests.answers.changing.{name}")
    return module


def answers(name: str) -> list[Case]:
    """The recorded answers of a family."""
    return [tuple(case) for case in json.loads((FOLDER / f"{name}.json").read_text())]


def _ask(connection: psycopg.Connection, text: str) -> Answer:
    """The answer, without what the statement changes."""
    connection.execute("BEGIN")
    try:
        result = connection.pgconn.exec_(text.encode())
        if result.error_message:
            return (result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) or b"").decode()
        rows = [[result.get_value(r, c) for c in range(result.nfields)] for r in range(result.ntuples)]
        return sorted(([None if v is None else v.decode() for v in row] for row in rows), key=repr)
    finally:
        connection.execute("ROLLBACK")


def _record(dsn: str, name: str) -> None:
    asked = family(name)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SET timezone = 'UTC'")
        connection.execute("DROP SCHEMA IF EXISTS changing CASCADE")
        connection.execute("CREATE SCHEMA changing")
        connection.execute("SET search_path TO changing")
        for text in asked.SETUP:
            connection.execute(text.encode())
        before = [_ask(connection, text) for text in asked.queries()]
        for text in asked.CHANGES:
            connection.execute(text.encode())
        after = [_ask(connection, text) for text in asked.queries()]
        connection.execute("DROP SCHEMA changing CASCADE")
    cases = zip(asked.queries(), before, after, strict=True)
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    (FOLDER / f"{name}.json").write_text(f"[\n{lines}\n]\n")


def main() -> None:
    for name in sys.argv[2:] or FAMILIES:
        _record(sys.argv[1], name)


if __name__ == "__main__":
    main()
