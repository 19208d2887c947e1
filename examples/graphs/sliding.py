"""The CIDR 2013 paper's demonstration: components and topics of a mention graph whose window slides by seconds.

``python -m examples.graphs.sliding --dsn "host=127.0.0.1 port=7432"`` loads a synthetic stream, makes the views of
``mentions.sql``, slides the window forwards and back, and prints what a slide takes beside the load.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from pathlib import Path

import psycopg

FOLDER = Path(__file__).parent
TAGS = ("yankees", "news", "music", "rain", "python", "lunch", "vote", "cats")


def stream(
    seconds: int, rate: int, people: int, seed: int
) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, str]]]:
    """Mentions (second, author, mentioned) and hashtags (second, author, tag); people mostly answer one another."""
    rng = random.Random(seed)
    mentions: list[tuple[int, int, int]] = []
    tags: list[tuple[int, int, str]] = []
    for at in range(seconds):
        for _ in range(rate):
            if mentions and rng.random() < 0.3:
                _, mentioned, author = mentions[-rng.randrange(1, min(len(mentions), 50 * rate) + 1)]
            else:
                author, mentioned = (int(people * rng.random() ** 2) for _ in range(2))
            mentions.append((at, author, mentioned))
            if rng.random() < 0.3:
                tags.append((at, author, rng.choice(TAGS)))
    return mentions, tags


def load(connection: psycopg.Connection, options: argparse.Namespace) -> None:
    """Creates the tables and loads the stream."""
    connection.execute("DROP SCHEMA IF EXISTS mentions CASCADE; CREATE SCHEMA mentions; SET search_path = mentions")
    connection.execute(FOLDER.joinpath("mentions.sql").read_text().split("-- scc.sql")[0])
    mentions, tags = stream(options.window + options.slides, options.rate, options.people, options.seed)
    for table, rows in (("mention", mentions), ("hashtag", tags)):
        with connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
    connection.execute(f"INSERT INTO shown SELECT * FROM generate_series(0, {options.window - 1})")


def slide(connection: psycopg.Connection, comes: int, goes: int) -> float:
    """Moves the window by a second; the seconds until the commit is durable and the topics are read."""
    started = time.perf_counter()
    with connection.transaction():
        connection.execute(f"INSERT INTO shown VALUES ({comes})")
        connection.execute(f"DELETE FROM shown WHERE at = {goes}")
    connection.execute("SELECT * FROM topics ORDER BY people DESC LIMIT 3").fetchall()
    return time.perf_counter() - started


def main() -> None:
    """Flags → slides."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dsn", default="host=127.0.0.1 port=7432 user=freshet")
    parser.add_argument("--window", type=int, default=3600, help="seconds shown at once")
    parser.add_argument("--slides", type=int, default=100)
    parser.add_argument("--rate", type=int, default=5, help="mentions in a second")
    parser.add_argument("--people", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with psycopg.connect(options.dsn, autocommit=True) as connection:
        load(connection, options)
        started = time.perf_counter()
        connection.execute(FOLDER.joinpath("scc.sql").read_text())
        connection.execute(FOLDER.joinpath("mentions.sql").read_text().split("same over these views\n")[1])
        whole = time.perf_counter() - started
        print(f"{options.window * options.rate} mentions: the views stand after {whole:.2f} s")
        for row in connection.execute("SELECT * FROM topics ORDER BY people DESC LIMIT 3").fetchall():
            print("  component {} of {} people: #{}, {} times".format(*row))
        ways = {"forwards": range(options.slides), "back": range(options.slides - 1, -1, -1)}
        for way, places in ways.items():
            moves = [(options.window + k, k) if way == "forwards" else (k, options.window + k) for k in places]
            took = sorted(slide(connection, *move) for move in moves)
            middle, worst = statistics.median(took), took[-1]
            print(f"{way}: a slide by a second takes {middle * 1000:.1f} ms (at most {worst * 1000:.1f})")
        print(
            "  where it started: {} components".format(
                *connection.execute("SELECT count(*) FROM topics").fetchone() or ()
            )
        )


if __name__ == "__main__":
    main()
