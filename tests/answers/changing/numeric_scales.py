"""Numerics whose scale is negative or greater than their precision; NULLs, duplicates and NaN included."""

from __future__ import annotations

from itertools import product

SETUP = (
    "CREATE DOMAIN thousands AS numeric(2,-3) CHECK (VALUE < 90000)",
    "CREATE TABLE t (g int, a numeric(2,-3), b numeric(3,5), c numeric(30,-2), d numeric(2,40), e thousands)",
    "INSERT INTO t VALUES (1, 12345, 0.001234, 12345678901234567890123450, 7e-40, 1500), "
    "(1, 12499, 0.001229, 150, -0.5e-40, 2499), (1, 11500, 0.001235, -150, 0.4e-40, NULL)",
    "INSERT INTO t VALUES (2, -500, -0.000005, 149, 99e-40, -500), (2, 499, 0.00999, 50, 1e-39, 499), "
    "(2, NULL, NULL, NULL, NULL, NULL), (2, NULL, NULL, NULL, NULL, NULL), (3, 'NaN', 'NaN', 'NaN', 'NaN', 0)",
    "CREATE TABLE u (k numeric(5,0), x numeric(6,5), y numeric)",
    "INSERT INTO u VALUES (12000, 0.00123, 12000.00), (0, 0, 0.0012300), (-1000, 0.00124, -1000), (NULL, NULL, NULL)",
)
CHANGES = (
    "DELETE FROM t WHERE a = 12000 AND b = 0.00124",
    "INSERT INTO t SELECT g, a, b, c, d, e FROM t WHERE g = 1",
    "UPDATE t SET a = a * 1.1, b = b / 3 + 0.000004, c = c * 7, d = d / 2 WHERE g = 2",
    "UPDATE t SET e = e + 600, a = NULL WHERE b = 0.00123",
    "DELETE FROM t WHERE g = 3",
    "INSERT INTO t VALUES (4, 99499.999, -0.009994, 1e31 - 1, -99.4e-40, 89499), (4, 12000, 0.00123, 0, 0, 12000)",
    "UPDATE u SET k = k + 1000 WHERE k = 0",
)
_COLUMNS = ("a", "b", "c", "d", "e")
_VALUES = (
    "{0}", "{0} + 1", "{0} * 0.5", "{0} / 7", "-{0}", "abs({0})", "round({0}, -3)", "{0}::text", "scale({0})",
    "{0}::numeric(2,-4)", "{0}::numeric(40,6)", "{0}::float8", "{0} > 0", "{0} IS DISTINCT FROM 12000",
    "coalesce({0}, 1.5)", "CASE WHEN g = 1 THEN {0} ELSE g END", "nullif({0}, 0)", "ARRAY[{0}]", "to_jsonb({0})",
    "greatest({0}, 0.001)",
)  # fmt: skip
_SUMS = (
    "count({0})", "sum({0})", "avg({0})", "min({0})", "max({0})", "sum(DISTINCT {0})", "variance({0})",
    "stddev_pop({0})", "sum({0} * 2)", "array_agg({0} ORDER BY {0})", "count(DISTINCT {0})",
    "percentile_disc(0.5) WITHIN GROUP (ORDER BY {0})",
)  # fmt: skip
_STATEMENTS = (
    "SELECT a + b, a * b, a - c, b * d, a / b FROM t WHERE b <> 0",
    "SELECT g, g::numeric(2,-1), (g * 15)::numeric(2,-1), (g * 1000000000000000000::bigint)::numeric(3,-17) FROM t",
    "SELECT (g::float8 * 1500)::numeric(3,-3), (g || '500')::numeric(2,-3), (a::text)::numeric(2,-3) FROM t",
    "SELECT (a * 10)::numeric(2,-3) FROM t",
    "SELECT t.g, u.y FROM t JOIN u ON t.a = u.k",
    "SELECT t.g, u.y FROM t JOIN u ON t.b = u.x",
    "SELECT t.g, u.y FROM t LEFT JOIN u ON t.a = u.y",
    "SELECT t.g, u.y FROM t JOIN u ON t.b = u.y",
    "SELECT p.g, q.g FROM t p JOIN t q ON p.a = q.e",
    "SELECT g FROM t WHERE a IN (SELECT k FROM u)",
    "SELECT g FROM t WHERE b NOT IN (SELECT x FROM u WHERE x IS NOT NULL)",
    "SELECT a FROM t UNION SELECT k FROM u",
    "SELECT a FROM t INTERSECT SELECT y FROM u",
    "SELECT b FROM t EXCEPT ALL SELECT x FROM u",
    "SELECT a, b, count(*) FROM t GROUP BY a, b",
    "SELECT a, b, count(*) FROM t GROUP BY ROLLUP (a, b)",
    "SELECT g, a, b FROM t ORDER BY a DESC NULLS LAST, b, g LIMIT 3",
    "SELECT g, a, rank() OVER (ORDER BY a), sum(b) OVER (PARTITION BY g ORDER BY b, a) FROM t",
    "SELECT a, sum(g) OVER (ORDER BY a RANGE BETWEEN 1500 PRECEDING AND 500.5 FOLLOWING) FROM t",
    "SELECT b, sum(g) OVER (ORDER BY b RANGE BETWEEN 0.000015 PRECEDING AND CURRENT ROW) FROM t",
    "SELECT t FROM t",
    "SELECT min(a), max(b) FROM t WHERE g > 1 HAVING count(*) > 2",
)


def queries() -> list[str]:
    """Every column in every expression and aggregate."""
    values = [f"SELECT g, {value.format(c)} AS r FROM t" for value, c in product(_VALUES, _COLUMNS)]
    sums = [f"SELECT g, {total.format(c)} AS r FROM t GROUP BY g" for total, c in product(_SUMS, _COLUMNS)]
    distinct = [f"SELECT {c}, count(*) FROM t GROUP BY {c}" for c in _COLUMNS]
    found = [f"SELECT g FROM t WHERE {c} = {x}" for c, x in product(_COLUMNS, ("12000.0", "0.00123", "200", "7e-40"))]
    return [*values, *sums, *distinct, *found, *_STATEMENTS]
