-- the order in which rows of functions and VALUES arrive, without ORDER BY
SELECT unnest(ARRAY[3,1,2,1])
SELECT * FROM unnest('{3,1,2,1}'::int[])
SELECT x FROM unnest('{3,1,2,1}'::int[]) x WHERE x < 3
SELECT x * 2 FROM unnest('{3,1,2,1}'::int[]) x LIMIT 2
SELECT x * 2 FROM unnest('{3,1,2,1}'::int[]) x OFFSET 1
SELECT regexp_split_to_table('the quick brown fox', ' ')
SELECT * FROM regexp_split_to_table('the quick brown fox', ' ') w
SELECT * FROM string_to_table('c,a,b', ',')
SELECT string_to_table('c,a,b', ',')
SELECT * FROM jsonb_array_elements('[3,1,2,"x"]')
SELECT jsonb_array_elements('[3,1,2,"x"]')
SELECT * FROM json_each('{"z":1,"a":2}')
SELECT * FROM json_object_keys('{"z":1,"a":2}')
SELECT * FROM json_array_elements_text('["z","a"]') WITH ORDINALITY
SELECT e FROM json_array_elements_text('["z","a"]') WITH ORDINALITY AS t(e, n)
SELECT generate_series(5,1,-1)
SELECT * FROM generate_series(5,1,-2)
SELECT * FROM (VALUES (3),(1),(2),(1)) v
VALUES (3),(1),(2),(1)
SELECT x, y FROM (VALUES (3,'c'),(1,'a'),(2,'b')) v(x,y) WHERE x > 1
SELECT array_agg(x) FROM unnest(ARRAY[3,1,2]) x
SELECT string_agg(w, ',') FROM regexp_split_to_table('c b a', ' ') w
SELECT array_agg(x) FROM (VALUES (3),(1),(2)) v(x)
SELECT array_agg(x) FROM (SELECT unnest(ARRAY[3,1,2]) x) q
SELECT array_agg(x * 2) FILTER (WHERE x > 1) FROM unnest(ARRAY[3,1,2]) x WHERE x > 0
SELECT jsonb_agg(x), json_agg(x) FROM unnest(ARRAY[3,1,2]) x
SELECT json_object_agg(x, x) FROM unnest(ARRAY[3,1,2]) x
SELECT array_agg(x ORDER BY x DESC) FROM unnest(ARRAY[3,1,2]) x
SELECT array_agg(DISTINCT x) FROM unnest(ARRAY[3,1,2]) x
SELECT array_agg(q.x) FROM (SELECT x FROM (VALUES (1),(2),(3)) v(x) ORDER BY x DESC) q
SELECT ARRAY(SELECT unnest(ARRAY[3,1,2]))
SELECT ARRAY(SELECT x FROM unnest(ARRAY[3,1,2]) x)
SELECT ARRAY(SELECT x FROM unnest(ARRAY[3,1,2]) x WHERE x > 1)
SELECT (SELECT array_agg(x) FROM unnest(ARRAY[3,1,2]) x)
SELECT (SELECT string_agg(x, '') FROM unnest(ARRAY['c','a']) x)
SELECT v.i, x FROM (VALUES (2),(1)) v(i), LATERAL unnest(ARRAY[v.i,0,9]) x
SELECT x, y FROM unnest(ARRAY['b','a']) x, LATERAL regexp_split_to_table(x || ' z c', ' ') y
SELECT x, (SELECT array_agg(c) FROM regexp_split_to_table(x, '') c) FROM unnest(ARRAY['dca','xb']) x
SELECT a.x FROM (SELECT 1) o, unnest(ARRAY[3,1,2]) a(x)
SELECT * FROM (SELECT 7 AS k) o, jsonb_array_elements('[3,1]') e
SELECT * FROM (SELECT x + 1 FROM unnest(ARRAY[3,1,2]) x) q
SELECT * FROM (SELECT * FROM unnest(ARRAY[3,1,2]) x LIMIT 2) q
WITH c AS (SELECT unnest(ARRAY[3,1,2]) x) SELECT x FROM c
WITH c(x) AS (VALUES (3),(1),(2)) SELECT x FROM c WHERE x <> 1
SELECT unnest(ARRAY[3,1,2]), unnest(ARRAY['x','z'])
SELECT generate_series(1,2), unnest(ARRAY[3,1,2])
SELECT * FROM ROWS FROM (unnest(ARRAY[3,1]), generate_series(9,7,-1)) r(a,b)
SELECT x FROM (VALUES ('b'),('a')) v(x) UNION ALL SELECT 'c'
SELECT 3 UNION ALL SELECT 1 UNION ALL SELECT 2
SELECT unnest(x) FROM (VALUES ('{3,1}'::int[]), ('{2,0}')) v(x)
SELECT regexp_matches('foobarbequebaz', 'b[^b]+', 'g')
SELECT * FROM regexp_matches('foobarbequebaz', 'b[^b]+', 'g')
SELECT unnest('{{3,1},{2,0}}'::int[])
SELECT x::text || 'a' FROM unnest(ARRAY[3,1,2]) x
SELECT DISTINCT x FROM unnest(ARRAY[1,1]) x
SELECT random() < 2, x FROM unnest(ARRAY[3,1,2]) x
SELECT x, row_number() OVER () FROM unnest(ARRAY[3,1,2]) x
SELECT x, sum(x) OVER () FROM unnest(ARRAY[3,1,2]) x
SELECT x FROM unnest(ARRAY[3,1,2]) x WHERE EXISTS (SELECT 1)
SELECT x FROM unnest(ARRAY[3,1,2]) x WHERE x IN (SELECT 3 UNION SELECT 1)
SELECT * FROM json_to_recordset('[{"a":3},{"a":1}]') AS x(a int)
SELECT * FROM jsonb_path_query('[3,1,2]', '$[*]')
SELECT string_agg(x::text, ',') OVER () FROM unnest(ARRAY[3,1,2]) x LIMIT 1
SELECT a FROM unnest(ARRAY[3,1,2]) a LEFT JOIN (VALUES (1)) v(x) ON a = x
SELECT k, array_agg(v) FROM (VALUES (1,'z'),(1,'a'),(2,'q')) t(k,v) GROUP BY k ORDER BY k
SELECT string_agg(c, '' ) FROM (SELECT c FROM regexp_split_to_table('hello', '') WITH ORDINALITY AS t(c, n)) q
SELECT first.x FROM (SELECT unnest(ARRAY[3,1,2]) AS x) first LIMIT 1
SELECT array_to_string(array_agg(reverse(x)), ' ') FROM unnest(string_to_array('hello world abc', ' ')) x
CREATE TEMP TABLE s(id serial, x int); INSERT INTO s(x) SELECT unnest(ARRAY[3,1,2]); SELECT * FROM s ORDER BY id
CREATE TEMP TABLE s(id serial, x int); INSERT INTO s(x) SELECT x FROM (VALUES (3),(1),(2)) v(x) WHERE x IN (SELECT 3 UNION SELECT 1); SELECT * FROM s ORDER BY id
CREATE TEMP TABLE w AS SELECT array_agg(x) AS a FROM regexp_split_to_table('z y x', ' ') x; SELECT * FROM w
SELECT x FROM unnest(ARRAY[3,1,2]) x FETCH FIRST 2 ROWS ONLY
SELECT sum(x) FROM (SELECT x FROM unnest(ARRAY[3,1,2]) x LIMIT 2) q
SELECT sum(x) FROM (SELECT x FROM unnest(ARRAY[3,1,2]) x OFFSET 1) q
SELECT sum(x) FROM (VALUES (3),(1),(2)) v(x), LATERAL (SELECT y FROM unnest(ARRAY[v.x, 10, 20]) y LIMIT 1) l
SELECT array_agg(y) FROM (VALUES (3),(1)) v(x), unnest(ARRAY[v.x, 0]) y
SELECT array_agg(y) FROM unnest(ARRAY[3,1,2]) WITH ORDINALITY AS u(y, n) WHERE n > 1
SELECT x, array_agg(y) FROM (VALUES ('a'),('b')) v(x) LEFT JOIN LATERAL (SELECT unnest(ARRAY[x || 'z', x])) u(y) ON true GROUP BY x ORDER BY x
SELECT array_agg(x) OVER (), row_number() OVER (), x FROM unnest(ARRAY[3,1,2]) x
SELECT x, row_number() OVER (ORDER BY x) FROM unnest(ARRAY[3,1,2]) x
SELECT x, lag(x) OVER (ORDER BY x DESC) FROM unnest(ARRAY[3,1,2]) x
SELECT jsonb_agg(e -> 'a') FROM jsonb_array_elements('[{"a":3},{"a":1}]') e
SELECT string_agg(k || v, ',') FROM jsonb_each_text('{"b":1,"a":2}') t(k, v)
SELECT string_agg(m[1], ' ') FROM regexp_matches('foobarbequebaz', 'b[^b]+', 'g') m
SELECT array_agg(DISTINCT x ORDER BY x DESC) FROM unnest(ARRAY[3,1,2,3]) x
SELECT array_agg(x) FILTER (WHERE x > 1), count(*), string_agg(x::text, '' ORDER BY x) FROM unnest(ARRAY[3,1,2]) x
SELECT k, json_agg(v) FROM (VALUES (1, 'b'), (2, 'a'), (1, 'a')) t(k, v) GROUP BY ROLLUP (k) ORDER BY k
SELECT array(SELECT unnest(ARRAY[3,1,2]) LIMIT 2)
SELECT a || b FROM (SELECT 'x' AS a) q, string_to_table('c,a,b', ',') b
SELECT x FROM (SELECT 1) one CROSS JOIN (VALUES ('z'), ('a')) v(x)
WITH c AS (SELECT * FROM unnest(ARRAY[3,1,2]) WITH ORDINALITY AS t(x, n)) SELECT array_agg(x), array_agg(n) FROM c
SELECT e FROM jsonb_array_elements('[1,{"a":2}]') e
SELECT e.value FROM jsonb_array_elements('[1,{"a":2}]') e
SELECT e ->> 'a' FROM jsonb_array_elements('[{"a":2}]') e WHERE e ->> 'a' = '2'
SELECT k FROM json_object_keys('{"z":1}') k
SELECT e FROM json_each('{"z":1}') e
SELECT e FROM jsonb_array_elements('[1]') WITH ORDINALITY e
SELECT e FROM (VALUES (1)) v(x) LEFT JOIN jsonb_array_elements('[]') e ON true
SELECT e IS NULL, count(e) FROM (VALUES (1)) v(x) LEFT JOIN jsonb_array_elements('[]') e ON true GROUP BY 1
SELECT r FROM json_to_recordset('[{"a":1}]') AS r(a int)
SELECT e.e FROM jsonb_array_elements('[1]') e
SELECT e.* FROM jsonb_array_elements('[1]') e
SELECT row_to_json(e) FROM jsonb_each('{"a":1}') e
SELECT x FROM (VALUES (2),(1),(3)) v(x) WINDOW w AS (ORDER BY x)
SELECT x, rank() OVER (ORDER BY x) FROM (VALUES (2),(1),(3)) v(x)
SELECT x, y, sum(y) OVER (PARTITION BY x ORDER BY y DESC) FROM (VALUES (2,1),(1,1),(2,3),(1,5)) v(x,y)
