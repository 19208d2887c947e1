"""Statements that would take gigabytes or for ever, small forms of them, and what a process holds after them."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any, Final

import psycopg

SMALL: Final = 1e-4
"""The size of forms that take the same ways with little data."""
ENDS: Final = frozenset({"53200", "54000", "54001", "57014", "22023", "22003", "54011", "53400"})
"""Why a bomb may end without a result."""


def bombs(size: float = 1.0) -> tuple[str, ...]:
    """The statements, their numbers times ``size``."""

    def n(number: int) -> int:
        return max(2, int(number * size))

    five = f"generate_series(1, {n(5_000_000)}) g"
    many = f"generate_series(1, {n(100_000)})"
    ends, loop = ("", "LOOP") if size == 1 else ("WHERE x < 9", "FOR i IN 1 .. 9 LOOP")
    return (
        f"SELECT format('%*s', {n(2_147_483_647)}, 'x')",
        f"SELECT repeat('x', {n(1_000_000_000)})",
        f"SELECT string_agg(repeat('x', 1000), ',') FROM {five}",
        f"SELECT count(*) FROM {many} a, {many} b WHERE a % 7 < b % 5",
        f"SELECT count(*) FROM (SELECT g, count(*) FROM {five} GROUP BY g) q",
        f"SELECT count(*) FROM (SELECT g::text, count(*) FROM {five} GROUP BY 1) q",
        f"SELECT array_agg(g::text) FROM {five}",
        f"SELECT length('{'x' * n(20_000_000)}')",
        "SELECT " + ",".join(f"'a{i}'" for i in range(n(30_000))),
        f"WITH RECURSIVE r AS (SELECT 1 x UNION ALL SELECT x + 1 FROM r {ends}) SELECT count(*) FROM r",
        "WITH RECURSIVE r AS (SELECT 1 x, 'a'::text s UNION ALL SELECT x + 1, s || s FROM r "
        f"{ends}) SELECT max(length(s)) FROM r",
        f"SELECT g, md5(g::text) FROM {five} ORDER BY 2 OFFSET {n(4_999_990)}",
        f"SELECT jsonb_agg(g) FROM {five}",
        f"SELECT json_build_object('a', repeat('x', {n(100_000)}), 'b', g) FROM generate_series(1, {n(100_000)}) g",
        f"SELECT regexp_split_to_table(repeat('a,', {n(20_000_000)}), ',')",
        f"SELECT string_to_array(repeat('a,', {n(20_000_000)}), ',')",
        "SELECT " + "(" * n(50_000) + "1" + ")" * n(50_000),
        "SELECT " + "+".join(["1"] * n(30_000)),
        "SELECT " + "ARRAY[" * n(5_000) + "1" + "]" * n(5_000),
        "SELECT ('" + "[" * n(50_000) + "')::jsonb",
        f"SELECT count(*) FROM {five} JOIN generate_series(1, {n(5_000_000)}) h ON g = h",
        f"SELECT max(x) FROM (SELECT sum(g) OVER (ORDER BY g) x FROM {five}) q",
        f"SELECT array_fill(1, ARRAY[{n(100_000_000)}])",
        f"SELECT lpad('x', {n(1_000_000_000)})",
        f"SELECT count(DISTINCT repeat('x', {n(10_000)}) || g) FROM generate_series(1, {n(1_000_000)}) g",
        "SELECT count(*) FROM (VALUES " + ",".join(f"({i},'{i}')" for i in range(n(100_000))) + ") v",
        f"SELECT * FROM {five}",
        f"CREATE TABLE bomb AS SELECT g, repeat('x', 1000) || g AS s FROM generate_series(1, {n(3_000_000)}) g",
        f"SELECT (('[' || repeat('1,', {n(10_000_000)}) || '1]')::jsonb) -> 5",
        f"SELECT string_agg(x, '') FROM (SELECT repeat('ab', {n(1_000_000)}) x FROM generate_series(1, {n(2_000)})) q",
        f"SELECT replace(repeat('a', {n(1_000_000)}), 'a', repeat('b', {n(10_000)}))",
        f"SELECT to_tsvector(repeat('hello world foo ', {n(1_000_000)}))",
        f"SELECT 10::numeric ^ {n(100_000)}",
        f"SELECT factorial({n(30_000)})",
        f"DO $$ DECLARE a text := 'x'; BEGIN {loop} a := a || a; END LOOP; END $$",
        f"DO $$ DECLARE a int[] := '{{}}'; BEGIN {loop} a := a || 1; END LOOP; END $$",
        f"SELECT count(*) FROM (SELECT DISTINCT g, g::text FROM {five}) q",
        f"SELECT count(*) FROM (SELECT g FROM {five} EXCEPT SELECT g FROM generate_series(2, {n(5_000_000)}) g) q",
        "SELECT * FROM " + ", ".join(f"generate_series(1, {n(100)}) g{i}" for i in range(10)),
        f"SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY g) FROM {five}",
    )


def outcome(connection: psycopg.Connection[Any], text: str) -> str:
    """``done``, or the SQLSTATE."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(text.encode())
            if cursor.description:
                cursor.fetchone()
    except psycopg.Error as error:
        return str(error.sqlstate)
    return "done"


def resident(process: int) -> float:
    """The MB that a process holds in memory."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def settled(process: int, enough: float, seconds: float) -> float:
    """The MB that it holds as soon as they are ``enough``, or after this time."""
    until = time.monotonic() + seconds
    while (now := resident(process)) > enough and time.monotonic() < until:
        time.sleep(0.2)
    return now
