"""Asks a real PostgreSQL 15 for the answers to queries.sql and functions.sql, and a 17 for those to functions_17.sql.

``python -m tests.answers.make_queries queries 'host=127.0.0.1 port=5499 user=postgres dbname=oracle'``

A line is one case, of one or more statements. Its answer is the rows of the last one as texts, or the
SQLSTATE that the line fails with. Only an answer to a new line is asked for; ``--all`` asks for every one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import psycopg

HERE = Path(__file__).parent
SETS = ("queries", "types", "functions", "functions_17", "from", "volatile", "arrival", "formats")
SETTINGS = {"TimeZone": "UTC", "DateStyle": "ISO, MDY", "IntervalStyle": "postgres"}
Answer = str | list[list[str | None]]


def lines(name: str) -> list[str]:
    """The cases of a set, without blank lines and comments."""
    return [line for line in (HERE / f"{name}.sql").read_text().splitlines() if line and not line.startswith("--")]


def ask(dsn: str, text: str) -> Answer:
    """What PostgreSQL says, in a session of its own."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for name, value in SETTINGS.items():
            connection.execute(f"SET {name} TO '{value}'")
        result = connection.pgconn.exec_(text.encode())
        if result.error_message:
            return (result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) or b"").decode()
        rows = [[result.get_value(r, c) for c in range(result.nfields)] for r in range(result.ntuples)]
        return [[None if value is None else value.decode() for value in row] for row in rows]


def answered(name: str) -> list[tuple[str, Answer]]:
    """The cases of a set with their recorded answers."""
    return [(line, answer) for line, answer in json.loads((HERE / f"{name}.json").read_text())]


def main() -> None:
    name, dsn = sys.argv[1:3]
    path = HERE / f"{name}.json"
    known = {} if "--all" in sys.argv else dict(answered(name)) if path.exists() else {}
    answers = [[line, known[line] if line in known else ask(dsn, line)] for line in lines(name)]
    path.write_text("[\n" + ",\n".join(json.dumps(a, ensure_ascii=False) for a in answers) + "\n]\n")


if __name__ == "__main__":
    main()
