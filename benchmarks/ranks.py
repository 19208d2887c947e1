"""Integer mass in PageRank and SALSA: how close the ranks are to exact ones, and what a change of an edge costs.

``python -m benchmarks.ranks`` runs the queries of ``examples/graphs`` with other masses than theirs, in process, on
random graphs of two edges a node and on the dependencies of Debian's packages (``examples/debian``); prints a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyarrow import parquet

from benchmarks.curves import GRAPHS, Graph, query, random_graph
from benchmarks.flow import Words
from ivm.rows import RowSet
from storage.types import codec

DEBIAN: Final = GRAPHS.parent / "debian"
MASS: Final = {"pagerank": 100, "salsa": 300}
"""What the files say; it stands in each once."""
Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Cell:
    """One graph, one mass. ``correlation``: Spearman's, with exact arithmetic in as many rounds; ``top``: how much of
    the first hundredth is in the exact first hundredth; ``matches``: rows matched by joins for a change of one edge,
    median; ``load_matches``: for the first answer; ``milliseconds``: CPU of a change, median."""

    correlation: float
    top: float
    matches: float
    load_matches: int
    milliseconds: float


def pagerank(pairs: Words, nodes: int) -> Scores:
    """Mass by node after twenty rounds, of 1 each; nodes without edges have 0."""
    source, target = pairs[:, 0], pairs[:, 1]
    out = np.maximum(np.bincount(source, minlength=nodes), 1)
    own = (np.bincount(pairs.ravel(), minlength=nodes) > 0).astype(np.float64)
    rank = own
    for _ in range(19):
        rank = own + np.bincount(target, (0.85 * rank / out)[source], nodes)
    return rank


def salsa(pairs: Words, nodes: int) -> Scores:
    """Authorities' mass by node after ten rounds, of 1 each."""
    source, target = pairs[:, 0], pairs[:, 1]
    out, into = (np.maximum(np.bincount(side, minlength=nodes), 1) for side in (source, target))
    mass = (np.bincount(target, minlength=nodes) > 0).astype(np.float64)
    for _ in range(9):
        hubs = np.bincount(source, (mass / into)[target], nodes)
        mass = np.bincount(target, (hubs / out)[source], nodes)
    return mass


EXACT: Final = {"pagerank": pagerank, "salsa": salsa}


def places(scores: Scores) -> Scores:
    """The rank of each by score; equal scores share their mean rank."""
    _, which, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    middle: Scores = (ends - (counts - 1) / 2)[which]
    return middle


def found(graph: Graph, nodes: int) -> Scores:
    """The view's mass by node; for SALSA, the authorities' mass."""
    flow = graph.flow
    rows, _ = flow.flow.publish()[flow.output].rows_at(flow.ordinal)
    columns = RowSet(rows, flow.schema).columns()
    values = [codec.decode(c.type, v, flow.dictionary) for c, v in zip(flow.schema, columns, strict=True)]
    scores = np.zeros(nodes)
    for *role, node, mass in zip(*values, strict=True):
        if role != ["hub"]:
            scores[node] = mass
    return scores


def measure(name: str, mass: int, pairs: Words, size: int, changes: int = 20) -> Cell:
    """Loads the first ``size`` edges, compares, then deletes and inserts edges in turn."""
    text = query(name)
    here = f"SELECT node, {MASS[name]}"
    assert text.count(here) == 1
    graph = Graph(text.replace(here, f"SELECT node, {mass}"), pairs, size)
    graph.load()
    nodes = int(pairs.max()) + 1
    loaded = graph.flow.flow.counters.matches
    scores, exact = found(graph, nodes), EXACT[name](pairs[:size], nodes)
    there = exact > 0
    first = max(1, int(there.sum()) // 100)
    best, wanted = (set(np.argsort(-s, kind="stable")[:first].tolist()) for s in (scores, exact))
    correlation = float(np.corrcoef(places(scores[there]), places(exact[there]))[0, 1])
    spent, matches = [], []
    for _ in range(changes):
        before = graph.flow.flow.counters
        spent.append(graph.change())
        matches.append((graph.flow.flow.counters - before).matches)
    return Cell(
        correlation, len(best & wanted) / first, float(np.median(matches)), loaded, float(np.median(spent))
    )  # fmt: skip


def dependencies() -> Words:
    """Debian's package dependencies as edges in random order, by the first alternative that can be satisfied."""
    packages, depends, provides = (
        parquet.read_table(DEBIAN / f"{table}_base.parquet").to_pylist()
        for table in ("packages", "depends", "provides")
    )
    names = {row["package"] for row in packages}
    meets = {name: name for name in names}
    for row in provides:
        if row["virtual"] not in names and row["package"] in names:
            meets[row["virtual"]] = min(row["package"], meets.get(row["virtual"], row["package"]))
    first: dict[tuple[str, str, int], tuple[int, str]] = {}
    for row in depends:
        if row["kind"] in ("depends", "pre-depends") and row["target"] in meets:
            clause, offer = (row["package"], row["kind"], row["clause"]), (row["alternative"], meets[row["target"]])
            first[clause] = min(first.get(clause, offer), offer)
    edges = sorted({(clause[0], target) for clause, (_, target) in first.items()})
    _, numbers = np.unique(np.array(edges), return_inverse=True)
    pairs: Words = numbers.reshape(-1, 2).astype(np.int64)
    return np.random.default_rng(9).permutation(pairs)


def main() -> None:
    """Prints the table."""
    graphs = {f"random, {n:,} nodes": (random_graph(n), 2 * n) for n in (1_000, 10_000, 100_000)}
    known = dependencies()
    graphs["Debian"] = known, len(known) - 20
    print("| | mass | graph | correlation | top 1 % | rows of a change | of the load | a change ms |")
    print("|---|---|---|---|---|---|---|---|")
    for name, masses in {"pagerank": (30, 100, 1_000, 150_000), "salsa": (30, 300, 3_000)}.items():
        for mass in masses:
            for graph, (pairs, size) in graphs.items():
                cell = measure(name, mass, pairs, size)
                print(
                    f"| {name} | {mass:,} | {graph} | {cell.correlation:.4f} | {cell.top:.1%} | {cell.matches:,.0f} | "
                    f"{cell.load_matches:,} | {cell.milliseconds:.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
