-- One case a line; make_queries.py asks PostgreSQL for the answers.

-- NULL arrays as parameters
PREPARE p(int[]) AS SELECT 1 = ANY ($1), NOT 1 = ANY ($1), 1 <> ALL ($1), 1 = ALL ($1); EXECUTE p(NULL)
PREPARE p(int[]) AS SELECT 1 = ANY ($1), NOT 1 = ANY ($1), 1 <> ALL ($1), 1 = ALL ($1); EXECUTE p('{}')
PREPARE p(int[]) AS SELECT 1 = ANY ($1), NOT 1 = ANY ($1), 1 <> ALL ($1), 1 = ALL ($1); EXECUTE p('{2,NULL}')
PREPARE p(int[]) AS SELECT x FROM generate_series(1, 3) x WHERE NOT x = ANY ($1) ORDER BY x; EXECUTE p(NULL)
PREPARE p(int[]) AS SELECT x FROM generate_series(1, 3) x WHERE NOT x = ANY ($1) ORDER BY x; EXECUTE p('{2}')
PREPARE p(int[]) AS SELECT x FROM generate_series(1, 3) x WHERE x <> ALL ($1) ORDER BY x; EXECUTE p(NULL)
PREPARE p(int[]) AS SELECT x FROM generate_series(1, 3) x WHERE x = ANY ($1) ORDER BY x; EXECUTE p('{3,NULL,1}')
PREPARE p(int[]) AS SELECT count(*) FROM unnest($1) u; EXECUTE p(NULL)

-- arrays of arrays
SELECT array_agg(x) FROM (VALUES ('{1,2}'::int[]), ('{3,4}')) v(x)
SELECT array_agg(DISTINCT x ORDER BY x DESC) FROM (VALUES ('{1,2}'::int[]), ('{3,4}'), ('{3,4}')) v(x)
SELECT array_agg(x) FROM (SELECT array_agg(ARRAY[i, i + 1, i - 1]) FROM generate_series(1, 2) i) v(x)
SELECT array_agg(ARRAY[i, nullif(i, 3), i + 1]) FROM generate_series(1, 4) i
SELECT array_agg(ARRAY[i + 1.2, i + 1.3]) FROM generate_series(1, 2) i
SELECT ARRAY(SELECT ARRAY[i, i / 2] FROM generate_series(1, 5) i)
SELECT array_agg(x) FROM (VALUES ('{1}'::int[])) v(x) WHERE false
SELECT ARRAY(SELECT '{}'::int[] WHERE false)
SELECT array_agg(x) FROM (VALUES (NULL::int[]), ('{1}')) v(x)
SELECT array_agg(x) FROM (VALUES ('{}'::int[]), ('{1}')) v(x)
SELECT array_agg(x) FROM (VALUES ('{1,2}'::int[]), ('{1}')) v(x)
SELECT array_agg(x) FROM (VALUES ('{1,2}'::int[]), ('{{1}}')) v(x)
SELECT k, array_agg(x) FROM (VALUES (1, '{1,2}'::int[]), (2, '{1}'), (2, '{4}')) v(k, x) GROUP BY k ORDER BY k
SELECT array_agg(i), array_agg(i) FILTER (WHERE i IS NULL) FROM (VALUES (interval '1 day'), (interval '2 days')) v(i)

-- what stands beside the table that is changed may not name it
CREATE TEMP TABLE a (x int); UPDATE a SET x = 1 FROM LATERAL (SELECT a.x) s
CREATE TEMP TABLE a (x int); CREATE TEMP TABLE b (x int); UPDATE a SET x = 1 FROM b, LATERAL (SELECT b.x) s
CREATE TEMP TABLE a (x int); CREATE TEMP TABLE b (x int); DELETE FROM a USING b, LATERAL (SELECT a.x + b.x) s
CREATE TEMP TABLE a (x int); UPDATE a SET x = 1 FROM generate_series(1, a.x) g
CREATE TEMP TABLE a (x int); UPDATE a SET x = 1 FROM (SELECT a.x) g
CREATE TEMP TABLE a (x int); UPDATE a AS t SET x = 1 FROM LATERAL (SELECT t.x) g
CREATE TEMP TABLE a (x int); UPDATE a SET x = 1 FROM a b, LATERAL (SELECT a.x) g
CREATE TEMP TABLE a (x int); UPDATE a SET x = 1 FROM a b JOIN LATERAL (SELECT a.x) g ON true
CREATE TEMP TABLE a (x int); UPDATE a SET x = 1 FROM LATERAL (SELECT x) g
CREATE TEMP TABLE a (x int); UPDATE a SET x = 1 FROM LATERAL (SELECT a.*) g
CREATE TEMP TABLE a (x int); INSERT INTO a VALUES (1), (2); UPDATE a SET x = s.y FROM a b JOIN LATERAL (SELECT b.x + 1 AS y) s ON b.x = s.y - 1 WHERE a.x = b.x RETURNING a.x

-- a subquery in the condition of a lateral join
SELECT * FROM (VALUES (1), (2)) t(x) LEFT JOIN LATERAL (SELECT t.x + 1 AS y) s ON s.y > (SELECT 2) ORDER BY 1
SELECT * FROM (VALUES (1), (2)) t(x) LEFT JOIN LATERAL (SELECT t.x + 1 AS y) s ON EXISTS (SELECT 1 WHERE s.y = t.x + 1 AND s.y = 2) ORDER BY 1
SELECT * FROM (VALUES (1), (2)) t(x) LEFT JOIN LATERAL (SELECT g FROM generate_series(1, t.x) g) s ON s.g IN (SELECT t.x UNION SELECT 5) ORDER BY 1, 2
SELECT (SELECT sum(s.y) FROM (VALUES (1), (2)) t(x) LEFT JOIN LATERAL (SELECT t.x + o.z AS y) s ON s.y > (SELECT o.z + 1)) FROM (VALUES (10), (20)) o(z) ORDER BY 1
SELECT * FROM (VALUES (1), (2)) t(x) JOIN LATERAL (SELECT t.x + 1 AS y) s ON s.y > (SELECT 2) ORDER BY 1

-- subqueries that are not reached do not fail
SELECT CASE WHEN false THEN (SELECT 1 / 0) ELSE 3 END
SELECT CASE WHEN x > 5 THEN (SELECT 1 / (g - 1) FROM generate_series(1, 1) g) ELSE x END FROM generate_series(1, 2) x ORDER BY 1
SELECT CASE WHEN x > 1 THEN (SELECT 1 / (g - 1) FROM generate_series(1, 1) g) ELSE x END FROM generate_series(1, 2) x ORDER BY 1
SELECT coalesce(1, (SELECT 1 / (g - 1) FROM generate_series(1, 1) g))
SELECT x FROM generate_series(1, 2) x WHERE x < 5 OR (SELECT 1 / (g - 1) FROM generate_series(1, 1) g) = 1 ORDER BY x
SELECT CASE WHEN x > 5 THEN (SELECT count(*) / (count(*) - 1) FROM generate_series(1, 1) g) ELSE x END FROM generate_series(1, 2) x ORDER BY 1
SELECT CASE WHEN x > 1 THEN (SELECT max(10 / g) FROM generate_series(1, 3) g) ELSE x END FROM generate_series(1, 2) x ORDER BY 1
SELECT CASE WHEN x > 5 THEN EXISTS (SELECT 1 FROM generate_series(1, 2) g WHERE 1 / (g - 1) = 1) ELSE false END FROM generate_series(1, 2) x
