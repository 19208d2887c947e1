"""Statements that would take gigabytes or for ever: each ends in time, and what others do goes on.

    python -m tests.programs.bombs --count 100 --seconds 1

Every statement runs with ``statement_timeout``, and must end within a second after it, with a result or one of the
SQLSTATEs that say why not; a second client is answered meanwhile. The last line says what the process holds before and
after. Ends with status 1 if something was late, wrong or gone.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Final

import psycopg

from tests.support.program import Program

FIVE: Final = "generate_series(1, 5000000) g"
BOMBS: Final = (
    "SELECT format('%*s', 2147483647, 'x')",
    "SELECT repeat('x', 1000000000)",
    f"SELECT string_agg(repeat('x', 1000), ',') FROM {FIVE}",
    "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b WHERE a % 7 < b % 5",
    f"SELECT count(*) FROM (SELECT g, count(*) FROM {FIVE} GROUP BY g) q",
    f"SELECT count(*) FROM (SELECT g::text, count(*) FROM {FIVE} GROUP BY 1) q",
    f"SELECT array_agg(g::text) FROM {FIVE}",
    "SELECT length('" + "x" * 20_000_000 + "')",
    "SELECT " + ",".join(f"'a{i}'" for i in range(30_000)),
    "WITH RECURSIVE r AS (SELECT 1 x UNION ALL SELECT x + 1 FROM r) SELECT count(*) FROM r",
    "WITH RECURSIVE r AS (SELECT 1 x, 'a'::text s UNION ALL SELECT x + 1, s || s FROM r) SELECT max(length(s)) FROM r",
    f"SELECT g, md5(g::text) FROM {FIVE} ORDER BY 2 OFFSET 4999990",
    f"SELECT jsonb_agg(g) FROM {FIVE}",
    "SELECT json_build_object('a', repeat('x', 100000), 'b', g) FROM generate_series(1, 100000) g",
    "SELECT regexp_split_to_table(repeat('a,', 20000000), ',')",
    "SELECT string_to_array(repeat('a,', 20000000), ',')",
    "SELECT " + "(" * 50_000 + "1" + ")" * 50_000,
    "SELECT " + "+".join(["1"] * 30_000),
    "SELECT " + "ARRAY[" * 5_000 + "1" + "]" * 5_000,
    "SELECT ('" + "[" * 50_000 + "')::jsonb",
    f"SELECT count(*) FROM {FIVE} JOIN generate_series(1, 5000000) h ON g = h",
    f"SELECT max(x) FROM (SELECT sum(g) OVER (ORDER BY g) x FROM {FIVE}) q",
    "SELECT array_fill(1, ARRAY[100000000])",
    "SELECT lpad('x', 1000000000)",
    "SELECT count(DISTINCT repeat('x', 10000) || g) FROM generate_series(1, 1000000) g",
    "SELECT count(*) FROM (VALUES " + ",".join(f"({i},'{i}')" for i in range(100_000)) + ") v",
    f"SELECT * FROM {FIVE}",
    "CREATE TABLE bomb AS SELECT g, repeat('x', 1000) || g AS s FROM generate_series(1, 3000000) g",
    "SELECT (('[' || repeat('1,', 10000000) || '1]')::jsonb) -> 5",
    "SELECT string_agg(x, '') FROM (SELECT repeat('ab', 1000000) x FROM generate_series(1, 2000)) q",
    "SELECT replace(repeat('a', 1000000), 'a', repeat('b', 10000))",
    "SELECT to_tsvector(repeat('hello world foo ', 1000000))",
    "SELECT 10::numeric ^ 100000",
    "SELECT factorial(30000)",
    "DO $$ DECLARE a text := 'x'; BEGIN LOOP a := a || a; END LOOP; END $$",
    "DO $$ DECLARE a int[] := '{}'; BEGIN LOOP a := a || 1; END LOOP; END $$",
    f"SELECT count(*) FROM (SELECT DISTINCT g, g::text FROM {FIVE}) q",
    f"SELECT count(*) FROM (SELECT g FROM {FIVE} EXCEPT SELECT g FROM generate_series(2, 5000000) g) q",
    "SELECT * FROM " + ", ".join(f"generate_series(1, 100) g{i}" for i in range(10)),
    f"SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY g) FROM {FIVE}",
)
ENDS: Final = frozenset({"53200", "54000", "54001", "57014", "22023", "22003", "54011", "53400"})


def resident(process: int) -> float:
    """The MB that a process holds in memory."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def _run(connection: psycopg.Connection[tuple[object, ...]], text: str) -> str:
    """``done``, or the SQLSTATE."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(text.encode())
            if cursor.description:
                cursor.fetchone()
    except psycopg.Error as error:
        return str(error.sqlstate)
    return "done"


def _answers(dsn: str, over: threading.Event, waits: list[float]) -> None:
    """Another client, who asks all the time."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        while not over.wait(0.02):
            begun = time.monotonic()
            connection.execute("SELECT 1")
            waits.append(time.monotonic() - begun)


def check(count: int, seconds: float, folder: Path) -> tuple[list[str], str]:
    """What was wrong, ideally nothing; and a line of figures."""
    program, wrong = Program(folder, "--memory", "1GiB"), list[str]()
    ends: Counter[str] = Counter()
    waits: list[float] = []
    over = threading.Event()
    with program.connect() as connection:
        connection.execute("SELECT count(*) FROM generate_series(1, 100000) g")
        before = most = resident(program.process.pid)
        other = threading.Thread(target=_answers, args=(program.dsn, over, waits))
        other.start()
        for number in range(count):
            text = BOMBS[number % len(BOMBS)]
            connection.execute("DROP TABLE IF EXISTS bomb")
            connection.execute(f"SET statement_timeout = '{round(1000 * seconds)}ms'".encode())
            begun = time.monotonic()
            end = _run(connection, text)
            spent = time.monotonic() - begun
            connection.execute("RESET statement_timeout")
            ends[end] += 1
            most = max(most, resident(program.process.pid))
            if end != "done" and end not in ENDS:
                wrong.append(f"{end}: {text[:80]}")
            if spent > seconds + 1:
                wrong.append(f"{spent:.2f} s: {text[:80]}")
        connection.execute("DROP TABLE IF EXISTS bomb")
        over.set()
        other.join()
        time.sleep(5)
        connection.execute("SELECT 1")
        after = resident(program.process.pid)
    program.terminate()
    figures = (
        f"{count} statements: {dict(ends)}; another client waited {1e3 * max(waits):.0f} ms at most, "
        f"{1e3 * sorted(waits)[len(waits) // 2]:.1f} mostly; memory {before:.0f} MB before, {most:.0f} at most, "
        f"{after:.0f} after"
    )
    return wrong, figures


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=1.0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wrong, figures = check(asked.count, asked.seconds, Path(folder))
    print(figures)
    for text in wrong:
        print("--", text)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
