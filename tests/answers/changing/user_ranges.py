"""Range types of one's own, over text, double precision, an enum and a composite type, and their multiranges."""

from __future__ import annotations

SETUP = (
    'CREATE TYPE textrange AS RANGE (subtype = text, collation = "C")',
    "CREATE TYPE fr AS RANGE (subtype = float8, subtype_diff = float8mi, multirange_type_name = many)",
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')",
    "CREATE TYPE pt AS (x int, y int)",
    "CREATE TYPE span AS RANGE (subtype = pt)",
    "CREATE TYPE moods AS RANGE (subtype = mood)",
    "CREATE TABLE t (id int, r textrange, m textmultirange, f fr, rs fr[], s span, d moods)",
    "INSERT INTO t VALUES (1, '[a,f)', '{[a,c),[x,y]}', '[1.5,2)', '{\"[1,2)\",NULL}')",
    "UPDATE t SET s = '[\"(1,2)\",\"(3,4)\")', d = '[sad,ok]'",
    "INSERT INTO t VALUES (2, textrange('c', 'k', '[]'), textmultirange(textrange('b', 'd')), fr(NULL, 3))",
    "INSERT INTO t VALUES (3, 'empty', '{}', NULL, '{}', span(ROW(0, 0), NULL), moods('ok', NULL))",
    "INSERT INTO t (id) VALUES (4)",
)
CHANGES = (
    "DELETE FROM t WHERE id = 2",
    "UPDATE t SET r = r + '[f,h)', f = '[1.75,9)' WHERE id = 1",
    "INSERT INTO t VALUES (5, '[c,d)', '{(,a)}', '(1,1.75]', NULL, span(ROW(2, 0), ROW(2, 9)), '(sad,happy]')",
)
_QUERIES = (
    "SELECT * FROM t",
    "SELECT r, count(*) FROM t GROUP BY r",
    "SELECT range_agg(r), range_intersect_agg(r) FROM t WHERE id < 3",
    "SELECT id, r @> 'c'::text, r && '[b,d)', r << '[z,)', isempty(r), lower(r), upper(r), lower_inc(r) FROM t",
    "SELECT a.id, b.id FROM t a JOIN t b ON a.r && b.r",
    "SELECT id, m @> r, r <@ m, multirange(r), m + multirange(r) FROM t",
    "SELECT id, f, upper(f), f * '[1,2)', f @> 1.6::float8 FROM t",
    "SELECT id, unnest(m) FROM t",
    "SELECT DISTINCT m FROM t",
    "SELECT id, s @> ROW(2, 3)::pt, (lower(s)).x, upper(s) FROM t",
    "SELECT id, d, d @> 'ok'::mood, upper(d) FROM t",
    "SELECT id, row_number() OVER (ORDER BY r, id), rs[1] FROM t",
    "SELECT id, r::text, m::text FROM t WHERE r < '[c,)'",
)
_STATEMENTS = (
    "select pg_typeof(r)::text, pg_typeof(m)::text, pg_typeof(rs)::text, pg_typeof(lower(f))::text FROM t LIMIT 1",
    "select textrange('b', 'a')",
    "select textrange('a', 'b', 'x')",
    "select textrange('a')",
    "select '[b,a)'::textrange",
    "select textmultirange(), many(fr(1, 2), fr(2, 3)), many(ARRAY[fr(1, 2), fr(5, 6)])",
    "select many(textrange('a', 'b'))",
    "select '{[1,2),[2,5)}'::many, many('{[1,2)}')",
    "select fr(1, 2) = textrange('a', 'b')",
    "select fr(1, 2)::textrange",
    "select int4multirange(VARIADIC ARRAY[int4range(1, 2), int4range(2, 5)])",
    "select fr(1, 2)::many, textrange(1, 2)",
    "CREATE TYPE textrange AS RANGE (subtype = int)",
    "CREATE TYPE n AS RANGE (subtype = int, multirange_type_name = many)",
    "CREATE TYPE manyrange AS RANGE (subtype = int, nope = 1)",
    'CREATE TYPE n AS RANGE (collation = "C")',
    "CREATE TYPE n AS RANGE (subtype = json)",
    "CREATE TYPE n AS RANGE (subtype = nope)",
    "DROP TYPE textrange",
    "DROP TYPE pt",
    "ALTER TYPE pt ADD ATTRIBUTE s span",
    "ALTER TYPE fr ADD VALUE 'x'",
    "DROP TYPE many",
)


def queries() -> list[str]:
    """The queries, always the same. Those in capitals are tried as views too."""
    return [*_QUERIES, *_STATEMENTS]
