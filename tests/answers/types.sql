-- One case a line; make_queries.py asks PostgreSQL for the answers. Types: text, operators, functions, casts, errors.

-- bit strings
SELECT B'10', X'1F', b'', B'101' & B'110', B'100' | B'001', B'11' # B'01', ~ B'10', B'1' || B'0', B'101' << 1, B'101' >> 1
SELECT B'101' << 5, B'101' >> 5, B'101' << -1, B'101' >> -2
SELECT substring(B'11010' from 2 for 3), substring(B'1101', 0, 3), substring(B'1101' for 2), substring(B'1101' from 3)
SELECT substring(B'1101', 1, -1)
SELECT position(B'01' in B'1101'), position(B'11' in B'000'), overlay(B'11111' placing B'00' from 2), overlay(B'11111' placing B'00' from 2 for 1)
SELECT get_bit(B'101', 1), set_bit(B'101', 1, 1), length(B'101'), bit_length(B'101'), octet_length(B'101010101'), bit_count(B'1101')
SELECT get_bit(B'101', 3)
SELECT set_bit(B'101', 0, 2)
SELECT B'10' & B'101'
SELECT 5::bit(4), (-5)::bit(8), 5::bit(40), (-5)::bit(40), 44::bit(10), cast(-44 as bit(12)), 5::bit, 5::bigint::bit(70)
SELECT B'101'::int, B'11111111111111111111111111111111'::int, B'1111'::bigint
SELECT B'111111111111111111111111111111111'::int
SELECT B'10' = '10', B'10' < B'101', B'1' < B'01', B'0' < B'00', B'1011'::bit(2), B'10'::bit(4), B'1011'::varbit(2), 'x1F'::varbit
SELECT B'12'
SELECT X'1G'
CREATE TABLE b (a bit(3), v bit varying(5)); INSERT INTO b VALUES (B'11', B'1')
CREATE TABLE b (a bit(3), v bit varying(5)); INSERT INTO b VALUES (B'111', B'111111')
CREATE TABLE b (a bit(0))
CREATE TABLE b (a bit(3), v varbit(5), u bit varying, w bit); SELECT attname, format_type(atttypid, atttypmod), attlen FROM pg_attribute WHERE attrelid = 'b'::regclass AND attnum > 0
SELECT v FROM (VALUES (B'1'), (B'01'), (B'0'), (B''), (B'10'), (B'0000000000'), (NULL)) t(v) ORDER BY v
SELECT v, count(*) FROM (VALUES (B'1'), (B'01'), (B'1'), (NULL), (NULL)) t(v) GROUP BY v ORDER BY v

-- network addresses
SELECT inet '10.1.2.3/8', cidr '10/8', inet '10.0.0.1'::text, host('10.1.2.3/8'), text(inet '1.2.3.4'), abbrev(cidr '10.1/16'), abbrev(inet '10.1.0.0/16')
SELECT family('::1'), broadcast('192.168.1.5/24'), netmask('192.168.1.5/24'), hostmask('192.168.1.5/24'), network('192.168.1.5/24'), masklen('192.168.1.5/24')
SELECT set_masklen('192.168.1.5/24', 16), set_masklen(cidr '192.168.1.0/24', 16), inet_merge('192.168.1.5/24', '192.168.2.5/24'), inet_same_family('1.2.3.4', '::1'), set_masklen(inet '1.2.3.4/8', -1)
SELECT set_masklen(inet '1.2.3.4', 33)
SELECT inet_merge('1.2.3.4', '::1')
SELECT inet '192.168.1/24' >> inet '192.168.1.5', inet '192.168.1.5' << inet '192.168.1/24', inet '192.168.1/24' && inet '192.168.1.80/28', cidr '10/8' >>= '10.1.1.1', inet '10.0.0.1/8' <<= inet '10.0.0.2/8', inet '1.2.3.4' << inet '::/0'
SELECT inet '1.2.3.4' + 5, 5 + inet '1.2.3.4', inet '1.2.3.4' - 5, inet '1.2.3.4' - inet '1.2.3.0', ~ inet '192.168.1.6', inet '192.168.1.6' & inet '0.0.0.255', inet '192.168.1.6' | inet '0.0.0.255', cidr '10/8' = inet '10.0.0.0/8'
SELECT inet '255.255.255.255' + 1
SELECT inet '1.2.3.4' & inet '::1'
SELECT inet 'ffff::' - inet '::1'
SELECT inet '::ffff:1.2.3.4', inet '::1.2.3.4/128', inet '::', inet '2001:db8::ff00:42:8329', inet '1:0:0:2::3/64', cidr '10:23::/32', cidr '128.1', cidr '192.1', cidr '224.1', cidr '240.1'
SELECT '1.2.3.4'::text::inet, cidr(inet '10.1.2.3/8'), '10.1.2.3/8'::inet::cidr, '{1.2.3.4,::1}'::inet[]
SELECT '10.1.2.3/8'::cidr
SELECT '1.2.3'::inet
SELECT '1.2.3.256'::inet
SELECT '1.2.3.4/33'::inet
SELECT 'abc'::cidr
SELECT v FROM (VALUES (inet '192.168.1.0/24'), ('192.168.1.0/25'), ('192.168.1.255/24'), ('192.168.1.0/32'), ('10.1.2.3/8'), ('::1'), ('::/0'), ('9.1.2.3/8'), (NULL)) t(v) ORDER BY v
SELECT min(v), max(v), count(DISTINCT v) FROM (VALUES (inet '192.168.1.0/24'), ('192.168.1.0/25'), ('::1'), (NULL)) t(v)
SELECT macaddr '08-00-2b-01-02-03', macaddr '08002b:010203', macaddr '0800.2b01.0203', macaddr '08002b010203', macaddr8 '08:00:2b:01:02:03:04:05', macaddr8 '08002b0102030405'
SELECT macaddr '08:00:2b:01:02:03'::macaddr8, macaddr8 '08:00:2b:ff:fe:01:02:03'::macaddr, trunc(macaddr '12:34:56:78:90:ab'), ~ macaddr '12:34:56:78:90:ab', macaddr8_set7bit('00:34:56:ab:cd:ef'), macaddr '12:34:56:78:90:ab' & 'ff:ff:ff:00:00:00'
SELECT macaddr8 '08:00:2b:01:02:03:04:05'::macaddr
SELECT '12:34'::macaddr
SELECT '12:34:56:78:90:100'::macaddr
SELECT '12:34:56:78:90:ab:cd'::macaddr8

