"""GROUPING SETS, ROLLUP and CUBE with GROUPING, HAVING, FILTER, joins and subqueries, drawn from a seed."""

from __future__ import annotations

import random

SEED, COUNT = 11, 170
SETUP = (
    "CREATE TABLE t (a int NOT NULL, b int, c text, n numeric(6, 2), v int)",
    "CREATE TABLE u (id int PRIMARY KEY, name text NOT NULL)",
    "INSERT INTO t VALUES (1, 1, 'x', 1.50, 10), (1, 1, 'x', 1.50, 10), (1, NULL, 'y', 2, 12), (2, 1, NULL, 0, NULL)",
    "INSERT INTO t VALUES (2, 3, 'x', 1.50, 15), (3, 3, 'y', NULL, 16), (3, 4, 'x', -1, 17)",
    "INSERT INTO u VALUES (1, 'one'), (2, 'two'), (4, 'four')",
)
CHANGES = (
    "DELETE FROM t WHERE a = 3",
    "INSERT INTO t VALUES (4, 4, 'z', 9, 1), (1, 1, 'x', 1.5, 10), (4, NULL, NULL, NULL, NULL)",
    "UPDATE t SET b = 7, c = 'q' WHERE v = 15",
    "UPDATE u SET name = 'uno' WHERE id = 1",
    "DELETE FROM t WHERE v = 12",
)
_KEYS = ("a", "b", "c", "a + 1", "upper(c)", "n", "b IS NULL")
_AGGREGATES = (
    "count(*)", "sum(v)", "sum(n)", "max(v)", "min(c)", "count(DISTINCT b)", "string_agg(c, ',' ORDER BY c, v)",
    "sum(v) FILTER (WHERE b > 1)", "bool_or(b IS NULL)", "array_agg(v ORDER BY v)", "avg(n)",
    "percentile_disc(0.5) WITHIN GROUP (ORDER BY v)",
)  # fmt: skip
_STATEMENTS = (
    "SELECT a FROM t GROUP BY ROLLUP (b)",
    "SELECT GROUPING(a) FROM t GROUP BY b",
    "SELECT GROUPING(a) FROM t",
    "SELECT count(GROUPING(a)) FROM t GROUP BY a",
    "SELECT 1 FROM t GROUP BY GROUPING(a)",
    "SELECT a FROM t WHERE GROUPING(a) = 0 GROUP BY a",
    "SELECT GROUPING() FROM t GROUP BY a",
    "SELECT GROUPING(a) FROM t GROUP BY a",
    "SELECT (SELECT GROUPING(a, b) FROM t) FROM t GROUP BY a, b",
    "SELECT count(*) FROM t GROUP BY CUBE (a, a, a, a, a, a, a, a, a, a, a, a, a)",
    "SELECT count(*) FROM t GROUP BY CUBE (a, a, a, a, a, a, a, a, a, a, a, a), ROLLUP (b)",
    "SELECT count(*) FROM t GROUP BY ()",
    "SELECT 1 FROM t GROUP BY ()",
    "SELECT 1 FROM t WHERE false GROUP BY GROUPING SETS ((), ())",
    "SELECT sum(v), count(*) FROM t WHERE false GROUP BY GROUPING SETS ((), (), a)",
    "SELECT a, b, sum(v) FROM t WHERE v > 100 GROUP BY CUBE (a, b)",
    "SELECT a AS x, a AS y, count(*) FROM t GROUP BY x, ROLLUP (y)",
    "SELECT a, a + 1 AS n FROM t GROUP BY GROUPING SETS (a, a + 1)",
    "SELECT id, name, sum(v) FROM t JOIN u ON id = a GROUP BY GROUPING SETS ((id, b), (id, c))",
    "SELECT id, name FROM t JOIN u ON id = a GROUP BY GROUPING SETS (id, b)",
    "SELECT name, b, GROUPING(name, b), count(*) FROM t LEFT JOIN u ON id = a GROUP BY CUBE (name, b)",
    "SELECT a, b, count(*) FROM t JOIN t s USING (a, b) GROUP BY ROLLUP (a, b)",
    "SELECT * FROM (SELECT a, b, sum(v) AS s FROM t GROUP BY ROLLUP (a, b)) g WHERE a = 1",
    "SELECT * FROM (SELECT a, b, sum(v) AS s FROM t GROUP BY ROLLUP (a, b)) g WHERE b IS NULL AND s > 20",
    "SELECT u.id, g.s FROM u LEFT JOIN (SELECT a, sum(v) AS s FROM t GROUP BY ROLLUP (a)) g ON g.a = u.id",
    "SELECT id, l.* FROM u, LATERAL (SELECT b, count(*) FROM t WHERE a = id GROUP BY ROLLUP (b)) l",
    "SELECT id, l.* FROM u LEFT JOIN LATERAL (SELECT b, id + count(*) FROM t GROUP BY CUBE (b, id)) l ON true",
    "SELECT a, (SELECT count(*) FROM u WHERE id <= t.a) FROM t GROUP BY ROLLUP (a)",
    "SELECT (SELECT GROUPING(a, b)), count(*) FROM t GROUP BY CUBE (a, b)",
    "SELECT (SELECT max(id) + GROUPING(a) FROM u) FROM t GROUP BY ROLLUP (a)",
    "SELECT a, count(*), count(*) OVER (), rank() OVER (ORDER BY GROUPING(a), a) FROM t GROUP BY ROLLUP (a)",
    "SELECT a, generate_series(1, 2), count(*) FROM t GROUP BY ROLLUP (a)",
    "SELECT generate_series(1, 2) AS g, count(*) FROM t GROUP BY ROLLUP (g)",
    "SELECT DISTINCT GROUPING(a), GROUPING(b) FROM t GROUP BY CUBE (a, b)",
    "SELECT a, b, count(*) FROM t GROUP BY DISTINCT ROLLUP (a, b), ROLLUP (a, b)",
    "SELECT a, b, count(*) FROM t GROUP BY ALL ROLLUP (a, b), ROLLUP (a, b)",
    "SELECT a, sum(v) FROM t GROUP BY ROLLUP (a) HAVING a IS DISTINCT FROM 1",
    "SELECT sum(v) FROM t GROUP BY ROLLUP (a) UNION ALL SELECT id FROM u",
    "SELECT count(*) FROM t GROUP BY row(a, b)",
    "SELECT a + 0, a IS NULL, COALESCE(a, -1), count(*) FROM t GROUP BY ROLLUP (a)",
    "SELECT abs(a + 1), count(*) FROM t GROUP BY ROLLUP (a + 1)",
    "SELECT COALESCE(a + 1, 0) + 1, count(*) FROM t GROUP BY CUBE (a + 1, b)",
)


