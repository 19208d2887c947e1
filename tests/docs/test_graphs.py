"""examples/graphs: every view against an answer in plain Python after every change of the graph."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from heapq import heappop, heappush
from typing import Any

import numpy as np
import pytest

from benchmarks.curves import Graph, query, random_graph
from benchmarks.ranks import MASS, measure
from tests.support.paths import ROOT
from tests.support.sessions import Client, Server

FOLDER = ROOT / "examples" / "graphs"
Edges = dict[tuple[int, int], int]
Rows = set[tuple[Any, ...]]


def text(name: str) -> str:
    return (FOLDER / f"{name}.sql").read_text()


def nodes(edges: Edges) -> set[int]:
    return {node for edge in edges for node in edge}


def successors(edges: Edges) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for a, b in sorted(edges):
        found[a].append(b)
    return found


def reached(start: int, after: dict[int, list[int]]) -> set[int]:
    found, todo = {start}, [start]
    while todo:
        for node in after.get(todo.pop(), ()):
            if node not in found:
                found.add(node)
                todo.append(node)
    return found


def wcc(edges: Edges, landmarks: set[int]) -> Rows:
    after = successors({e: 1 for a, b in edges for e in ((a, b), (b, a))})
    return {(node, min(reached(node, after))) for node in nodes(edges)}


def scc(edges: Edges, landmarks: set[int]) -> Rows:
    after = successors(edges)
    reach = {node: reached(node, after) for node in nodes(edges)}
    return {(a, min(b for b in reach[a] if a in reach[b])) for a in reach}


def shortest_paths(edges: Edges, landmarks: set[int]) -> Rows:
    """Dijkstra's algorithm."""
    after = successors(edges)
    found: Rows = set()
    for landmark in landmarks:
        done: dict[int, int] = {}
        heap = [(0, landmark)]
        while heap:
            length, node = heappop(heap)
            if node not in done:
                done[node] = length
                for other in after.get(node, ()):
                    heappush(heap, (length + edges[node, other], other))
        found |= {(landmark, node, length) for node, length in done.items()}
    return found


def rounded(over: int, under: int) -> int:
    """To the nearest integer, halves up."""
    return math.floor(Fraction(over, under) + Fraction(1, 2))


def pagerank(edges: Edges, landmarks: set[int]) -> Rows:
    after = successors(edges)
    rank: dict[int, int] = {}
    for _ in range(20):
        following = dict.fromkeys(nodes(edges), 100)
        for node, mass in rank.items():
            for other in after.get(node, ()):
                following[other] += rounded(85 * mass, 100 * len(after[node]))
        rank = following
    return set(rank.items())


def salsa(edges: Edges, landmarks: set[int]) -> Rows:
    out, into = Counter(a for a, _ in edges), Counter(b for _, b in edges)
    authority, hub = dict.fromkeys(into, 300), dict.fromkeys(out, 0)
    for number in range(10):
        if number:
            authority = dict.fromkeys(into, 0)
            for a, b in edges:
                authority[b] += rounded(hub[a], out[a])
        hub = dict.fromkeys(out, 0)
        for a, b in edges:
            hub[a] += rounded(authority[b], into[b])
    return {("authority", *item) for item in authority.items()} | {("hub", *item) for item in hub.items()}


VIEWS: dict[str, Callable[[Edges, set[int]], Rows]] = {
    "wcc": wcc, "scc": scc, "shortest_paths": shortest_paths, "pagerank": pagerank, "salsa": salsa,
}  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("graphs") / "data")
    yield server
    server.close()


def rows(client: Client, view: str) -> Rows:
    found = client.rows(f"SELECT * FROM {view}")
    assert len(set(found)) == len(found)
    return {tuple(int(v) if v is not None and v.isdigit() else v for v in row) for row in found}


@pytest.mark.parametrize("seed", range(3))
def test_views_equal_python_after_every_change(server: Server, seed: int) -> None:
    rng = random.Random(seed)
    client = server.client()
    client.run("CREATE SCHEMA graphs; SET search_path = graphs")
    for name in ("tables", *VIEWS):
        client.run(text(name))
    edges: Edges = {}
    landmarks: set[int] = set()
    count = (6, 12, 30)[seed]
    for number in range(25):
        _change(rng, client, edges, count, 20 if number == 0 else rng.choice((1, 1, 2, 5)))
        if rng.random() < 0.3:
            node = rng.randrange(count)
            gone = node in landmarks
            client.run(f"DELETE FROM landmark WHERE node = {node}" if gone else f"INSERT INTO landmark VALUES ({node})")
            landmarks ^= {node}
        for view, answer in VIEWS.items():
            assert rows(client, view) == answer(edges, landmarks), (view, edges, landmarks)
    assert client.rows("SELECT * FROM freshet.view_errors") == []
    for view in VIEWS:
        assert client.rows(f"VERIFY MATERIALIZED VIEW {view}") == []
    client.run("DROP SCHEMA graphs CASCADE")


