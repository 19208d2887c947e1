"""Asks a real PostgreSQL 15 for what scripts give: operators.sql → operators.json, …

``python -m tests.answers.make_scripts 'host=127.0.0.1 port=5499 user=postgres dbname=oracle'``: an empty database.

Paragraphs are the steps of one session, each sent as one query string. An answer is the rows of the last statement, or
the error with its fields, and the notices before it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TypedDict

import psycopg
from psycopg.pq import DiagnosticField as Field

from tests.answers.make_queries import SETTINGS

HERE = Path(__file__).parent
SCRIPTS = ("definitions", "operators", "plpgsql", "privileges", "procedures", "roles", "triggers")
FIELDS = (Field.SQLSTATE, Field.MESSAGE_PRIMARY, Field.MESSAGE_DETAIL, Field.MESSAGE_HINT, Field.CONTEXT)


class Answer(TypedDict):
    """``error``: the SQLSTATE, message, detail, hint and context; None if there is none. ``notices``: severities and
    texts."""

    rows: list[list[str | None]]
    error: list[str | None] | None
    notices: list[list[str]]


def steps(name: str) -> list[str]:
    """A script's steps."""
    return [step for step in (HERE / f"{name}.sql").read_text().split("\n\n") if step.strip()]


def answered(name: str) -> list[tuple[str, Answer]]:
    """The steps with their recorded answers."""
    answers = json.loads((HERE / f"{name}.json").read_text())
    return list(zip(steps(name), answers, strict=True))


def ask(connection: psycopg.Connection[tuple[object, ...]], text: str) -> Answer:
    """What PostgreSQL says."""
    notices: list[list[str]] = []

    def handler(notice: psycopg.errors.Diagnostic) -> None:
        notices.append([notice.severity_nonlocalized or "", notice.message_primary or ""])

    connection.add_notice_handler(handler)
    result = connection.pgconn.exec_(text.encode())
    connection.remove_notice_handler(handler)
    error = None
    if result.error_message:
        fields = (result.error_field(field) for field in FIELDS)
        error = [None if f is None else f.decode() for f in fields]
        if error[-1] is not None and error[-1].startswith("compilation of"):
            error[-1] = None
    rows = [[result.get_value(r, c) for c in range(result.nfields)] for r in range(result.ntuples)]
    return {
        "rows": [[None if v is None else v.decode() for v in row] for row in rows], "error": error, "notices": notices,
    }  # fmt: skip


def main() -> None:
    for name in SCRIPTS:
        with psycopg.connect(sys.argv[1], autocommit=True) as connection:
            for setting, value in SETTINGS.items():
                connection.execute(f"SET {setting} TO '{value}'")
            connection.execute(f"CREATE SCHEMA {name}; SET search_path TO {name}")
            answers = [ask(connection, step) for step in steps(name)]
        lines = ",\n".join(json.dumps(a, ensure_ascii=False) for a in answers)
        (HERE / f"{name}.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
