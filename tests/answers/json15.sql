-- One case a line; make_json.py asks PostgreSQL 15 for the answers.

-- numbers, keys and escapes
SELECT '1.0'::jsonb, '1e2'::jsonb, '-0.00'::jsonb, '1.50e-3'::jsonb, '1E400'::jsonb, '1.0'::json, '1e2'::json
SELECT '{"bb": 1, "a": 2, "bb": 3, "é": 4, "aa": 1}'::jsonb, '{"bb": 1,  "a":2, "bb": 3}'::json
SELECT '"\u00e9\ud83d\ude04\"\\\/\b\f\n\r\t\u0001"'::jsonb
SELECT '"\ud83d"'::json, '"\u0000"'::json, '"a\\u0000"'::jsonb
SELECT '"\u0000"'::jsonb
SELECT '"\ud83d"'::jsonb
SELECT '"\ude04"'::jsonb
SELECT '["\ud83d"]'::json ->> 0
SELECT '["\u0000"]'::json ->> 0
SELECT '1e200000'::jsonb
SELECT '1e200000'::json
SELECT repeat('[', 20000)::json
SELECT repeat('[', 20000)::jsonb
SELECT '{"a":1,}'::json
SELECT 'nul'::jsonb
SELECT '01'::jsonb
SELECT ' [1, 2 ] '::json, ' [1, 2 ] '::jsonb, ''''::text
SELECT ''::json

-- type json has no equality
SELECT '1'::json = '1'::json
SELECT DISTINCT x FROM (VALUES ('1'::json)) v(x)
SELECT x FROM (VALUES ('1'::json)) v(x) GROUP BY x
SELECT x FROM (VALUES ('1'::json)) v(x) ORDER BY x
SELECT '1'::json UNION SELECT '2'::json
SELECT '1'::json UNION ALL SELECT '2 '::json
SELECT '1'::json INTERSECT SELECT '2'::json
SELECT count(DISTINCT x) FROM (VALUES ('1'::json)) v(x)
SELECT x IN ('1') FROM (VALUES ('1'::json)) v(x)
SELECT max(x) FROM (VALUES ('1'::json)) v(x)
CREATE TEMP TABLE t (x json PRIMARY KEY)
CREATE TEMP TABLE t (x json); CREATE INDEX ON t (x)
SELECT DISTINCT x FROM (VALUES ('1.0'::jsonb), ('1.0'), ('{"a":1}')) v(x) ORDER BY x
SELECT x FROM (VALUES ('{"a":1}'::jsonb), ('[1]'), ('[]'), ('null'), ('"b"'), ('"B"'), ('2'), ('10'), ('true'), ('false'), ('{}'), ('{"b":0}'), ('[0,0]')) v(x) ORDER BY x

-- access
SELECT '{"a":{"b":[1,2,{"c":null}]}}'::jsonb -> 'a' -> 'b' -> -1 ->> 'c', '{"a": {"b":[1, 2]}}'::json -> 'a' -> 'b'
SELECT '1'::jsonb -> 0, '"a"'::jsonb ->> -1, '1'::json -> 0, '[1]'::jsonb -> 1, '[1]'::json -> -2, '{"0":1}'::jsonb -> 0
SELECT '{"a":1,"a":2}'::json -> 'a', '{"a":1,"a":[2]}'::json #> '{a,0}', '{"a":null}'::json ->> 'a', '{"a":null}'::json -> 'a'
SELECT '{"a":[1,[2,3]]}'::jsonb #> '{a,1,-1}', '{"a":[1]}'::jsonb #> '{a,x}', '1'::jsonb #> '{}', '1'::jsonb #> '{0}', '[1]'::jsonb #>> '{ 0}'
SELECT '{"a":[1,[2,3]]}'::json #> '{a,1,-1}', '{"a":[1]}'::json #> '{a,x}', '1'::json #> '{}', '1'::json #> '{0}', '[1]'::json #>> '{-1}'
SELECT '{"a":1}'::jsonb #> '{NULL}', '{"a":1}'::jsonb #> NULL, '{"a":1}'::jsonb -> NULL::text
SELECT json_extract_path('{"a":{"b":"x"}}', 'a', 'b'), jsonb_extract_path_text('{"a":{"b":"x"}}', 'a', 'b'), json_extract_path_text('{"a":[null]}', 'a', '0')
SELECT json_typeof(x), jsonb_typeof(x::jsonb) FROM (VALUES ('1'::json), ('"a"'), ('[]'), ('{}'), ('null'), ('true'), (' -1.5 ')) v(x)
SELECT json_array_length('[1,[2],"a,b",{"c":[]}]'), jsonb_array_length('[]'), json_array_length(' [ ] ')
SELECT json_array_length('{}')
SELECT jsonb_array_length('1')

-- containment
SELECT '[1,[1,3]]'::jsonb @> '[[3]]', '["a"]'::jsonb @> '"a"', '"a"'::jsonb @> '["a"]', '[1,2]'::jsonb @> '[2,2]', '{"a":[1]}'::jsonb @> '{"a":1}', '1.0'::jsonb @> '1'
SELECT '{"a":{"b":1,"c":2}}'::jsonb @> '{"a":{"c":2}}', '{"a":1}' <@ '{"a":1,"b":2}'::jsonb, '[true]'::jsonb @> '[1]', '[]'::jsonb @> '{}', '{}'::jsonb @> '[]'
SELECT '["a",{"b":1}]'::jsonb ? 'b', '{"b":1}'::jsonb ? 'b', '"b"'::jsonb ? 'b', '1'::jsonb ? '1', '["a","b"]'::jsonb ?| '{b,c}', '["a","b"]'::jsonb ?& '{b,c}', '["a"]'::jsonb ?& '{}', '["a"]'::jsonb ?| '{}', '["a"]'::jsonb ?& '{a,NULL}'

-- changes
SELECT '1'::jsonb || '2', '[1]'::jsonb || '{"a":1}', '{"a":1}'::jsonb || '[1]', '{"a":1,"b":2}'::jsonb || '{"b":3,"c":null}', '[1]'::jsonb || '[]'
SELECT '{"a":1}'::jsonb || '1'
SELECT '{"a":1}'::jsonb || 'x'
SELECT '1'::jsonb - 'a'
SELECT '{"a":1}'::jsonb - 0
SELECT '[1,2,3]'::jsonb - 5, '[1,2,3]'::jsonb - -1, '["a","b","a"]'::jsonb - 'a', '{"a":1,"b":2}'::jsonb - 'a', '{"a":1,"b":2,"c":3}'::jsonb - '{a,c,NULL}'::text[]
SELECT '1'::jsonb #- '{a}'
SELECT '[1]'::jsonb #- '{a}'
SELECT '[1,[2,3]]'::jsonb #- '{1,-1}', '[1,[2,3]]'::jsonb #- '{1,9}', '[1]'::jsonb #- '{}', '{"a":1}'::jsonb #- '{a,b}', '{"a":{"b":1,"c":2}}'::jsonb #- '{a,b}'
SELECT jsonb_set('1', '{a}', '2')
SELECT jsonb_set('[1]', '{a}', '2')
SELECT jsonb_set('[1,2]', '{-5}', '9'), jsonb_set('[1,2]', '{5}', '9'), jsonb_set('[1,2]', '{5}', '9', false), jsonb_set('{"a":{"b":1}}', '{a,c,d}', '9'), jsonb_set('{"a":1}', '{a,c}', '9'), jsonb_set('{"a":1}', '{}', '5')
SELECT jsonb_set('{"a":[1,2]}', '{a,NULL}', '9')
SELECT jsonb_set('{"a":[]}', '{a,b}', '1')
SELECT jsonb_set('{"a":1}', '{{a,b}}', '1')
SELECT jsonb_insert('{"a":[1,2]}', '{a,0}', '9'), jsonb_insert('{"a":[1,2]}', '{a,-1}', '9', true), jsonb_insert('{"a":[1,2]}', '{a,-9}', '9', true), jsonb_insert('{"a":[1,2]}', '{b}', '9'), jsonb_insert('[]', '{0}', '9')
SELECT jsonb_insert('{"a":[1,2]}', '{a}', '9')
SELECT jsonb_set_lax('{"a":1}', '{a}', NULL), jsonb_set_lax('{"a":1}', '{a}', NULL, true, 'delete_key'), jsonb_set_lax('{"a":1}', '{a}', NULL, true, 'return_target'), jsonb_set_lax('{"a":1}', '{b}', '2'), jsonb_set_lax(NULL, '{a}', NULL, true, NULL)
SELECT jsonb_set_lax('{"a":1}', '{a}', NULL, true, 'raise_exception')
SELECT jsonb_set_lax('{"a":1}', '{a}', NULL, true, 'foo')
SELECT jsonb_set_lax('{"a":1}', '{a}', NULL, true, NULL)
SELECT jsonb_pretty('{"a":[],"b":{},"c":[1,{"d":2}]}'), jsonb_pretty('1')
SELECT json_strip_nulls(' {"a": 1.0, "b":null, "c":[null, {"d":null, "x\u00e9":"\n"}]} '), jsonb_strip_nulls('{"a": 1.0, "b":null, "c":[null, {"d":null}]}'), json_strip_nulls('null')

-- building
SELECT to_json(1e20::float8), to_jsonb(1e20::float8), to_jsonb('NaN'::float8), to_json('Infinity'::numeric), to_jsonb(1.50), to_json('2020-01-01 00:00:00+00'::timestamptz), to_json('infinity'::date), to_jsonb('2020-01-01 00:00:00'::timestamp), to_json('infinity'::timestamptz)
SELECT to_json('x'::"char"), to_json('{1,2}'::int[]), to_json('\xab'::bytea), to_json('1 day'::interval), to_jsonb('{{1,NULL},{3,4}}'::int[]), to_json('{}'::int[]), to_json(NULL::int), to_jsonb(true)
SELECT to_json('{"a":  1}'::json), to_jsonb('{"a":  1}'::json), to_json('{"a":  1}'::jsonb), to_json(ARRAY['1 '::json])
SELECT json_build_object('a', 1, 'b')
SELECT json_build_object(NULL, 1)
SELECT jsonb_build_object(NULL, 1)
SELECT json_build_object('{"a":1}'::json, 1)
SELECT jsonb_build_object(ARRAY[1], 1)
SELECT jsonb_build_object('"x"'::jsonb, 1)
SELECT json_build_object('a', '{"x":   1}'::json, 'b', '[1,  2]'::jsonb, 'c', ROW(1, 'x'), 'd', ARRAY[[1,2],[3,4]], 'e', NULL, 1, 2, true, 3, 1.50, 4, date '2020-01-02', 5)
SELECT jsonb_build_object('a', '{"x":   1}'::json, 'b', '[1,  2]'::jsonb, 'c', ROW(1, 'x'), 'd', ARRAY[[1,2],[3,4]], 'e', NULL, 1, 2, true, 3, 1.50, 4, date '2020-01-02', 5)
SELECT json_build_object(), json_build_array(), jsonb_build_object(), jsonb_build_array()
SELECT json_build_array(1, 'x', NULL, ROW(1)), jsonb_build_array(1, 'x', NULL, ROW(1), 1.50)
SELECT json_object('{a,1,b,2}'), json_object('{{a,1},{b,NULL}}'), json_object('{a,b}', '{1,2}'), jsonb_object('{a,1,b,"x\"y",a,2}'), json_object('{}'), jsonb_object('{a}', '{NULL}')
SELECT json_object('{a,1,b}')
SELECT json_object('{{a},{b}}')
SELECT json_object('{{{a,b},{c,d}}}')
SELECT json_object('{NULL,1}')
SELECT json_object('{a,b}', '{1}')
SELECT jsonb_object('{{a,b}}', '{1}')
SELECT array_to_json('{{1,2},{3,4}}'::int[]), array_to_json('{{1,2},{3,4}}'::int[], true), array_to_json('{1,2}'::int[], true), row_to_json(ROW(1, ROW(2, 'x')), true), row_to_json(ROW(1, NULL))
SELECT row_to_json(t) FROM (SELECT 1, 'x') t(a, b)
SELECT row_to_json(t), to_jsonb(t) FROM (VALUES (1, 'x'::text)) t("A b", c)
SELECT row_to_json(q) FROM (SELECT a AS "é""", row_to_json(t) AS r FROM (SELECT 1 AS a, 2 AS b) t) q

-- casts
SELECT '1.5'::jsonb::int, '1.5'::jsonb::numeric, 'true'::jsonb::bool, '2.5'::jsonb::int2, '1e3'::jsonb::float8, '"a"'::jsonb::text, '{"a":  1}'::json::jsonb, '{"a":  1}'::jsonb::json
SELECT '"1"'::jsonb::int
SELECT 'null'::jsonb::int
SELECT '[1]'::jsonb::bool
SELECT '1e10'::jsonb::int
CREATE TEMP TABLE t (x json, y jsonb); INSERT INTO t VALUES ('{"b":1, "a": 2}', '{"b":1, "a": 2}'); INSERT INTO t SELECT y, x FROM t; SELECT * FROM t ORDER BY x::text

-- table functions
SELECT * FROM json_to_record('{"a":1,"b":[1,2],"c":{"x":1},"d":"x","e":null, "f":"[1,2]"}') AS x(a text, b int[], c text, d json, e int, f json)
SELECT * FROM jsonb_to_record('{"a":1,"b":[1,2],"c":{"x":1},"d":"x","e":null, "f":"[1,2]"}') AS x(a text, b int[], c text, d jsonb, e int, f json)
SELECT * FROM jsonb_to_record('{"b":1}') AS x(b int[])
SELECT * FROM jsonb_to_record('{"b":[[1,2],[3,4]]}') AS x(b int[])
SELECT * FROM jsonb_to_record('{"b":[[1,2],[3]]}') AS x(b int[])
SELECT * FROM jsonb_to_record('{"b":[[1,2],3]}') AS x(b int[])
SELECT * FROM jsonb_to_record('{"b":"{1,2}"}') AS (b int[])
SELECT * FROM json_to_record('[1]') AS x(b int)
SELECT * FROM jsonb_to_recordset('{"a":1}') AS x(b int)
SELECT * FROM json_to_recordset('[1]') AS x(b int)
SELECT * FROM jsonb_to_record(NULL) AS x(b int)
SELECT * FROM jsonb_to_recordset('[{"b":1},{"B":2},{"b":"7"}]') AS x(b int, c text)
SELECT * FROM jsonb_to_record('{"b":"x"}') AS x(b int)
SELECT * FROM jsonb_to_record('{"b":"x"}')
SELECT jsonb_to_record('{"b":"x"}')
SELECT * FROM generate_series(1, 2) AS x(a int)
SELECT x.value, key FROM jsonb_each('{"b":1,"a":"x"}') x
SELECT * FROM json_each_text('{"a":1, "b":"x", "c":null, "a": [ 1]}')
SELECT jsonb_each('{"a":1,"b":"x"}'), json_each_text('{"a":1,"b":"x","c":null}')
SELECT jsonb_each('[1]')
SELECT json_each('1')
SELECT x.value FROM jsonb_array_elements('[1,"a",null]') x
SELECT json_array_elements(' [1, [2 ]]'), jsonb_array_elements_text('["a",null,{"b":1}]')
SELECT jsonb_array_elements('{}')
SELECT json_array_elements('1')
SELECT jsonb_object_keys('{"b":1,"a":2}'), json_object_keys('{"b":1,"a":2,"b":3}')
SELECT json_object_keys('[]')
SELECT v.x, e.value FROM (VALUES ('[1,2]'::jsonb), ('[]'), ('[3]')) v(x), jsonb_array_elements(v.x) WITH ORDINALITY AS e(value, n) ORDER BY 1, 2

-- aggregates
SELECT json_agg(x ORDER BY x DESC), jsonb_agg(x ORDER BY x), json_agg(x) FILTER (WHERE x > 9) FROM (VALUES (1), (NULL), (3)) v(x)
SELECT json_agg(DISTINCT x), jsonb_agg(DISTINCT x ORDER BY x DESC) FROM (VALUES (1.0), (1.5), (1.0), (NULL)) v(x)
SELECT json_agg(x ORDER BY x), jsonb_agg(x ORDER BY x) FROM (VALUES (ARRAY[1]), (NULL), (ARRAY[2, NULL])) v(x)
SELECT json_agg(v ORDER BY a), jsonb_agg(v ORDER BY a) FROM (VALUES (1, 'x'), (2, NULL)) v(a, b)
SELECT json_agg(x ORDER BY n), jsonb_agg(x ORDER BY n) FROM (VALUES (1, '{"a":1}'::json), (2, ' [1, 2]')) v(n, x)
SELECT json_agg(x), jsonb_agg(x) FROM (VALUES (timestamp '2020-01-02 03:04:05'), ('infinity')) v(x)
SELECT json_object_agg(k, v ORDER BY k DESC, v), jsonb_object_agg(k, v ORDER BY v) FROM (VALUES ('a', 1), ('bb', 2), ('a', NULL), ('a', 3)) v(k, v)
SELECT json_object_agg(x, x ORDER BY x), jsonb_object_agg(x, x) FROM (VALUES (true), (false)) v(x)
SELECT json_object_agg(k, 1) FROM (VALUES ('a'), (NULL)) v(k)
SELECT jsonb_object_agg(k, 1) FROM (VALUES ('a'), (NULL)) v(k)
SELECT json_object_agg(k, 1) FILTER (WHERE k IS NOT NULL) FROM (VALUES ('a'), (NULL)) v(k)
SELECT json_object_agg(ARRAY[1], 1)
SELECT jsonb_object_agg('{}'::jsonb, 1)
SELECT json_agg(DISTINCT x) FROM (VALUES ('1'::json)) v(x)
SELECT jsonb_agg('a')
SELECT json_agg(1, 2)
SELECT json_object_agg('a')
SELECT x, json_agg(x) OVER (ORDER BY x), jsonb_object_agg(x, x) OVER (ORDER BY x ROWS 1 PRECEDING) FROM generate_series(1, 3) x
SELECT x, json_agg(x) OVER () FROM generate_series(1, 2) x

-- subscripts
SELECT ('{"a": {"b": [1, [2]]}}'::jsonb)['a']['b'][1][-1], ('123'::jsonb)[0], ('[1]'::jsonb)['0'], ('[1]'::jsonb)['a'], ('{"0": 1}'::jsonb)[0], ('{}'::jsonb)[NULL]
SELECT ('{"a": 1}'::jsonb)['a':'b']
SELECT ('[1]'::jsonb)[1.5]
SELECT ('[1]'::jsonb)[1::bigint]
SELECT ('[1, 2, 3]'::json)[1]
CREATE TEMP TABLE t (j jsonb); INSERT INTO t VALUES (NULL), ('{}'), ('{"a": {"b": 1}}'); UPDATE t SET j['a']['c'][1] = '2', j['z'] = NULL; SELECT j['a'], j FROM t WHERE j['a'] IS NOT NULL ORDER BY j
CREATE TEMP TABLE t (j jsonb); INSERT INTO t VALUES (NULL), ('[0]'); UPDATE t SET j[3] = '1'; UPDATE t SET j[-2] = '"x"'; SELECT j FROM t ORDER BY 1
CREATE TEMP TABLE t (j jsonb); INSERT INTO t VALUES ('[0]'); UPDATE t SET j[-2] = '1'
CREATE TEMP TABLE t (j jsonb); INSERT INTO t VALUES ('[0]'); UPDATE t SET j['a'] = '1'
CREATE TEMP TABLE t (j jsonb); INSERT INTO t VALUES ('{"a": 1}'); UPDATE t SET j['a']['b'] = '1'
CREATE TEMP TABLE t (j jsonb); INSERT INTO t VALUES ('1'); UPDATE t SET j['a'] = '1'
CREATE TEMP TABLE t (j jsonb); INSERT INTO t VALUES ('{}'); UPDATE t SET j[NULL] = '1'
CREATE TEMP TABLE t (j jsonb); INSERT INTO t VALUES ('{}'); UPDATE t SET j['a'] = 1
CREATE TEMP TABLE t (j jsonb); INSERT INTO t VALUES ('{}'); UPDATE t SET j['a'] = to_jsonb(1), j['b'] = j; SELECT * FROM t

-- jsonpath
SELECT '$.a[*] ? (@.b > 1 && !(exists(@.c))).d'::jsonpath, 'strict $[last, 0 to $.x + 1].**{2 to last}.size()'::jsonpath, '$."a b" like_regex "^x" flag "im"'::jsonpath
SELECT '$.a ='::jsonpath
SELECT ''::jsonpath
SELECT '@.a'::jsonpath
SELECT '$[last'::jsonpath
SELECT 'last'::jsonpath
SELECT '$ like_regex "("'::jsonpath
SELECT '$ like_regex "a" flag "y"'::jsonpath
SELECT '$'::jsonpath = '$'::jsonpath
SELECT DISTINCT x FROM (VALUES ('$'::jsonpath)) v(x)
CREATE TEMP TABLE t (p jsonpath, j jsonb); INSERT INTO t VALUES ('$.a', '{"a": 1}'), ('$.b ? (@ > 1)', '{"b": [1, 2, 3]}'), (NULL, '1'); SELECT p, j @? p, jsonb_path_query_array(j, p) FROM t ORDER BY p::text
SELECT '{"a": [1, 2]}'::jsonb @? '$.a[*] ? (@ > 1)', '{"a": [1, 2]}'::jsonb @@ '$.a[*] > 2', '{"a": 1}'::jsonb @@ '$.a', '{}'::jsonb @? 'strict $.a', '{}'::jsonb @? NULL
SELECT jsonb_path_exists('{"a": 1}', '$.a ? (@ > $x)', '{"x": 0}'), jsonb_path_match('{"a": 1}', '$.a > $x', '{"x": 0}'), jsonb_path_match('{"a": 1}', '$.b', '{}', true)
SELECT jsonb_path_match('{"a": 1}', '$.a')
SELECT jsonb_path_query('{"a": [1, {"b": 2}, [3]]}', '$.**')
SELECT jsonb_path_query('{"a": [1, {"b": 2}, [3]]}', '$.**{last}'), 1
SELECT jsonb_path_query('{"a": [1, {"b": 2}, [3]]}', 'strict $.a.b')
SELECT jsonb_path_query('{"a": [1, {"b": 2}, [3]]}', 'lax $.a.b')
SELECT jsonb_path_query('[1, "x", 3]', '$[*].double()')
SELECT jsonb_path_query_array('[1, "x", 3]', '$[*].double()', '{}', true), jsonb_path_query_array('{"a": "x", "b": "2"}', '$.**.double()', '{}', true)
SELECT jsonb_path_query_array('[1, 2.5, -3]', '$[*] + 1', '{}', true), jsonb_path_query_array('[1, 2.5, -3]', '-$[*]'), jsonb_path_query('7', '$ % 2 + $ / 2 * 3 - 1')
SELECT jsonb_path_query('0', '1 / $')
SELECT jsonb_path_query('[1, 2]', '$[*] ? (@ == $y)', '{"x": 1}')
SELECT jsonb_path_query('1', '$', '[]')
SELECT jsonb_path_query('{"a": {"b": 1.50, "cc": "é"}, "d": [{}, {"e": {}}]}', '$.**.keyvalue()')
SELECT jsonb_path_query('[{"a": 12345678.9, "b": {"c": 0}}, {"d": -0.00001}]', '$.**.keyvalue().keyvalue()', '{"v": 1}')
SELECT jsonb_path_query('[null, true, "a", 1, [], {}]', '$[*].type()')
SELECT jsonb_path_query('[[1], [], {}, 5]', '$[*].size()'), jsonb_path_query('[[1], [], {}, 5]', 'strict $[*] ? (@.type() == "array").size()')
SELECT jsonb_path_query_array('[0, 1, 2, 3]', '$[0, last - 1 to last, 1.9]'), jsonb_path_query_array('[0, 1]', '$[5]'), jsonb_path_query_first('[]', '$[*]')
SELECT jsonb_path_query('[0, 1]', 'strict $[5]')
SELECT jsonb_path_query('[0, 1]', '$["a"]')
SELECT jsonb_path_query_array('["abc", "Abd", "b\na"]', '$[*] ? (@ like_regex "^a" flag "i")'), jsonb_path_query_array('["abc", "Abd", "b\na"]', '$[*] ? (@ like_regex "^a" flag "m")'), jsonb_path_query_array('["a.c", "abc"]', '$[*] ? (@ like_regex "a.c" flag "q")'), jsonb_path_query_array('["a\nc"]', '$[*] ? (@ like_regex "a.c")'), jsonb_path_query_array('["a\nc"]', '$[*] ? (@ like_regex "a.c" flag "s")')
SELECT jsonb_path_query_array('["abc", 1, null]', '$[*] ? ((@ starts with "a") is unknown)'), jsonb_path_query_array('[1, null, "a"]', '$[*] ? (@ != null)'), jsonb_path_query_array('[1, 2]', '$[*] == 1 || $[*] == 5')
SELECT jsonb_path_query('"2020-01-02T03:04:05.6+05:30"', '$.datetime()'), jsonb_path_query('"2020-01-02T03:04:05.6+05:30"', '$.datetime().type()'), jsonb_path_query('"03:04"', '$.datetime("HH24:MI")')
SELECT jsonb_path_query('"2020-01-02"', '$.datetime() < "2020-01-02 00:00:01".datetime()'), jsonb_path_query('"1000000-01-01"', '$.datetime() > "2020-01-01 12:00:00".datetime()')
SELECT jsonb_path_query('"2020-01-02 00:00:00"', '$.datetime() < "2020-01-02 00:00:01+00".datetime()')
SELECT jsonb_path_query_tz('"2020-01-02 00:00:00"', '$.datetime() < "2020-01-02 00:00:01+00".datetime()'), jsonb_path_exists_tz('"12:00"', '$ ? (@.datetime("HH24:MI") == "12:00:00+00".datetime())')
SELECT jsonb_path_query('"x"', '$.datetime()')
SELECT jsonb_path_query('"10:61"', '$.datetime("HH24:MI")')
SELECT jsonb_path_query('"10"', '$.datetime("HH24=MI")')
SELECT jsonb_path_query(j, '$[*] ? (@ > 1)') FROM (VALUES ('[1, 2, 3]'::jsonb), ('[0]')) v(j)
SELECT v.x, q FROM (VALUES ('[1, 2]'::jsonb), ('[3]')) v(x), jsonb_path_query(v.x, '$[*]') q ORDER BY 2

-- populating rows
CREATE TEMP TABLE t (a text, b int, c timestamp); SELECT * FROM json_populate_record(null::t, '{"a": "x", "b": 43, "z": 1}') q
CREATE TEMP TABLE t (a text, b int, c timestamp); SELECT * FROM jsonb_populate_record(row('x', 3, '2012-12-31')::t, '{"a": [1, {"k": null}], "b": null}') q
CREATE TEMP TABLE t (a text, b int, c timestamp); INSERT INTO t VALUES ('y', 1, NULL); SELECT json_populate_record(t, '{"b": "7"}'), (jsonb_populate_record(t, '{"a": 2}')).a FROM t
CREATE TEMP TABLE t (a text, b int); SELECT * FROM json_populate_recordset(null::t, '[{"a": 1}, {"b": 2}]') q
CREATE TEMP TABLE t (a text, b int); SELECT jsonb_populate_recordset(row('d', 9)::t, '[{"a": 1}, {"b": 2}]')
CREATE TEMP TABLE t (a text, b int); SELECT * FROM json_populate_record(null::t, '{"b": "x"}')
CREATE TEMP TABLE t (a text, b int); SELECT * FROM json_populate_record(null::t, '[]')
CREATE TEMP TABLE t (a text, b int); SELECT json_populate_record(null::t, NULL), json_populate_record(row('a', 1)::t, NULL)
SELECT json_populate_record(row(1, 2), '{"f1": 0, "f2": 1}'), jsonb_populate_recordset(row(1, 2), '[{"f1": 0}]')
SELECT * FROM json_populate_record(null::record, '{"x": 776}') AS (x int, y int)
SELECT * FROM jsonb_populate_recordset(null::record, '[{"x": 776}, {"y": 1}]') AS (x int, y int)
SELECT json_populate_record(null::record, '{"x": 0}')
SELECT json_populate_record(1, '{"x": 0}')
SELECT '[]'::jsonb #- '{a}', jsonb_set('[]', '{a}', '1', false)

-- VARIADIC, and arguments by name
SELECT json_build_array(VARIADIC '{a,NULL}'::text[]), jsonb_build_array(VARIADIC '{{1,2},{3,4}}'::int[]), json_build_array(VARIADIC NULL::int[]), json_build_array(VARIADIC '{}'::int[])
SELECT json_build_object(VARIADIC '{a,b}'::text[]), jsonb_build_object(VARIADIC '{1,2,3,4}'::int[]), jsonb_build_object(VARIADIC '{}'::text[])
SELECT json_build_object(VARIADIC ARRAY['a', 'b', 'c'])
SELECT jsonb_build_object(VARIADIC ARRAY[NULL, 'a'])
SELECT json_build_array(VARIADIC 1)
SELECT json_extract_path('{"a": [5, 6]}', VARIADIC ARRAY['a', '1']), jsonb_extract_path_text('{"a": "x"}', VARIADIC '{a}'), jsonb_extract_path('{"a": 1}', VARIADIC ARRAY[NULL])
SELECT concat(VARIADIC ARRAY[1, NULL, 2]), concat_ws('-', VARIADIC ARRAY[1, NULL, 2]), concat(VARIADIC NULL::int[]), format('%s %s', VARIADIC ARRAY['a', 'b']), num_nulls(VARIADIC ARRAY[1, NULL]), num_nonnulls(VARIADIC NULL::int[])
SELECT upper(VARIADIC ARRAY['a'])
SELECT jsonb_set_lax('{"a":1}', '{a}', NULL, null_value_treatment => 'delete_key'), jsonb_set('{}', '{a}', '1', create_if_missing => false), jsonb_path_query_array('[1, {}]', '$[*].a.b', silent => true), jsonb_path_exists(target => '1', path => '$ ? (@ > $x)', vars => '{"x": 0}')
SELECT jsonb_path_query('[1]', 'strict $.a', silent => true)
SELECT * FROM jsonb_path_query('[1, 2]', '$[*] ? (@ > $x)', vars => '{"x": 1}')
SELECT make_interval(days => 3, secs => 1.5), make_date(month => 2, year => 2020, day => 29)
SELECT jsonb_set('{}', '{a}', foo => '1')
SELECT jsonb_set('{}', '{a}', create_if_missing => true)
CREATE TEMP TABLE t (a int[], b int[]); SELECT * FROM jsonb_populate_record(null::t, '{"a": [[], []], "b": [[[]], [[]]]}')
CREATE TEMP TABLE p (x text, y int); CREATE TEMP TABLE t (r p); SELECT r FROM json_populate_record(row(row('a', 3))::t, '{"r": {"x": "b"}}')
