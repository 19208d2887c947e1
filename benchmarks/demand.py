"""What a condition on a recursive view saves: reachability in full, from one node, and to one node, over the wire.

``python -m benchmarks.demand``: 100,000 edges, sparse and all one component; milliseconds of ``SELECT count(*)``, the
least of several, and how many rows there are. Each count is checked against a search of the graph.
"""

from __future__ import annotations

import os
import time

import numpy as np
import psycopg

from benchmarks.server import copy_in, server
from benchmarks.workloads import Words, edges

EDGES = 100_000
NODE = 7
VIEW = (
    "CREATE VIEW reach AS WITH RECURSIVE r(src, dst) AS (SELECT src, dst FROM edge UNION "
    "SELECT r.src, e.dst FROM r JOIN edge e ON r.dst = e.src) SELECT * FROM r"
)


def graph(nodes: int, ring: bool, count: int) -> Words:
    """``count`` random edges among ``nodes``; with a ring through all nodes, they form one component."""
    if not ring:
        return edges(9, nodes, 0, count)
    around = np.arange(nodes)
    return np.concatenate([np.stack([around, (around + 1) % nodes], axis=1), edges(9, nodes, 0, count - nodes)])


def reached(pairs: Words, start: int) -> int:
    """How many nodes are reachable from ``start`` by paths of at least one edge."""
    nodes = int(pairs.max()) + 1
    order = np.argsort(pairs[:, 0], kind="stable")
    first = np.searchsorted(pairs[order, 0], np.arange(nodes + 1))
    seen = np.zeros(nodes, bool)
    border = np.array([start])
    while len(border):
        found = np.concatenate([pairs[order[first[n] : first[n + 1]], 1] for n in border])
        border = np.unique(found[~seen[found]])
        seen[border] = True
    return int(seen.sum())


def asked(connection: psycopg.Connection, condition: str, times: int) -> tuple[int, float]:
    """Runs the query: the count, and the least time in milliseconds."""
    took = []
    for _ in range(times):
        begun = time.perf_counter()
        row = connection.execute(f"SELECT count(*) FROM reach {condition}").fetchone()  # type: ignore[arg-type]
        took.append(1e3 * (time.perf_counter() - begun))
    assert row is not None
    return int(row[0]), min(took)


def measure(dsn: str, pairs: Words, whole: bool, times: int) -> dict[str, tuple[int, float]]:
    """(rows, milliseconds) by condition; AssertionError if a count is wrong. ``whole``: also without a condition."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE edge (src int NOT NULL, dst int NOT NULL)")
        copy_in(connection, "edge", pairs.tolist())
        connection.execute(VIEW)  # type: ignore[arg-type]
        found = {"": asked(connection, "", 3)} if whole else {}
        for column, way in (("src", pairs), ("dst", pairs[:, ::-1])):
            condition = f"WHERE {column} = {NODE}"
            found[condition] = asked(connection, condition, times)
            assert found[condition][0] == reached(way, NODE), condition
        return found


def main() -> None:
    """Measures both graphs, each on its own server."""
    for nodes, ring in ((130_003, False), (20_011, True)):
        with server() as dsn:
            for condition, (rows, took) in measure(dsn, graph(nodes, ring, EDGES), not ring, 15).items():
                load = os.getloadavg()[0]
                print(f"{nodes:,} nodes  {condition or 'whole':16} {rows:>11,} rows {took:9.1f} ms  load {load:.1f}")


if __name__ == "__main__":
    main()
