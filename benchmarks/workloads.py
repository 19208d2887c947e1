"""The engine's workloads W1 to W5, W7 and W8: their data by index, their views in SQL, their answers from scratch.

Random numbers are SplitMix64 of (seed, index), so that any update can be made alone. Load = items 0 … size − 1;
update u removes item u and inserts item size + u. A checksum is the sum of mix(packed row) modulo 2^64 over the output.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.int64]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finaliser."""
    z = values.copy()
    with np.errstate(over="ignore"):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def random_words(seed: int, index: NDArray[np.uint64], below: int) -> Words:
    """The random numbers of these indices, from 0 to ``below`` − 1."""
    with np.errstate(over="ignore"):
        drawn = mix(np.uint64(seed) + (index + np.uint64(1)) * _GOLDEN)
    return (drawn % np.uint64(below)).astype(np.int64)


def edges(seed: int, nodes: int, low: int, high: int) -> Words:
    """Edges low … high − 1 as int64[n, 2]."""
    index = np.arange(low, high, dtype=np.uint64)
    two = np.uint64(2)
    return np.stack([random_words(seed, two * index + np.uint64(k), nodes) for k in (0, 1)], axis=1)


def keyed(seed: int, keys: int, low: int, high: int) -> Words:
    """Rows (key, index) of the join workload."""
    index = np.arange(low, high, dtype=np.uint64)
    return np.stack([random_words(seed, index, keys), index.astype(np.int64)], axis=1)


def checksum(rows: Words) -> int:
    """The output's checksum; columns a and b are packed as a << 32 | b, three as a ^ b << 20 ^ c << 40."""
    columns = [column.astype(np.uint64) for column in rows.T]
    packed = columns[0]
    if len(columns) == 2:
        packed = (packed << np.uint64(32)) | columns[1]
    if len(columns) == 3:
        packed = packed ^ (columns[1] << np.uint64(20)) ^ (columns[2] << np.uint64(40))
    return int(np.add.reduce(mix(packed), dtype=np.uint64))


def power_law(seed: int, nodes: int, count: int) -> Words:
    """Edges 0 … count − 1 whose nodes are drawn by a power law, as int64[count, 2]."""
    drawn = np.empty((count, 2), np.int64)
    with np.errstate(over="ignore"):
        for k in (0, 1):
            index = np.uint64(2) * np.arange(count, dtype=np.uint64) + np.uint64(k)
            words = mix(np.uint64(seed) + (index + np.uint64(1)) * _GOLDEN)
            unit = (words >> np.uint64(11)).astype(np.float64) / 2.0**53
            drawn[:, k] = (unit * unit * np.sqrt(unit) * float(nodes)).astype(np.int64)
    return drawn


class DistinctEdges:
    """The distinct edges without loops of a power-law stream, by their place among them."""

    def __init__(self, seed: int, nodes: int) -> None:
        self._seed, self._nodes = seed, nodes
        self._known = np.empty((0, 2), np.int64)

    def __call__(self, low: int, high: int) -> Words:
        """Edges low … high − 1."""
        drawn = max(int(high * 1.7), 1000)
        while len(self._known) < high:
            found = power_law(self._seed, self._nodes, drawn)
            found = found[found[:, 0] != found[:, 1]]
            _, first = np.unique(found[:, 0] * self._nodes + found[:, 1], return_index=True)
            self._known = found[np.sort(first)]
            drawn *= 2
        return self._known[low:high]


@dataclass(frozen=True, slots=True)
class Workload:
    """``tables``: name → rows low … high − 1; ``initial``: rows loaded once; ``answer``: rows after u updates.

    ``turns``: update u goes to the table ``turns[u % len(turns)]``, as that table's own next item.
    """

    name: str
    view: str
    ddl: tuple[str, ...]
    size: int
    turns: tuple[str, ...]
    tables: dict[str, Callable[[int, int], Words]]
    initial: dict[str, Words]
    answer: Callable[[int], Words]
    rival: dict[int, float]
    """The compiled system's updates per CPU second by batch size (see docs/benchmarks.md)."""
    chunks: int = 1
    """In how many steps it is loaded."""


