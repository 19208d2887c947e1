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

-- dates, times and intervals in
SELECT 'P0002'::interval, 'P0002-10'::interval, 'P0002-10-15'::interval, 'P0002T1S'::interval, 'P0002-10T1S'::interval, 'PT10'::interval, 'PT10:30'::interval, 'PT10:30:20.5'::interval
SELECT 'P00021015T103020'::interval, 'P10.5e4Y'::interval, 'PT-0.1S'::interval, 'P1Y-2M'::interval, 'P-1-2-3T-4:-5:-6'::interval
SELECT 'P2147483648'::interval
SELECT 'P1-2147483647-2147483647'::interval
SELECT 'PT2562047789'::interval
SELECT 'P00-0.1-2147483647'::interval
SELECT 'P00-00-0.1T2562047788:00:54.775807'::interval
SELECT 'PT2562047788.1:00:54.775807'::interval
SELECT 'PT2562047788:01.:54.775807'::interval
SELECT '2147483647 years'::interval
SELECT '2147483648 years'::interval
SELECT '2147483648 days'::interval
SELECT '99999999999 weeks'::interval
SELECT '-2147483648 years'::interval
SELECT '300000000 weeks'::interval, '1'::interval
SELECT '5.5 seconds 3 milliseconds'::interval
SELECT '5 seconds 3 milliseconds'::interval
SELECT '1:20:05 5 microseconds'::interval
SELECT '1 day 1:20:05'::interval, '1:20'::interval, '-1:20:05.5'::interval, '1 2:03'::interval, '1 12:'::interval
SELECT '1e3'::interval
SELECT '1e3 s'::interval
SELECT '1 hour 2:03'::interval
SELECT '1.5 weeks'::interval, '.5 mon'::interval, '1.3 y'::interval, '0.01 c'::interval, '1 y 1 mon 1 d ago'::interval, '@ 3 h'::interval, '1-2 3 4:05:06'::interval
SELECT 'P'::interval
SELECT 'PT'::interval
SELECT 'P1YT'::interval
SELECT 'P1Y2Y'::interval
SELECT '1 y 2 y'::interval
SELECT '12:60'::interval
SELECT '100:00:00'::interval, '10000000000:00'::interval
SELECT '2024-02-29'::time
SELECT '15:36:39 America/New_York'::time
SELECT '23:59:60.01'::time
SELECT '23:59:60'::time, '24:00'::time, '04:05 PM'::time, '040506'::time, '0405'::time, '12 am'::time, '2001-01-01 04:05'::time, 'allballs'::time, '04:05:06 PST'::time, '04:05:06.789-8'::time
SELECT '99999999999'::date
SELECT '99 Jan 08'::date
SELECT 'Jan 08 99'::date, '08 Jan 99'::date, 'Jan-08-99'::date, '99-08-Jan'::date
SELECT '1999 Jan 08'::date, '08 Jan 1999'::date, 'Jan 08, 1999'::date, 'January 8, 99 BC'::date, '1999 08 Jan'::date, '1999-Jan-08'::date, '99-Jan-08'::date
SELECT '08 01 99'::date, '08 01 1999'::date, '1999 08 01'::date, '19990108'::date, '990108'::date, '1999.008'::date, 'J2451187'::date, '1/8/1999'::date, '1999-01-08 10:00'::date
SELECT '1/18/1999'::date, '18/1/1999'::date
SELECT '99 01 08'::date
SELECT '20240229'::date, '2024-2-9'::date, '2024.060'::date, '1 2'::date
SELECT '2024 060'::date
SELECT '5 6 7 8'::date
SELECT 'Feb 16 17:32:01 -0097'::timestamp
SELECT 'Feb 16 17:32:01 1997'::timestamp, 'Mon Feb 10 17:32:01.5 1997 PST'::timestamptz, '1997-02-10 173201'::timestamp, '19970210 173201'::timestamp, '19970210T173201-0800'::timestamptz, '970210 173201'::timestamp, '1997.041 17:32:01'::timestamp, '2001-09-22T18:19:20'::timestamp, '10 feb 1997 5pm'::timestamp
SELECT '2000-03-15 08:14:01 GMT+8'::timestamptz, 'Feb 10 17:32:01 1997 -0800'::timestamptz, 'Feb 10 5:32PM 1997'::timestamp, 'epoch'::timestamp, 'infinity'::date, 'Feb 29 1996'::date, 'Feb 10 17:32:01 1997 BC'::timestamp
SELECT 'Feb 29 1997'::date
SELECT '0000-01-01'::date
SELECT '10000-01-01'::date, '1-1-1'::date, '4714-11-24 BC'::date, '99-12-31 BC'::date
SELECT '2024-13-01'::date
SELECT '13/13/2013'::date
SELECT '2024-01-01 25:00'::timestamp
SELECT '2024-01-01 10:61'::timestamp
SELECT '2024-01-01 10:00 Nowhere/Land'::timestamptz
SELECT '2024-01-01 10:00 Foo'::timestamptz
SELECT '1997-02-10 17:32:01+16'::timestamptz
SELECT '12.5'::date
SELECT ''::date
SELECT ' '::timestamp
SELECT 'Jan 2024'::date
SELECT '1 Jan'::date
SELECT '01:02:03'::timestamp
SELECT '2024-01-01 1:2:3.4567891'::timestamp, '2024-01-01 01:02:03.9999999'::timestamp
SET datestyle TO 'ISO, YMD'; SELECT '97FEB10 5:32:01PM UTC'::timestamp, '99 Jan 08'::date, '99 08 Jan'::date, '99 01 08'::date, '1999 01 08'::date, '97/02/10'::date
SET datestyle TO 'ISO, YMD'; SELECT 'Jan 08 99'::date
SET datestyle TO 'ISO, DMY'; SELECT '08 01 99'::date, '08/01/1999'::date, '08-Jan-99'::date, 'Jan 08 1999'::date, '1 2 2003'::date
SELECT '12 am'::time
SELECT '04:05 PM'::time
SELECT '040506'::time
SELECT '0405'::time
SELECT '2001-01-01 04:05'::time
SELECT 'allballs'::time
SELECT '04:05:06 PST'::time
SELECT '04:05:06.789-8'::time
SELECT '5'::time
SELECT '05:06:07'::time
SELECT 'today'::time
SELECT 'infinity'::time
SELECT '050607.5'::time
SELECT '99999'::time
SELECT '12:34:56 BC'::time
SELECT '1:2'::time
SELECT '13:00 PM'::time
SELECT '0:30 AM'::time
SELECT i, to_char(i * interval '1mon', 'rm'), to_char(i * interval '1mon', 'RM') FROM generate_series(-13, 13) i ORDER BY 1
SELECT to_char(interval '2 years', 'FMRM'), to_char(interval '-2 years', 'RM'), to_char(interval '5 days', 'RM'), to_char(date '2024-03-01', 'RM rm FMRM')
SELECT cbrt(27::float8), cbrt(-8::float8), ||/ float8 '27', cbrt(1e300::float8)
PREPARE p(int[]) AS SELECT $1[2], cardinality($1); EXECUTE p('{1,2,3}')
PREPARE p(int[]) AS SELECT $1[2], cardinality($1); EXECUTE p('{1,x}')
PREPARE p(int) AS SELECT $1; EXECUTE p('x')
SELECT '0:30 PM'::time, '12:30 AM'::time
SELECT '13:30 AM'::time

