-- One case a line; make_json.py asks PostgreSQL 17 for the answers.

SELECT jsonb_typeof('1')

-- aggregates
SELECT json_agg_strict(x ORDER BY x), jsonb_agg_strict(x ORDER BY x DESC), jsonb_agg_strict(NULL::int) FROM (VALUES (1), (NULL), (3)) v(x)
SELECT json_agg_strict(x ORDER BY x) FROM (VALUES (ARRAY[1]), (NULL), (ARRAY[2, NULL])) v(x)
SELECT json_object_agg_strict(k, v ORDER BY k, v), jsonb_object_agg_strict(k, v ORDER BY v) FROM (VALUES ('a', 1), ('b', NULL), ('a', NULL)) v(k, v)
SELECT json_object_agg_strict(1, NULL), jsonb_object_agg_unique_strict(2, NULL)
SELECT json_object_agg_unique(k, v ORDER BY k), jsonb_object_agg_unique(k, v) FROM (VALUES ('b', 1), ('a', NULL)) v(k, v)
SELECT json_object_agg_unique(k, 1) FROM (VALUES ('a'), ('a')) v(k)
SELECT jsonb_object_agg_unique(k, 1) FROM (VALUES ('a'), ('a')) v(k)
SELECT json_object_agg_unique_strict(k, NULL) FROM (VALUES ('a'), ('a')) v(k)
SELECT jsonb_object_agg_unique_strict(k, NULL) FROM (VALUES ('a'), ('a')) v(k)

-- constructors and tests
SELECT json_object('a': 1, 'b' VALUE NULL), json_object('a': 1, 'b': NULL ABSENT ON NULL), json_object(), json_object(RETURNING jsonb), json_object('b': 1, 'a': '[1]' FORMAT JSON, 'b': 2 RETURNING jsonb)
SELECT json_object('a': 1, 'a': 2 WITH UNIQUE)
SELECT json_object('a': 1, 'a': 2 WITH UNIQUE KEYS RETURNING jsonb)
SELECT json_object(NULL: 1)
SELECT json_object(ARRAY[1]: 2)
SELECT json_object('{a,1,b,2}'), json_object('{a,b}', '{1,2}'), json_object('a': 1 RETURNING text)
SELECT json_array(1, NULL, 'a'), json_array(1, NULL NULL ON NULL RETURNING jsonb), json_array(), json_array(ARRAY[1, 2], true, '{"a": 1}' FORMAT JSON), json_array(RETURNING jsonb)
SELECT json_array(SELECT x FROM (VALUES (2), (NULL), (1)) v(x) ORDER BY x), json_array(SELECT 1 WHERE false), json_array(SELECT 1 RETURNING jsonb)
SELECT json('{"a":1, "a":2}'), json(NULL), json('1'::json), json('{"b":1,"a":2}'::jsonb)
SELECT json('{"a":1, "a":2}' WITH UNIQUE KEYS)
SELECT json('x')
SELECT json_scalar(1.5), json_scalar('a'), json_scalar(true), json_scalar(NULL::int), json_scalar(date '2020-01-01')
SELECT json_serialize('{"a" : 1}'), json_serialize('{"a" : 1}'::json RETURNING varchar(20)), json_serialize(NULL)
SELECT json_serialize('{')
SELECT '{}' IS JSON, '[1' IS JSON, '1' IS JSON SCALAR, '[]' IS JSON ARRAY, '[]' IS JSON OBJECT, '"x"' IS NOT JSON VALUE, NULL IS JSON, '{"a":1,"a":{"b":1}}' IS JSON OBJECT WITH UNIQUE KEYS, '{"a":1}' IS JSON WITH UNIQUE, '[{"a":1,"a":2}]'::json IS JSON WITH UNIQUE KEYS, '{"a":1}'::jsonb IS JSON OBJECT
SELECT 1 IS JSON
SELECT json_arrayagg(x ORDER BY x DESC), json_arrayagg(x ORDER BY x NULL ON NULL RETURNING jsonb), json_objectagg('k' || x: x ABSENT ON NULL RETURNING jsonb) FILTER (WHERE x > 1) FROM (VALUES (1), (2), (NULL), (3)) v(x)
SELECT json_objectagg(k: v WITH UNIQUE KEYS) FROM (VALUES ('a', 1), ('a', 2)) t(k, v)
SELECT x, json_arrayagg(x) OVER (ORDER BY x), json_objectagg(x VALUE x RETURNING text) OVER (ORDER BY x) FROM generate_series(1, 3) x