def reachable(nodes: int, size: int) -> Callable[[int], Words]:
    """Nodes that the ten roots reach, by breadth first search."""

    def answer(updates: int) -> Words:
        pairs = edges(1, nodes, updates, size + updates)
        order = np.argsort(pairs[:, 0], kind="stable")
        source, target = pairs[order, 0], pairs[order, 1]
        start = np.searchsorted(source, np.arange(nodes + 1))
        seen = np.zeros(nodes, bool)
        seen[:10] = True
        border = np.arange(10)
        while len(border):
            reached = [target[start[n] : start[n + 1]] for n in border]
            found = np.unique(np.concatenate(reached)) if reached else border[:0]
            border = found[~seen[found]]
            seen[border] = True
        return np.flatnonzero(seen)[:, None]

    return answer


def degrees(nodes: int, size: int) -> Callable[[int], Words]:
    """(out-degree, how many nodes have it)."""

    def answer(updates: int) -> Words:
        counts = np.bincount(edges(3, nodes, updates, size + updates)[:, 0], minlength=nodes)
        return np.stack(np.unique(counts[counts > 0], return_counts=True), axis=1)

    return answer


def joined(keys: int, size: int) -> Callable[[int], Words]:
    """(key, pairs)."""

    def answer(updates: int) -> Words:
        of_a, of_b = (updates + 1) // 2, updates // 2
        a = np.bincount(keyed(40, keys, of_a, size + of_a)[:, 0], minlength=keys)
        b = np.bincount(keyed(41, keys, of_b, size + of_b)[:, 0], minlength=keys)
        found = np.flatnonzero(a * b)
        return np.stack([found, (a * b)[found]], axis=1)

    return answer


def components(nodes: int, size: int) -> Callable[[int], Words]:
    """(node, the least node of its component): pointer jumping until nothing changes."""

    def answer(updates: int) -> Words:
        pairs = edges(2, nodes, updates, size + updates)
        label = np.arange(nodes)
        while True:
            ends = label[pairs]
            low, high = ends.min(axis=1), ends.max(axis=1)
            if (low == high).all():
                return np.stack([np.arange(nodes), label], axis=1)
            np.minimum.at(label, high, low)
            while (label[label] != label).any():
                label = label[label]

    return answer


LEAST = (
    "WITH MUTUALLY RECURSIVE label (node bigint, least bigint) AS (SELECT node, min(least) FROM ("
    "SELECT id AS node, id AS least FROM nodes UNION ALL SELECT e.b, l.least FROM label l JOIN "
    "(SELECT src AS a, dst AS b FROM edges UNION ALL SELECT dst, src FROM edges) e ON l.node = e.a"
    ") AS proposed GROUP BY node) SELECT node, least FROM label"
)


STRONG = """
WITH MUTUALLY RECURSIVE
  kept (src bigint, dst bigint) AS (SELECT src, dst FROM edges EXCEPT SELECT src, dst FROM cut),
  forward (node bigint, label bigint) AS (
    WITH MUTUALLY RECURSIVE reached (node bigint, label bigint) AS (
      SELECT node, min(label) FROM (
        SELECT dst AS node, dst AS label FROM edges
        UNION ALL SELECT k.dst, r.label FROM reached r JOIN kept k ON k.src = r.node) AS offered
      GROUP BY node)
    SELECT node, label FROM reached),
  turned (src bigint, dst bigint) AS (
    SELECT e.dst, e.src FROM edges e JOIN forward a ON a.node = e.src JOIN forward b ON b.node = e.dst
    WHERE a.label = b.label),
  backward (node bigint, label bigint) AS (
    WITH MUTUALLY RECURSIVE reached (node bigint, label bigint) AS (
      SELECT node, min(label) FROM (
        SELECT src AS node, src AS label FROM edges
        UNION ALL SELECT t.dst, r.label FROM reached r JOIN turned t ON t.src = r.node) AS offered
      GROUP BY node)
    SELECT node, label FROM reached),
  strong (src bigint, dst bigint) AS (
    SELECT e.src, e.dst FROM edges e JOIN backward a ON a.node = e.src JOIN backward b ON b.node = e.dst
    WHERE a.label = b.label),
  cut (src bigint, dst bigint) AS (SELECT src, dst FROM edges EXCEPT SELECT src, dst FROM strong)
SELECT src, dst FROM strong"""


