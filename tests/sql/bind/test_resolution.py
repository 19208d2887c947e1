"""Every operator and function of PostgreSQL's catalog over our types: the same type of result, or an error.

``tests/answers/resolution.json`` has what PostgreSQL 15 resolves. Calls with untyped literals are all tried, of the
others one in nine; all with ``RESOLUTION=all``.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from ivm.errors import SqlError
from ivm.words import SqlType
from tests.answers.make_resolution import ANSWERS, TABLE, UNKNOWN, calls
from tests.support.sessions import Client, Server

KNOWN = {
    "the same operators of type json make them ambiguous there": (
        'NULL #> "c__text"', "NULL #> NULL", 'NULL #>> "c__text"', "NULL #>> NULL",
        *(f"NULL {how} {arg}" for how in ("->", "->>") for arg in (
            '"c_int2"', '"c_int4"', '"c_text"', '"c_varchar"', '"c_bpchar"', '"c_name"', '"c_char"', "NULL")),
    ),
    "types that we lack make them ambiguous there": (
        "NULL && NULL", "NULL <@ NULL", "NULL @> NULL", "NULL ?| NULL", "age(NULL)", "trunc(NULL)",
    ),
    "we lack the width of lines": ('pg_get_viewdef("c_oid", NULL)', "pg_get_viewdef(NULL, NULL)"),
}  # fmt: skip
"""Calls that PostgreSQL refuses as ambiguous."""
EVERY = 1 if os.environ.get("RESOLUTION") == "all" else 9
CATALOG: dict[str, Any] = json.loads(ANSWERS.read_text())


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    server = Server(tmp_path_factory.mktemp("resolution") / "data")
    client = server.client()
    client.run(TABLE)
    yield client
    server.close()


def shown(type_: SqlType) -> str:
    """A type's internal name in PostgreSQL."""
    return f"_{type_.element.kind.value}" if type_.element is not None else type_.kind.value


async def resolved(client: Client, texts: list[str]) -> list[str | SqlType]:
    """The type of each call's result, or the SQLSTATE that it is refused with."""
    found: list[str | SqlType] = []
    for text in texts:
        try:
            await client.session.parse("", f"SELECT {text} FROM columns", ())
            (column,) = client.session.describe_statement("")[1] or ()
            found.append(column.type)
        except SqlError as error:
            found.append(error.sqlstate)
    return found


def test_calls_resolve_as_in_postgres(client: Client) -> None:
    wanted = {(name, args): result for name, results in CATALOG["resolved"].items()
              for result, many in results.items() for args in many}  # fmt: skip
    tried = [call for i, call in enumerate(calls(CATALOG)) if i % EVERY == 0 or UNKNOWN in call[1]]
    outcomes: Counter[str] = Counter()
    wrong = []
    got = client.server.run(resolved(client, [text for *_, text in tried]), 3600)
    for (name, args, text), ours in zip(tried, got, strict=True):
        theirs = wanted.get((name, ",".join(args)))
        refused = isinstance(ours, str)
        if refused and theirs is None:
            outcomes["refused by both"] += 1
            continue
        outcomes["refused" if refused else "same"] += 1
        internal = ours if isinstance(ours, str) else shown(ours)
        if any(text in texts for texts in KNOWN.values()):
            continue
        if internal != theirs and not (refused and ours in ("42883", "0A000", "42725", "42601")):
            wrong.append(f"{text}: {internal} instead of {theirs}")
    assert outcomes["same"] > 1000
    assert not wrong, f"{len(wrong)} of {len(tried)} wrong:\n" + "\n".join(wrong[:60])