-- found by random expressions
SELECT substring('abc', 'x'), substring('abc', '(b)(z)?'), substring('abc', 'b.')
SELECT substring('foobar', 'o(x)?b')
SELECT (timestamptz 'infinity')::time, (timestamp '-infinity')::time(2)
SELECT (ARRAY[3,2,1,2]) || (ARRAY[[1,2],[3,4]])
SELECT (ARRAY[[1,2],[3,4]]) || 2
SELECT ARRAY[[1,2],[3,4]] || ARRAY[5,6], ARRAY[5,6] || ARRAY[[1,2]], '{}'::int[] || 5, NULL::int[] || 5, NULL::int[] || '{1}'
SELECT chr(-1)
SELECT chr(0)
SELECT to_timestamp(1e308::float8)
SELECT decode('éàü', 'base64')
SELECT decode('YWJj ZGVm', 'base64')
SELECT '"str"'::jsonb -> 0, '"str"'::jsonb ->> -1, 'null'::jsonb -> -1, '5'::jsonb -> 1, '{"a":1}'::jsonb -> 0
SELECT '"str"'::jsonb #> '{0}', '"str"'::jsonb #>> '{}', '[1,[2,3]]'::jsonb #>> '{1,-1}', '[1,[2,3]]'::jsonb #>> '{-1,0}'
SELECT sum(DISTINCT x) FROM (VALUES (1.00),(2.5)) v(x)
SELECT sum(DISTINCT x), avg(DISTINCT x) FROM (VALUES (interval '1 month'),(interval '1 month')) v(x)
SELECT min(x), max(x) FROM (VALUES (1.00),(2.500)) v(x)
SELECT DISTINCT x FROM (VALUES (1.00),(2.5)) v(x) ORDER BY 1
SELECT count(DISTINCT x) FROM (VALUES (1.00),(1.0),(-0.0)) v(x)
SELECT array_agg(DISTINCT x) FROM (VALUES (1.00),(2.5)) v(x)
SELECT x, count(*) FROM (VALUES (interval '1 month'),(interval '1 month')) v(x) GROUP BY x
SELECT sum(DISTINCT x), avg(DISTINCT x), count(DISTINCT x) FROM (VALUES (1.00),(1.00),(2.5)) v(x)
SELECT k, sum(DISTINCT x) FROM (VALUES (1.0, 1.00),(1.0, 2.5),(2, 3.0)) v(k, x) GROUP BY k ORDER BY k
SELECT stddev(DISTINCT x) FROM (VALUES (1e10),(0.0)) v(x)
SELECT pg_typeof(nullif(1, 2.5)) = 'numeric'::regtype, nullif(1.5, 2::float8), nullif(1::smallint, 2::bigint), nullif('a'::varchar(5), 'b'), nullif('a ', 'a'), nullif(date '2024-01-01', timestamp '2024-01-02')
SELECT nullif('a'::char(3), 'b'), nullif(1, '2'), nullif('1', 1)
SELECT regexp_substr('abc', '(b)(c)?'), regexp_substr('abc', 'x')
SELECT make_time(3, -1, 1e308::float8)
SELECT make_time(3, 1, 'NaN'::float8)
SELECT make_time(23, 59, 60), make_time(24, 0, 0), make_time(1, 2, 3.5)
SELECT time '24:00'::interval, sum(x) FROM (VALUES (time '24:00'), (time '12:30')) v(x)
SELECT '\101'::"char", '\377'::"char", 'é'::"char", '日本語'::"char", ''::"char", 'abc'::"char"
SELECT '\377'::"char"::int, '\177'::"char"::int, (-1)::"char"::int, 65::"char", (-128)::"char"
SELECT '\377'::"char"::text, '\000'::"char"::text, '\1'::"char"
SELECT 'é'::text::"char", '\377'::text::"char", 'é'::"char" = '\303'::"char"
SELECT 128::"char"
SELECT false::name, true::text, true::varchar(2), false::char(5)
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x), percentile_disc(0.5) WITHIN GROUP (ORDER BY x) FROM (VALUES (1), (3), (NULL), (5), (7)) t(x)
SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY x DESC), percentile_disc(0) WITHIN GROUP (ORDER BY x DESC) FROM (VALUES (1.5), (3), (10)) t(x)
SELECT percentile_cont(ARRAY[0, 0.25, NULL, 1]) WITHIN GROUP (ORDER BY x DESC), percentile_disc(ARRAY[0, 0.25, NULL, 1]) WITHIN GROUP (ORDER BY x) FROM (VALUES (1), (2), (4), (10)) t(x)
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY x) FILTER (WHERE x > 1), mode() WITHIN GROUP (ORDER BY x) FROM (VALUES (1), (2), (2), (10)) t(x)
SELECT mode() WITHIN GROUP (ORDER BY x), mode() WITHIN GROUP (ORDER BY x DESC) FROM (VALUES ('b'), ('a'), ('b'), ('a'), (NULL)) t(x)
SELECT mode() WITHIN GROUP (ORDER BY x) FROM (VALUES ('NaN'::float8), ('NaN'), (1)) t(x)
SELECT mode() WITHIN GROUP (ORDER BY x) FROM (VALUES (NULL::int), (NULL)) t(x)
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x), percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FILTER (WHERE x < 0) FROM (VALUES ('infinity'::float8), (1)) t(x)
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x), percentile_cont(ARRAY[0.25, 0.75]) WITHIN GROUP (ORDER BY x) FROM (VALUES (interval '1 day'), ('3 days'), ('1 month')) t(x)
SELECT percentile_cont(NULL) WITHIN GROUP (ORDER BY x), percentile_cont(0.3 + NULL) WITHIN GROUP (ORDER BY x), percentile_cont('0.5') WITHIN GROUP (ORDER BY x) FROM (VALUES (1)) t(x)
SELECT x, percentile_disc(x * 0.1) WITHIN GROUP (ORDER BY y) FROM (VALUES (1, 2), (1, 3), (9, 4), (9, 5)) t(x, y) GROUP BY x ORDER BY x
SELECT percentile_disc(0.3) WITHIN GROUP (ORDER BY x), percentile_disc(0.5) WITHIN GROUP (ORDER BY d) FROM (VALUES ('b'::text, date '2020-01-01'), ('a', '2021-01-01'), ('c', NULL)) t(x, d)
SELECT pg_typeof(percentile_disc(0.5) WITHIN GROUP (ORDER BY x))::text, pg_typeof(percentile_cont(0.5) WITHIN GROUP (ORDER BY 1))::text FROM (VALUES ('a')) t(x)
SELECT percentile_disc(1.5) WITHIN GROUP (ORDER BY x) FROM (VALUES (1)) t(x) WHERE false
SELECT percentile_cont('NaN'::float8) WITHIN GROUP (ORDER BY x) FROM (VALUES (1)) t(x)
SELECT percentile_cont(0.5)
SELECT percentile_cont(ARRAY[0.5::float8], 0.5::float8)
SELECT sum(1) WITHIN GROUP (ORDER BY x) FROM (VALUES (1)) t(x)
SELECT mode(1) WITHIN GROUP (ORDER BY x) FROM (VALUES (1)) t(x)
SELECT lower('x') WITHIN GROUP (ORDER BY x) FROM (VALUES (1)) t(x)
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM (VALUES ('a'::text)) t(x)
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x, x) FROM (VALUES (1)) t(x)
SELECT percentile_cont(x) WITHIN GROUP (ORDER BY x) FROM (VALUES (1)) t(x)
SELECT percentile_cont(0.5 ORDER BY 1) WITHIN GROUP (ORDER BY x) FROM (VALUES (1)) t(x)
SELECT percentile_cont(DISTINCT 0.5) WITHIN GROUP (ORDER BY x) FROM (VALUES (1)) t(x)
SELECT sum(percentile_cont(0.5) WITHIN GROUP (ORDER BY x)) FROM (VALUES (1)) t(x)
SELECT 1 FROM (VALUES (1)) t(x) WHERE mode() WITHIN GROUP (ORDER BY x) = 1