def strong_edges(nodes: int, pairs: Words) -> Words:
    """The edges whose ends are in the same strongly connected component."""
    order = np.argsort(pairs[:, 0], kind="stable")
    start = np.searchsorted(pairs[order, 0], np.arange(nodes + 1)).tolist()
    found = tarjan(nodes, start, pairs[order, 1].tolist())
    return pairs[found[pairs[:, 0]] == found[pairs[:, 1]]]


def tarjan(nodes: int, start: list[int], target: list[int]) -> Words:
    """The component of each node (Tarjan); the targets of node n are ``target[start[n]:start[n + 1]]``."""
    place = start[:nodes]
    low, index, component = [0] * nodes, [-1] * nodes, [-1] * nodes
    stack: list[int] = []
    seen = 0
    for root in range(nodes):
        path = [root] if index[root] < 0 else []
        while path:
            node = path[-1]
            if index[node] < 0:
                index[node] = low[node] = seen
                seen += 1
                stack.append(node)
            if place[node] < start[node + 1]:
                other = target[place[node]]
                if index[other] < 0:
                    path.append(other)
                    continue  # it is visited again when its component, or its low link, is known
                if component[other] < 0:
                    low[node] = min(low[node], low[other])
                place[node] += 1
                continue
            path.pop()
            while low[node] == index[node] and component[node] < 0:
                component[stack.pop()] = node
    return np.array(component)


def triangles(nodes: int, pairs: Words) -> Words:
    """All (a, b, c) with a → b, b → c, a → c; for each a → b scans the smaller of both neighbourhoods."""
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    source, target = pairs[order, 0], pairs[order, 1]
    keys = source * nodes + target
    start = np.searchsorted(source, np.arange(nodes + 1))
    size = np.diff(start)
    swap = size[source] < size[target]
    least, other = np.where(swap, source, target), np.where(swap, target, source)
    found = []
    for low in range(0, len(keys), 50_000):
        high = min(low + 50_000, len(keys))
        counts = size[least[low:high]]
        edge = np.repeat(np.arange(low, high), counts)
        within = np.arange(len(edge)) - np.repeat(np.cumsum(counts) - counts, counts)
        third = target[start[least[edge]] + within]
        sought = other[edge] * nodes + third
        place = np.minimum(np.searchsorted(keys, sought), len(keys) - 1)
        hit = keys[place] == sought
        found.append(np.stack([source[edge[hit]], target[edge[hit]], third[hit]], axis=1))
    return np.concatenate(found)


REACH = (
    "WITH RECURSIVE reach(node) AS (SELECT id FROM roots UNION "
    "SELECT e.dst FROM reach r JOIN edges e ON r.node = e.src) SELECT node FROM reach"
)
_GRAPH = ("CREATE TABLE roots (id bigint NOT NULL)", "CREATE TABLE edges (src bigint NOT NULL, dst bigint NOT NULL)")


def reach(name: str, nodes: int, size: int, rival: dict[int, float]) -> Workload:
    """W1 and W2."""
    roots = {"roots": np.arange(10, dtype=np.int64)[:, None]}
    tables = {"edges": lambda low, high: edges(1, nodes, low, high)}
    return Workload(name, REACH, _GRAPH, size, ("edges",), tables, roots, reachable(nodes, size), rival)


