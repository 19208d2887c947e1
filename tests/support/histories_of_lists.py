"""Histories of transactions over lists, and the anomalies in them.

Each transaction appends unique numbers to lists, and reads lists. So a read tells the order of all appends before it,
and which transaction came when follows from what was read alone (Kingsbury and Alvaro, Elle, 2020): an appender comes
before the next one (ww) and before those who read its number (wr), a reader before the appender of the next number
(rw). Transactions that ended before another one began come before it in real time (rt). An isolation level forbids
cycles of some of these.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

List = tuple[int, ...]


@dataclass(slots=True)
class Recorded:
    """A transaction: (key, number) of its appends, (key, list) of its reads, both in order; ``began`` and ``ended`` on
    one clock. ``committed`` None: nobody knows."""

    began: float
    appends: list[tuple[int, int]] = field(default_factory=list)
    reads: list[tuple[int, List]] = field(default_factory=list)
    ended: float = 0.0
    committed: bool | None = False


def anomalies(history: list[Recorded], final: dict[int, List], *, serializable: bool) -> list[str]:
    """What the level forbids, ideally nothing. ``final``: the lists at the end."""
    writer = {number: i for i, t in enumerate(history) for _, number in t.appends}
    found = [*_wrong_lists(history, final, writer), *_wrong_reads(history, final, writer)]
    if found:
        return found
    strict = _edges(history, final, writer, rw=serializable)
    if serializable:
        _add_real_time(history, strict)
    return [f"cycle of {len(c)}: " + "; ".join(_told(history, i) for i in c) for c in cycles(strict)]


def _wrong_lists(history: list[Recorded], final: dict[int, List], writer: dict[int, int]) -> Iterable[str]:
    placed = [number for numbers in final.values() for number in numbers]
    if len(placed) != len(set(placed)):
        yield "a number is in the lists twice"
    for number in placed:
        if number not in writer or history[writer[number]].committed is False:
            yield f"{number} was never committed (G1a)"
    for t in history:
        for key, number in t.appends if t.committed else ():
            if number not in final[key]:
                yield f"{number} is lost from list {key}"


def _wrong_reads(history: list[Recorded], final: dict[int, List], writer: dict[int, int]) -> Iterable[str]:
    for i, t in enumerate(history):
        for key, numbers in t.reads if t.committed else ():
            if numbers != final[key][: len(numbers)]:
                yield f"a read of list {key} gave {numbers[-5:]}, which it never was: {final[key][: len(numbers)][-5:]}"
            elif numbers and writer[numbers[-1]] != i:
                own = [n for k, n in history[writer[numbers[-1]]].appends if k == key]
                if own[-1] != numbers[-1]:
                    yield f"a read of list {key} saw a part of a transaction (G1b)"


def _edges(
    history: list[Recorded], final: dict[int, List], writer: dict[int, int], *, rw: bool
) -> dict[int, set[int]]:  # fmt: skip
    edges: dict[int, set[int]] = defaultdict(set)
    for numbers in final.values():
        for before, after in pairwise(numbers):
            edges[writer[before]].add(writer[after])
    for i, t in enumerate(history):
        for key, numbers in t.reads if t.committed else ():
            if numbers:
                edges[writer[numbers[-1]]].add(i)
            if rw and len(numbers) < len(final[key]):
                edges[i].add(writer[final[key][len(numbers)]])
    for i, after in edges.items():
        after.discard(i)
    return edges


def _add_real_time(history: list[Recorded], edges: dict[int, set[int]]) -> None:
    """Through a chain of moments, so that there are as many edges as transactions."""
    done = sorted((i for i, t in enumerate(history) if t.committed), key=lambda i: history[i].ended)
    moment = {i: len(history) + place for place, i in enumerate(done)}
    for place, i in enumerate(done):
        edges[i].add(moment[i])
        if place:
            edges[moment[done[place - 1]]].add(moment[i])
    begins = sorted((i for i, t in enumerate(history) if t.committed), key=lambda i: history[i].began)
    place = 0
    for i in begins:
        while place < len(done) and history[done[place]].ended < history[i].began:
            place += 1
        if place:
            edges[moment[done[place - 1]]].add(i)


def _told(history: list[Recorded], i: int) -> str:
    if i >= len(history):
        return "later"
    t = history[i]
    return f"{i}: reads {[(k, v[-2:]) for k, v in t.reads]} appends {t.appends}"


def cycles(edges: dict[int, set[int]]) -> list[list[int]]:
    """The strongly connected components with more than one node (Tarjan, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on: set[int] = set()
    found: list[list[int]] = []
    for root in list(edges):
        if root in index:
            continue
        work = [(root, iter(edges[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on.add(root)
        while work:
            node, after = work[-1]
            for other in after:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on.add(other)
                    work.append((other, iter(edges.get(other, ()))))
                    break
                if other in on:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = []
                    while True:
                        one = stack.pop()
                        on.discard(one)
                        component.append(one)
                        if one == node:
                            break
                    if len(component) > 1:
                        found.append(component)
    return found
