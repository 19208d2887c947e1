"""Asks a real PostgreSQL 15 how it shows the queries of views.sql and view_types.sql.

``python -m tests.answers.make_views 'host=127.0.0.1 port=5499 user=postgres dbname=oracle'``

Lines that begin with CREATE make what the queries read; every other line is the query of one view. Its answer is
pg_get_viewdef's text, plain and pretty.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import psycopg

HERE = Path(__file__).parent
SETS = ("views", "view_types")


def lines(name: str) -> tuple[list[str], list[str]]:
    """The statements before the views, and the views' queries."""
    found = [line for line in (HERE / f"{name}.sql").read_text().splitlines() if line and not line.startswith("--")]
    made = [line for line in found if line.startswith("CREATE ")]
    return made, [line for line in found if line not in made]


def answered(name: str) -> list[tuple[str, str, str]]:
    """The queries of a set with the recorded texts, plain and pretty."""
    return [(query, plain, pretty) for query, plain, pretty in json.loads((HERE / f"{name}.json").read_text())]


def main() -> None:
    for name in SETS:
        made, queries = lines(name)
        answers = []
        with psycopg.connect(sys.argv[1], autocommit=True) as connection:
            connection.execute("SET client_min_messages TO warning")
            connection.execute("DROP SCHEMA IF EXISTS shown CASCADE")
            connection.execute("CREATE SCHEMA shown")
            connection.execute("SET search_path TO shown")
            connection.execute("SET timezone TO 'UTC'")
            for statement in made:
                connection.execute(statement.encode())
            for query in queries:
                connection.execute(f"CREATE VIEW v AS {query}".encode())
                row = connection.execute("SELECT pg_get_viewdef('v'::regclass), pg_get_viewdef('v'::regclass, true)")
                answers.append([query, *(row.fetchone() or ())])
                connection.execute("DROP VIEW v")
            connection.execute("DROP SCHEMA shown CASCADE")
        text = ",\n".join(json.dumps(answer, ensure_ascii=False) for answer in answers)
        (HERE / f"{name}.json").write_text(f"[\n{text}\n]\n")


if __name__ == "__main__":
    main()
