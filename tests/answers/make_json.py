"""Asks real PostgreSQLs for the answers to json15.sql and json17.sql: json15.json, json17.json.

``python -m tests.answers.make_json 'host=127.0.0.1 port=5432 …' 'host=127.0.0.1 port=5417 …'``: a PostgreSQL 15 and
a 17. A line is one case, as in ``make_queries.py``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.answers.make_queries import ask

HERE = Path(__file__).parent
VERSIONS = ("15", "17")


def lines(version: str) -> list[str]:
    """The cases for a version, without blank lines and comments."""
    text = (HERE / f"json{version}.sql").read_text()
    return [line for line in text.splitlines() if line and not line.startswith("--")]


def answers(version: str) -> Path:
    """The file of a version's answers."""
    return HERE / f"json{version}.json"


def main() -> None:
    for version, dsn in zip(VERSIONS, sys.argv[1:], strict=True):
        path = answers(version)
        known = dict(json.loads(path.read_text())) if path.exists() else {}
        found = [[line, known[line] if line in known else ask(dsn, line)] for line in lines(version)]
        path.write_text("[\n" + ",\n".join(json.dumps(a, ensure_ascii=False) for a in found) + "\n]\n")


if __name__ == "__main__":
    main()
