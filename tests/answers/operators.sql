CREATE FUNCTION butnot(boolean, boolean) RETURNS boolean LANGUAGE sql AS 'SELECT $1 AND NOT $2'

CREATE OPERATOR === (LEFTARG = boolean, RIGHTARG = boolean, PROCEDURE = butnot, COMMUTATOR = ===, NEGATOR = !==, RESTRICT = contsel, JOIN = contjoinsel, SORT1, HASHES, MERGES)

CREATE OPERATOR === (LEFTARG = boolean, RIGHTARG = boolean, PROCEDURE = butnot)

SELECT true === false, false === NULL, 't' === true, true === 'no'

SELECT true !== false

SELECT oprname, oprkind, oprcanmerge, oprcanhash, oprleft::regtype::text, oprright::regtype::text, oprresult, oprcode::text, oprrest::text, oprjoin::text, oprcom = oid AS own, oprnegate <> 0 AS negated FROM pg_operator WHERE oprname IN ('===', '!==') ORDER BY 1

DROP OPERATOR !== (boolean, boolean)

SELECT oprnegate FROM pg_operator WHERE oprname = '==='

ALTER OPERATOR === (boolean, boolean) SET (RESTRICT = NONE, JOIN = NONE)

ALTER OPERATOR === (boolean, boolean) SET (RESTRICT = eqsel)

SELECT oprrest::text, oprjoin::text FROM pg_operator WHERE oprname = '==='

ALTER OPERATOR === (boolean, boolean) SET (RESTRICT = nothing)

ALTER OPERATOR === (boolean, boolean) SET (NEGATOR = ===)

ALTER OPERATOR === (boolean, boolean) SET ("Restrict" = eqsel)

ALTER OPERATOR === (boolean, integer) SET (RESTRICT = NONE)

ALTER OPERATOR === (boolean, boolean) OWNER TO nobody

DROP OPERATOR === (boolean, NONE)

DROP OPERATOR === (NONE, boolean)

DROP OPERATOR === (boolean)

DROP OPERATOR === (boolean, integer)

DROP OPERATOR === (nothing, boolean)

DROP OPERATOR IF EXISTS nothing.=== (boolean, boolean), === (nothing, boolean), ==== (NONE, integer), === (integer, integer)

DROP OPERATOR + (integer, integer)

CREATE SCHEMA os

ALTER OPERATOR === (boolean, boolean) SET SCHEMA os

SELECT true === false

SELECT true OPERATOR(os.===) false, 1 OPERATOR(pg_catalog.+) 2, true OPERATOR(os.===) ANY (ARRAY[true, false])

SELECT true OPERATOR(operators.===) false

SELECT true OPERATOR(nothing.===) false

SELECT 1 OPERATOR(os.+) 1

DROP FUNCTION butnot(boolean, boolean)

DROP FUNCTION butnot(boolean, boolean) CASCADE

CREATE OPERATOR @#@ (RIGHTARG = int8, PROCEDURE = factorial, COMMUTATOR = @#@)

CREATE OPERATOR @#@ (RIGHTARG = int8, PROCEDURE = factorial, JOIN = contjoinsel)

CREATE OPERATOR @#@ (RIGHTARG = int8, PROCEDURE = factorial, RESTRICT = contsel)

CREATE OPERATOR @#@ (RIGHTARG = int8, PROCEDURE = factorial, HASHES)

CREATE OPERATOR @#@ (RIGHTARG = int8, PROCEDURE = factorial, NEGATOR = @#@)

CREATE OPERATOR @#@ (RIGHTARG = int4, PROCEDURE = factorial)

CREATE OPERATOR @#@ (LEFTARG = int8, PROCEDURE = factorial)

CREATE OPERATOR @#@ (PROCEDURE = factorial)

CREATE OPERATOR @#@ (RIGHTARG = int8)

CREATE OPERATOR @#@ (RIGHTARG = SETOF int8, PROCEDURE = factorial)

CREATE OPERATOR => (RIGHTARG = int8, PROCEDURE = factorial)

CREATE OPERATOR nothing.@#@ (RIGHTARG = int8, PROCEDURE = factorial)

CREATE OPERATOR @#@ (RIGHTARG = int8, PROCEDURE = pg_catalog.factorial, "Leftarg" = int8, other = 3)

SELECT @#@ 5, @#@ 5::smallint, - @#@ 3 + 1

SELECT @#@ 'x'

SELECT @#@ 5.0

SELECT 5 @#@ + 1

CREATE OPERATOR |=| (LEFTARG = int8, RIGHTARG = int8, PROCEDURE = int8eq, NEGATOR = |=|)

CREATE OPERATOR |=| (LEFTARG = int8, RIGHTARG = int8, PROCEDURE = int8eq, JOIN = eqsel)

