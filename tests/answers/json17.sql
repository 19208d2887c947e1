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