-- correlated subqueries over values that are equal and look different
SELECT y.f, y.n IN (SELECT s.i FROM (VALUES (1),(2)) s(i) WHERE y.n <> y.f) FROM (VALUES (1.00, 'NaN'::float8, 0), (2.5, 0, 0), (1.0, 0, 0)) y(n, f, i) ORDER BY 1, 2
SELECT y.f, CASE WHEN y.n IN (SELECT s.i FROM (VALUES (1),(2)) s(i) WHERE y.n <> y.f) THEN y.i ELSE y.f END FROM (VALUES (1.00, 'NaN'::float8, 0), (2.5, 0, 0), (1.0, 0, 0)) y(n, f, i) ORDER BY 1, 2
SELECT y.f FROM (VALUES (1.00, 'NaN'::float8, 0), (2.5, 0, 0), (1.0, 0, 0)) y(n, f, i) WHERE CASE WHEN y.n IN (SELECT s.i FROM (VALUES (1),(2)) s(i) WHERE y.n <> y.f) THEN y.i ELSE y.f END = 0 ORDER BY 1
SELECT x.v FROM (VALUES (1), (2)) x(v), (VALUES ('NaN'::float8, 0), (0, 0)) y(f, i) WHERE CASE WHEN y.f > 1 THEN y.i ELSE y.f END = (x.v - x.v)
SELECT y.f, count(*) FROM (VALUES (1), (2)) x(v), (VALUES ('NaN'::float8, 0), (0, 0)) y(f, i) WHERE CASE WHEN y.f > 1 THEN y.i ELSE y.f END = (x.v - x.v) GROUP BY 1
SELECT count(*) FROM (VALUES (1), (2)) x(v) WHERE (SELECT min(s.n) FROM (VALUES (1),(2)) s(n) WHERE s.n < x.v) NOT IN (SELECT t.i FROM (VALUES (1),(3)) t(i) WHERE t.i > 1)
SELECT x.v, (SELECT min(s.n) FROM (VALUES (1),(2)) s(n) WHERE s.n < x.v) NOT IN (SELECT t.i FROM (VALUES (1),(3)) t(i)) FROM (VALUES (1), (2)) x(v) ORDER BY 1
SELECT x.v FROM (VALUES (1), (2)) x(v) WHERE (SELECT min(s.n) FROM (VALUES (1),(2)) s(n) WHERE s.n < x.v) IN (SELECT t.i FROM (VALUES (1),(3)) t(i)) ORDER BY 1
SELECT x.v, count(1) FILTER (WHERE (SELECT min(s.n) FROM (VALUES (1),(2)) s(n) WHERE s.n < x.v) NOT IN (SELECT t.i FROM (VALUES (1),(3)) t(i))) FROM (VALUES (1), (2)) x(v) GROUP BY 1 ORDER BY 1
SELECT x.v, CASE WHEN x.v > 0 THEN (SELECT max(s.n) FROM (VALUES (1),(2)) s(n) WHERE s.n < x.v) ELSE 5 END NOT IN (SELECT t.i FROM (VALUES (1),(3)) t(i)) FROM (VALUES (1), (2)) x(v) ORDER BY 1
SELECT (SELECT 2) > ALL (SELECT t.i FROM (VALUES (1),(3)) t(i) WHERE t.i < x.v) FROM (VALUES (1), (2)) x(v) ORDER BY 1
SELECT x.n, x.f, x.n IN (SELECT s.i FROM (VALUES (1),(2)) s(i) WHERE x.n >= x.f) FROM (VALUES (1.0, '-0'::float8), (1.0, 0), (1.00, 0), (1.00, 1.5), (1, 1)) x(n, f) ORDER BY 1, 2, 3
SELECT x.n, x.i, (SELECT count(*) FROM (VALUES (1),(2)) s(j) WHERE x.i IS DISTINCT FROM x.n AND x.i = s.j) FROM (VALUES (1.0, 2), (1.00, 2), (1.0, 1), (1.00, 1)) x(n, i) ORDER BY 1, 2, 3
CREATE TEMP TABLE a (i int, n numeric, f float8); INSERT INTO a VALUES (0, 1.0, '-0'), (0, 1.0, 0), (1, 1.00, 1.5), (NULL, 2.5, 0), (1, NULL, 0); SELECT x.n, x.f, x.n IN (SELECT s.i FROM a s WHERE x.n >= x.f) FROM a x ORDER BY 1, 2, 3
CREATE TEMP TABLE a (i int, n numeric, f float8); INSERT INTO a VALUES (0, 1.0, '-0'), (0, 1.0, 0), (1, 1.00, 1.5), (NULL, 2.5, 0), (1, NULL, 0); SELECT x.n, x.f, x.n IN (SELECT s.i FROM a s) FROM a x ORDER BY 1, 2, 3
CREATE TEMP TABLE a (i int, n numeric, f float8); INSERT INTO a VALUES (0, 1.0, '-0'), (0, 1.0, 0), (1, 1.00, 1.5), (NULL, 2.5, 0), (1, NULL, 0); SELECT x.n, x.f, (SELECT count(*) FROM a s WHERE x.n >= x.f AND x.n = s.i) FROM a x ORDER BY 1, 2, 3
CREATE TEMP TABLE a (i int, n numeric, f float8); INSERT INTO a VALUES (0, 1.0, '-0'), (0, 1.0, 0), (1, 1.00, 1.5), (NULL, 2.5, 0), (1, NULL, 0); SELECT x.n, x.f, (SELECT count(*) FROM a s WHERE x.n >= x.f) FROM a x ORDER BY 1, 2, 3
CREATE TEMP TABLE a (i int, n numeric, f float8); INSERT INTO a VALUES (0, 1.0, '-0'), (0, 1.0, 0), (1, 1.00, 1.5), (NULL, 2.5, 0), (1, NULL, 0); SELECT x.n, x.f, x.n >= x.f FROM a x ORDER BY 1, 2, 3
CREATE TEMP TABLE a (i int, n numeric, f float8); INSERT INTO a VALUES (0, 1.0, '-0'), (0, 1.0, 0), (1, 1.00, 1.5), (NULL, 2.5, 0), (1, NULL, 0); SELECT x.n, x.f, (SELECT count(*) FROM a s WHERE x.n = s.i) FROM a x ORDER BY 1, 2, 3
CREATE TEMP TABLE a (i int, n numeric, f float8); INSERT INTO a VALUES (0, 1.0, '-0'), (0, 1.0, 0), (1, 1.00, 1.5), (NULL, 2.5, 0), (1, NULL, 0); SELECT x.n, x.i, s.i FROM a x JOIN a s ON x.n = s.i ORDER BY 1, 2, 3
SELECT k, to_char(i, k) FROM unnest(ARRAY['IYYY','IYY','IY','I','IW','DDD','IDDD','WW','W','J','CC','Q','YYYY','YYY','YY','Y','Y,YYY','RM']) AS k, unnest(ARRAY['0','1 mon','-5 mons -3 days','14 mons 40 days 27:00','-100 years 3 days','2 years 11 mons 12 days']::interval[]) AS i ORDER BY k, i
SELECT to_char(interval '1 mon', 'Mon')
SELECT to_char(interval '1 mon', 'BC')
SELECT to_char(timestamp '2001-02-03', 'İ ſ')
SELECT n, pg_size_pretty(n), pg_size_pretty(n::numeric) FROM (VALUES (0), (-1), (10239), (10240), (-10240), (10485247), (10485248), (9223372036854775807), (-9223372036854775808)) v(n) ORDER BY n
SELECT pg_size_pretty(0.5), pg_size_pretty(10239.5), pg_size_pretty(-10240.5), pg_size_pretty(1e60), pg_size_pretty('NaN'::numeric), pg_size_pretty('-Infinity'::numeric)
