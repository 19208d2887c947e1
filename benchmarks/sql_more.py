"""Workloads B (top ten of each group), D (connected components) and E (TPC-H's Q3, Q5 and Q18) for the server."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, timedelta

from benchmarks.sql_workloads import Batch, Graph, Row

B_TABLES = {"events": "id bigint PRIMARY KEY, grp bigint NOT NULL, score bigint NOT NULL"}
B_VIEW = (
    "SELECT grp, id, score, rn FROM (SELECT grp, id, score, row_number() OVER "
    "(PARTITION BY grp ORDER BY score DESC, id) AS rn FROM events) t WHERE rn <= 10"
)
D_TABLES = {
    "nodes": "id bigint PRIMARY KEY",
    "edges": "id bigint PRIMARY KEY, src bigint NOT NULL, dst bigint NOT NULL",
}
D_VIEW = (
    "WITH MUTUALLY RECURSIVE cc (node bigint, label bigint) AS (SELECT node, min(label) FROM ("
    "SELECT id AS node, id AS label FROM nodes UNION ALL "
    "SELECT e.dst, c.label FROM cc c JOIN edges e ON c.node = e.src UNION ALL "
    "SELECT e.src, c.label FROM cc c JOIN edges e ON c.node = e.dst) t GROUP BY node) SELECT node, label FROM cc"
)
_REVENUE = "sum(l.l_extendedprice * (100 - l.l_discount)) AS revenue"
_LINES = "customer c JOIN orders o ON c.c_custkey = o.o_custkey JOIN lineitem l ON l.l_orderkey = o.o_orderkey"
E_TABLES = {
    "region": "r_regionkey bigint PRIMARY KEY, r_name varchar NOT NULL",
    "nation": "n_nationkey bigint PRIMARY KEY, n_name varchar NOT NULL, n_regionkey bigint NOT NULL",
    "supplier": "s_suppkey bigint PRIMARY KEY, s_nationkey bigint NOT NULL",
    "customer": "c_custkey bigint PRIMARY KEY, c_name varchar NOT NULL, c_mktsegment varchar NOT NULL, "
    "c_nationkey bigint NOT NULL",
    "orders": "o_orderkey bigint PRIMARY KEY, o_custkey bigint NOT NULL, o_orderdate bigint NOT NULL, "
    "o_shippriority bigint NOT NULL, o_totalprice bigint NOT NULL",
    "lineitem": "l_id bigint PRIMARY KEY, l_orderkey bigint NOT NULL, l_linenumber bigint NOT NULL, "
    "l_suppkey bigint NOT NULL, l_quantity bigint NOT NULL, l_extendedprice bigint NOT NULL, "
    "l_discount bigint NOT NULL, l_shipdate bigint NOT NULL",
}
E_VIEWS = {
    "E3": f"SELECT l.l_orderkey, o.o_orderdate, o.o_shippriority, {_REVENUE} FROM {_LINES} "
    "WHERE c.c_mktsegment = 'BUILDING' AND o.o_orderdate < 19950315 AND l.l_shipdate > 19950315 "
    "GROUP BY l.l_orderkey, o.o_orderdate, o.o_shippriority",
    "E5": f"SELECT n.n_name, {_REVENUE} FROM {_LINES} JOIN supplier s ON l.l_suppkey = s.s_suppkey "
    "JOIN nation n ON s.s_nationkey = n.n_nationkey JOIN region r ON n.n_regionkey = r.r_regionkey "
    "WHERE c.c_nationkey = s.s_nationkey AND r.r_name = 'ASIA' AND o.o_orderdate >= 19940101 "
    "AND o.o_orderdate < 19950101 GROUP BY n.n_name",
    "E18": "SELECT c.c_name, c.c_custkey, o.o_orderkey, o.o_orderdate, o.o_totalprice, sum(l.l_quantity) AS q "
    f"FROM {_LINES} WHERE o.o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey "
    "HAVING sum(l_quantity) > 300) GROUP BY c.c_name, c.c_custkey, o.o_orderkey, o.o_orderdate, o.o_totalprice",
}
_SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
_REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")


class Events:
    """Workload B: 400 events a group on average; 40 % inserts, 30 % new scores, 30 % deletes."""

    def __init__(self, count: int = 400_000, groups: int = 1_000, seed: int = 12) -> None:
        self.rng = random.Random(seed)
        self.groups = groups
        self.rows = {i: self._event(i) for i in range(count)}
        self.keys = list(self.rows)
        self.next = count

    def _event(self, key: int) -> Row:
        return key, self.rng.randrange(self.groups), self.rng.randrange(1_000_000)

    def base(self) -> dict[str, list[Row]]:
        """The rows before the first batch."""
        return {"events": list(self.rows.values())}

    def batches(self, size: int, count: int) -> Iterator[Batch]:
        """A key is touched at most once in a batch."""
        for _ in range(count):
            inserts: list[Row] = []
            updates: list[Row] = []
            deletes: list[int] = []
            seen: set[int] = set()
            for _ in range(size):
                draw = self.rng.random()
                if draw < 0.4:
                    inserts.append(self._event(self.next))
                    self.next += 1
                    continue
                at = self.rng.randrange(len(self.keys))
                key = self.keys[at]
                if key in seen:
                    continue
                seen.add(key)
                if draw < 0.7:
                    updates.append((key, self.rows[key][1], self.rng.randrange(1_000_000)))
                else:
                    deletes.append(key)
                    self.keys[at] = self.keys[-1]
                    self.keys.pop()
            self.rows.update((row[0], row) for row in inserts + updates)
            self.keys += [row[0] for row in inserts]
            yield Batch({"events": inserts}, {"events": updates}, {"events": deletes})


class Components(Graph):
    """Workload D: the edges of workload C, undirected, and every node."""

    def base(self) -> dict[str, list[Row]]:
        """The rows before the first batch."""
        return {"nodes": [(i,) for i in range(self.nodes)], "edges": list(self.edges)}


class Orders:
    """Workload E, like TPC-H at scale 0.1; a batch removes random line items and adds as many."""

    def __init__(self, scale: float = 0.1, seed: int = 15) -> None:
        rng = self.rng = random.Random(seed)
        customers, orders, self.suppliers = int(150_000 * scale), int(1_500_000 * scale), int(10_000 * scale)
        self.days = [int((date(1992, 1, 1) + timedelta(i)).strftime("%Y%m%d")) for i in range(2_557)]
        self.ordered = [rng.randrange(2_406) for _ in range(orders)]
        self.tables: dict[str, list[Row]] = {
            "region": list(enumerate(_REGIONS)),
            "nation": [(i, f"NATION{i:02}", i % 5) for i in range(25)],
            "supplier": [(i, rng.randrange(25)) for i in range(1, self.suppliers + 1)],
            "customer": [
                (i, f"Customer#{i:09}", rng.choice(_SEGMENTS), rng.randrange(25)) for i in range(1, customers + 1)
            ],
            "orders": [
                (i, rng.randint(1, customers), self.days[self.ordered[i - 1]], 0, rng.randrange(100_000, 50_000_000))
                for i in range(1, orders + 1)
            ],
        }
        lines = [(order, number) for order in range(1, orders + 1) for number in range(1, rng.randint(1, 7) + 1)]
        self.tables["lineitem"] = [(i, *self._line(*line)) for i, line in enumerate(lines)]
        self.keys = list(range(len(lines)))
        self.next = len(lines)

    def _line(self, order: int, number: int) -> Row:
        rng = self.rng
        shipped = self.days[min(len(self.days) - 1, self.ordered[order - 1] + rng.randint(1, 121))]
        return (
            order, number, rng.randint(1, self.suppliers), rng.randint(1, 50), rng.randrange(90_000, 10_000_000),
            rng.randint(0, 10), shipped,
        )  # fmt: skip

    def base(self) -> dict[str, list[Row]]:
        """The rows before the first batch."""
        return self.tables

    def batches(self, size: int, count: int) -> Iterator[Batch]:
        """Each removes ``size`` line items and adds as many."""
        for _ in range(count):
            deletes = []
            for _ in range(size):
                at = self.rng.randrange(len(self.keys))
                deletes.append(self.keys[at])
                self.keys[at] = self.keys[-1]
                self.keys.pop()
            inserts = [(self.next + i, *self._line(self.rng.randint(1, len(self.ordered)), 8)) for i in range(size)]
            self.keys += range(self.next, self.next + size)
            self.next += size
            yield Batch({"lineitem": inserts}, {}, {"lineitem": deletes})