-- paths
SELECT json_exists('{"a": 1}', '$.a'), json_exists('{"a": 1}', 'strict $.b'), json_exists('{"a": 1}', 'strict $.b' UNKNOWN ON ERROR), json_exists('{"a": 1}', 'strict $.b' TRUE ON ERROR), json_exists(NULL, '$'), json_exists('{"a": 1}'::jsonb, '$.a ? (@ > $x)' PASSING 0 AS x)
SELECT json_exists('{"a": 1}', 'strict $.b' ERROR ON ERROR)
SELECT json_exists('1', '$' NULL ON ERROR)
SELECT json_exists('x', '$')
SELECT json_exists('1', '$ ? (@ > $y)' PASSING 1 AS x)
SELECT json_value('"a"', '$'), json_value('1.50', '$' RETURNING numeric), json_value('1.5', '$' RETURNING int), json_value('[1, 2]', '$[*]'), json_value('[1]', '$'), json_value('null', '$'), json_value('true', '$' RETURNING bool), json_value('"2020-01-02"', '$' RETURNING date), json_value('"1"', '$' RETURNING jsonb), json_value('[]', '$[*]')
SELECT json_value('[]', '$[*]' DEFAULT 'e' ON EMPTY DEFAULT 'x' ON ERROR), json_value('[1, 2]', '$[*]' DEFAULT 'e' ON EMPTY DEFAULT 'x' ON ERROR), json_value('"x"', '$' RETURNING int DEFAULT 1 + 1 ON ERROR), json_value('[]', '$[*]' ERROR ON ERROR)
SELECT json_value('[1, 2]', '$[*]' ERROR ON ERROR)
SELECT json_value('[1, 2]', '$' ERROR ON ERROR)
SELECT json_value('[]', '$[*]' ERROR ON EMPTY)
SELECT json_value('[]', '$[*]' ERROR ON EMPTY DEFAULT 1 ON ERROR)
SELECT json_value('"x"', '$' RETURNING int ERROR ON ERROR)
SELECT json_value('"abc"', '$' RETURNING varchar(2)), json_value('1', '$ + $x' PASSING '2'::jsonb AS x), json_value('"2020-01-02"', '$ ? (@.datetime() > $d)' PASSING date '2019-01-01' AS d), json_value('"2020-01-02"', '$.datetime()')
SELECT json_query('"a"', '$'), json_query('"a"', '$' RETURNING text), json_query('"a"', '$' RETURNING text OMIT QUOTES), json_query('"1"', '$' RETURNING int), json_query('"1"', '$' RETURNING int OMIT QUOTES), json_query('[1, 2]', '$' RETURNING int[]), json_query('"a"', '$' RETURNING json), json_query('"a"', '$' OMIT QUOTES), json_query('[1]', '$' RETURNING bytea), json_query('null', '$'), json_query('null', '$' RETURNING int), json_query('null', '$' RETURNING text)
SELECT json_query('1', '$' WITH WRAPPER), json_query('[1]', '$' WITH CONDITIONAL WRAPPER), json_query('[1, 2]', '$[*]' WITH CONDITIONAL ARRAY WRAPPER), json_query('[1, 2]', '$[*]'), json_query('[]', '$[*]' EMPTY ARRAY ON EMPTY), json_query('[]', '$[*]' DEFAULT '{"a": 1}' ON EMPTY), json_query('[1, 2]', '$[*]' EMPTY OBJECT ON ERROR), json_query('{"a": [1, 2]}', '$.a[*]' WITHOUT WRAPPER), json_query('[1, 2]', '$[*]' WITH UNCONDITIONAL WRAPPER RETURNING text)
SELECT json_query('[1, 2]', '$[*]' RETURNING text WITH WRAPPER KEEP QUOTES)
SELECT json_query('[1, 2]', '$[*]' ERROR ON ERROR)
SELECT json_query('{"a": 1}', '$' RETURNING int ERROR ON ERROR)
SELECT json_query('{"a": 1}', '$' RETURNING int[] ERROR ON ERROR)
SELECT json_query('1', '$' TRUE ON ERROR)
SELECT json_value(j, '$.a') FROM (VALUES ('{"a": 1}'), ('{"a": "x"}'), (NULL)) v(j)

-- JSON_TABLE
SELECT * FROM json_table('{"a":[{"x":1,"y":"q","z":[1,2]},{"x":2,"z":[]}]}', '$.a[*]' AS p COLUMNS (n FOR ORDINALITY, x int, y text PATH '$.y' DEFAULT 'none' ON EMPTY, h bool EXISTS PATH '$.z[0]', zz jsonb PATH '$.z', NESTED PATH '$.z[*]' AS q COLUMNS (z int PATH '$', zn FOR ORDINALITY), NESTED '$.x' COLUMNS (xx int PATH '$'))) t
SELECT * FROM json_table('[1,"a"]', '$[*]' COLUMNS (x int PATH '$' ERROR ON ERROR))
SELECT * FROM json_table('[1,"a"]', '$[*]' COLUMNS (x int PATH '$') ERROR ON ERROR)
SELECT * FROM json_table('[1,"a"]', 'strict $.b' COLUMNS (x int PATH '$'))
SELECT * FROM json_table('[1,"a"]', 'strict $.b' COLUMNS (x int PATH '$') ERROR ON ERROR)
SELECT * FROM json_table(NULL, '$' COLUMNS (x int PATH '$'))
SELECT * FROM json_table('[1,{"a":2}]', '$[*]' COLUMNS (x text PATH '$', y jsonb PATH '$', z text FORMAT JSON PATH '$', a int4 EXISTS PATH '$.a')) AS t(p, q)
SELECT x.*, t.j FROM (VALUES ('[1,2]'), ('[3]')) t(j), json_table(t.j::jsonb, '$[*] ? (@ > $k)' PASSING 1 AS k COLUMNS (v int PATH '$')) x(w)
SELECT * FROM json_table('[1]', '$[*]' COLUMNS (x int PATH '$', x int PATH '$'))
SELECT * FROM json_table('[{"a": "b c"}, {"a": [1]}]', '$[*]' COLUMNS (a text OMIT QUOTES, b int[] PATH '$.a', c int PATH '$.c' DEFAULT 1 + 2 ON EMPTY, "d e" text))
SELECT count(*), sum(x) FROM json_table('[1, 2, 3]'::jsonb, '$[*]' COLUMNS (x int PATH '$')) JOIN generate_series(2, 3) g ON g = x