-- time with time zone
SELECT timetz '04:05:06.789-08:30', timetz '04:05 PST', timetz(2) '04:05:06.789+03', '04:05'::time::timetz, timetz '23:59:59+01' + interval '2 minutes', date '2020-01-01' + timetz '04:05-08', timetz '04:05:06-08'::time
SELECT extract(hour from timetz '04:05:06-08'), extract(timezone_hour from timetz '04:05:06-08:30'), extract(timezone_minute from timetz '04:05:06-08:30'), extract(timezone from timetz '04:05:06+01'), extract(epoch from timetz '04:05:06-08'), date_part('second', timetz '04:05:06.5-08')
SELECT timetz '04:05:06-08' AT TIME ZONE 'UTC', timetz '04:05:06-08' AT TIME ZONE interval '2 hours', timetz '23:05:06-08' AT TIME ZONE '+05'
SELECT extract(day from timetz '04:05-08')
SELECT timetz '2003-04-12 04:05:06 America/New_York', timestamptz '2020-01-01 04:05:06-08'::timetz
SELECT timetz '04:05:06 America/New_York'
SELECT v FROM (VALUES (timetz '04:05-08'), ('04:05-07'), ('05:05-07'), ('12:05+00'), ('24:00+00'), ('00:00+00'), (NULL)) t(v) ORDER BY v
SELECT min(v), max(v) FROM (VALUES (timetz '04:05-08'), ('04:05-07'), ('12:05+00')) t(v)

-- ranges
SELECT '(1,5]'::int4range, int4range(1, 5), 'empty'::int4range, int4range(3, 3, '[]'), int4range(3, 3), '[2,)'::int8range, daterange('2020-01-01', '2020-02-01', '[]'), numrange(1.0, 2.00) = numrange(1, 2), int4range(NULL, 5), ' [ 1 , 2 ) '::int4range
SELECT '["a b",]'::text, '["2020-01-01 00:00","2020-02-01")'::tsrange, '[2020-01-01,]'::tstzrange, '[-infinity,infinity]'::daterange, '(,)'::numrange
SELECT int4range(1, 5) @> 3, 3 <@ int4range(1, 5), int4range(1, 5) @> int4range(2, 3), int4range(1, 5) && int4range(4, 7), int4range(1, 5) << int4range(5, 7), int4range(1, 5) >> int4range(0, 1), int4range(1, 5) &< int4range(0, 5), int4range(1, 5) &> int4range(0, 5), int4range(1, 5) -|- int4range(5, 7), 'empty' -|- int4range(5, 7)
SELECT int4range(1, 5) + int4range(5, 7), int4range(1, 5) * int4range(3, 7), int4range(1, 5) - int4range(3, 7), int4range(1, 5) * int4range(6, 7), int4range(1, 5) - int4range(0, 9), range_merge(int4range(1, 2), int4range(6, 7)), numrange(1, 5) - numrange(3, 7), numrange(1, 5, '[]') - numrange(1, 2)
SELECT int4range(1, 5) + int4range(6, 7)
SELECT int4range(1, 9) - int4range(6, 7)
SELECT int4range(5, 1)
SELECT int4range(1, 2, '[[')
SELECT int4range(1, 2, NULL)
SELECT int4range(1, 2147483647, '[]')
SELECT '[1'::int4range
SELECT '1,2)'::int4range
SELECT '[1,2,3)'::int4range
SELECT '[1,2) x'::int4range
SELECT 'empty x'::int4range
SELECT '[a,2)'::int4range
SELECT lower(int4range(1, 5)), upper('[2020-01-01,2020-02-01]'::daterange), lower('empty'::int4range), isempty('empty'::numrange), lower_inc(numrange(1, 2)), upper_inc(numrange(1, 2, '[]')), lower_inf('(,1)'::int8range), upper_inf('[1,)'::int8range), lower_inf('empty'::int4range)
SELECT r FROM (VALUES (int4range(1, 5)), ('empty'), ('(,)'), ('(,3)'), ('[1,)'), ('[1,3)'), ('[2,3)'), (NULL)) t(r) ORDER BY r
SELECT upper_inc(r), isempty(r), count(*) FROM (VALUES (numrange(1.0, 2)), (numrange(1, 2.00)), (numrange(1, 2, '(]')), ('empty'), ('[1,1)')) t(r) GROUP BY r ORDER BY 1, 2
SELECT range_agg(r), range_intersect_agg(r) FROM (VALUES (int4range(1, 5)), (int4range(3, 9)), (int4range(4, 20)), (NULL)) t(r)
SELECT range_agg(r), range_intersect_agg(r) FROM (VALUES (int4range(1, 5))) t(r) WHERE false
SELECT a.r, b.r FROM (VALUES (numrange(1.0, 2)), ('empty')) a(r) JOIN (VALUES (numrange(1, 2.00)), ('empty')) b(r) ON a.r = b.r ORDER BY 1
SELECT array_agg(r ORDER BY r), ARRAY[int4range(1, 2), NULL] FROM (VALUES (int4range(1, 5)), ('empty')) t(r)
SELECT 5 <@ numrange(1, 9)
SELECT int4range(1, 2) = int8range(1, 2)
SELECT pg_typeof(int4range(1, 2)) = 'int4range'::regtype, oid, typarray, typtype, typcategory, typlen FROM pg_type WHERE typname = 'int4range'
SELECT oid, typname, typtype, typelem, typarray FROM pg_type WHERE typname IN ('inet', '_inet', 'cidr', 'macaddr', 'macaddr8', 'bit', 'varbit', 'timetz', '_timetz', 'tstzmultirange', '_tstzmultirange', 'uuid', '_uuid') ORDER BY oid

-- multiranges
SELECT '{[1,3),[2,5),empty}'::int4multirange, '{}'::nummultirange, int4multirange(int4range(1, 2), int4range(4, 5)), multirange(int4range(1, 2)), int4multirange(), int4range(1, 2)::int4multirange, ' { [1,2) , [3,4) } '::int4multirange
SELECT '{[1,3),[5,9)}'::int4multirange @> 4, '{[1,3),[5,9)}'::int4multirange @> int4range(6, 7), int4range(6, 7) <@ '{[1,3),[5,9)}'::int4multirange, '{[1,3),[5,9)}'::int4multirange && int4range(3, 5), '{[1,3),[5,9)}'::int4multirange << int4range(9, 10), '{[1,3)}'::int4multirange -|- int4range(3, 5)
SELECT '{[1,3),[5,9)}'::int4multirange + '{[3,4)}'::int4multirange, '{[1,3),[5,9)}'::int4multirange - '{[2,6)}'::int4multirange, '{[1,3),[5,9)}'::int4multirange * '{[2,6)}'::int4multirange
SELECT lower('{[1,3),[5,9)}'::int4multirange), upper('{[1,3),[5,)}'::int4multirange), isempty('{}'::int4multirange), range_merge('{[1,3),[5,9)}'::int4multirange), upper_inf('{[1,3),[5,)}'::int4multirange), lower_inc('{[1,3)}'::int4multirange)
SELECT r FROM unnest('{[1,3),[5,9)}'::int4multirange) r
SELECT range_agg(m), range_intersect_agg(m) FROM (VALUES ('{[1,3),[5,9)}'::int4multirange), ('{[2,6)}')) t(m)
SELECT m FROM (VALUES ('{[1,3),[5,9)}'::int4multirange), ('{}'), ('{[1,3)}'), ('{[1,4)}'), ('{(,1)}')) t(m) ORDER BY m
SELECT '{[1,2)'::int4multirange
SELECT '{[1,2) [3,4)}'::int4multirange
SELECT '[1,2)'::int4multirange
SELECT int4multirange(int4range(1, 2), NULL)

