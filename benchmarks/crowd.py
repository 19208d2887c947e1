"""Many clients at once: how long a commit takes while others are connected and a thousand follow the same view.

    python -m benchmarks.crowd --idle 2000 --subscribers 1000 --active 100 --rate 0.2

Each active client inserts a row, waits, and so on, ``--rate`` times a second on average. The idle and the subscribed
clients are a process of their own; every subscriber must have got the same bytes, and one of them the view's rows.
"""

from __future__ import annotations

import argparse
import heapq
import multiprocessing
import os
import random
import resource
import select
import time
from collections import Counter
from multiprocessing.connection import Connection

from benchmarks.raw_client import RawClient
from benchmarks.server import port_of, started
from sql.pgwire import messages_frontend as front

SETUP = (
    "CREATE TABLE crowd (id bigint PRIMARY KEY, g int, v int)",
    "CREATE MATERIALIZED VIEW crowded AS SELECT g, count(*) AS n, sum(v) AS s FROM crowd GROUP BY g",
)


def _followers(port: int, idle: int, subscribers: int, pipe: Connection) -> None:
    """In a process of its own: connect, count what comes, and send (bytes of each subscriber, the first one's data)."""
    _allow_files()
    kept = [RawClient(port) for _ in range(idle)]
    poll, received, first = select.epoll(), dict[int, int](), bytearray()
    sockets = {}
    for _ in range(subscribers):
        client = RawClient(port)
        client.socket.sendall(front.Query("COPY (SUBSCRIBE crowded) TO STDOUT").encode())
        sockets[client.socket.fileno()] = client.socket
        received[client.socket.fileno()] = 0
        poll.register(client.socket.fileno(), select.EPOLLIN)
    told, quiet, buffer = False, 0, bytearray(1 << 16)
    number = next(iter(sockets), -1)
    while quiet < 3:
        ready = poll.poll(0.5)
        for file, _ in ready:
            size = sockets[file].recv_into(buffer)
            received[file] += size
            if file == number:
                first += buffer[:size]
        if not ready and not told:
            pipe.send(len(kept))
            told = True
        quiet = 0 if ready or not pipe.poll() else quiet + 1
    pipe.send((list(received.values()), bytes(first)))


def _allow_files() -> None:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _commits(port: int, active: int, rate: float, seconds: float) -> list[float]:
    """The seconds that each commit took."""
    clients = [RawClient(port) for _ in range(active)]
    for client in clients:
        client.prepare("i", "INSERT INTO crowd VALUES ($1, $2, $3)")
    by_file, poll = {client.socket.fileno(): client for client in clients}, select.epoll()
    for file in by_file:
        poll.register(file, select.EPOLLIN)
    begun = time.perf_counter()
    due = [(begun + random.random() / rate, file) for file in by_file]
    heapq.heapify(due)
    sent: dict[int, float] = {}
    found: list[float] = []
    last = 0
    while time.perf_counter() < begun + seconds or sent:
        now = time.perf_counter()
        while due and due[0][0] <= now < begun + seconds:
            _, file = heapq.heappop(due)
            last += 1
            sent[file] = time.perf_counter()
            by_file[file].start("i", last, last % 50, last % 7)
        wait = due[0][0] - time.perf_counter() if due else 0.01
        for file, _ in poll.poll(min(max(wait, 0), 0.01)):
            by_file[file].answer()
            found.append(time.perf_counter() - sent.pop(file))
            heapq.heappush(due, (time.perf_counter() + random.expovariate(rate), file))
    return found


def _rows(data: bytes) -> Counter[tuple[bytes, ...]]:
    """The rows that a subscriber has, from the messages that it got."""
    held, at = Counter[tuple[bytes, ...]](), 0
    while at < len(data):
        end = at + 1 + int.from_bytes(data[at + 1 : at + 5], "big")
        if data[at : at + 1] == b"d":
            _, diff, *values = data[at + 5 : end].rstrip(b"\n").split(b"\t")
            held[tuple(values)] += int(diff)
        at = end
    return Counter({row: n for row, n in held.items() if n})


def measure(port: int, idle: int, subscribers: int, active: int, rate: float, seconds: float) -> list[float]:
    """The seconds of each commit. Raises AssertionError if a subscriber got something else than the others."""
    _allow_files()
    client = RawClient(port)
    for text in SETUP:
        client.run(text)
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_followers, args=(port, idle, subscribers, theirs))
    process.start()
    assert ours.recv() == idle
    found = _commits(port, active, rate, seconds)
    ours.send("enough")
    sizes, first = ours.recv()
    process.join()
    if subscribers:
        assert len(set(sizes)) == 1, f"subscribers got from {min(sizes)} to {max(sizes)} bytes"
        shown = client.run("COPY (SELECT * FROM crowded) TO STDOUT")
        expected = Counter(
            tuple(line.split(b"\t")) for line in (m[5:].rstrip(b"\n") for m in _messages(shown) if m[:1] == b"d")
        )
        assert _rows(first) == expected, "a subscriber does not have the view's rows"
    return sorted(found)


def _messages(data: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(data):
        end = at + 1 + int.from_bytes(data[at + 1 : at + 5], "big")
        found.append(data[at:end])
        at = end
    return found


def main() -> None:
    """Print a line of quantiles."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--idle", type=int, default=2000)
    parser.add_argument("--subscribers", type=int, default=1000)
    parser.add_argument("--active", type=int, default=100)
    parser.add_argument("--rate", type=float, default=0.2)
    parser.add_argument("--seconds", type=float, default=20)
    asked = parser.parse_args()
    with started() as running:
        port = port_of(running.dsn)
        found = measure(port, asked.idle, asked.subscribers, asked.active, asked.rate, asked.seconds)
    at = {q: f"{1e3 * found[min(int(q * len(found)), len(found) - 1)]:.2f}" for q in (0.5, 0.9, 0.99, 1.0)}
    print(
        f"{asked.idle} idle, {asked.subscribers} subscribers, {asked.active} active: {len(found)} commits, "
        f"{len(found) / asked.seconds:.0f} a second; milliseconds: median {at[0.5]}, 90 % {at[0.9]}, 99 % {at[0.99]}, "
        f"longest {at[1.0]}; load {os.getloadavg()[0]:.1f}"
    )


if __name__ == "__main__":
    main()
