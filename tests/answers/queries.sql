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
