"""Records what a real PostgreSQL 15 answers to the queries of catalog_queries.sql: writes catalog_answers.json.

``python -m tests.clients.make_catalogs 'host=… dbname=…'``, over an empty database (not part of the tests)
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Final

import psycopg

HERE: Final = Path(__file__).parent
ANSWERS: Final = HERE / "catalog_answers.json"
SCHEMA: Final = HERE / "everything.sql"


def queries() -> dict[str, str]:
    """The queries by their names."""
    _, *parts = re.split(r"^## (.*)\n", (HERE / "catalog_queries.sql").read_text(), flags=re.MULTILINE)
    return dict(zip(parts[::2], (text.strip() for text in parts[1::2]), strict=True))


def run(dsn: str) -> dict[str, list[list[str | None]]]:
    """What each query gives, as text, with the types and names of the columns first."""
    answers = {}
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SET search_path = shop, public")
        for name, text in queries().items():
            try:
                found = connection.execute(text.encode())
            except psycopg.Error as error:
                answers[name] = [[error.sqlstate, error.diag.message_primary]]
                continue
            columns = found.description or ()
            shape: list[str | None] = [f"{c.name} {c.type_code if c.type_code < _OWN else 'own'}" for c in columns]
            answers[name] = [shape, *([None if v is None else _text(v) for v in row] for row in found)]
    return answers


_OWN: Final = 16384
"""Oids from here on are those of users' types."""


def _text(value: object) -> str:
    return json.dumps(value) if isinstance(value, dict | list) else str(value)


if __name__ == "__main__":
    with psycopg.connect(sys.argv[1], autocommit=True) as prepared:
        prepared.execute(SCHEMA.read_bytes())
    ANSWERS.write_text(json.dumps(run(sys.argv[1]), indent=0) + "\n")
