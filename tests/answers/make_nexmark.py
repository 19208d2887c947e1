"""Records a real PostgreSQL's answers to Nexmark's queries: ``python -m tests.answers.make_nexmark --dsn DSN``, where
the database is empty. They are played by ``tests/docs/test_nexmark.py``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Final

from examples.nexmark.generate import changed, inserted, side_input
from examples.nexmark.run import Answer, Database, answer, for_postgres, rows_of, tables, views

FILE: Final = Path(__file__).with_suffix(".json").with_name("nexmark.json")
LOADED: Final = 3000
LAST: Final = 3060
"""Events that are there before the views, and up to which changes go."""


def steps() -> list[list[str]]:
    """The statements before each comparison."""
    loaded = [*tables(), side_input(), *inserted(0, LOADED)]
    half = (LOADED + LAST) // 2
    return [loaded, *([s for n in range(a, b) for s in changed(n)] for a, b in ((LOADED, half), (half, LAST)))]


def main() -> None:
    """Writes the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dsn", required=True)
    database = Database(parser.parse_args().dsn)
    found: list[dict[str, Answer]] = []
    for statements in steps():
        database.play(statements)
        found.append({n: answer(database.texts(rows_of(n, for_postgres(q)))) for n, q in views().items()})
    FILE.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
