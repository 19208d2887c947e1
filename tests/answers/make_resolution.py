"""Asks a real PostgreSQL 15 which operator and function each call means: writes resolution.json beside this file.

``python -m tests.answers.make_resolution 'dbname=oracle'`` (needs psycopg; not part of the tests)

The arguments of a call are typed columns and untyped literals (``NULL``). The answer is the type of its result; a call
without one is refused by PostgreSQL. The calls are made from the recorded catalog (``calls``): the test makes the same.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import psycopg

HERE = Path(__file__).parent
ANSWERS = HERE / "resolution.json"
UNKNOWN = "unknown"
TYPES = {
    "bool": "boolean", "int2": "smallint", "int4": "integer", "int8": "bigint", "float4": "real",
    "float8": "double precision", "numeric": "numeric", "text": "text", "varchar": "character varying",
    "bpchar": "character", "name": "name", "char": '"char"', "bytea": "bytea", "date": "date",
    "time": "time without time zone", "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone", "interval": "interval", "uuid": "uuid", "jsonb": "jsonb", "oid": "oid",
    "_int4": "integer[]", "_text": "text[]",
}  # fmt: skip
"""The types of the columns, by PostgreSQL's internal name, as SQL writes them."""
TABLE = "CREATE TEMP TABLE columns (" + ", ".join(f'"c_{name}" {shown}' for name, shown in TYPES.items()) + ")"
OPERATORS = """
SELECT o.oprname, l.typname, r.typname FROM pg_operator o LEFT JOIN pg_type l ON l.oid = o.oprleft
JOIN pg_type r ON r.oid = o.oprright ORDER BY 1, 2, 3
"""
FUNCTIONS = """
SELECT p.proname, ARRAY(SELECT t.typname FROM unnest(p.proargtypes) WITH ORDINALITY a(o, n)
JOIN pg_type t ON t.oid = a.o ORDER BY n), r.typname, p.provolatile, p.proisstrict
FROM pg_proc p JOIN pg_type r ON r.oid = p.prorettype
WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND NOT p.proretset AND p.provariadic = 0
ORDER BY 1, 2
"""
POLYMORPHIC = {"anyelement", "anyarray", "anynonarray", "anycompatible", "anycompatiblearray", "any"}


def column(type_: str) -> str:
    """An argument of a type."""
    return "NULL" if type_ == UNKNOWN else f'"c_{type_}"'


def calls(catalog: dict[str, Any]) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Each call: the name of its operator or function, the argument types, and its SQL."""
    kinds = (*TYPES, UNKNOWN)
    for symbol in sorted({symbol for symbol, _, _ in catalog["operators"]}):
        for a, b in product(kinds, kinds):
            yield symbol, (a, b), f"{column(a)} {symbol} {column(b)}"
    for name, signatures in _by_name(catalog).items():
        for args in sorted({changed for given in signatures for changed in _changed(given)}):
            yield name, args, f"{name}({', '.join(map(column, args))})"


def _by_name(catalog: dict[str, Any]) -> dict[str, list[tuple[str, ...]]]:
    found: dict[str, list[tuple[str, ...]]] = {}
    for name, args, *_ in catalog["functions"]:
        if 0 < len(args) <= 3 and all(a in TYPES or a in POLYMORPHIC for a in args):
            found.setdefault(name, []).append(tuple(args))
    return found


def _changed(args: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """A signature with one argument of each other type, and with untyped literals."""
    base = tuple(("_int4" if "array" in a else "int4") if a in POLYMORPHIC else a for a in args)
    for untyped in product((False, True), repeat=len(base)):
        yield tuple(UNKNOWN if u else t for u, t in zip(untyped, base, strict=True))
    for i in range(len(base)):
        for type_ in TYPES:
            yield (*base[:i], type_, *base[i + 1 :])


def encoded(name: str, args: tuple[str, ...]) -> str:
    return f"{name} {','.join(args)}"


def main() -> None:
    with psycopg.connect(sys.argv[1], autocommit=True) as connection:
        connection.execute(TABLE)
        ours = {*TYPES, *POLYMORPHIC, None}
        operators = [list(row) for row in connection.execute(OPERATORS) if set(row[1:]) <= ours]
        functions = [list(row) for row in connection.execute(FUNCTIONS) if {*row[1], row[2]} <= {*ours, "void"}]
        catalog = {"operators": operators, "functions": functions}
        names = dict(connection.execute("SELECT oid, typname FROM pg_type").fetchall())
        found: dict[str, dict[str, list[str]]] = {}
        for name, args, text in calls(catalog):
            connection.pgconn.prepare(b"", f"SELECT {text} FROM columns".encode())
            described = connection.pgconn.describe_prepared(b"")
            if described.status == psycopg.pq.ExecStatus.COMMAND_OK:
                result = names[described.ftype(0)]
                found.setdefault(name, {}).setdefault(result, []).append(",".join(args))
    lines = [f"{json.dumps(part)}: [\n" + ",\n".join(map(json.dumps, rows)) + "\n]" for part, rows in catalog.items()]
    lines.append('"resolved": {\n' + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()) + "\n}")
    ANSWERS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
