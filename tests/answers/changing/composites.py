"""Composite types: rows stored in columns and arrays, their fields, comparison, and a table's row type."""

from __future__ import annotations

SETUP = (
    "CREATE TYPE pt AS (x int, y numeric(6,2), s varchar(3))",
    "CREATE TYPE seg AS (a pt, b pt)",
    "CREATE TABLE t (id int PRIMARY KEY, p pt, q pt[], g seg)",
    "INSERT INTO t VALUES (1, ROW(1, 2.345, 'abc'), ARRAY[ROW(1, 2, 'a'), ROW(3, 4, NULL)]::pt[], '(\"(1,2,a)\",)')",
    "INSERT INTO t VALUES (2, '(1,2.35,abc)', '{NULL}', ROW(ROW(1, 2, 'b'), ROW(3, NULL, 'c')))",
    "INSERT INTO t VALUES (3, NULL, NULL, NULL), (4, ROW(NULL, NULL, NULL), '{}', ROW(NULL, ROW(1, 1, '\"\\')))",
    "INSERT INTO t (id, p.x, q[1].s, g.a.x, g.b) VALUES (5, 7, 'z', 8, ROW(1, 2, ''))",
    "CREATE TABLE other (r t, n int)",
    "INSERT INTO other SELECT t, id FROM t WHERE id < 4",
)
CHANGES = (
    "DELETE FROM t WHERE id = 2",
    "UPDATE t SET p.y = 9.999, p.s = 'n', q[1].x = 11 WHERE id IN (1, 3)",
    "UPDATE t SET g.b.y = (g).b.x, p = ROW(id, id, id::text) WHERE id = 5",
    "INSERT INTO t VALUES (6, ROW(1, 2.35, 'abc'), NULL, ROW(ROW(0, 0, ''), NULL))",
    "UPDATE other SET r.p = ROW(1, 10, 'n'), n = 20 WHERE n = 1",
    "INSERT INTO other VALUES (ROW(9, NULL, NULL, NULL), NULL), (NULL, 0)",
)
_QUERIES = (
    "SELECT * FROM t", "SELECT id, (p).*, (g).a, ((g).b).s FROM t", "SELECT id, q[1], (q[2]).x FROM t",
    "SELECT p, count(*), min(id), array_agg(id ORDER BY id) FROM t GROUP BY p",
    "SELECT DISTINCT g FROM t", "SELECT id FROM t WHERE p = ROW(1, 2.35, 'abc')::pt",
    "SELECT a.id, b.id FROM t a JOIN t b ON a.p = b.p", "SELECT a.id, b.id FROM t a LEFT JOIN t b ON a.p < b.p",
    "SELECT id, p IS NULL, p IS NOT NULL, g IS NULL, (g).a IS NULL FROM t",
    "SELECT id, p IS DISTINCT FROM ROW(NULL, NULL, NULL)::pt, coalesce(p, '(0,0,z)') FROM t",
    "SELECT id, row_number() OVER (ORDER BY p, id), lag(p) OVER (ORDER BY id) FROM t",
    "SELECT count(DISTINCT p), count(p), count(g) FROM t", "SELECT array_agg(p ORDER BY p, id) FROM t",
    "SELECT id, u FROM t, unnest(q) u WHERE u.x > 0", "SELECT id, u.* FROM t, unnest(q) u",
    "SELECT id, t::text, p::text FROM t", "SELECT id, row_to_json(p), to_jsonb(t) FROM t",
    "select id, pg_typeof(p)::text, pg_typeof(t)::text, pg_typeof(q)::text, pg_typeof((g).b)::text FROM t",
    "SELECT n, (r).id, (r).p, ((r).g).a FROM other", "SELECT r FROM other", "SELECT x(p), y(p) FROM t",
    "SELECT o.n, t.id FROM other o JOIN t ON (o.r).p = t.p", "SELECT o.r = t FROM other o, t WHERE o.n = t.id",
    "SELECT id, CASE WHEN id = 1 THEN p ELSE ROW(0, 0, 'k')::pt END FROM t",
    "SELECT p FROM t UNION SELECT (g).a FROM t",
    "SELECT id FROM t WHERE p IN (SELECT (g).a FROM t)", "SELECT id, (SELECT p FROM t i WHERE i.id = t.id + 1) FROM t",
    "SELECT id FROM t WHERE (p, id) > (ROW(1, 1, 'a')::pt, 1)", "SELECT id, ARRAY[p, (g).a] FROM t",
    "select ROW(p, id)::text, (ROW(id, p)).f2 FROM t", "SELECT id, g < ROW(ROW(1, 2, 'b'), NULL)::seg FROM t",
)  # fmt: skip
_STATEMENTS = (
    "select '(1,2,a)'::pt, ' (1,,) '::pt, '(,,\"\")'::pt, E'(1,2,\"\\\\\"\")'::pt", "select '(1,2)'::pt",
    "select '(1,2,a,b)'::pt",
    "select '(1,2,a) x'::pt", "select '[1]'::pt", "select '(1,2,a'::pt", "select '(1,x,a)'::pt",
    "select '(1,2,abcd)'::pt", "select ROW(1, 2, 'abcd')::pt", "select ROW(1, 2)::pt", "select ROW(1, 2, 3, 4)::pt",
    "select ROW('x', 2, 'a')::pt", "select ROW(true, 2, 'a')::pt", "select (NULL::pt).x, (NULL::t).g",
    "select (NULL::pt).nope", "select (1).x", "select nope(p) FROM t", "select t.nope FROM t", "select p.x FROM t",
    "select (ROW(1, 'a')).*, (ROW(1, 2)).f3", "select ROW(1, 2) = ROW(1, 'x'::text)",
    "select ROW(1, 2)::pt::seg", "select ARRAY[ROW(1, 2), ROW(3, 4)]", "select ROW(1, 1) = ANY (ARRAY[ROW(1, 1)])",
    "select ARRAY[ROW(1, 2, 'a'), NULL]::pt[]", "select unnest(ARRAY[ROW(1, 2, 'a')]::pt[])", "select pt('(1,2,a)')",
    "select ROW(1, 2, 'a')::pt::text || '!'", "select '{\"(1,2,a)\",\"(,,)\"}'::pt[]", "select '(1)'::record",
    "select least(ROW(1, 2, 'b')::pt, '(1,2,a)'), greatest('(1,,a)', ROW(1, 2, 'b')::pt)",
    "select ROW(1, 2, 'a')::pt *= '(1,2.00,a)', ROW(1, -2) *< ROW(1, 3), ROW(1, 'abc') *<> ROW(1, 'abd')",
    "select ROW('ABC', 'DEF') ~<=~ ROW('DEF', 'ABC'), 'a' ~>~ 'b'", "select text(ROW(1, 2))",
    "select r, r IS NULL FROM (VALUES (1, ROW(1, 2)), (1, ROW(NULL, NULL)), (NULL, NULL)) r (a, b)",
    "select * FROM jsonb_populate_record(NULL::pt, '{\"x\": 5}')",
    "select id, u, u.x FROM t, unnest(q) u WHERE id = 1",
    "select u.s FROM jsonb_populate_recordset('(1,2,a)'::pt, '[{}]') u",
    "UPDATE t SET p = 12 RETURNING id", "UPDATE t SET p.nope = 1 RETURNING id", "UPDATE t SET id.x = 1 RETURNING id",
    "UPDATE t SET p.x = 'a' WHERE false RETURNING id", "UPDATE t SET g.a = 1 RETURNING id",
    "UPDATE t SET p.x = DEFAULT RETURNING id", "UPDATE t SET p.x = true RETURNING id",
    "UPDATE t SET p.x = 50, p.s = 'u' WHERE id = 1 RETURNING p", "INSERT INTO t (id, p.x, p) VALUES (9, 1, NULL)",
    "INSERT INTO t (id, p.x) SELECT id + 100, id FROM t RETURNING id, p", "INSERT INTO t (id, p.z) VALUES (9, 1)",
    "INSERT INTO t (id, p.x) VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET p.x = (excluded.p).x + 1 RETURNING p",
    "CREATE TYPE pt AS (a int)", "CREATE TYPE t AS (a int)", "CREATE TYPE n AS (a int, a int)", "DROP TYPE pt",
    "CREATE TYPE n AS (a nope)", "CREATE TYPE n AS (a record)", "CREATE TABLE n (a record)", "DROP TYPE nope",
    "DROP TYPE t", "DROP TABLE t", "CREATE TABLE n AS SELECT ROW(1, 2) AS r", "ALTER TYPE pt ADD ATTRIBUTE x int",
    "ALTER TYPE pt DROP ATTRIBUTE nope", "ALTER TYPE pt ALTER ATTRIBUTE x TYPE text",
    "ALTER TYPE t ADD ATTRIBUTE x int",
    "ALTER TYPE pt ADD ATTRIBUTE g seg", "ALTER TABLE t ADD COLUMN more int DEFAULT 1", "ALTER TYPE nope RENAME TO x",
)  # fmt: skip


def queries() -> list[str]:
    """The queries, always the same. Those in capitals are tried as views too."""
    return [*_QUERIES, *_STATEMENTS]
