"""Workloads A to D as pathway programs, run by a Python that has pathway (``make rivals`` makes one in .venv-rivals).

``python -m benchmarks.pathway_views NAME SHRINK SIZE:COUNT …`` prints, as JSON, the milliseconds of every batch by size
and a digest of the result. A batch takes from feeding its rows until all changes of the result have been applied to a
dict. Only the standard library and pathway are imported, and the generators of rows.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pathway as pw

from benchmarks.sql_more import Components, Events
from benchmarks.sql_workloads import Batch, Graph, Row, Sales

MARK = "mark"
Tables = dict[str, Any]
COLUMNS = {
    "customers": {"cust_id": int, "segment": str},
    "orders": {"order_id": int, "cust_id": int, "region": str, "odate": int},
    "lineitems": {"line_id": int, "order_id": int, "qty": int, "price": int},
    "events": {"id": int, "grp": int, "score": int},
    "roots": {"id": int},
    "nodes": {"id": int},
    "edges": {"id": int, "src": int, "dst": int},
}


def sales(t: Tables) -> Any:
    """A."""
    lines, orders, customers = t["lineitems"], t["orders"], t["customers"]
    dated = lines.join(orders, lines.order_id == orders.order_id).select(
        lines.qty, lines.price, orders.region, orders.cust_id
    )
    told = dated.join(customers, dated.cust_id == customers.cust_id).select(
        dated.qty, dated.price, dated.region, customers.segment
    )
    return told.groupby(told.region, told.segment).reduce(
        told.region, told.segment, cnt=pw.reducers.count(), revenue=pw.reducers.sum(told.qty * told.price),
        most=pw.reducers.max(told.price),
    )  # fmt: skip


def ten_best(t: Tables) -> Any:
    """B."""
    events = t["events"]
    keyed = events.select(events.grp, by=pw.make_tuple(-events.score, events.id_))
    grouped = keyed.groupby(keyed.grp).reduce(keyed.grp, best=pw.reducers.sorted_tuple(keyed.by))
    cut = grouped.select(grouped.grp, best=pw.apply_with_type(_ranked, list[tuple[int, int, int]], grouped.best))
    flat = cut.flatten(cut.best)
    return flat.select(flat.grp, key=flat.best[1], score=flat.best[0], rn=flat.best[2])


def _ranked(best: tuple[tuple[int, int], ...]) -> list[tuple[int, int, int]]:
    return [(-negative, key, rank + 1) for rank, (negative, key) in enumerate(best[:10])]


def reach(t: Tables) -> Any:
    """C."""

    def step(reached: Any, edges: Any) -> Tables:
        further = reached.join(edges, reached.node == edges.src).select(reached.root, node=edges.dst)
        both = reached.concat_reindex(further)
        return {"reached": both.groupby(both.root, both.node).reduce(both.root, both.node), "edges": edges}

    start = t["roots"].select(root=t["roots"].id_, node=t["roots"].id_)
    start = start.groupby(start.root, start.node).reduce(start.root, start.node)
    return pw.iterate(
        step, reached=pw.iterate_universe(start), edges=t["edges"].select(src=t["edges"].src, dst=t["edges"].dst)
    ).reached


def components(t: Tables) -> Any:
    """D."""

    def step(labels: Any, pairs: Any) -> Tables:
        offered = labels.join(pairs, labels.node == pairs.src).select(node=pairs.dst, label=labels.label)
        both = labels.concat_reindex(offered)
        least = both.groupby(both.node).reduce(both.node, label=pw.reducers.min(both.label))
        return {"labels": least, "pairs": pairs}

    edges, start = t["edges"], t["nodes"].select(node=t["nodes"].id_, label=t["nodes"].id_)
    start = start.groupby(start.node).reduce(start.node, label=pw.reducers.min(start.label))
    pairs = edges.select(edges.src, edges.dst).concat_reindex(edges.select(src=edges.dst, dst=edges.src))
    return pw.iterate(step, labels=pw.iterate_universe(start), pairs=pairs).labels


PROGRAMS: dict[str, tuple[Callable[[int], Any], Callable[[Tables], Any], tuple[str, ...]]] = {
    "A_S": (lambda n: Sales(100_000 // n), sales, ("customers", "orders", "lineitems")),
    "B": (lambda n: Events(400_000 // n, 1_000 // n), ten_best, ("events",)),
    "C_1k": (lambda n: Graph(1_000 // n), reach, ("roots", "edges")),
    "C_100k": (lambda n: Graph(100_000 // n), reach, ("roots", "edges")),
    "D_1k": (lambda n: Components(1_000 // n), components, ("nodes", "edges")),
    "D_100k": (lambda n: Components(100_000 // n), components, ("nodes", "edges")),
}


class Feeder(pw.io.python.ConnectorSubject):  # type: ignore[misc]
    """Feeds the base, then each batch once the previous one has been processed."""

    def __init__(self, made: Any, plan: list[tuple[int, int]]) -> None:
        super().__init__()
        self.made, self.plan = made, plan
        self.rows: dict[str, dict[int, Row]] = {}
        self.done = threading.Event()
        self.marked = 0
        self.times: dict[int, list[float]] = {}

    def run(self) -> None:
        """On pathway's thread."""
        base = self.made.base()
        self.rows = {table: {row[0]: row for row in rows} for table, rows in base.items()}
        self.transact((table, row, 1) for table, rows in base.items() for row in rows)
        for size, count in self.plan:
            self.times[size] = []
            for batch in self.made.batches(size, count):
                changes = list(self.changes(batch))
                begun = time.perf_counter()
                self.transact(changes)
                self.times[size].append(1e3 * (time.perf_counter() - begun))

    def changes(self, batch: Batch) -> Iterator[tuple[str, Row, int]]:
        """A batch as deleted and inserted rows."""
        for table, keys in batch.deletes.items():
            for key in keys:
                yield table, self.rows[table].pop(key), -1
        for table, rows in batch.updates.items():
            for row in rows:
                yield table, self.rows[table][row[0]], -1
                yield table, row, 1
                self.rows[table][row[0]] = row
        for table, rows in batch.inserts.items():
            for row in rows:
                yield table, row, 1
                self.rows[table][row[0]] = row

    def transact(self, changes: Any) -> None:
        """Runs one commit until its changes have been applied; a row of the table MARK identifies it."""
        self.done.clear()
        self.marked += 1
        for table, row, diff in changes:
            if diff > 0:
                self.next(t=table, k=row[0], row=row)
            else:
                self.delete(t=table, k=row[0], row=row)
        self.next(t=MARK, k=self.marked, row=(self.marked,))
        self.commit()
        assert self.done.wait(600)


