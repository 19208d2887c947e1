"""FETCH FIRST … WITH TIES, and hypothetical-set aggregates."""

from __future__ import annotations

from itertools import product

SETUP = (
    "CREATE TABLE t (g int, x int, y text)",
    "INSERT INTO t VALUES (1, 1, 'a'), (1, 2, 'b'), (1, 2, 'b'), (1, 3, NULL)",
    "INSERT INTO t VALUES (2, NULL, 'c'), (2, 2, 'a'), (2, 5, 'd')",
)
CHANGES = (
    "DELETE FROM t WHERE x = 1",
    "INSERT INTO t VALUES (1, 2, 'b'), (1, NULL, NULL), (3, 4, 'c'), (NULL, 3, 'b')",
    "UPDATE t SET x = 6, y = 'e' WHERE x = 5",
    "DELETE FROM t WHERE g = 3",
)
_ORDERS = ("x", "x DESC", "y NULLS FIRST", "x, y DESC", "g DESC NULLS LAST, x")
_LIMITS = (
    "FETCH FIRST ROW WITH TIES", "FETCH FIRST 2 ROWS WITH TIES", "FETCH NEXT 0 ROWS WITH TIES",
    "OFFSET 1 FETCH FIRST 2 ROWS WITH TIES", "OFFSET 3 ROWS FETCH FIRST (1 + 1) ROWS WITH TIES",
    "OFFSET 2 FETCH FIRST 0 ROWS WITH TIES", "OFFSET 20 FETCH FIRST 1 ROWS WITH TIES",
)  # fmt: skip
_WITHIN = (
    "(2) WITHIN GROUP (ORDER BY x)", "(2) WITHIN GROUP (ORDER BY x DESC)", "(NULL) WITHIN GROUP (ORDER BY x)",
    "(NULL) WITHIN GROUP (ORDER BY x NULLS FIRST)", "('b') WITHIN GROUP (ORDER BY y DESC)",
    "(2, 'b') WITHIN GROUP (ORDER BY x, y)", "(2, 'b') WITHIN GROUP (ORDER BY x DESC NULLS LAST, y)",
    "(2.5) WITHIN GROUP (ORDER BY x) FILTER (WHERE y > 'a')", "(g) WITHIN GROUP (ORDER BY x)",
)  # fmt: skip
_STATEMENTS = (
    "SELECT x FROM t FETCH FIRST 2 ROWS WITH TIES",
    "SELECT x FROM t ORDER BY x FETCH FIRST NULL ROWS WITH TIES",
    "SELECT x FROM t ORDER BY x FETCH FIRST -1 ROWS WITH TIES",
    "SELECT * FROM (SELECT g, x FROM t ORDER BY g FETCH FIRST 1 ROWS WITH TIES) s WHERE x > 1",
    "SELECT g, count(*) FROM t GROUP BY g ORDER BY count(*) DESC FETCH FIRST 1 ROW WITH TIES",
    "SELECT DISTINCT x FROM t ORDER BY x FETCH FIRST 2 ROWS WITH TIES",
    "SELECT x FROM t UNION ALL SELECT g FROM t ORDER BY 1 FETCH FIRST 2 ROWS WITH TIES",
    "SELECT o.g, l.x FROM t o, LATERAL (SELECT x FROM t WHERE g = o.g ORDER BY x FETCH FIRST 1 ROW WITH TIES) l",
    "SELECT rank(x) WITHIN GROUP (ORDER BY x) FROM t",
    "SELECT rank(1, 2) WITHIN GROUP (ORDER BY x) FROM t",
    "SELECT rank('q') WITHIN GROUP (ORDER BY x) FROM t",
    "SELECT rank(2) WITHIN GROUP (ORDER BY x), cume_dist(2) WITHIN GROUP (ORDER BY x) FROM t WHERE false",
    "SELECT percent_rank(2) WITHIN GROUP (ORDER BY x), dense_rank(2) WITHIN GROUP (ORDER BY x) FROM t WHERE false",
    "SELECT g, rank(4) WITHIN GROUP (ORDER BY x) FROM t GROUP BY ROLLUP (g)",
)


def queries() -> list[str]:
    """Every order with every limit, and every aggregate of every argument."""
    # an OFFSET that ends among peers leaves open which of them are kept
    pairs = [(o, n) for o, n in product(_ORDERS, _LIMITS) if "," in o or "OFFSET" not in n]
    ties = [f"SELECT g, x, y FROM t ORDER BY {order} {limit}" for order, limit in pairs]
    names = ("rank", "dense_rank", "percent_rank", "cume_dist")
    sets = [f"SELECT g, {name}{within} AS r FROM t GROUP BY g" for name, within in product(names, _WITHIN)]
    whole = [f"SELECT {name}{within} AS r FROM t" for name, within in product(names, _WITHIN)]
    return [*ties, *sets, *whole, *_STATEMENTS]
