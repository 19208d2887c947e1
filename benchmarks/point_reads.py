"""Reads of one row by its key, prepared, from several clients: how many a second, and how long one takes.

    python -m benchmarks.point_reads --clients 16 --seconds 10

Each client sends the next read when the last has been answered. ``--port``: of another server that speaks the protocol
and lets user postgres in, such as PostgreSQL, to measure beside.
"""

from __future__ import annotations

import argparse
import os
import random
import select
import time

from benchmarks.raw_client import RawClient
from benchmarks.server import port_of, started

ROWS = 100_000


def measure(port: int, clients: int, seconds: float, rows: int = ROWS) -> list[float]:
    """The sorted seconds of all reads, the last answers checked."""
    first = RawClient(port)
    first.run("DROP TABLE IF EXISTS points")
    first.run("CREATE TABLE points (id int PRIMARY KEY, v int, s text)")
    first.run(f"INSERT INTO points SELECT i, i * 7 % 1000, 'row ' || i FROM generate_series(1, {rows}) i")
    everybody = [RawClient(port) for _ in range(clients)]
    poll, sent, found = select.epoll(), dict[int, tuple[float, int]](), []
    by_file = {client.socket.fileno(): client for client in everybody}

    def send(file: int) -> None:
        key = random.randint(1, rows)
        sent[file] = time.perf_counter(), key
        by_file[file].start("q", key)

    for file, client in by_file.items():
        client.prepare("q", "SELECT v, s FROM points WHERE id = $1")
        poll.register(file, select.EPOLLIN)
        send(file)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for file, _ in poll.poll():
            answer = by_file[file].answer()
            begun, key = sent[file]
            found.append(time.perf_counter() - begun)
            assert b"row %d" % key in answer
            send(file)
    first.run("DROP TABLE points")
    return sorted(found)


def main() -> None:
    """Print a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--port", type=int)
    asked = parser.parse_args()
    if asked.port:
        found = measure(asked.port, asked.clients, asked.seconds)
    else:
        with started() as running:
            found = measure(port_of(running.dsn), asked.clients, asked.seconds)
    median, late = (1e3 * found[int(q * len(found))] for q in (0.5, 0.99))
    print(
        f"{asked.clients} clients: {len(found) / asked.seconds:,.0f} reads a second, median {median:.3f} ms, 99 % "
        f"{late:.3f} ms; load {os.getloadavg()[0]:.1f}"
    )


if __name__ == "__main__":
    main()
