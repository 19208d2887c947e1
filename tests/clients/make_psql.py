"""Records what psql shows on a real PostgreSQL 15: writes psql_answers.json beside this file.

``python -m tests.clients.make_psql 'host=… dbname=…'``, over an empty database (not part of the tests)

Commands whose output depends on the server (its own objects, sizes, settings) have no answer: they only must not fail.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
ANSWERS: Final = HERE / "psql_answers.json"
SCHEMA: Final = HERE / "everything.sql"
_MARK: Final = "@@@@"


def commands() -> tuple[list[str], list[str]]:
    """The commands whose output is PostgreSQL's, and those that only run."""
    _, compared, run = re.split(r"^#.*\n", (HERE / "psql_commands.txt").read_text(), flags=re.MULTILINE)
    return _lines(compared), _lines(run)


def _lines(text: str) -> list[str]:
    return [re.sub(r"\\n(?=\\|SELECT)", "\n", line) for line in text.splitlines()]


def run(dsn: str, given: Sequence[str]) -> dict[str, str]:
    """What psql shows for each command, in one session."""
    script = "SET search_path = shop, public;\n" + "".join(f"\\echo {_MARK}\n{command}\n" for command in given)
    done = subprocess.run(
        ["psql", "-X", "-q", dsn], input=script, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        timeout=300, check=False,
        env={"EDITOR": "true", "PSQL_EDITOR": "true", "PATH": "/usr/bin:/bin", "PGCLIENTENCODING": "UTF8"},
    )  # fmt: skip
    _, *parts = done.stdout.split(f"{_MARK}\n")
    return dict(zip(given, parts, strict=True))


def prepare(dsn: str) -> str:
    """Make the objects; what psql complained of."""
    command = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(SCHEMA), dsn]
    return subprocess.run(command, text=True, capture_output=True, check=False).stderr


if __name__ == "__main__":
    print(prepare(sys.argv[1]))
    ANSWERS.write_text(json.dumps(run(sys.argv[1], commands()[0]), indent=0) + "\n")
