-- recursions and series that LIMIT ends
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT * FROM t LIMIT 10
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT * FROM t LIMIT 3 OFFSET 100
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT * FROM t LIMIT 0
WITH RECURSIVE t(n) AS (SELECT 1 UNION SELECT 10 - n FROM t) SELECT * FROM t LIMIT 5
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT n, n * n FROM t WHERE n % 7 = 0 LIMIT 5
WITH RECURSIVE t(n) AS (SELECT 9 UNION ALL SELECT n - 1 FROM t) SELECT 10 / n FROM t LIMIT 9
WITH RECURSIVE t(n) AS (SELECT 9 UNION ALL SELECT n - 1 FROM t) SELECT 10 / n FROM t LIMIT 10
WITH RECURSIVE t(n) AS (SELECT 3 UNION ALL SELECT 6 / n - 1 FROM t) SELECT n FROM t LIMIT 2
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT t.n, u.x FROM t JOIN (VALUES (3, 'a'), (5, 'b')) u(n, x) ON u.n = t.n LIMIT 2
WITH RECURSIVE q AS (SELECT 1 AS n UNION ALL (WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL (SELECT n FROM q UNION ALL SELECT n FROM x)) SELECT * FROM x)) SELECT * FROM q LIMIT 4
SELECT generate_series(1, 1000000000000) LIMIT 3
SELECT generate_series(10, -1000000000000, -3) OFFSET 2 LIMIT 2
SELECT n FROM (SELECT generate_series(1, 1000000000000) n) s WHERE n % 9999 = 0 LIMIT 2
SELECT generate_series(1.5, 1000000000000) LIMIT 2
SELECT generate_series(timestamp '2024-01-01', 'infinity', '1 day') LIMIT 2
SELECT a, b FROM generate_series(1, 2) a, LATERAL (SELECT generate_series(1, 1000000000000) b) s WHERE b < 3 LIMIT 2
-- aggregates of outer queries, and subqueries in aggregates
CREATE TEMP TABLE fa (a int, b int); INSERT INTO fa VALUES (1, 2), (1, 3), (2, 5), (NULL, 7); CREATE TEMP TABLE fb (c int, d int); INSERT INTO fb VALUES (1, 10), (2, 20), (2, 21), (3, 30); SELECT x.a, (SELECT sum((SELECT max(x.b + fa.b) FROM fb WHERE c = x.a)) FROM fa) FROM fa x
CREATE TEMP TABLE fa (a int, b int); INSERT INTO fa VALUES (1, 2), (1, 3), (2, 5), (NULL, 7); CREATE TEMP TABLE fb (c int, d int); INSERT INTO fb VALUES (1, 10), (2, 20), (2, 21), (3, 30); SELECT (SELECT sum((SELECT d FROM fb WHERE c = 1 AND fa.a = fa.a LIMIT 1) + fa.a)) FROM fa
CREATE TEMP TABLE fa (a int, b int); INSERT INTO fa VALUES (1, 2), (1, 3), (2, 5), (NULL, 7); CREATE TEMP TABLE fb (c int, d int); INSERT INTO fb VALUES (1, 10), (2, 20), (2, 21), (3, 30); SELECT a, (SELECT sum(fa.b + (SELECT max(d) FROM fb WHERE c = fa.a))) FROM fa GROUP BY a ORDER BY a
CREATE TEMP TABLE fa (a int, b int); INSERT INTO fa VALUES (1, 2), (1, 3), (2, 5), (NULL, 7); SELECT a, (SELECT string_agg(fa.b::text, ',' ORDER BY (SELECT -fa.b))) FROM fa GROUP BY a ORDER BY a
CREATE TEMP TABLE fa (a int, b int); INSERT INTO fa VALUES (1, 2), (1, 3), (2, 5), (NULL, 7); SELECT x.a, (SELECT sum((SELECT max(x.a) FROM fa)) FROM fa) FROM fa x
CREATE TEMP TABLE fa (a int, b int); INSERT INTO fa VALUES (1, 2), (1, 3), (2, 5), (NULL, 7); SELECT x.a, s.* FROM fa x, LATERAL (SELECT sum((SELECT x.b))) s
CREATE TEMP TABLE fa (a int, b int); INSERT INTO fa VALUES (1, 2), (1, 3), (2, 5), (NULL, 7); SELECT sum((SELECT a)), sum((SELECT count(*) FROM fa y WHERE y.a = fa.a)) FROM fa
-- the order of a CTE
CREATE TEMP TABLE fa (a int, b int); INSERT INTO fa VALUES (1, 9), (2, 5), (3, 7); WITH x AS (SELECT a FROM fa ORDER BY b) SELECT * FROM x
CREATE TEMP TABLE fa (a int, b int); INSERT INTO fa VALUES (1, 9), (2, 5), (3, 7); WITH x AS (SELECT a FROM fa ORDER BY b), y AS (SELECT a + 1 AS c FROM x) SELECT * FROM y LIMIT 2
CREATE TEMP TABLE fa (a int, b int); INSERT INTO fa VALUES (1, 9), (2, 5), (3, 7); SELECT (WITH x AS (SELECT i.a FROM fa i WHERE i.a <= o.a ORDER BY b) SELECT a FROM x LIMIT 1) FROM fa o ORDER BY o.a
CREATE TEMP TABLE fa (a int, b int); INSERT INTO fa VALUES (1, 9), (2, 5), (3, 7); WITH x(q) AS (SELECT a FROM fa ORDER BY b DESC) SELECT x, (SELECT count(*) FROM x) FROM x
