"""Asks a real PostgreSQL 15 for every function, operator and cast over the extremes of its types: extremes.json.

``python -m tests.answers.make_extremes 'host=127.0.0.1 user=postgres dbname=oracle'``: a database of collation C.

Of each call's answers only a digest is kept. The program prints each answer that differs from ours. Calls that
PostgreSQL does not have, or that we refuse, are left out, and those that are meant to differ.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

import psycopg

from planner.expr.context import Context
from storage.dictionary import Dictionary
from tests.support.extreme_answers import Asked, asked, digest

FILE: Final = Path(__file__).parent / "extremes.json"
SETUP: Final = (
    "SET TimeZone = 'UTC'", "SET DateStyle = 'ISO, MDY'", "SET IntervalStyle = 'postgres'",
    "CREATE TYPE pg_temp.level AS ENUM ('low', 'high')", "SET search_path = pg_temp, public",
    "CREATE FUNCTION pg_temp.answer(query text) RETURNS text LANGUAGE plpgsql AS $$ DECLARE result text; BEGIN "
    "EXECUTE query INTO result; RETURN result; EXCEPTION WHEN OTHERS THEN RETURN '! ' || SQLSTATE; END $$",
)  # fmt: skip
MEANT: Final = {
    "int2_sum": "wraps", "int4_sum": "wraps", "make_interval": "wraps", "age": "of infinity wraps",
    "-(timestamp,timestamp)": "wraps", "-(timestamptz,timestamptz)": "wraps", "-(inet,int8)": "wraps",
    "+(time,interval)": "wraps", "+(interval,time)": "wraps", "+(timetz,interval)": "wraps",
    "+(interval,timetz)": "wraps", "lower": "collation C.UTF-8", "initcap": "collation C.UTF-8",
    "right(text,int4)": "counts from the least integer wrongly",
    "width_bucket(anycompatible,anycompatiblearray) time with time zone, time with time zone[]": "reads beside them",
    "#>(json,text[])": "trims the right side of the whole document",
}  # fmt: skip
"""What PostgreSQL 15 does in the calls that are not compared, by key, name, or key and types."""
_STATES: Final = ("42883", "42704", "42725", "42846", "42804", "42601", "42809", "0A000", "XX000")
_ABSENT: Final = frozenset(f"! {state}" for state in _STATES)


def answered(connection: psycopg.Connection[tuple[list[str | None]]], call: Asked) -> list[str | None]:
    """What PostgreSQL says."""
    query = "SELECT array_agg(pg_temp.answer(q) ORDER BY n) FROM unnest(%s::text[]) WITH ORDINALITY u(q, n)"
    row = connection.execute(query, (call.texts(),)).fetchone()
    assert row is not None
    return row[0]


def main() -> None:
    found: dict[str, str] = {}
    context = Context(Dictionary(b"0123456789abcdef"))
    different = 0
    with psycopg.connect(sys.argv[1], autocommit=True) as connection:
        for statement in SETUP:
            connection.execute(statement)  # type: ignore[arg-type]
        for call in asked():
            if not call.rows or {call.name, call.call.function, call.call.function.partition("(")[0]} & MEANT.keys():
                continue
            theirs = answered(connection, call)  # type: ignore[arg-type]
            ours = call.answers(context)
            if any(t in _ABSENT for t in theirs) or any(o == "! 0A000" for o in ours):
                continue
            found[call.name] = digest(theirs)
            wrong = [(q, t, o) for q, t, o in zip(call.texts(), theirs, ours, strict=True) if t != o]
            different += bool(wrong)
            for query, right, given in wrong[:3]:
                print(f"{call.name}: {query}\n    {right!r}, ours {given!r}")
    FILE.write_text(json.dumps(found, indent=0, ensure_ascii=False).replace('": "', '":"') + "\n")
    print(f"{len(found)} calls, {different} differ")


if __name__ == "__main__":
    main()