-- points
SELECT p FROM (VALUES (1, point '(0,0)'), (2, '(5.1, 34.5)'), (3, '-10,0'), (4, '(1e-300,-1e-300)'), (5, '( 1e+300 , Infinity )'), (6, '(NaN,NaN)'), (7, NULL), (8, point(3, 4))) t(i, p) ORDER BY i
SELECT p << point(0, 0), p >> '(0,0)', p <<| '(0,0)', p |>> '(0,0)', p ~= '(0,0)', p <> '(0,0)', p <-> '(3,4)', p ?- '(0,0)', p ?| '(0,0)' FROM (VALUES (1, point '(0,0)'), (2, '(5.1,34.5)'), (3, '(1e-300,-1e-7)'), (4, '(NaN,1)'), (5, '(-Infinity,1)')) t(i, p) ORDER BY i
SELECT p + '(1,2)', p - '(1,2)', p * '(1,2)', p / '(1,2)' FROM (VALUES (1, point '(0,0)'), (2, '(5.1,34.5)'), (3, '(NaN,1)'), (4, '(-Infinity,1)')) t(i, p) ORDER BY i
SELECT ARRAY[point(1, 2), '(3,4)'], '{"(1,2)","(3,4)"}'::point[], row(point(1, 2)), point(1, 2)::text, to_json(point(1, 2)), '(1,2)'::text::point
SELECT point(1, 2) / point(0, 0)
SELECT point(1e300, 2) * point(1e300, 0)
SELECT point(1e-300, 0) * point(1e-300, 0)
SELECT '(10,10'::point
SELECT '(10,1e+500)'::point
SELECT '(10.0 10.0)'::point
SELECT '1,y'::point
SELECT point(1, 2) = point(1, 2)
SELECT DISTINCT point(1, 2)
SELECT 1 ORDER BY point(1, 2)
CREATE TABLE p (p point PRIMARY KEY)
SELECT array[point(1, 2)] = array[point(1, 2)]
CREATE TYPE pr AS (p point, r float8); CREATE TABLE prs (f pr); INSERT INTO prs VALUES ('("(1,2)",3)'); SELECT * FROM prs ORDER BY f
CREATE TYPE pr AS (p point, r float8); CREATE TABLE prs (f pr); INSERT INTO prs VALUES ('("(1,2)",3)'); SELECT f < f FROM prs
CREATE TYPE pr AS (p point, r float8); CREATE TABLE prs (f pr); INSERT INTO prs VALUES ('("(1,2)",3)'); SELECT f = f FROM prs
CREATE TYPE pr AS (p point, r float8); CREATE TABLE prs (f pr); INSERT INTO prs VALUES ('("(1,2)",3)'); SELECT f *= f, f FROM prs
-- text search: vectors and queries
SELECT 'a:1A,2 b:3 ''x y'' ''it''''s'' a:2b'::tsvector, 'b a c'::tsvector, ''::tsvector, 'a\:b:4'::tsvector
SELECT 'a & !(b|c:*A) <2> d'::tsquery, '!!a & (b <-> (c <-> d)) | e'::tsquery, ''::tsquery, '''a b'':dc & \\!x'::tsquery
SELECT 'a:0'::tsvector
SELECT 'a:x'::tsvector
SELECT 'a &'::tsquery
SELECT 'a b'::tsquery
SELECT '(a'::tsquery
SELECT 'a <16385> b'::tsquery
SELECT repeat('a', 3000)::tsvector
SELECT 'fat:1 cat:2 rat:4B'::tsvector @@ q, q FROM unnest('{fat & cat,fat & !cat,cat <-> rat,cat <2> rat,rat:A | cat:D,ra:*b,!dog,fat <-> (cat | dog),fat <-> !rat,!(fat <-> cat)}'::tsquery[]) q
SELECT 'fat cat'::tsvector @@ 'fat <-> cat', 'fat cat'::tsvector @@ 'fat:A', 'a'::tsvector @@ '', 'a'::tsquery @@ 'a'::tsvector
SELECT 'a:1 b:2'::tsvector || 'a:1 c:3A', strip('a:1,2 b'), length('a b c'::tsvector), setweight('a:1 b:2,3C', 'b'), ts_delete('a b', 'a')
SELECT 'a'::tsquery && 'b|c', 'a'::tsquery || 'b & c', !!'a & b'::tsquery, 'a'::tsquery <-> 'b <-> c'::tsquery, tsquery_phrase('a', 'b', 3), 'a'::tsquery && ''
SELECT tsquery_phrase('a', 'b', 16384)
SELECT setweight('a:1', 'x')
SELECT 'a & b'::tsquery @> 'a', 'a'::tsquery <@ 'b', numnode('a & !b | c'), querytree('a & !b'), querytree('!a'), querytree('a <2> b')
SELECT 'a'::tsvector < 'b', 'a:1'::tsvector = 'a:1A', 'a'::tsquery = 'a:*', 'a & b'::tsquery < 'a | b', 'a'::tsquery < 'a & b'
SELECT v FROM unnest('{a,b,"a:1","a:2","a:1,2","a b",a:1A,""}'::tsvector[]) v ORDER BY v
SELECT q FROM unnest('{a,b,!a,a & b,a | b,a <-> b,a <2> b,(a & b) & c,a & (b & c),abc}'::tsquery[]) q ORDER BY q
-- text search: from text
SELECT to_tsvector('english', 'The quick-brown foxes jumped over 2 lazy dogs; don''t write to Fat.Cat@example.com')
SELECT to_tsvector('simple', 'The URL http://www.example.com/a/b.html?x=1 and /usr/local/bin and 1.5e-3, -4, 7.0.1, x2 <b>bold</b> &amp; e.g. foo_bar')
SELECT to_tsvector('english', ''), to_tsvector('english', 'the of and'), to_tsvector('simple', NULL)
SELECT to_tsquery('english', 'The & Fat:ab & rats:*'), to_tsquery('english', 'cat <-> the <-> rat'), to_tsquery('english', 'the | !of'), to_tsquery('simple', 'foo-bar')
SELECT to_tsquery('english', 'fat cat')
SELECT plainto_tsquery('english', 'The Fat & Rats over'), phraseto_tsquery('english', 'cat over the rat'), plainto_tsquery('english', 'in the')
SELECT websearch_to_tsquery('english', '"supernovae stars" -crab or (star'), websearch_to_tsquery('english', 'or -the "or" fat OR'), websearch_to_tsquery('simple', '""" )( dummy \\ query <->')
SELECT to_tsvector('a fat cat') @@ to_tsquery('cats'), 'fat cats' @@ to_tsquery('cat'), 'fat cats'::text @@ 'cat'::text
SELECT to_tsvector('klingon', 'a')
SELECT json_to_tsvector('english', '{"a": "aaa in bbb", "b": 123, "c": ["x y", true, null]}', f) FROM unnest('{"\"all\"","\"key\"","[\"string\", \"numeric\"]","\"boolean\""}'::jsonb[]) f
SELECT to_tsvector('english', '{"b": "the eee fff", "a": ["in", "hhh. iii"]}'::jsonb), to_tsvector('english', '{"b": "the eee fff", "a": ["in", "hhh. iii"]}'::json)
SELECT jsonb_to_tsvector('english', '{}', '{}')
SELECT jsonb_to_tsvector('english', '{}', '["all", null]')
SELECT 'simple'::regconfig, 'pg_catalog.english'::regconfig, current_setting('default_text_search_config')
SET default_text_search_config = simple; SELECT to_tsvector('the cats'), current_setting('default_text_search_config')
SET default_text_search_config = klingon
-- domains inside rows
CREATE DOMAIN pos1 AS int CHECK (value > 0); CREATE DOMAIN nn1 AS text NOT NULL; CREATE TYPE dr1 AS (a pos1, b nn1); SELECT (1, 'x')::dr1, '(2,"y z")'::dr1, NULL::dr1, (NULL, '')::dr1
CREATE DOMAIN pos2 AS int CHECK (value > 0); CREATE TYPE dr2 AS (a pos2, b text); SELECT (0, 'x')::dr2
CREATE DOMAIN nn3 AS text NOT NULL; CREATE TYPE dr3 AS (a int, b nn3); SELECT (1, NULL)::dr3
CREATE DOMAIN pos4 AS int CHECK (value > 0); CREATE TYPE dr4 AS (a pos4, b text); SELECT '(-1,x)'::dr4
CREATE DOMAIN pos5 AS int CHECK (value > 0); CREATE TYPE dr5 AS (a pos5); CREATE TYPE outermost5 AS (p dr5, q int); SELECT ROW(ROW(2), 1)::outermost5, (ROW(ROW(2), 1)::outermost5).p.a, ROW(NULL, 1)::outermost5
CREATE DOMAIN pos6 AS int CHECK (value > 0); CREATE TYPE dr6 AS (a pos6); CREATE TYPE outermost6 AS (p dr6, q int); SELECT ROW(ROW(-2), 1)::outermost6
CREATE TYPE pair7 AS (x int, y int); CREATE DOMAIN ordered7 AS pair7 CHECK ((value).x <= (value).y); SELECT ROW(1, 2)::ordered7, ROW(1, NULL)::pair7::ordered7, (ROW(1, 2)::ordered7).y
CREATE TYPE pair8 AS (x int, y int); CREATE DOMAIN ordered8 AS pair8 CHECK ((value).x <= (value).y); SELECT ROW(3, 2)::ordered8
CREATE DOMAIN pos9 AS int CHECK (value > 0); CREATE TYPE dr9 AS (a pos9, b text); SELECT * FROM json_populate_record(NULL::dr9, '{"a":1,"b":"q"}') UNION ALL SELECT * FROM jsonb_populate_recordset((5, 'w')::dr9, '[{"a":2},{"b":3}]') ORDER BY 1
CREATE DOMAIN pos10 AS int CHECK (value > 0); CREATE TYPE dr10 AS (a pos10, b text); SELECT * FROM json_populate_record(NULL::dr10, '{"a":-1,"b":"q"}')
CREATE DOMAIN pos11 AS int CHECK (value > 0); CREATE TYPE dr11 AS (a pos11, b text); SELECT jsonb_populate_record(NULL::dr11, '{"a":-1,"b":"q"}')
CREATE DOMAIN nn12 AS int NOT NULL; CREATE TYPE dr12 AS (a nn12, b text); SELECT a FROM jsonb_populate_record(NULL::dr12, '{"b":"q"}')
CREATE DOMAIN pos13 AS int CHECK (value > 0); SELECT * FROM jsonb_to_record('{"a":1,"b":2}') AS x(a pos13, b pos13)
CREATE DOMAIN pos14 AS int CHECK (value > 0); SELECT * FROM jsonb_to_recordset('[{"a":1},{"a":-2}]') AS x(a pos14)
CREATE DOMAIN pos15 AS int CHECK (value > 0); CREATE TABLE dt15 (a pos15, b int); CREATE TABLE du15 (d dt15); INSERT INTO du15 VALUES ((1, 2)), (NULL), ((NULL, NULL)); UPDATE du15 SET d.a = (d).a + 1; SELECT d FROM du15 ORDER BY 1
CREATE DOMAIN pos16 AS int CHECK (value > 0); CREATE TABLE dt16 (a pos16, b int); CREATE TABLE du16 (d dt16); INSERT INTO du16 VALUES ((-1, 2))
CREATE DOMAIN pos17 AS int CHECK (value > 0); CREATE TABLE dt17 (a pos17, b int); CREATE TABLE du17 (d dt17); INSERT INTO du17 VALUES ((1, 2)); UPDATE du17 SET d.a = -1
CREATE DOMAIN pos18 AS int CHECK (value > 0); CREATE TABLE dt18 (a pos18, b int); CREATE TABLE du18 (d dt18); ALTER DOMAIN pos18 ADD CHECK (value < 9)
CREATE DOMAIN pos19 AS int CHECK (value > 0); CREATE TYPE dr19 AS (a pos19, b text); ALTER DOMAIN pos19 ADD CHECK (value < 9); SELECT (9, 'x')::dr19
CREATE DOMAIN pos20 AS int CHECK (value > 0); CREATE TYPE dr20 AS (a pos20, b text); DROP DOMAIN pos20
CREATE DOMAIN pos21 AS int CHECK (value > 0); CREATE TYPE dr21 AS (b text); ALTER TYPE dr21 ADD ATTRIBUTE a pos21; SELECT ('x', 0)::dr21
-- domains of PL/pgSQL's variables
CREATE DOMAIN pos22 AS int CHECK (value > 0); DO $$ DECLARE v pos22 := 3; BEGIN v := v - 3; END $$
CREATE DOMAIN nn23 AS int NOT NULL; DO $$ DECLARE v nn23; BEGIN v := 1; END $$
CREATE DOMAIN nn24 AS int NOT NULL; DO $$ DECLARE v nn24 := 1; BEGIN v := NULL; END $$
CREATE DOMAIN pos25 AS int CHECK (value > 0); CREATE TABLE dt25 (a pos25, b text); DO $$ DECLARE v dt25.a%TYPE := 3; r dt25; BEGIN r.a := v; r := (4, 'b'); SELECT 5, 'c' INTO r; r.a := -v; END $$
CREATE DOMAIN pos26 AS int CHECK (value > 0); CREATE TABLE dt26 (a pos26, b text); DO $$ DECLARE r dt26; BEGIN SELECT -5, 'c' INTO r; END $$
CREATE TYPE pair27 AS (x int, y int); CREATE DOMAIN ordered27 AS pair27 CHECK ((value).x <= (value).y); DO $$ DECLARE v ordered27; BEGIN v := (1, 2); v := (2, 1); END $$
select 'simple'::regconfig = 'english'::regconfig, 'english'::regconfig::oid > 0, 3748::regconfig, 'simple'::regconfig::int, 3748::oid::regconfig, 'simple'::regconfig::bigint, '-'::regconfig::oid, 0::regconfig
select x from (values ('simple'::regconfig), ('english'), ('simple')) v(x) group by x order by x

