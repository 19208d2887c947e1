"""Workloads A (join and aggregate) and C (recursive reachability) for the server: rows, batches, views.

A batch is one transaction: rows inserted, updated and deleted by key. State carries over from batch to batch.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Row = tuple[Any, ...]

A_TABLES = {
    "customers": "cust_id bigint PRIMARY KEY, segment varchar NOT NULL",
    "orders": "order_id bigint PRIMARY KEY, cust_id bigint NOT NULL, region varchar NOT NULL, odate bigint NOT NULL",
    "lineitems": "line_id bigint PRIMARY KEY, order_id bigint NOT NULL, qty bigint NOT NULL, price bigint NOT NULL",
}
A_TYPES = {
    "orders": ("bigint", "bigint", "text", "bigint"),
    "lineitems": ("bigint", "bigint", "bigint", "bigint"),
}
A_VIEW = (
    "SELECT o.region, c.segment, count(*) AS cnt, sum(l.qty * l.price) AS revenue, max(l.price) AS max_price "
    "FROM lineitems l JOIN orders o ON l.order_id = o.order_id JOIN customers c ON o.cust_id = c.cust_id "
    "GROUP BY o.region, c.segment"
)
C_TABLES = {
    "roots": "id bigint PRIMARY KEY",
    "edges": "id bigint PRIMARY KEY, src bigint NOT NULL, dst bigint NOT NULL",
}
C_VIEW = (
    "WITH RECURSIVE reach(root, node) AS (SELECT id, id FROM roots UNION "
    "SELECT r.root, e.dst FROM reach r JOIN edges e ON r.node = e.src) SELECT root, node FROM reach"
)


@dataclass(slots=True)
class Batch:
    """One transaction: per table, rows to insert, whole new rows of keys to update, keys to delete."""

    inserts: dict[str, list[Row]] = field(default_factory=dict)
    updates: dict[str, list[Row]] = field(default_factory=dict)
    deletes: dict[str, list[int]] = field(default_factory=dict)


class Sales:
    """Workload A: 4 lineitems an order, 10 orders a customer; 10 segments, 20 regions."""

    def __init__(self, orders: int, seed: int = 11) -> None:
        self.rng = random.Random(seed)
        self.customers = [(i, f"S{self.rng.randrange(10)}") for i in range(orders // 10)]
        self.orders = [self._order(i) for i in range(orders)]
        self.lines = {i: self._line(i) for i in range(4 * orders)}
        self.keys = list(self.lines)
        self.next = len(self.keys)

    def _order(self, key: int) -> Row:
        return key, self.rng.randrange(len(self.customers)), f"R{self.rng.randrange(20):02}", self.rng.randrange(2000)

    def _line(self, key: int) -> Row:
        rng = self.rng
        return key, rng.randrange(len(self.orders)), rng.randint(1, 50), rng.randint(100, 1_000_000)

    def base(self) -> dict[str, list[Row]]:
        """The rows before the first batch."""
        return {"customers": self.customers, "orders": self.orders, "lineitems": list(self.lines.values())}

    def batches(self, size: int, count: int) -> Iterator[Batch]:
        """40 % inserts, 30 % updates and 20 % deletes of lineitems, 10 % orders that move to another region."""
        for _ in range(count):
            inserts: list[Row] = []
            updates: dict[int, Row] = {}
            moved: dict[int, Row] = {}
            deletes: set[int] = set()
            fresh = self.next
            for _ in range(size):
                draw = self.rng.random()
                if draw < 0.4:
                    inserts.append(self._line(self.next))
                    self.next += 1
                elif draw < 0.9:
                    at = self.rng.randrange(len(self.keys))
                    key = self.keys[at]
                    if draw < 0.7 and key not in deletes:
                        _, order, *_ = self.lines[key]
                        updates[key] = (key, order, *self._line(key)[2:])
                    elif key not in updates and key not in deletes:
                        deletes.add(key)
                else:
                    key = self.rng.randrange(len(self.orders))
                    _, customer, _, date = self.orders[key]
                    moved[key] = (key, customer, f"R{self.rng.randrange(20):02}", date)
            self._carry(inserts, updates, moved, deletes, fresh)
            yield Batch(
                {"lineitems": inserts},
                {"lineitems": list(updates.values()), "orders": list(moved.values())},
                {"lineitems": sorted(deletes)},
            )

    def _carry(
        self, inserts: list[Row], updates: dict[int, Row], moved: dict[int, Row], deletes: set[int], fresh: int
    ) -> None:
        for key, row in moved.items():
            self.orders[key] = row
        self.lines.update(updates)
        for row in inserts:
            self.lines[row[0]] = row
        for key in deletes:
            del self.lines[key]
        if deletes:
            self.keys = [k for k in self.keys if k not in deletes] if len(deletes) > 50 else self._without(deletes)
        self.keys.extend(range(fresh, self.next))

    def _without(self, deletes: set[int]) -> list[int]:
        for key in deletes:
            self.keys.remove(key)
        return self.keys


class Graph:
    """Workload C: twice as many distinct random edges as nodes; a batch replaces the oldest edges."""

    def __init__(self, nodes: int, seed: int = 13) -> None:
        self.rng = random.Random(seed)
        self.nodes = nodes
        self.live: set[tuple[int, int]] = set()
        self.edges = [self._edge(i) for i in range(2 * nodes)]
        self.oldest = 0

    def _edge(self, key: int) -> Row:
        while True:
            pair = (self.rng.randrange(self.nodes), self.rng.randrange(self.nodes))
            if pair[0] != pair[1] and pair not in self.live:
                self.live.add(pair)
                return key, *pair

    def base(self) -> dict[str, list[Row]]:
        """The rows before the first batch."""
        return {"roots": [(i,) for i in range(10)], "edges": list(self.edges)}

    def batches(self, size: int, count: int) -> Iterator[Batch]:
        """Each removes the ``size`` oldest edges and adds as many."""
        for _ in range(count):
            old = self.edges[self.oldest : self.oldest + size]
            self.oldest += size
            new = [self._edge(len(self.edges) + i) for i in range(size)]
            self.edges.extend(new)
            self.live.difference_update((a, b) for _, a, b in old)
            yield Batch({"edges": new}, {}, {"edges": [k for k, _, _ in old]})
