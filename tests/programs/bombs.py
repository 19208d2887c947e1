"""Statements that would take gigabytes or for ever: each ends in time, what others do goes on, and memory comes back.

    python -m tests.programs.bombs --count 100 --seconds 1

Every statement runs with ``statement_timeout``, and must end within a second after it, with a result or one of the
SQLSTATEs that say why not; a second client is answered meanwhile. The last line says what the process holds before and
after. Ends with status 1 if something was late, wrong or gone, or if more than 1.1 times of what the process held
before is held a minute after.

"Before" is after each statement has run twice in a small form, which loads modules that are used for the first time and
fills the bounded caches of plans: some 20 MB. What a fresh process holds is printed too. What stays is mostly free
pools within Python's own blocks of 1 MB, each of which still has an object somewhere: the next statement gets them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Final

import psycopg

from tests.support.bombs import ENDS, SMALL, bombs, outcome, resident, settled
from tests.support.program import Program

KEPT: Final = 1.1
"""What may be held after, in terms of what was before."""


def _answers(dsn: str, over: threading.Event, waits: list[float]) -> None:
    """Another client, who asks all the time."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        while not over.wait(0.02):
            begun = time.monotonic()
            connection.execute("SELECT 1")
            waits.append(time.monotonic() - begun)


def check(count: int, seconds: float, folder: Path) -> tuple[list[str], str]:
    """What was wrong, ideally nothing; and a line of figures."""
    program, wrong = Program(folder, "--memory", "1GiB", alone=True), list[str]()
    process = program.process.pid
    ends: Counter[str] = Counter()
    waits: list[float] = []
    over = threading.Event()
    with program.connect() as connection:
        fresh = resident(process)
        other = threading.Thread(target=_answers, args=(program.dsn, over, waits))
        other.start()
        for text in bombs(SMALL) * 2:
            outcome(connection, text)
            connection.execute("DROP TABLE IF EXISTS bomb")
        waits.clear()
        before = most = resident(process)
        texts = bombs()
        for number in range(count):
            text = texts[number % len(texts)]
            connection.execute("DROP TABLE IF EXISTS bomb")
            connection.execute(f"SET statement_timeout = '{round(1000 * seconds)}ms'".encode())
            begun = time.monotonic()
            end = outcome(connection, text)
            spent = time.monotonic() - begun
            connection.execute("RESET statement_timeout")
            ends[end] += 1
            most = max(most, resident(process))
            if end != "done" and end not in ENDS:
                wrong.append(f"{end}: {text[:80]}")
            if spent > seconds + 1:
                wrong.append(f"{spent:.2f} s: {text[:80]}")
        connection.execute("DROP TABLE IF EXISTS bomb")
        over.set()
        other.join()
        begun = time.monotonic()
        after = settled(process, KEPT * before, 60)
        waited = time.monotonic() - begun
    program.terminate()
    if after > KEPT * before:
        wrong.append(f"{after:.0f} MB are held, {after / before:.2f} times of what was before")
    figures = (
        f"{count} statements: {dict(ends)}; another client waited {1e3 * max(waits):.0f} ms at most, "
        f"{1e3 * sorted(waits)[len(waits) // 2]:.1f} mostly; memory {fresh:.0f} MB at the start, {before:.0f} before, "
        f"{most:.0f} at most, {after:.0f} within {waited:.0f} s after"
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