-- numerics whose scale is negative or greater than the precision
SELECT 12345::numeric(2,-3), (-12500)::numeric(2,-3), 99499::numeric(2,-3), 499::numeric(2,-3), (-500)::numeric(2,-3), 500.0::numeric(2,-3), 499.999::numeric(2,-3), 'NaN'::numeric(2,-3), NULL::numeric(2,-3)
SELECT 99500::numeric(2,-3)
SELECT 1e300::numeric(2,-3)
SELECT 'inf'::numeric(2,-3)
SELECT 0.00999::numeric(3,5), 0.009994::numeric(3,5), -0.000005::numeric(3,5), 0.0000049::numeric(3,5), '0.00001'::numeric(3,5), 0::numeric(3,5), 'NaN'::numeric(3,5)
SELECT 0.01::numeric(3,5)
SELECT 0.009995::numeric(3,5)
SELECT 1::numeric(3,3)
SELECT 1::numeric(1,1000), 0::numeric(1,-1000)
SELECT 0::numeric(1,1000)::text = '0.' || repeat('0', 1000), 0::numeric(1,-1000), 5e999::numeric(1,-1000) = 10::numeric ^ 1000, 4e999::numeric(1,-1000), ('9e' || 1000)::numeric(1,-1000) / 10::numeric ^ 1000
SELECT 95e999::numeric(1,-1000)
SELECT 1::numeric(2,1001)
SELECT 1::numeric(2,-1001)
SELECT 1::numeric(0,-1)
SELECT 1::numeric(1001,0)
SELECT 1::numeric(1,2,3)
SELECT 45678::int2::numeric(2,-3)
SELECT 32767::int2::numeric(2,-3), 45678::int4::numeric(2,-3), 45678::int8::numeric(2,-3), 45678::float4::numeric(2,-3), 45678.9::float8::numeric(2,-3), '45678'::text::numeric(2,-3), '45678'::varchar::numeric(2,-3), '45678'::jsonb::numeric(2,-3), 12.5::numeric(8,3)::numeric(1,-1)
SELECT 9223372036854775807::numeric(2,-18), (-9223372036854775808)::numeric(2,-18), 9223372036854775807::numeric(1,-19), 8750000000000000000::numeric(3,-17), 4499999999999999999::numeric(1,-18)
SELECT 9223372036854775807::numeric(1,-18), 499999999999999999::numeric(1,-18), 500000000000000000::numeric(1,-18)
SELECT 45678::numeric(2,-3)::int, 45678::numeric(2,-3)::int2
SELECT 12345::numeric(2,-3)::int2, 12345::numeric(2,-3)::int8, 12345::numeric(2,-3)::float8, 12345::numeric(2,-3)::text, 0.00123::numeric(3,5)::float8, 0.00123::numeric(3,5)::int, 12345::numeric(2,-3)::numeric(10,2), 12345::numeric(10,2)::numeric(2,-3), 12345::numeric(2,-3)::numeric(1,-4)
SELECT scale(12345::numeric(2,-3)), scale(0.001::numeric(3,5)), min_scale(12345::numeric(2,-3)), 12345::numeric(2,-3) + 1, 12345::numeric(2,-3) * 0.5, 12345::numeric(2,-3) / 7, 12345::numeric(2,-3) % 7, -(12345::numeric(2,-3)), abs((-12345)::numeric(2,-3)), round(12345::numeric(2,-3), -4)
SELECT 0.00123::numeric(3,5) + 1, 0.00123::numeric(3,5) * 0.00123::numeric(3,5), 0.00123::numeric(3,5) / 7, 0.00123::numeric(3,5) - 0.00123::numeric(3,5), sqrt(0.00123::numeric(3,5))
SELECT 12000::numeric(2,-3) = 12000, 12000::numeric(2,-3) = 12000.0::numeric(8,1), 12000::numeric(2,-3) < 12000.1, 12000::numeric(2,-3) = 12000::int8, 12000::numeric(2,-3) = 12000::float8, 0.001::numeric(3,5) = 0.001, 0.001::numeric(3,5) = 0.001::numeric(4,3), 0.001::numeric(3,5) IN (0.001, 2), greatest(12000::numeric(2,-3), 0.001::numeric(3,5))
SELECT '{12345,99,NULL}'::numeric(2,-3)[], ARRAY[0.00123, 0.5::numeric / 1000]::numeric(3,5)[], 12345::numeric(2,-3)::numeric(3,5)
SELECT '{12345,99,NULL}'::numeric(2,-3)[], ARRAY[0.00123, 0.5::numeric / 1000]::numeric(3,5)[], (ARRAY[12345]::numeric(2,-3)[])[1]
SELECT format_type(1700, 133120 + 4 - 3), format_type(1700, ((2 << 16) | (-3 & 2047)) + 4), format_type(1700, ((3 << 16) | 5) + 4), format_type(1231, ((3 << 16) | 1048) + 4), format_type(1700, ((1000 << 16) | 1000) + 4)
SELECT pg_typeof(1::numeric(2,-3)), '1.5'::numeric(2,-0)
CREATE TEMP TABLE n (a numeric(2,-3), b numeric(3,5), c numeric(1000,-1000), d decimal(1,1000), e numeric(2,-3)[]); SELECT attname, atttypmod, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'n'::regclass AND attnum > 0 ORDER BY attnum
CREATE TEMP TABLE n (a numeric(2,-3), b numeric(3,5), c numeric(1000,-1000), d decimal(1,1000)); SELECT column_name, numeric_precision, numeric_precision_radix, numeric_scale, information_schema._pg_numeric_scale(1700, atttypmod), information_schema._pg_numeric_precision(1700, atttypmod) FROM information_schema.columns JOIN pg_attribute ON attname = column_name AND attrelid = 'n'::regclass WHERE table_name = 'n' ORDER BY column_name
CREATE DOMAIN thousands3 AS numeric(2,-3) CHECK (VALUE < 50000); SELECT 12345::thousands3, '12500'::thousands3, 49499::thousands3
CREATE DOMAIN thousands4 AS numeric(2,-3) CHECK (VALUE < 50000); SELECT 49500::thousands4
CREATE DOMAIN thousands5 AS numeric(2,-3); SELECT 99500::thousands5
CREATE DOMAIN thousands6 AS numeric(2,-3); SELECT typtypmod, format_type(typbasetype, typtypmod) FROM pg_type WHERE typname = 'thousands6'
CREATE DOMAIN thousands7 AS numeric(2,-3); SELECT numeric_precision, numeric_scale FROM information_schema.domains WHERE domain_name = 'thousands7'
CREATE TEMP TABLE n (a numeric(2,-3), b numeric(3,5)); INSERT INTO n VALUES (12345, 0.001234), (500, 0.000005), (-499, -0.000005), (NULL, NULL), ('NaN', 'NaN'); SELECT a, b, a + b, a * b FROM n ORDER BY a NULLS FIRST, b
CREATE TEMP TABLE n (a numeric(2,-3), b numeric(3,5)); INSERT INTO n VALUES (12345, 0.001234), (12499, 0.001229), (500, 0.000005), (-499, -0.000005), (NULL, NULL); SELECT count(a), sum(a), avg(a), min(a), max(a), variance(a), stddev_pop(a), sum(b), avg(b), min(b), max(b), variance(b), sum(a * b), sum(DISTINCT a), array_agg(a ORDER BY a), mode() WITHIN GROUP (ORDER BY b) FROM n
CREATE TEMP TABLE n (a numeric(2,-3), b numeric(3,5)); INSERT INTO n VALUES (12345, 0.001234), (12499, 0.001229), (500, 0.000005), (-499, -0.000005), (NULL, NULL), (NULL, 0); SELECT a, count(*), sum(b), min(b) FROM n GROUP BY a ORDER BY a
CREATE TEMP TABLE n (a numeric(2,-3), b numeric(3,5)); INSERT INTO n VALUES (12345, 0.001234), (500, 0.00001); SELECT l.a, r.b FROM n l JOIN n r ON l.a = r.a JOIN (VALUES (12000), (1000.0)) v(x) ON v.x = r.a ORDER BY 1
CREATE TEMP TABLE n (a numeric(2,-3)); INSERT INTO n VALUES (99500)
CREATE TEMP TABLE n (a numeric(3,5)); INSERT INTO n VALUES (0.01)
CREATE TEMP TABLE n (a numeric(2,-3) PRIMARY KEY); INSERT INTO n VALUES (12345), (11500)
CREATE TEMP TABLE n (a numeric(2,-3) PRIMARY KEY, b int); INSERT INTO n VALUES (12345, 1), (500, 2); INSERT INTO n VALUES (12400, 3) ON CONFLICT (a) DO UPDATE SET b = excluded.b, a = n.a + 600; SELECT * FROM n ORDER BY a
CREATE TEMP TABLE n (a numeric(2,-3), b numeric(10,2)); INSERT INTO n VALUES (12345, 1.5); ALTER TABLE n ALTER b TYPE numeric(2,-1), ALTER a TYPE numeric(3,-4); SELECT * FROM n
CREATE TEMP TABLE n (a numeric(2,-3), b numeric(10,2)); INSERT INTO n VALUES (12345, 1.5); UPDATE n SET a = a * 1.1 + b, b = a; SELECT * FROM n
CREATE TEMP TABLE n (a numeric(2,-3) DEFAULT 12345, b numeric(3,5) GENERATED ALWAYS AS (0.0012349) STORED); INSERT INTO n DEFAULT VALUES; SELECT a, b, pg_get_expr(adbin, adrelid) FROM n, pg_attrdef WHERE adrelid = 'n'::regclass ORDER BY adnum
CREATE TEMP VIEW v AS SELECT 12345::numeric(2,-3) AS a, '0.001'::numeric(3,5) AS b, 1::numeric(1000,-1000) AS c, x::numeric(2,-3) AS d FROM (VALUES (1.5)) t(x); SELECT pg_get_viewdef('v'::regclass)
CREATE TEMP VIEW v AS SELECT 12345::numeric(2,-3) AS a, '0.001'::numeric(3,5) AS b; SELECT atttypmod FROM pg_attribute WHERE attrelid = 'v'::regclass AND attnum > 0 ORDER BY attnum
SELECT a, sum(a) OVER (ORDER BY a RANGE BETWEEN 1500 PRECEDING AND CURRENT ROW) FROM (VALUES (1000::numeric(2,-3)), (2000), (4000), (NULL)) t(a)
SELECT a::numeric(2,-3) FROM (VALUES (1), (500), (1500), (-1500), (2500)) t(a) UNION SELECT b::numeric(3,5) FROM (VALUES (0.001), (0.00199999)) u(b) ORDER BY 1
SELECT numeric(2,-3) '12345', 12345::numeric(2, - 3)
SELECT '12345'::numeric(2,-3) = ANY (ARRAY[12000]), 12345::numeric(2,-3) BETWEEN 12000 AND 12000, int4range(1, 12345::numeric(2,-3)::int)
SELECT x.* FROM json_to_recordset('[{"a": 12345, "b": 0.0012345}, {"a": null}]') AS x(a numeric(2,-3), b numeric(3,5))
SELECT to_regtype('numeric(2,-3)')
CREATE TYPE sct26 AS (a numeric(2,-3), b numeric(3,5)); SELECT ROW(12345, 0.0012345)::sct26, '(12345,0.0012345)'::sct26, (jsonb_populate_record(NULL::sct26, '{"a": 12345}')).a