def _change(rng: random.Random, client: Client, edges: Edges, count: int, changes: int) -> None:
    """Adds and removes edges and changes lengths, in one commit."""
    client.run("BEGIN")
    for _ in range(changes):
        edge = rng.randrange(count), rng.randrange(count)
        if edge not in edges:
            edges[edge] = rng.randrange(1, 9)
            client.run(f"INSERT INTO edge VALUES ({edge[0]}, {edge[1]}, {edges[edge]})")
        elif rng.random() < 0.8:
            del edges[edge]
            client.run(f"DELETE FROM edge WHERE src = {edge[0]} AND dst = {edge[1]}")
        else:
            edges[edge] = rng.randrange(1, 9)
            client.run(f"UPDATE edge SET length = {edges[edge]} WHERE src = {edge[0]} AND dst = {edge[1]}")
    client.run("COMMIT")


def test_the_window_of_mentions_slides_forwards_and_back(server: Server) -> None:
    """Components and topics at every position of the window; back at the start they are as before."""
    rng = random.Random(1)
    client = server.client()
    client.run("CREATE SCHEMA mentions; SET search_path = mentions")
    tables, views = text("mentions").split("-- scc.sql is the same over these views\n")
    client.run(tables)
    client.run(text("scc"))
    client.run(views)
    mentions = [(rng.randrange(30), rng.randrange(12), rng.randrange(12)) for _ in range(150)]
    tags = [(rng.randrange(30), rng.randrange(12), rng.choice("abc")) for _ in range(120)]
    client.run("INSERT INTO mention VALUES " + ", ".join(map(str, mentions)))
    client.run("INSERT INTO hashtag VALUES " + ", ".join(map(str, tags)))
    first = 0
    client.run("INSERT INTO shown SELECT * FROM generate_series(0, 5)")
    seen = {}
    for step in [0, 1, 1, 1, 4, 8, -2, -1, -1, 3, -14]:
        client.run("BEGIN")
        first += step
        window = f"generate_series({first}, {first + 5})"
        client.run(f"INSERT INTO shown SELECT * FROM {window} ON CONFLICT DO NOTHING")
        client.run(f"DELETE FROM shown WHERE at < {first} OR at > {first + 5}")
        client.run("COMMIT")
        found = rows(client, "topics")
        assert found == _topics(mentions, tags, first)
        assert seen.setdefault(first, found) == found
    assert first == 0
    client.run("DROP SCHEMA mentions CASCADE")


def _topics(mentions: list[tuple[int, int, int]], tags: list[tuple[int, int, str]], first: int) -> Rows:
    """(component, people, tag, times) of the window of six seconds from ``first`` on."""
    edges = {(a, b): 1 for at, a, b in mentions if first <= at <= first + 5}
    component: dict[int, int] = dict(scc(edges, set()))  # type: ignore[arg-type]
    people = Counter(component.values())
    used: dict[int, Counter[str]] = defaultdict(Counter)
    for at, author, tag in tags:
        if first <= at <= first + 5 and author in component:
            used[component[author]][tag] += 1
    best = {c: min(counts.items(), key=lambda item: (-item[1], item[0])) for c, counts in used.items()}
    return {(c, people[c], tag, times) for c, (tag, times) in best.items() if people[c] > 1}


def changed(name: str, nodes: int) -> tuple[float, float]:
    """Rows matched and updates of histories read for the first answer, and for a change of one edge (the median)."""
    graph = Graph(query(name), random_graph(nodes), 2 * nodes)
    graph.load()
    load = graph.flow.flow.counters
    works = []
    for _ in range(20):
        before = graph.flow.flow.counters
        graph.change()
        works.append(graph.flow.flow.counters - before)
    return load.matches + load.history, float(np.median([work.matches + work.history for work in works]))


@pytest.mark.parametrize("name", VIEWS)
def test_a_change_of_an_edge_stays_local(name: str) -> None:
    """It costs the same in a graph thirty times as large, since mass is rounded away; and little beside the load."""
    few, small = changed(name, 1_000)
    many, large = changed(name, 30_000)
    assert many > 10 * few
    assert 0 < large < 2 * small
    assert large < many / 5


@pytest.mark.parametrize("name", VIEWS)
def test_a_change_stays_in_the_kernel(name: str) -> None:
    """Sums, maps and failure checks: passes return to Python only to grow a block for the first time. Outside its loop
    SALSA has two maps with a text in them, which run in Python."""
    graph = Graph(query(name), random_graph(300), 600)
    graph.load()
    for _ in range(40):
        graph.change()
    before = graph.flow.flow.counters
    for _ in range(20):
        graph.change()
    spent = graph.flow.flow.counters - before
    assert spent.segments > 100
    assert spent.called <= (40 if name == "salsa" else 0) + 4


@pytest.mark.parametrize(("name", "correlation"), [("pagerank", 0.9999), ("salsa", 0.999)])
def test_integer_mass_ranks_as_exact_arithmetic_does(name: str, correlation: float) -> None:
    cell = measure(name, MASS[name], random_graph(3_000), 6_000, 2)
    assert cell.correlation > correlation
    assert cell.top >= 0.95
