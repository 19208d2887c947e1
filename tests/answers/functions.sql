-- Functions of PostgreSQL 15, chapter 9: ordinary and extreme arguments, a case a line.
select 'abc' similar to 'a%' escape '#'
select 'a%c' similar to 'a#%c' escape '#'
select 'abc' not similar to 'a#%c' escape '#'
select 'abcdefg' similar to '_bcd#%' escape '#'
select 'abc' similar to 'a%' escape null
select 'abc' similar to 'a%' escape ''
select 'abc' similar to 'a%' escape 'xx'
select 'abcd%' similar to '_bcd#%' escape '#'
select 'abcdefg' similar to '_bcd\%'
select 'abcd\efg' similar to '_bcd\%' escape ''
select substring('abcdefg' similar 'a#"(b_d)#"%' escape '#')
select substring('abcdefg' from 'a#"(b_d)#"%' for '#')
select substring('abcdefg' similar '#"(b_d)#"%' escape '#') is null
select substring('abcdefg' similar 'a*#"%#"g*#"x' escape '#')
select substring('abcdefg' similar 'a#"%|ab#"g' escape '#')
select substring('abcdefg' similar 'a#"%' escape '#')
select substring('abcdefg' similar 'a#"%#"g' escape '#')
select interval '1-2 3' hour
select interval '1-2 3' year to month
select interval '1 2:03:04.5' day to hour
select interval '1 2:03:04.5' day to minute
select interval '1 2:03:04.567' day to second(1)
select interval '1 2:03:04.567' second(2)
select interval '1 2:03:04.567' hour to minute
select interval '1 2:03' hour to minute
select interval '1 2:03' hour to second
select interval '1 2:03' minute to second
select interval '1 +2:03' minute to second
select interval '123 11' day to hour
select interval '123 11' day
select interval '123 11'
select interval '2:03:04' day to minute
select interval '1' year
select interval '1' month
select interval '1' day
select interval '1' hour
select interval '1' minute
select interval '1' second
select interval '1.5' minute
select interval '1.5' day
select interval '12:34.5678' minute to second(2)
select interval(2) '12:34.5678'
select interval '1.234' second
select interval '1.234' second(2)
select interval '1 2.345' day to second(2)
select interval '1 2:03' day to second(2)
select interval '1 2:03:04.5678' hour to second(2)
select interval '1 2.3456' minute to second(2)
select interval '1 2:03.5678' minute to second(2)
select interval '1 2:03:04.5678' minute to second(2)
select interval '999' second
select interval '999' year
select interval '-1-2' year to month
select '1 year 2 mons 3 days 4:05:06.789'::interval year
select '1 year 2 mons 3 days 4:05:06.789'::interval year to month
select '1 year 2 mons 3 days 4:05:06.789'::interval month
select '1 year 2 mons 3 days 4:05:06.789'::interval day
select '1 year 2 mons 3 days 4:05:06.789'::interval hour
select '1 year 2 mons 3 days 4:05:06.789'::interval minute
select '1 year 2 mons 3 days 4:05:06.789'::interval second
select '1 year 2 mons 3 days 4:05:06.789'::interval second(1)
select '1 year 2 mons 3 days 4:05:06.789'::interval day to second(1)
select '1 year 2 mons 3 days 4:05:06.789'::interval hour to minute
select '1 year 2 mons 3 days 4:05:06.789'::interval minute to second
select cast(interval '1 day 2:03:04' as interval hour to minute)
select interval(8) '1 second'
select interval '1 second' second(9)
select interval '1' year to day
select format_type('interval'::regtype, -1)
select pg_size_pretty(10::bigint), pg_size_pretty(1000::bigint), pg_size_pretty(1000000::bigint),pg_size_pretty(1000000000::bigint),pg_size_pretty(1000000000000::bigint),pg_size_pretty(1000000000000000::bigint)
select pg_size_pretty(-10::bigint), pg_size_pretty(-1000::bigint), pg_size_pretty(-1000000::bigint),pg_size_pretty(-1000000000::bigint),pg_size_pretty(-1000000000000::bigint),pg_size_pretty(-1000000000000000::bigint)
select pg_size_pretty(x) from (values (10239::bigint),(10240),(10485247),(10485248),(10736893951),(10736893952),(10994579406847),(10994579406848),(11258449312612351),(11258449312612352),(9223372036854775807),(-9223372036854775808),(-10239),(-10240),(-10485247),(-10485248),(0),(1),(-1)) v(x)
select pg_size_pretty(x) from (values (10239::numeric),(10240),(10485247),(10485248),(10736893951),(10736893952),(10994579406847),(10994579406848),(11258449312612351),(11258449312612352),(9223372036854775807),(-9223372036854775808),(-10239),(-10240),(-10485247),(-10485248),(0),(1),(-1),(10.5),(1000.5),(1000000.5),(-1000000.5),(1000000000000000000000.5),(1e40)) v(x)
select pg_size_pretty('Infinity'::numeric)
select pg_size_pretty(10)
select pg_size_pretty(1e3)
select pg_size_pretty(null::bigint)
select pg_size_bytes('1'), pg_size_bytes('123bytes'), pg_size_bytes('1kB'), pg_size_bytes('1MB'), pg_size_bytes(' 1 GB'), pg_size_bytes('1.5 GB '), pg_size_bytes('1TB'), pg_size_bytes('3000 TB'), pg_size_bytes('1e6 MB')
select pg_size_bytes('1 kb'), pg_size_bytes('-1.5 mB'), pg_size_bytes('-.5 kb'), pg_size_bytes('1 b'), pg_size_bytes('.5kb'), pg_size_bytes('1.kb')
select pg_size_bytes('1 pb')
select pg_size_bytes('1 AB')
select pg_size_bytes('1 AB A')
select pg_size_bytes('9223372036854775807.9')
select pg_size_bytes('1e100')
select pg_size_bytes('1e1000000000000000000')
select pg_size_bytes('1 byte')
select pg_size_bytes('')
select pg_size_bytes('kb')
select pg_size_bytes('..')
select pg_size_bytes('-.')
select pg_size_bytes('.+912')
select pg_size_bytes('+912+ kB')
select pg_size_bytes('++123 kB')
select lower('İ'), upper('ı'), upper('ß'), lower('ẞ'), initcap('ßx ŉy'), upper('ﬀ'), lower('Σ'), lower('ΑΣ'), initcap('ΑΣ'), upper('ǆ'), initcap('ǆabc'), lower('ǅ')
select upper('ᾳᾀ'), initcap('a²b ⓐb a1b')
select '1.5'::interval hour to minute
select interval '1' hour(2)
select interval(2) '1' day
select interval '1' second(2)
select '{1 day 2:03:04,1-2}'::interval hour[]
select interval '1-2 3 years'
select interval '1-2 3 months'
select interval '3 1-2' day
select interval '1-2 3' day
select interval '-5 -3' day to hour
select 'a]b' similar to 'a#]b' escape '#'
select 'a5' similar to 'a\d'
select 'a\' similar to 'a\'
select similar_to_escape('a#"b#"c', '#'), similar_to_escape('a#"b', '#')
select pg_size_pretty('NaN'::numeric), pg_size_pretty('-Infinity'::numeric), pg_typeof(interval '1' year)::text
create temp table f (i interval year to month, j interval day to second(1)); insert into f values ('1 year 2 mons 3 days 4:05:06.78', '1 year 2 mons 3 days 4:05:06.78'); select i, j, format_type(atttypid, atttypmod) from f, pg_attribute where attrelid = 'f'::regclass and attnum > 0 order by attnum
select timestamp '2024-07-01 12:00' at time zone 'PST', timestamptz '2024-07-01 12:00+00' at time zone 'CET', timestamptz '2010-07-01 12:00+00' at time zone 'MSK', timestamptz '2015-07-01 12:00+00' at time zone 'MSK', timestamptz '2024-07-01 12:00+00' at time zone 'europe/BERLIN'
select timestamptz '2024-07-01 12:00+00' at time zone '+0530'
select timestamptz '2024-07-01 12:00+00' at time zone 'UTC+168'
select timestamptz '2024-07-01 12:00+00' at time zone '<x>3:00:01', timestamptz '2024-07-01 12:00+00' at time zone 'FOO3BAR'
set timezone = 'CET'; select (timestamptz '2024-07-01 12:00+00')::text, to_char(timestamptz '2024-07-01 12:00+00', 'TZ tz OF')
set timezone = 'MSK'
select make_timestamptz(2024, 3, 10, 2, 30, 0, '+05'), make_timestamptz(2024, 3, 10, 2, 30, 0, 'MSK'), make_timestamptz(2024, 3, 10, 2, 30, 0, 'US/Pacific')
select make_timestamptz(2024, 3, 10, 2, 30, 0, '5')
select make_timestamptz(2024, 3, 10, 2, 30, 0, '+16')
select date_trunc('hour', timestamptz '2024-11-03 09:30+00', 'PST'), date_trunc('day', timestamptz '2024-11-03 09:30+00', 'MSK')
select '2024-07-01 12:00 MSK'::timestamptz, '2010-07-01 12:00 MSK'::timestamptz, '2024-07-01 12:00 PST'::timestamptz
select name, abbrev, utc_offset from pg_timezone_names where name in ('Asia/Kathmandu', 'UTC', 'Etc/GMT+5') order by 1
select * from pg_timezone_abbrevs where abbrev in ('ACDT', 'MSK', 'GST') order by 1
select sind(x), cosd(x), tand(x), cotd(x) from (values (0.0), (30), (45), (60), (90), (120), (135), (150), (180), (270), (360), (-30), (-90), (450.5), (1e300)) v(x)
select sind('NaN'), tand('NaN')
select cosd('Infinity')
select asind(x), acosd(x), atand(x) from (values (-1.0), (-0.5), (0), (0.25), (0.5), (0.75), (1)) v(x)
select asind(1.1)
select atan2d(1, 1), atan2d(-1, 0), atan2d(0, -1), atand('Infinity')
select get_bit('\x1234567890'::bytea, 43)
select get_bit('\x1234567890'::bytea, 30), get_byte('\x1234567890'::bytea, 4), set_bit('\x1234567890'::bytea, 30, 0), set_byte('\x1234567890'::bytea, 4, 64), set_byte('\x12', 0, 300)
select set_bit('\x1234'::bytea, 3, 2)
select set_byte('\x1234', 2, 2)
select bit_count('\x1234567890'::bytea), bit_count(''::bytea)
select sha224('abc'), sha256('abc'), sha384('abc'), sha512(''), md5('abc'::bytea)
select length('\x6c6f72c3a9'::bytea, 'UTF8'), length('\xe9'::bytea, 'LATIN1')
select convert_from('\xe9', 'latin1'), convert_to('é', 'LATIN1'), convert('\xe9', 'latin1', 'utf-8'), convert_to('я', 'KOI8R')
select convert_from('\xff', 'UTF8')
select convert_from('\xe282', 'UTF8')
select convert_to('я', 'LATIN1')
select convert_from('\x41', 'foo')
select convert_to('a', 'foo')
select convert('a', 'foo', 'utf8')
select '\x616263'::bytea like '\x6125'::bytea, '\x616263'::bytea not like '\x6125'::bytea, like_escape('a#%'::bytea, '#'::bytea)
select overlay('Th\000omas'::bytea placing 'Th'::bytea from 2), overlay('Th\000omas'::bytea placing '\002\003'::bytea from 5 for 3)
select unistr('\0064at\+0000610'), unistr('d\u0061t\U000000610'), unistr('a\\b'), unistr('\D83D\DE00')
select unistr('wrong: \db99')
select unistr('wrong: \xyz')
select unistr('wrong: \+2FFFFF')
select parse_ident('Schemax.Tabley'), parse_ident('"SchemaX"."TableY"'), parse_ident('foo.boo[]', false), parse_ident(' first . "  second "')
select parse_ident('foo.boo[]')
select parse_ident('a."b')
select parse_ident('""')
select parse_ident('.a')
select parse_ident('a.')
select parse_ident('1020')
select regexp_count('123123123123123', '\d{3}', 1), regexp_count('ABCABCABCABC', 'Abc', 1, 'i'), regexp_count('aaa', 'a', 3), regexp_count('aaa', 'a', 9)
select regexp_count('123123123123', '123', 0)
select regexp_count('123', '1', 1, 'g')
select regexp_instr('abcabcabc', 'a.c'), regexp_instr('abcabcabc', 'a.c', 2), regexp_instr('abcabcabc', 'a.c', 1, 3), regexp_instr('abcabcabc', 'a.c', 1, 4), regexp_instr('abcabcabc', 'A.C', 1, 2, 0, 'i'), regexp_instr('abcabcabc', 'a.c', 1, 2, 1)
select regexp_instr('1234567890', '(123)(4(56)(78))', 1, 1, 0, 'i', x) from generate_series(0, 5) x
select regexp_instr('abcabcabc', 'a.c', 0)
select regexp_instr('abcabcabc', 'a.c', 1, 0)
select regexp_instr('abcabcabc', 'a.c', 1, 1, 2)
select regexp_instr('abcabcabc', 'a.c', 1, 1, 0, '', -1)
select regexp_substr('abcdefghi', 'd.f'), regexp_substr('abcabcabc', 'a.c', 2, 2), regexp_substr('abcabcabc', 'a.c', 1, 4), regexp_substr('1234567890', '(123)(4(56)(78))', 1, 1, 'i', 4), regexp_substr('1234567890', '(123)', 1, 1, '', 3)
select regexp_substr('abcabcabc', 'a.c', 1, 1, 'g')
select regexp_replace('A PostgreSQL function', 'A|e|i|o|u', 'X', 1), regexp_replace('A PostgreSQL function', 'a|e|i|o|u', 'X', 1, 0, 'i'), regexp_replace('A PostgreSQL function', 'a|e|i|o|u', 'X', 1, 3, 'i'), regexp_replace('A PostgreSQL function', 'a|e|i|o|u', 'X', 7, 0, 'i')
select regexp_replace('A PostgreSQL function', 'a', 'X', -1, 0, 'i')
select array_fill(7, array[3]), array_fill(7, array[2,2]), array_fill(null::int, array[2]), array_fill('x'::text, array[]::int[]), array_fill(1, array[0])
select array_fill(1, null)
select array_fill(1, array[1, null])
select array_fill(1, array[-1])
select normalize('ﬁ', nfkc), normalize('ä') is nfc normalized, 'ﬁ' is nfkc normalized, 'ﬁ' is not nfkd normalized, normalize('ä', NFD) is normalized
select normalize('a', 'x')
select (date '2001-02-16', date '2001-12-21') overlaps (date '2001-10-30', date '2002-10-30'), (date '2001-02-16', interval '100 days') overlaps (date '2001-10-30', date '2002-10-30'), (date '2001-10-29', date '2001-10-30') overlaps (date '2001-10-30', date '2001-10-31'), (date '2001-10-30', date '2001-10-30') overlaps (date '2001-10-30', date '2001-10-31')
select (time '00:00', time '01:00') overlaps (time '00:30', time '01:30'), (time '00:00', interval '1 hour') overlaps (time '01:30', interval '1 day'), (timestamp '2000-11-27', timestamp '2000-11-28') overlaps (timestamp '2000-11-27 12:00', interval '1 day'), (timestamptz '2000-11-27', timestamptz '2000-11-28') overlaps (timestamptz '2000-11-27 12:00', null)
select (a, b) overlaps (c, d) from (values (null::timestamp, null::timestamp, timestamp '2000-01-01', timestamp '2000-01-02'), ('2000-01-01', null, '2000-01-01', null), ('2000-01-03', null, '2000-01-01', '2000-01-05'), ('2000-01-05', '2000-01-01', '2000-01-02', null), ('2000-01-01', null, '2000-01-02', '2000-01-03'), (null, '2000-01-05', '2000-01-01', '2000-01-06'), ('2000-01-07', null, '2000-01-01', '2000-01-06')) v(a, b, c, d)
select (1, 2, 3) overlaps (1, 2)
select (date '2001-01-01', 1) overlaps (date '2001-01-01', 2)
-- functions with defaults that a call may mean
CREATE FUNCTION d1(int DEFAULT 1) RETURNS text LANGUAGE sql AS 'SELECT ''int'''; CREATE FUNCTION d1(text DEFAULT 'x') RETURNS text LANGUAGE sql AS 'SELECT ''text'''; SELECT d1()
CREATE FUNCTION d2(int DEFAULT 1) RETURNS text LANGUAGE sql AS 'SELECT ''int'''; CREATE FUNCTION d2(text DEFAULT 'x') RETURNS text LANGUAGE sql AS 'SELECT ''text'''; SELECT d2(1), d2('a')
CREATE FUNCTION d3(int, int DEFAULT 2) RETURNS int LANGUAGE sql AS 'SELECT 3'; CREATE FUNCTION d3(int, int DEFAULT 2, int DEFAULT 2) RETURNS int LANGUAGE sql AS 'SELECT 4'; SELECT d3(1, 2)
CREATE FUNCTION d4(int, int DEFAULT 2) RETURNS int LANGUAGE sql AS 'SELECT 3'; CREATE FUNCTION d4(int, int DEFAULT 2, int DEFAULT 2) RETURNS int LANGUAGE sql AS 'SELECT 4'; SELECT d4(1, 2, 3)
CREATE FUNCTION d5(int, int DEFAULT 5) RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE FUNCTION d5(VARIADIC int[]) RETURNS int LANGUAGE sql AS 'SELECT 2'; SELECT d5(1), d5(1, 2), d5(1, 2, 3)
CREATE FUNCTION d6(VARIADIC int[]) RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE FUNCTION d6(int, VARIADIC int[]) RETURNS int LANGUAGE sql AS 'SELECT 2'; SELECT d6(1, 2)
CREATE FUNCTION d7(a int, b int DEFAULT 2) RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE FUNCTION d7(a int, c int DEFAULT 3, d int DEFAULT 4) RETURNS int LANGUAGE sql AS 'SELECT 2'; SELECT d7(a => 1, b => 2), d7(a => 1, d => 2), d7(1, c => 3)
CREATE FUNCTION d8(int, int DEFAULT 2) RETURNS int LANGUAGE sql AS 'SELECT 3'; CREATE SCHEMA d8; CREATE FUNCTION d8.d8(int) RETURNS int LANGUAGE sql AS 'SELECT 8'; SET search_path = d8, public; SELECT d8(1)
select ts_rank('a:1 b:2 c:3', 'a & b'), ts_rank('a:1 b:2 c:3', 'a | d'), ts_rank('a:1A b:2 c:3', 'a'), ts_rank('a:1,5,9 b:2,30 c:3C', 'a & b & c'), ts_rank('a b c', 'a & b'), ts_rank('a b c', 'a | b'), ts_rank('', 'a'), ts_rank('a', '')
select i, ts_rank('a:1,4,7 b:2B,60 cd:3 ce:9A', 'a & b & c:*', i), ts_rank_cd('a:1,4,7 b:2B,60 cd:3 ce:9A', 'a & b & c:*', i) from generate_series(0, 63) i
select ts_rank('{0.1,0.2,0.3,0.9}', 'a:1A b:2B', 'a & b'), ts_rank('{-1,-1,0.5,1}', 'a:1A b:2B', 'a | b', 2), ts_rank_cd('{0.1,0.2,0.3,0.9}', 'a:1A b:2B', 'a & b'), ts_rank_cd('{0,0,0,0.9}', 'a:1A b:2B', 'a & b', 1)
select ts_rank('{0.1,0.2,0.3}', 'a:1A', 'a')
select ts_rank('{0.1,0.2,0.3,2}', 'a:1A', 'a')
select ts_rank('{0.1,0.2,0.3,null}', 'a:1A', 'a')
select ts_rank_cd('{{0.1,0.2,0.3,0.1}}', 'a:1A', 'a')
select ts_rank_cd(' a:1 s:2C d g', 'a | s'), ts_rank_cd(' a:1 sb:2A d g', 'a | s:*'), ts_rank_cd(' a:1 s:2C d g', 'a & s'), ts_rank_cd(' a:1 s:2C d g', 'a & d'), ts_rank_cd(' a:1 s:3C d:5 g', 'a <-> s'), ts_rank_cd(' a:1 s:2C d g', 'a <-> s'), ts_rank_cd('a:1,2,3 b:1,4', '!c & a & b'), ts_rank_cd('a:1,5 b:3,9 c:7', 'a <2> b'), ts_rank_cd('a:1 b:2', 'a:B & b')
select ts_rank_cd(to_tsvector('english', 'the quick brown fox jumps over the lazy dog and the quick cat'), to_tsquery('english', q)), ts_rank(to_tsvector('english', 'the quick brown fox jumps over the lazy dog and the quick cat'), to_tsquery('english', q)) from unnest(array['quick', 'quick & dog', 'fox <-> jump', 'cat | dog', '!cow', 'quick & !cow', 'laz:* & (fox | cat)', 'quick <-> brown & cat']) q order by q
select 'a:1A b:2B c:3'::tsvector @@@ 'a & b', 'a & z'::tsquery @@@ 'a:1'::tsvector
select ts_filter('base:7A,2 empir:17 evil:15B star:16', '{a}'), ts_filter('base:7A,2 empir:17 evil:15B star:16 z', '{a,B}'), ts_filter('a:1 b', '{d}')
select ts_filter('base:7A', '{a,null}')
select ts_filter('base:7A', '{x}')
select setweight('a:1,3A asd:1C w:5,6,12B,13A zxc:81,222A,567', 'c', '{a,zxc,null,nope}'), setweight('a:1', 'a', '{}'), setweight('a:1 b', 'A', '{{a,b}}')
select ts_delete('base hidden:1 rebel:2', array['spaceship', 'rebel', null]), ts_delete('base hidden:1 rebel:2', '{}'::text[])
select tsvector_to_array('base:7 hidden:6 rebel'), array_to_tsvector(array['base', 'hidden', 'base', 'Rebel']), array_to_tsvector('{}'), tsvector_to_array('')
select array_to_tsvector(array['a', null])
select array_to_tsvector(array['a', ''])
select * from unnest('base:7 hidden:6 rebel:1A,2B plain'::tsvector)
select unnest('base:7 rebel:1A'::tsvector)
select lexeme, positions[1] from unnest('base:7 rebel:1A'::tsvector) as u
select get_current_ts_config(), 'simple'::regdictionary, 'english_stem'::regdictionary::oid, '-'::regdictionary
set default_text_search_config = simple; select get_current_ts_config(), to_tsvector('the cats'), ts_headline('the cats', 'cats')
select ts_lexize('english_stem', 'stars'), ts_lexize('english_stem', 'a'), ts_lexize('simple', 'STARS'), ts_lexize('simple', '')
select ts_lexize('nope', 'stars')
select * from ts_token_type('default')
select * from ts_parse('default', '345 qwe@efd.r '' http://www.com/ http://aew.werc.ewr/?ad=qwe&dw 1aew.werc.ewr/?ad=qwe&dw 2aew.werc.ewr http://3aew.werc.ewr/?ad=qwe&dw foo-bar')
select * from ts_parse('nope', 'a')
select * from ts_parse(3722, 'a b')
select * from ts_debug('english', 'The brightest supernovaes http://a.org/x foo-b2 1.5')
select * from ts_debug('simple', 'The é2')
select ts_rewrite('a & b'::tsquery, 'a', 'c'), ts_rewrite('foo & bar & qq & new & york', 'new & york', 'big & apple | nyc | new & york & city'), ts_rewrite('moscow | (nyc & b)', 'nyc', 'x <-> y'), ts_rewrite('a & b', 'b', ''), ts_rewrite('a', 'a', ''), ts_rewrite('b & a & c', 'c & a', 'z'), ts_rewrite('!a & b', 'a', 'c | d'), ts_rewrite('a <-> b & c', 'a <-> b', 'q'), ts_rewrite('', 'a', 'b'), ts_rewrite('a & b', '', 'c'), ts_rewrite('d & c & b & a', 'x', 'y'), ts_rewrite('a | b | c', 'a | b', 'b | z')
select ts_rewrite('1 & (2 <-> 3)', '2 <-> 3', '4'), ts_rewrite('bar & foo & qq', 'foo', 'bar & baz'), ts_rewrite('5 <-> (1 & (2 <-> 3))', '1', '7'), ts_rewrite('a:b & b:*', 'a', 'c:A'), ts_rewrite('a & a', 'a', 'b'), ts_rewrite('(a & b) | (c & d) | e', 'b & a', 'y'), ts_rewrite('!!a', '!a', 'b')
select ts_headline('english', 'The most common type of search is to find all documents containing given query terms and return them in order of their similarity to the query.', to_tsquery('english', 'query & similarity'))
select ts_headline('english', 'The most common type of search is to find all documents containing given query terms and return them in order of their similarity to the query.', to_tsquery('english', q), o) from unnest(array['query & similarity', 'search', 'nope', 'query', '!query', 'find <-> all', 'docum:* & order | nope']) q, unnest(array['StartSel = <, StopSel = >', 'MaxFragments=2, MaxWords=7, MinWords=3, StartSel=<<, StopSel=>>', 'HighlightAll=true', 'MaxWords=5,MinWords=2', 'MaxFragments=10,MaxWords=4,MinWords=1,FragmentDelimiter=" | "', 'MinWords=1, MaxWords=2, ShortWord=0', 'HighlightAll=1, MaxFragments=1']) o order by q, o
select ts_headline('english', '<b>Sea</b> view, wow.<a href="x">foo-bar and http://a.org/some/path?x sea-side</a> view &amp; more sea', to_tsquery('english', q), o) from unnest(array['sea', 'bar', 'view & sea', 'path', 'a.org']) q, unnest(array['', 'HighlightAll=on', 'MaxFragments=3, MaxWords=3, MinWords=1']) o order by q, o
select ts_headline('a b c', 'a & c'::tsquery), ts_headline('', 'a'), ts_headline('a b c', ''), ts_headline('simple', 'The the', 'the')
select ts_headline('a', 'a', 'MaxWords=2, MinWords=3')
select ts_headline('a', 'a', 'MinWords=0')
select ts_headline('a', 'a', 'ShortWord=-1')
select ts_headline('a', 'a', 'MaxFragments=-1')
select ts_headline('a', 'a', 'nope=1')
select ts_headline('a', 'a', 'MaxWords=x')
select ts_headline('a', 'a', 'MaxWords')
select ts_headline('a', 'a', 'StartSel=''it''''s'', stopsel="q""q"')
select ts_headline('{"a": "aaa bbb", "b": {"c": "ccc ddd fff", "c1": "ccc1 ddd1"}, "d": ["ggg hhh", "iii jjj", 1.50, null, true]}'::json, tsquery('bbb & ddd & hhh')), ts_headline('{"a": "aaa bbb", "b": {"c": "ccc ddd fff"}, "d": ["ggg \" hhh", "iii jjj", 1.50]}'::jsonb, tsquery('bbb & ddd & hhh'), 'StartSel = <, StopSel = >'), ts_headline('null'::json, 'a'), ts_headline('"a b"'::jsonb, 'a'), ts_headline('[]'::json, 'a')
select 'a & b'::tsquery < 'a | b'::tsquery, 'a'::tsvector < 'b'::tsvector, 'a & b'::tsquery @> 'a', 'a' <@ 'a & b'::tsquery, numnode('(fat & rat) | cat'::tsquery), querytree('foo & ! bar'::tsquery), tsquery_phrase('fat', 'cat'), tsquery_phrase('fat', 'cat', 10)
select length(ts_headline('simple', repeat('a ', 20000), 'a & z')), length(ts_headline('simple', repeat('a b ', 3000), 'a & b', 'MaxFragments=3'))