-- types of parameters have no modifiers
CREATE FUNCTION sc8(a numeric(2,-3)) RETURNS numeric(3,5) LANGUAGE sql IMMUTABLE AS 'SELECT a + 0.123456'; SELECT sc8(12345), pg_get_function_arguments('sc8'::regproc), pg_get_function_result('sc8'::regproc)
CREATE FUNCTION sc22(a numeric(5,2)) RETURNS numeric(5,3) LANGUAGE sql IMMUTABLE AS 'SELECT a + 0.123456'; SELECT sc22(12345), pg_get_function_arguments('sc22'::regproc), pg_get_function_result('sc22'::regproc)
CREATE FUNCTION sc23(a varchar(3)) RETURNS varchar(2) LANGUAGE sql IMMUTABLE AS 'SELECT a'; SELECT sc23('abcdef'), pg_get_function_arguments('sc23'::regproc), pg_get_function_result('sc23'::regproc)
CREATE FUNCTION sc24(a varchar(3)) RETURNS TABLE (b varchar(2), c numeric(2,-3)) LANGUAGE sql IMMUTABLE AS 'SELECT a, 12345'; SELECT sc24('abcdef'), pg_get_function_arguments('sc24'::regproc), pg_get_function_result('sc24'::regproc)
CREATE FUNCTION sc25(a numeric(2,-3), out b numeric(2,-1)) LANGUAGE plpgsql AS $$ declare c numeric(2,-3) := a; begin b := c + 17; end $$; SELECT sc25(12345), pg_get_function_arguments('sc25'::regproc), pg_get_function_result('sc25'::regproc)
PREPARE p(numeric(2,-3)) AS SELECT $1; EXECUTE p(12345)
CREATE DOMAIN scd27 AS numeric(2,-3); CREATE FUNCTION sc27(a scd27) RETURNS scd27 LANGUAGE sql AS $$ SELECT a $$; SELECT sc27(12345), pg_get_function_arguments('sc27'::regproc), pg_get_function_result('sc27'::regproc)
CREATE PROCEDURE sc28(a numeric(2,-3), inout b numeric(2,-1)) LANGUAGE plpgsql AS $$ begin b := a; end $$; CALL sc28(12345, 1)
CREATE TABLE sct29 (a numeric(2,-3), b char(3)); CREATE FUNCTION sc29(x sct29.a%TYPE, y sct29.b%TYPE) RETURNS bit(3) LANGUAGE sql AS 'SELECT x::int::bit(20)'; SELECT sc29(12345, 'abcdef'), pg_get_function_arguments('sc29'::regproc)
CREATE FUNCTION sc30(x numeric(2,-3)[]) RETURNS numeric(2,-3)[] LANGUAGE sql AS 'SELECT x'; SELECT sc30('{12345}'), sc30('{12345}'::numeric(2,-3)[])
CREATE FUNCTION sc31(x interval day, y timestamp(0), z char(3)) RETURNS text LANGUAGE sql AS $$ SELECT x || ' ' || y || ' ' || z $$; SELECT sc31('1 day 02:03:04.5', '2024-01-02 03:04:05.6', 'abcdef')
create type bare as (); create table bares (k int, b bare, l bare[]); insert into bares values (1, '()', '{()}'), (2, row(), array[row()::bare]), (3, null, '{}'); select k, b, l, b is null, b = '()'::bare, pg_typeof(b) from bares order by k
create type bare2 as (); select '(1)'::bare2
create type bare3 as (); select ' ( ) '::bare3
create type bare4 as (); select ''::bare4
select '()'::record

