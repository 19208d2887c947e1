"""Records what JDBC answers on a real PostgreSQL 15: writes jdbc_answers.json beside this file.

``python -m tests.clients.make_jdbc 'host=… port=… user=… dbname=…'``, over an empty database (not part of the tests)
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.clients.make_psql import prepare

HERE: Final = Path(__file__).parent
ANSWERS: Final = HERE / "jdbc_answers.json"
DRIVER: Final = Path(os.environ.get("PGJDBC", "/usr/share/java/postgresql.jar"))
"""Debian's libpostgresql-jdbc-java, or another."""
_SERVER: Final = re.compile(r"(getDatabase\w*Version|getDatabaseM\w+Version|getURL|getUserName|getDriver\w+) = ")
_TYPES: Final = (
    "_int4", "_text", "bool", "bytea", "date", "float8", "inet", "int4", "int8", "interval", "json", "jsonb", "name",
    "numeric", "oid", "text", "time", "timestamptz", "timestamp", "uuid", "varchar",
)  # fmt: skip


def missing() -> str | None:
    """What is not installed."""
    if shutil.which("javac") is None:
        return "javac is not installed"
    return None if DRIVER.exists() else f"pgjdbc is not at {DRIVER}"


def run(port: int, folder: Path) -> dict[str, list[str]]:
    """What the program prints by its titles, without what differs from server to server: versions, oids, pages of
    indexes, and the functions that make ranges, which are not listed here."""
    subprocess.run(["javac", "-d", str(folder), str(HERE / "Metadata.java")], check=True)
    url = f"jdbc:postgresql://127.0.0.1:{port}/everything?user=postgres"
    command = ["java", "-cp", f"{folder}:{DRIVER}", "Metadata", url]
    done = subprocess.run(
        command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=300
    )
    found: dict[str, list[str]] = {}
    title = "methods"
    for line in done.stdout.splitlines():
        if line.startswith("## "):
            title = line[3:]
        else:
            found.setdefault(title, []).extend(_plain(title, line))
    return found


def _plain(title: str, line: str) -> Iterator[str]:
    cells = line.split(" | ")
    if (
        line.startswith("NOTE: ")
        or _SERVER.match(line)
        or "pg_node_tree" in line
        or cells[2:3] in (["span"], ["span_multirange"])
    ):
        return
    if title == "getTypeInfo" and len(cells) > 1 and cells[0] not in _TYPES:
        return
    if title.startswith(("getFunction", "getProcedure")):
        line = re.sub(r"_\d+$", "", line)
    if title.startswith("getIndexInfo") and len(cells) > 11:
        line = " | ".join((*cells[:10], *cells[12:]))
    if not re.match(r"null \| pg_catalog \| pg_index \| ind(exprs|pred) ", line):
        yield line


if __name__ == "__main__":
    print(prepare(sys.argv[1]))
    PORT = int(re.search(r"port=(\d+)", sys.argv[1])[1])  # type: ignore[index]
    build = Path(sys.argv[2])
    ANSWERS.write_text(json.dumps(run(PORT, build), indent=0) + "\n")