class Given(pw.Schema):  # type: ignore[misc]
    """Rows of every table in one stream, so that a batch is one commit."""

    t: str = pw.column_definition(primary_key=True)
    k: int = pw.column_definition(primary_key=True)
    row: tuple


def split(given: Any, table: str) -> Any:
    """One table of the stream; a column ``id`` is renamed ``id_``, since pathway reserves the name."""
    mine = given.filter(given.t == table)
    columns = {name if name != "id" else "id_": (i, kind) for i, (name, kind) in enumerate(COLUMNS[table].items())}
    return mine.select(**{name: pw.declare_type(kind, mine.row[i]) for name, (i, kind) in columns.items()})


def main() -> None:
    """Run one program over its batches."""
    name, shrink, *plan = sys.argv[1:]
    make, program, tables = PROGRAMS[name]
    feeder = Feeder(make(int(shrink)), [(int(a), int(b)) for a, b in (cell.split(":") for cell in plan)])
    given = pw.io.python.read(feeder, schema=Given, autocommit_duration_ms=None)
    result = program({table: split(given, table) for table in tables})
    names = result.column_names()
    marks = given.filter(given.t == MARK)
    told = result.select(row=pw.make_tuple(0, *(result[n] for n in names))).update_types(row=tuple)
    both = told.concat_reindex(marks.select(row=pw.make_tuple(1, marks.k)).update_types(row=tuple))
    rows: dict[Row, int] = {}
    seen = 0

    def on_change(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        nonlocal seen
        values = row["row"]
        if values[0] == 1:
            seen = max(seen, values[1])
            return
        count = rows.get(values, 0) + (1 if is_addition else -1)
        if count:
            rows[values] = count
        else:
            del rows[values]

    def on_time_end(time: int) -> None:
        if seen == feeder.marked:
            feeder.done.set()

    pw.io.subscribe(both, on_change, on_time_end=on_time_end)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    print(json.dumps({"times": feeder.times, "rows": sorted(row[1:] for row in rows)}))


if __name__ == "__main__":
    main()