-- lower bounds of arrays
SELECT '[0:1]={a,b}'::text[], '[1:1][-2:-1][3:5]={{{1,2,3},{4,5,6}}}'::int[], '[2]={1,2}'::int[], '[1:2]={1,2}'::int[], ' [+2:3] = {1,2} '::int[], '[0:0]={NULL}'::text[], array_fill(7, '{2,2}', '{0,-3}')
SELECT a[0], a[1], a[2], a[0:1], a[:1], a[1:], a[-5:5], a[2:], array_lower(a, 1), array_upper(a, 1), array_length(a, 1), array_dims(a), array_ndims(a), cardinality(a) FROM (VALUES (1, '[0:2]={1,2,3}'::int[]), (2, '{1,2,3}'), (3, '[2:3]={4,5}'), (4, '{}'), (5, NULL)) t(i, a) ORDER BY i
SELECT a[1][-2][3], a[1][-1][5], a[1][1][1], a[1:1][-1:-1][4:9], a[1][-1:-1], array_dims(a), array_lower(a, 2), array_upper(a, 3) FROM (VALUES ('[1:1][-2:-1][3:5]={{{1,2,3},{4,5,6}}}'::int[])) t(a)
SELECT array_append(a, 9), a || 9, array_prepend(9, a), 9 || a, a || '{8,9}'::int[], '{8,9}'::int[] || a, a || '[5:6]={8,9}'::int[], a || '{}'::int[], '{}'::int[] || a FROM (VALUES ('[0:1]={1,2}'::int[])) t(a)
SELECT '[0:1][2:3]={{1,2},{3,4}}'::int[] || '[2:3]={5,6}'::int[], '[2:3]={5,6}'::int[] || '[0:1][2:3]={{1,2},{3,4}}'::int[], '[0:0][2:3]={{1,2}}'::int[] || '[5:5][2:3]={{3,4}}'::int[]
SELECT '[0:1][2:3]={{1,2},{3,4}}'::int[] || '{5,6}'::int[]
SELECT array_position(a, 3), array_position(a, 3, 0), array_position(a, 3, -4), array_positions(a, 3), array_remove(a, 3), array_remove(a, 1), array_replace(a, 3, 4), trim_array(a, 1), array_to_string(a, ','), array_to_json(a), array_remove('[5:5]={3}'::int[], 3), array_position('{1,2,3}', 3, -4) FROM (VALUES ('[-5:-3]={1,3,3}'::int[])) t(a)
SELECT a = '{1,2}', a <> '{1,2}', a < '{1,2}', a > '{1,2}', a @> '{1}', a && '{2}', a = '[2:3]={1,2}', 2 = ANY (a) FROM (VALUES ('[2:3]={1,2}'::int[])) t(a)
SELECT a FROM (VALUES ('{1,2}'::int[]), ('[0:1]={1,2}'), ('[2:3]={1,2}'), ('[-7:-6]={1,2}'), ('{1}'), ('{1,2,0}'), ('{{1,2}}'), ('[1:1][0:1]={{1,2}}'), ('[0:0][5:6]={{1,2}}'), ('[0:0]={1}'), (NULL), ('{}')) t(a) ORDER BY a
SELECT a, count(*) FROM (VALUES ('{1,2}'::int[]), ('[0:1]={1,2}'), ('[0:1]={1,2}'), ('{1,2}'), ('[0:1]={1,3}')) t(a) GROUP BY a ORDER BY a
SELECT DISTINCT a FROM (VALUES ('{1,2}'::numeric[]), ('[0:1]={1,2}'), ('[0:1]={1,2}'), ('{1,2}')) t(a) ORDER BY a
SELECT min(a), max(a) FROM (VALUES ('{1,2}'::int[]), ('[0:1]={1,2}'), ('[4:5]={1,2}')) t(a)
SELECT '[0:1]={1,2}'::int[]::text[], '[0:1]={1,2}'::int[]::numeric(5,1)[], '[0:1]={1,2}'::text::int[], ('[0:1]={1,2}'::int[])::text, ARRAY['[0:1]={1,2}'::int[], '[0:1]={3,4}'], row('[0:1]={1,2}'::int[])
SELECT ARRAY['[0:1]={1,2}'::int[], '{3,4}']
SELECT array_agg(a) FROM (VALUES ('[0:1]={1,2}'::int[]), ('[0:1]={1,2}')) t(a)
SELECT array_agg(a) FROM (VALUES ('[0:1]={1,2}'::int[]), ('{1,2}')) t(a)
SELECT unnest('[0:1]={1,2}'::int[]), generate_subscripts('[0:1]={1,2}'::int[], 1), generate_subscripts('[0:1]={1,2}'::int[], 1, true)
SELECT '[1:3]={1,2}'::int[]
SELECT '[1:2][1:1]={1,2}'::int[]
SELECT '[3:2]={}'::int[]
SELECT '[1:0]={}'::int[]
SELECT '[1:2147483647]={1}'::int[]
SELECT '[1:2]{1,2}'::int[]
SELECT '[1:2]=1,2'::int[]
SELECT array_fill(1, '{2}', '{2147483647}')
CREATE TABLE ab1 (i int, a int[]); INSERT INTO ab1 VALUES (1, '[0:1]={1,2}'), (2, '{1,2}'), (3, NULL), (4, '{}'); UPDATE ab1 SET a[-2] = 9; SELECT * FROM ab1 ORDER BY i
CREATE TABLE ab2 (i int, a int[]); INSERT INTO ab2 VALUES (1, '[0:1]={1,2}'), (2, '{1,2}'), (3, NULL), (4, '{}'); UPDATE ab2 SET a[4] = 9; SELECT * FROM ab2 ORDER BY i
CREATE TABLE ab3 (i int, a int[]); INSERT INTO ab3 VALUES (1, '[0:1]={1,2}'), (2, '{1,2}'), (3, NULL), (4, '{}'); UPDATE ab3 SET a[-1:0] = '{7,8}'; SELECT * FROM ab3 ORDER BY i
CREATE TABLE ab4 (i int, a int[]); INSERT INTO ab4 VALUES (1, '[0:1]={1,2}'), (2, '{1,2}'), (3, NULL), (4, '{}'); UPDATE ab4 SET a[5:6] = '{7,8}'; SELECT * FROM ab4 ORDER BY i
CREATE TABLE ab5 (i int, a int[]); INSERT INTO ab5 VALUES (1, '[0:1]={1,2}'); UPDATE ab5 SET a[:0] = '{7}'; UPDATE ab5 SET a[1:] = '{8}'; SELECT * FROM ab5
CREATE TABLE ab6 (a int[]); INSERT INTO ab6 VALUES ('[0:1][2:3]={{1,2},{3,4}}'); UPDATE ab6 SET a[0][3] = 9; UPDATE ab6 SET a[1:1][2:2] = '{8}'; SELECT * FROM ab6
CREATE TABLE ab7 (a int[]); INSERT INTO ab7 VALUES ('[0:1][2:3]={{1,2},{3,4}}'); UPDATE ab7 SET a[2][3] = 9
CREATE TABLE ab8 (a int[]); INSERT INTO ab8 VALUES (NULL); UPDATE ab8 SET a[0][3] = 9; SELECT * FROM ab8
CREATE TABLE ab9 (a int[]); INSERT INTO ab9 VALUES (NULL); UPDATE ab9 SET a[0:1][3:3] = '{9,8}'; SELECT * FROM ab9
CREATE TABLE ab10 (a int[]); INSERT INTO ab10 VALUES ('{1}'); UPDATE ab10 SET a[1000000000] = 9
SELECT '[2147483647:2147483647]={1}'::int[]
CREATE TABLE ab20 (i int, a int[]); INSERT INTO ab20 VALUES (1, NULL); UPDATE ab20 SET a[:0] = '{7}'
CREATE TABLE ab21 (a int[] PRIMARY KEY); INSERT INTO ab21 VALUES ('{1,2}'), ('[0:1]={1,2}'), ('[0:1]={1,3}'); DELETE FROM ab21 WHERE a = '{1,2}'; SELECT * FROM ab21 ORDER BY a
-- no array has more than six dimensions
SELECT '{{{{{{1}}}}}}'::int[], '{{{{{{1}}}}}}'::int[] || '{{{{{2}}}}}'::int[]
SELECT '{{{{{{{1}}}}}}}'::int[]
SELECT '{{{{{{{'::int[]
SELECT x::int[] FROM (VALUES ('{{{{{{{1}}}}}}}')) t(x)
SELECT array['{{{{{{1}}}}}}'::int[]]
SELECT array[null, '{{{{{{1}}}}}}'::int[]]
SELECT array[a] FROM (VALUES ('{{{{{{1}}}}}}'::int[])) t(a)
SELECT array[a, null] FROM (VALUES ('{{{{{{1}}}}}}'::int[])) t(a)
SELECT array[a], array[a, a] FROM (VALUES ('{{{{{1 day}}}}}'::interval[])) t(a)
SELECT array['{{{{{1 day}}}}}'::interval[]], array['1 day'::interval, null]
SELECT array_agg(a) FROM (VALUES ('{{{{{{1}}}}}}'::int[])) t(a)
SELECT array_fill(1, array[1,1,1,1,1,1]), array_fill('1 day'::interval, array[1,1,1,1,1,1])
SELECT array_fill(1, array[0,1,1,1,1,1,1])
SELECT array_fill(1, array[-1,1,1,1,1,1,1])
SELECT array['1 day'::interval, null], array[null, '1 day'::interval], array[null::interval]
SELECT array[null::int[], null], array['{}'::int[], null], array[null::int[]], array['{}'::interval[]]
SELECT array[null::int[], '{1}']
SELECT array['{"1 day"}'::interval[], null]
SELECT array['{"1 day"}'::interval[], '{"2 days"}'], array[array['1 day'::interval, null], array[null::interval, null]]
