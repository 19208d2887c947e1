"""SEARCH and CYCLE over graphs that change, and recursive views of one's own name."""

from __future__ import annotations

SETUP = (
    "CREATE TABLE g (f int, t int, l text)",
    "INSERT INTO g VALUES (1, 2, 'a'), (1, 3, 'b'), (2, 3, 'c'), (1, 4, 'd'), (4, 5, 'e'), (5, 1, 'f'), "
    "(6, NULL, NULL)",
    "CREATE TABLE part (whole text, part text, n int)",
    "INSERT INTO part VALUES ('car', 'wheel', 4), ('car', 'door', 2), ('wheel', 'bolt', 5), ('door', 'bolt', 3)",
)
CHANGES = (
    "INSERT INTO g VALUES (3, 6, 'g'), (3, 4, NULL), (1, 2, 'a')",
    "DELETE FROM g WHERE l = 'f'",
    "UPDATE g SET t = 1 WHERE l = 'c'",
    "INSERT INTO part VALUES ('bolt', 'nut', 1), ('nut', 'bolt', 1)",
    "DELETE FROM part WHERE part = 'door'",
)
_GRAPH = "WITH RECURSIVE s(f, t, l) AS (SELECT * FROM g UNION {all} SELECT g.* FROM g, s WHERE g.f = s.t) {clauses} "
_CLAUSES = (
    "CYCLE f, t SET c USING p",
    "CYCLE t SET c USING p",
    "CYCLE f, t SET c TO 'Y' DEFAULT 'N' USING p",
    "SEARCH DEPTH FIRST BY f, t SET o CYCLE f, t SET c USING p",
    "SEARCH BREADTH FIRST BY f, t SET o CYCLE f, t SET c USING p",
    "SEARCH BREADTH FIRST BY l SET o CYCLE f SET c TO 1 DEFAULT 0 USING p",
)
_QUERIES = (
    "SELECT * FROM (WITH RECURSIVE b AS (SELECT 'car' AS name, 1 AS n UNION ALL "
    "SELECT part, b.n * p.n FROM b JOIN part p ON whole = name) CYCLE name SET c USING p "
    "SELECT name, n, c, cardinality(p) FROM b) q",
    "SELECT name, sum(n) FROM (WITH RECURSIVE b(name, n) AS (SELECT 'car', 1 UNION ALL "
    "SELECT part, b.n * p.n FROM b JOIN part p ON whole = name) CYCLE name SET c USING p SELECT * FROM b) q "
    "WHERE NOT c GROUP BY name",
    "SELECT f, (SELECT count(*) FROM (WITH RECURSIVE r(x) AS (SELECT g.t UNION ALL "
    "SELECT i.t FROM g i JOIN r ON i.f = r.x) CYCLE x SET c USING p SELECT * FROM r WHERE NOT c) q) FROM g",
)
_CHAIN = "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x WHERE n < 4) {} "
_PAIRS = "WITH RECURSIVE x(n, m) AS (SELECT 1, 2 UNION ALL SELECT n + 1, 3 FROM x WHERE n < 4) {} "
_STATEMENTS = (
    "CREATE MATERIALIZED VIEW v AS WITH RECURSIVE x(n) AS (SELECT 1 UNION SELECT n FROM x) CYCLE n SET c USING p "
    "TABLE x",
    _CHAIN.format("SEARCH DEPTH FIRST BY n SET o") + "SELECT * FROM x ORDER BY o",
    _CHAIN.format("SEARCH BREADTH FIRST BY n SET o") + "SELECT * FROM x ORDER BY o DESC",
    "WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM x) SEARCH DEPTH FIRST BY n SET o "
    "SELECT * FROM x LIMIT 4",
    "WITH RECURSIVE x AS (SELECT 0 AS n UNION ALL SELECT (n + 1) % 10 FROM x WHERE NOT c) CYCLE n SET c USING p "
    "SELECT * FROM x",
    "WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT * FROM x) CYCLE n SET c USING p SELECT * FROM x",
    "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT y.n + 1 FROM x y WHERE n < 3) CYCLE n SET c USING p TABLE x",
    _CHAIN.format("SEARCH DEPTH FIRST BY m SET o") + "SELECT 1",
    _CHAIN.format("SEARCH DEPTH FIRST BY n, n SET o") + "SELECT 1",
    _PAIRS.format("SEARCH DEPTH FIRST BY n SET m") + "SELECT 1", _CHAIN.format("CYCLE m SET c USING p") + "SELECT 1",
    _CHAIN.format("CYCLE n, n SET c USING p") + "SELECT 1", _PAIRS.format("CYCLE n SET m USING p") + "SELECT 1",
    _PAIRS.format("CYCLE n SET c USING m") + "SELECT 1", _CHAIN.format("CYCLE n SET c USING c") + "SELECT 1",
    _CHAIN.format("CYCLE n SET c TO true DEFAULT 55 USING p") + "SELECT 1",
    _CHAIN.format("CYCLE n SET c TO json '{{}}' DEFAULT json '[]' USING p") + "SELECT 1",
    _CHAIN.format("CYCLE n SET c TO '1'::int DEFAULT 0 USING p") + "SELECT 1",
    _CHAIN.format("CYCLE n SET c TO n DEFAULT 0 USING p") + "SELECT 1",
    _CHAIN.format("CYCLE n SET c TO date '2024-01-01' DEFAULT NULL USING p") + "TABLE x",
    _CHAIN.format("SEARCH DEPTH FIRST BY n SET o CYCLE n SET o USING p") + "SELECT 1",
    _CHAIN.format("SEARCH DEPTH FIRST BY n SET o CYCLE n SET c USING o") + "SELECT 1",
    "WITH RECURSIVE x(n) AS (SELECT 1) SEARCH DEPTH FIRST BY n SET o SELECT 1",
    "WITH x(n) AS (SELECT 1) CYCLE n SET c USING p SELECT 1",
    "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT n + 1 FROM x WHERE n < 4) "
    "SEARCH DEPTH FIRST BY n SET o SELECT 1",
    "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL (SELECT 2 UNION ALL SELECT n + 1 FROM x WHERE n < 4)) "
    "SEARCH DEPTH FIRST BY n SET o SELECT 1",
    "WITH RECURSIVE x(n) AS (SELECT 1 UNION (WITH x AS (SELECT * FROM x) SELECT * FROM x)) "
    "SEARCH DEPTH FIRST BY n SET o SELECT 1",
    "CREATE RECURSIVE VIEW v (f, t) AS SELECT f, t FROM g UNION SELECT v.f, g.t FROM v, g WHERE g.f = v.t; TABLE v",
    "CREATE RECURSIVE VIEW v (n) AS VALUES (1) UNION ALL SELECT n + 1 FROM v WHERE n < 5 WITH CHECK OPTION",
    "CREATE RECURSIVE VIEW v (n, m) AS VALUES (1)",
)  # fmt: skip


def queries() -> list[str]:
    """All queries; those that begin with SELECT become views."""
    graphs = [
        f"SELECT {'o::text, ' if 'SEARCH' in clauses else ''}f, t, l, c, p::text FROM ("
        + _GRAPH.format(all=every, clauses=clauses)
        + "SELECT * FROM s) q"
        for clauses in _CLAUSES
        for every in ("ALL", "")
    ]
    return [*graphs, *_QUERIES, *_STATEMENTS]
