"""Items of FROM: functions side by side and numbered, LATERAL, aliases of USING, and rows compared with subqueries."""

from __future__ import annotations

SETUP = (
    "CREATE TABLE a (k int, n int)",
    "CREATE TABLE b (k int, m int, s text)",
    "CREATE FUNCTION upto(n int) RETURNS SETOF int LANGUAGE sql AS 'SELECT generate_series(1, n)'",
    "CREATE FUNCTION pairs(n int) RETURNS TABLE (x int, y text) LANGUAGE sql AS "
    "'SELECT i, ''t'' || i FROM generate_series(1, n) i'",
    "CREATE FUNCTION twice(n int) RETURNS int LANGUAGE sql AS 'SELECT n * 2'",
    "INSERT INTO a VALUES (1, 2), (1, 3), (2, 5), (NULL, 1), (3, NULL)",
    "INSERT INTO b VALUES (1, 2, 'x'), (1, 4, 'y'), (2, 5, 'x'), (4, 1, NULL), (NULL, 3, 'z')",
)
CHANGES = (
    "INSERT INTO a VALUES (4, 1), (1, 2)",
    "UPDATE a SET n = n + 1 WHERE k = 2",
    "DELETE FROM b WHERE s = 'y'",
    "INSERT INTO b VALUES (3, 0, 'w'), (2, 6, 'v')",
    "DELETE FROM a WHERE k IS NULL",
)
_QUERIES = (
    "SELECT k, g.* FROM a, generate_series(5, 5 + n) WITH ORDINALITY g",
    "SELECT k, f.* FROM a, upto(n) WITH ORDINALITY f(v, i)",
    "SELECT k, f.* FROM a, pairs(n) WITH ORDINALITY f",
    "SELECT k, f.* FROM a, twice(n) WITH ORDINALITY f",
    "SELECT k, f.* FROM a, upper(k::text) WITH ORDINALITY f",
    "SELECT k, r.* FROM a, ROWS FROM (generate_series(1, k), generate_series(7, 6 + n)) WITH ORDINALITY r",
    "SELECT k, r.* FROM a, ROWS FROM (upto(k), pairs(n), upper('q'), twice(k)) WITH ORDINALITY AS r(a, b, c, d, e, o)",
    "SELECT k, r.* FROM a, ROWS FROM (upto(k), generate_series(1, n)) r",
    "SELECT k, r.* FROM a LEFT JOIN LATERAL ROWS FROM (upto(k - 1), upto(n - 2)) r ON true",
    "SELECT k, r.* FROM a, ROWS FROM (jsonb_to_recordset(jsonb_build_array(jsonb_build_object('q', n))) AS (q int), "
    "unnest(ARRAY[k, n])) WITH ORDINALITY r",
    "SELECT k, x FROM a LEFT JOIN LATERAL (SELECT m AS x FROM b WHERE b.k = a.k ORDER BY m LIMIT 1) q ON true",
    "SELECT k, v FROM a, LATERAL (VALUES (k), (n)) q(v)",
    "SELECT k, h FROM a, LATERAL generate_series(1, n) g, LATERAL (SELECT g * 10 + k) i(h)",
    "SELECT j.*, n, m FROM a JOIN b USING (k) AS j",
    "SELECT j.k, a.n FROM a FULL JOIN b USING (k) AS j",
    "SELECT k, n, (k, n) = (SELECT b.k, min(b.m) FROM b WHERE b.k = a.k GROUP BY b.k) FROM a",
    "SELECT k, n FROM a WHERE (k, n) = (SELECT b.k, min(b.m) FROM b WHERE b.k = a.k GROUP BY b.k)",
    "SELECT k, n, (k, n) < (SELECT 2, max(m) FROM b), (k, n) <> (SELECT k, n WHERE n > 2) FROM a",
    "SELECT k, n FROM a WHERE (k, n) IN (SELECT k, m FROM b)",
    "SELECT k, n FROM a WHERE (k, n) NOT IN (SELECT k, m FROM b WHERE k IS NOT NULL)",
    "SELECT k, n FROM a WHERE (k, n) <= ALL (SELECT k + 1, m FROM b WHERE k IS NOT NULL)",
    "SELECT k, (SELECT sum(a.n + (SELECT count(*) FROM b WHERE b.k = a.k))) FROM a GROUP BY k",
    "SELECT sum((SELECT max(m) FROM b WHERE b.k = a.k)) FROM a",
    "SELECT k, n, (SELECT m FROM b ORDER BY m LIMIT 1 OFFSET k) FROM a",
    "SELECT k, n, m FROM a, LATERAL (SELECT m FROM b ORDER BY m LIMIT n) q",
    "SELECT k, n, m FROM a, LATERAL (SELECT m FROM b ORDER BY m LIMIT (SELECT count(*) FROM b i WHERE i.k = a.k)) q",
    "SELECT m FROM b ORDER BY m DESC LIMIT (SELECT min(n) FROM a) OFFSET (SELECT 1)",
)
_STATEMENTS = (
    "select m FROM b LIMIT (SELECT -1)", "select m FROM b OFFSET (SELECT -1)", "select m FROM b LIMIT m",
    "select m FROM b ORDER BY m LIMIT (SELECT NULL::int)", "select m FROM b LIMIT (SELECT 1, 2)",
    "WITH RECURSIVE w AS (SELECT 1 AS k) MERGE INTO a USING w ON a.k = w.k WHEN MATCHED THEN DELETE",
    "CREATE VIEW v AS SELECT k FROM a TABLESAMPLE SYSTEM (1); INSERT INTO v VALUES (1)",
    "select * FROM ROWS FROM (generate_series(1, 3), unnest(ARRAY['a', 'b']))",
    "select * FROM ROWS FROM (upto(2), pairs(3), upper('q'), twice(1)) WITH ORDINALITY AS r(a, b, c, d, e, o)",
    "select * FROM ROWS FROM (upper('q'), generate_series(1, 2)) AS x",
    "select * FROM ROWS FROM (json_to_recordset('[{\"a\": 1, \"b\": \"x\"}, {\"a\": 2}]') AS (a int, b text), "
    "generate_series(1, 3)) WITH ORDINALITY AS q(r, s, t, u)",
    "select * FROM json_to_recordset('[{\"a\": 1}]') WITH ORDINALITY AS t(a int)",
    "select * FROM generate_series(1, 2) AS t(a int)", "select * FROM pairs(1) AS (x int)",
    "select * FROM ROWS FROM (json_to_recordset('[{\"a\": 1}]'))",
    "select * FROM current_date WITH ORDINALITY AS d(x, o) WHERE x IS NULL",
    "select (1, 2) = (SELECT 1)", "select (1, 2) = (SELECT 1, 2, 3)", "select (1, 2) = (SELECT 1, 2 UNION SELECT 3, 4)",
    "select (1, 2) = (SELECT 1, 2 WHERE false)", "select ROW(1, 2) >= (SELECT 1, NULL::int)",
    "select * FROM a JOIN b USING (k) AS a", "select a.k, j.n FROM a JOIN b USING (k) AS j",
    "select * FROM (a JOIN b USING (k) AS j) AS q WHERE j.k = 1",
    "select count(*) FROM a TABLESAMPLE BERNOULLI (100)", "select count(*) FROM a TABLESAMPLE system (0)",
    "select k, n FROM a AS q TABLESAMPLE SYSTEM (100) REPEATABLE (1.5)",
    "select count(*) FROM a TABLESAMPLE bernoulli (101)", "select count(*) FROM a TABLESAMPLE bernoulli (NULL)",
    "select count(*) FROM a TABLESAMPLE bernoulli (50) REPEATABLE (NULL)", "select 1 FROM a TABLESAMPLE foo (1)",
    "select 1 FROM a TABLESAMPLE bernoulli (1, 2)", "select 1 FROM a TABLESAMPLE bernoulli ()",
    "select 1 FROM a TABLESAMPLE bernoulli ('x')", "select 1 FROM pg_views TABLESAMPLE bernoulli (1)",
    "WITH q AS (SELECT 1) SELECT * FROM q TABLESAMPLE bernoulli (1)",
    "select 1 FROM (SELECT 1) s TABLESAMPLE system (1)",
    "select p, (SELECT count(*) FROM a TABLESAMPLE bernoulli (p)) FROM (VALUES (0), (100)) v(p)",
)  # fmt: skip


def queries() -> list[str]:
    """All queries; those that begin with SELECT become views."""
    return [*_QUERIES, *_STATEMENTS]