def least_labels(name: str, nodes: int, size: int, rival: dict[int, float], plain: bool = False) -> Workload:
    """W3: connected components; ``plain``: without priorities."""
    view = LEAST.replace("RECURSIVE", "RECURSIVE (NO PRIORITY)") if plain else LEAST
    ddl = ("CREATE TABLE nodes (id bigint NOT NULL)", *_GRAPH[1:])
    initial = {"nodes": np.arange(nodes, dtype=np.int64)[:, None]}
    tables = {"edges": lambda low, high: edges(2, nodes, low, high)}
    return Workload(name, view, ddl, size, ("edges",), tables, initial, components(nodes, size), rival)


def workloads(shrink: int = 1) -> dict[str, Workload]:
    """By name; nodes, rows and keys divided by ``shrink``."""
    thousand, hundred_thousand, million = 1_000 // shrink, 100_000 // shrink, 1_000_000 // shrink
    w4 = Workload(
        "W4",
        "SELECT d.n, count(*) FROM (SELECT src, count(*) AS n FROM edges GROUP BY src) d GROUP BY d.n",
        _GRAPH[1:],
        5 * million,
        ("edges",),
        {"edges": lambda low, high: edges(3, million, low, high)},
        {},
        degrees(million, 5 * million),
        {1: 49.5e3, 1000: 552e3, 100_000: 1.81e6},
    )
    w5 = Workload(
        "W5",
        "SELECT a.k, count(*) FROM a JOIN b ON a.k = b.k GROUP BY a.k",
        tuple(f"CREATE TABLE {t} (k bigint NOT NULL, v bigint NOT NULL)" for t in "ab"),
        million,
        ("a", "b"),
        {
            "a": lambda low, high: keyed(40, hundred_thousand, low, high),
            "b": lambda low, high: keyed(41, hundred_thousand, low, high),
        },
        {},
        joined(hundred_thousand, million),
        {1: 31.4e3, 1000: 193e3, 100_000: 559e3},
    )
    graph = DistinctEdges(7, hundred_thousand)
    w7 = Workload(
        "W7",
        "SELECT x.src AS a, x.dst AS b, y.dst AS c FROM edges x JOIN edges y ON x.dst = y.src "
        "JOIN edges z ON z.src = x.src AND z.dst = y.dst",
        _GRAPH[1:],
        million,
        ("edges",),
        {"edges": graph},
        {},
        lambda updates: triangles(hundred_thousand, graph(updates, million + updates)),
        {1: 2.0e3, 100: 9.9e3, 1000: 18.2e3},
        chunks=100,
    )
    w8 = Workload(
        "W8",
        STRONG,
        _GRAPH[1:],
        2 * hundred_thousand,
        ("edges",),
        {"edges": lambda low, high: edges(8, hundred_thousand, low, high)},
        {},
        lambda updates: strong_edges(
            hundred_thousand, edges(8, hundred_thousand, updates, 2 * hundred_thousand + updates)
        ),
        {1: 80.0, 10: 86.0},
    )
    w1 = reach("W1", thousand, 2 * thousand, {1: 7.7e3, 10: 23.0e3, 100: 82.9e3})
    w2 = reach("W2", million, 2 * million, {1: 3.7e3, 10: 5.0e3, 100: 8.4e3})
    w3 = least_labels("W3", 2 * hundred_thousand, million, {1: 5.7e3, 100: 15.4e3})
    w3_plain = least_labels("W3-plain", 2 * hundred_thousand, million, {1: 806, 100: 798}, plain=True)
    w3_sparse = least_labels("W3-1M", million, 2 * million, {1: 2.6e3, 100: 6.1e3})
    return {w.name: w for w in (w1, w2, w3, w3_plain, w3_sparse, w4, w5, w7, w8)}