def queries() -> list[str]:
    """The queries of the seed, then those that are written out."""
    rnd = random.Random(SEED)
    drawn = dict.fromkeys(_query(rnd) for _ in range(COUNT))
    return [*drawn, *_STATEMENTS]


def _query(rnd: random.Random) -> str:
    keys = rnd.sample(_KEYS, rnd.randint(1, 3))
    shown = [*keys, *rnd.sample(_AGGREGATES, rnd.randint(1, 2))]
    if rnd.random() < 0.5:
        shown.append(f"GROUPING({', '.join(rnd.sample(keys, rnd.randint(1, len(keys))))})")
    items = [_item(rnd, keys, 2)]
    if rnd.random() < 0.3:
        items.append(_item(rnd, keys, 1))
    items += [k for k in keys if k not in " ".join(items)]
    text = f"SELECT {', '.join(f'{s} AS c{i}' for i, s in enumerate(shown))} FROM t GROUP BY {', '.join(items)}"
    if rnd.random() < 0.25:
        text += rnd.choice((" HAVING count(*) > 1", f" HAVING GROUPING({keys[0]}) = 0", f" HAVING {keys[0]} IS NULL"))
    if rnd.random() < 0.2:
        text += f" ORDER BY {', '.join(str(i + 1) for i in range(len(shown)))} LIMIT {rnd.randint(1, 6)}"
    return text


def _item(rnd: random.Random, keys: list[str], depth: int) -> str:
    kind = rnd.choice(("ROLLUP", "CUBE", "GROUPING SETS", "GROUPING SETS", "key"))
    if kind == "key":
        return rnd.choice(keys)
    if kind != "GROUPING SETS":
        return f"{kind} ({', '.join(_element(rnd, keys) for _ in range(rnd.randint(1, 2)))})"
    sets = [rnd.choice(("()", _element(rnd, keys))) for _ in range(rnd.randint(1, 2))]
    if depth > 1:
        sets.append(_item(rnd, keys, depth - 1))
    return f"GROUPING SETS ({', '.join(sets)})"


def _element(rnd: random.Random, keys: list[str]) -> str:
    chosen = rnd.sample(keys, rnd.randint(1, len(keys)))
    return chosen[0] if len(chosen) == 1 else f"({', '.join(chosen)})"