CREATE OPERATOR |=| (LEFTARG = int8, RIGHTARG = int8, PROCEDURE = int8pl, MERGES)

CREATE OPERATOR |=| (LEFTARG = int8, RIGHTARG = int8, PROCEDURE = int8eq, MERGES = maybe)

CREATE OPERATOR |=| (LEFTARG = int8, RIGHTARG = int8, PROCEDURE = int8pl, HASHES = false)

SELECT 3::int8 |=| 4 |=| 5, 3::int8 |=| '4', 3 |=| 4::smallint

SELECT 1::int8 |=| ANY (ARRAY[1, 2])

SELECT 1::int8 |=| ALL (SELECT 1)

SELECT (1::int8, 1::int8) |=| (1, 1)

SELECT (1::int8, 1::int8) OPERATOR(pg_catalog.=) (1, 1)

COMMENT ON OPERATOR |=| (int8, int8) IS 'a sum'

COMMENT ON OPERATOR |=| (int8, NONE) IS 'nothing'

COMMENT ON OPERATOR |=| (NONE, int8) IS 'nothing'

SELECT obj_description(oid, 'pg_operator') FROM pg_operator WHERE oprname = '|=|'

CREATE FUNCTION likes(int8, text) RETURNS boolean LANGUAGE sql AS 'SELECT $1::text = $2'

SELECT 1::int8 = '1'::text

CREATE OPERATOR = (LEFTARG = int8, RIGHTARG = text, PROCEDURE = likes)

SELECT 1::int8 = '1'::text, 1::int8 = '1', 2 = '2'::text, 1::int8 IN ('1'::text, '2'), (1::int8) IN (SELECT '1'::text), 1::int8 = ANY ('{2,1}'::text[]), 1 = 1

SELECT 1 = '1'::text, '1'::text = 1

SELECT (1::int8, 1) = ('1'::text, 1)

SELECT (1::int8, 1) IN (SELECT '1'::text, 1)

CREATE TYPE shape AS (w int, h int)

CREATE FUNCTION same(shape, shape) RETURNS boolean LANGUAGE sql AS 'SELECT ($1).w * ($1).h = ($2).w * ($2).h'

CREATE OPERATOR = (LEFTARG = shape, RIGHTARG = shape, FUNCTION = same, COMMUTATOR = =)

CREATE TABLE shapes (id int, a shape, b shape)

INSERT INTO shapes VALUES (1, ROW(1, 6), ROW(2, 3)), (2, ROW(2, 2), ROW(2, 2)), (3, NULL, ROW(1, 1)), (4, ROW(3, NULL), ROW(3, NULL)), (5, ROW(1, 1), ROW(1, 2)), (6, NULL, NULL)

SELECT id, a = b, a <> b, a IS DISTINCT FROM b, a IS NOT DISTINCT FROM b, nullif(a, b) FROM shapes ORDER BY id

SELECT id, CASE a WHEN b THEN 'same' WHEN ROW(1, 1)::shape THEN 'one' ELSE 'other' END, a = ANY (ARRAY[ROW(3, 2)::shape]), a IN (b, ROW(2, 2)::shape) FROM shapes ORDER BY id

SELECT id, a IN (SELECT b FROM shapes), a = ALL (SELECT b FROM shapes WHERE id < 3), a = (SELECT b FROM shapes WHERE id = 2) FROM shapes ORDER BY id

SELECT x.id, y.id FROM shapes x JOIN shapes y ON x.a = y.b ORDER BY 1, 2

SELECT x.id, y.id FROM shapes x LEFT JOIN shapes y USING (a) ORDER BY 1, 2

CREATE VIEW alike AS SELECT id FROM shapes WHERE a = b

DROP OPERATOR = (shape, shape)

DROP FUNCTION same(shape, shape)

DROP OPERATOR = (shape, shape) CASCADE

SELECT a = b FROM shapes WHERE id = 1

CREATE FUNCTION told(int, int) RETURNS int LANGUAGE plpgsql STRICT AS $$ BEGIN RETURN $1 * 10 + $2; END $$

CREATE OPERATOR <+> (LEFTARG = int, RIGHTARG = int, PROCEDURE = told)

SELECT 1 <+> 2 <+> 3, 1 <+> 2 * 3, (1 <+> 2) * 3, '1' <+> 2, NULL <+> 1

DO $$ BEGIN RAISE NOTICE '%', 4 <+> 2; END $$

CREATE FUNCTION either(anyelement, anyelement) RETURNS anyelement LANGUAGE sql AS 'SELECT coalesce($1, $2)'

CREATE OPERATOR ?? (LEFTARG = anyelement, RIGHTARG = anyelement, PROCEDURE = either)

SELECT NULL::int ?? 3, 'a'::text ?? 'b', NULL::date ?? '2020-01-01'

SELECT NULL ?? 'x'

SELECT 1 ?? 'x'::text
