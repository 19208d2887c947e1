CREATE type mood as enum ('sad', 'ok')
CREATE type comp as (p int, q text)
CREATE domain posint as int check (value > 0)
CREATE table a (id int primary key, m mood, c comp, po posint, ms mood[], i2 smallint, r4 real, o oid, na name, u uuid, iv interval, by bytea, rng int4range, n numeric)
CREATE function f1(x int, y int default 2) returns int language sql as 'select x + y'
CREATE function f2(x int) returns table(a int, b text) language sql as $$select x, 'a'$$
CREATE function f3(variadic x int[]) returns int language sql as 'select 1'
CREATE function ft(a) returns int language sql as 'select $1.id'
CREATE table p (id int, "Odd Name" int, "select" int)
CREATE table k1 (id int primary key, g int)
CREATE view base as select id, g from k1

select m = 'sad' as e, m::text, c, (c).p, (c).q, 'ok'::mood as lit, ms, array['sad'::mood] as ar, m in ('sad','ok') as i from a
select f1(1), f1(1, 2) as two, f1(y => 3, x => 1) as named, f3(1, 2, 3), f3(variadic array[1,2]) as vv, ft(a), a.ft as ft2, (a).ft as ft3 from a
select * from f2(1)
select * from f2(1) as t(x, y)
select * from f2(1) with ordinality
select * from a, f2(a.id) f
select "Odd Name", "select" as "from", p."select" as x from p
select "Odd Name" as "Other" from p as "P q"
select i2 + 1 as a1, i2 + i2 as a2, r4 + 1 as a3, o = 5 as a4, na = 'x' as a5, u = '00000000-0000-0000-0000-000000000001' as a6, iv > '1 day' as a7, n = 1 as a8, n + i2 as a9, i2 = 3 as a10, r4 = 1.5 as a11, by = 'abc' as a12, rng @> 3 as a13 from a
select * from (select * from base b1 join base b2 on b1.id = b2.id where b1.g is not null limit 0) q(c0, c1, c2, c3)
select id, g, count(*) from k1 group by id
select (select b.g from k1 b where b.id = k1.id) as sub from k1
select k.id from k1 k where k.id = (select max(k.id) from k1 k)
select x.id from (select id from (select id from k1) y) x
select * from (select k1.id as a, k2.id as b from k1, k1 k2) s
select * from (values (1, 'x'), (2, null)) v(a, b)
select * from (values (1), (2)) v
with w as (select * from k1), w2 as (select * from w) select w.id, w2.g from w join w2 on w.id = w2.id where w.id in (select id from w)
with recursive t(n, d) as (select 1, 'a'::text union all select n + 1, d || 'b' from t where n < 5) search depth first by n set o cycle n set c using pth select n, d from t
select id, sum(g) over (partition by id order by g desc rows between unbounded preceding and unbounded following) as s, count(*) over () as c from k1
select id, sum(g) over w1 as s, avg(g) over (w1 rows 2 preceding) as av from k1 window w1 as (partition by id order by g)
select sum(g) over (order by id range between 1 preceding and 1 following) as s, sum(g) over (order by id groups between current row and unbounded following exclude current row) as t from k1
select id from k1 where (id, g) in (select id, g from base) and (id, g) = (select 1, 2) and (id, g) <> (3, 4) and (id, g) > (1, 2)
select id from k1 where row(id, g) is distinct from row(1, 2) or row(id, g) is null
select k1 as w, k1.* from k1
select w.k1 from (select k1 from k1) w
select (w.k1).id, (w.k1).g as gg from (select k1 from k1) w
select count(*) filter (where g > 1 and id is not null) as c, sum(g) filter (where g is null) as s2, array_agg(id order by g, id desc nulls last) as a from k1
select case when id > 1 then null else 'x' end as c, case when g is null then id else 1.5 end as d, case id when 1 then 'a'::text else 'b' end as e from k1
select coalesce(null, 'x') as a, coalesce(g, 1.5) as b, greatest(id, g, 2.5) as c, nullif(id, 2.5) as d, nullif('a', 'b') as e from k1
select id from k1 order by 1 desc, g nulls first, id + 1, lower('x'), count(*) over ()
select id + 1 as x, count(*) from k1 group by 1 having sum(g) > 10 and max(id) is not null order by count(*) desc, x
select lower(id::text), upper(lower('A')) as u, substr('abc', 1, 2) as s, 'a' || 'b' as c, 'a' || id as d, id || 'b' as e from k1
select exists (select from k1) as e
select distinct g, id from k1 order by g
select all g from k1
select 1 as x where false
select 1 as a, 2 as b union select 3, 4 order by b desc, a
select 'x' as a union all select 'y' union all select null
select null as a union select 1
select 1 as a union select 2.5 union select null
(values (1), (2)) union (values (3))
table k1
select id from k1 union all (select id from k1 order by id limit 1) order by id
select id from k1 except all select g from k1
select id from k1 union (select id from k1 intersect select g from k1)
(select id from k1 union select g from k1) intersect select 1
with x as (select 1 as a) select a from x union select 2
select * from (select * from k1 a join k1 b using (id) join k1 c using (id) where a.id > 1) q(c0, c1, c2, c3)
select a.id, id as m from k1 a left join k1 b using (id)
select a.id, b.id as bid from k1 a right join k1 b using (id) order by id limit 0
select id as m from k1 a full join k1 b using (id)
select a.id from k1 a natural join k1 b
select a.id from k1 a inner join (k1 b left join k1 c on b.id = c.id) on a.id = b.id
select a.id from k1 a, k1 b left join k1 c on true, lateral (select a.id + b.id as z) l where l.z = 1
select date_part('year', now()) as y, extract(epoch from now()) as e, age(now()) as a, now() at time zone 'UTC' as z, (now() at time zone 'UTC')::date as d
select current_schema, user, session_user, current_catalog, current_role, current_timestamp(2) as ct
select 'a' similar to 'b' as s, 'a' not similar to 'b' escape 'x' as s2, 'a' like 'b' escape 'c' as l, 'a' not ilike 'b' as ni, 'a' ~* 'b' as r
select position('a' in 'abc') as p, trim(leading 'x' from 'xa') as t1, trim(trailing from 'a ') as t2, overlay('abc' placing 'x' from 2) as o, substring('abc' from 2) as s1, substring('abc' from 'b') as s2, substring('abc' similar 'a#"b#"c' escape '#') as s3
select row(1, 'a')::comp as r, (row(1, 'a')::comp).p, array[row(1, 'a')::comp] as ar from k1
select '{1,2}'::int[] as a, '{1,2}'::int[][2] as b, ('{1,2}'::int[])[1] as c, array[1, 2.5] as d, array[null, 1] as e, array[]::text[] as f, array[[1,2],[3,4]] as g, array(select id from k1) as h
select '(1,2)'::point as p, '[1,5)'::int4range as r, int4range(1, 5) as r2, '127.0.0.1'::inet as i, '{"a": 1}'::jsonb as j, '{"a" : 1}'::json as j2, '\xDEADBEEF'::bytea as b, '1 year 2 mons'::interval as iv, 'f'::bool as bo
select * from (select id::bigint, id::text || 'x' as t, id::numeric(10,2), id::float8 / 2 as f, g::smallint, (id + g)::text as s, -id::int as n, id::varchar(3) as v from k1) q(c0, c1, c2, c3, c4, c5, c6, c7)
select 2147483648 as big, -2147483648 as mn, - 1 as neg, +1 as pos, -1.5 as nd, - (-1) as nn, 1e3 as e
select not (id > 1 and g < 2) as n1, not id > 1 as n2, (id > 1) = (g > 1) as eq, (id is null) is true as tr, id > 1 is not false as fl from k1
select id + g * 2 - 1 as a, (id + g) * 2 as b, id - (g - 1) as c, (id - g) - 1 as d, id * (g / 2) as e, -id as f, - - id as g2, id % 2 = 0 as h, 2 ^ 3 ^ 2 as i, id || '' || g as j, @ id as k from k1
select grouping(id) as gr, id, g, count(*) from k1 group by grouping sets ((id, g), rollup (id), cube (g, id), ()) order by 1
select id, count(*) from k1 group by rollup ((id, g), g), id
select id, count(*) from k1 group by distinct rollup (id), cube (id)
select count(*) from k1 group by ()
select string_agg(id::text, ',' order by id desc) as s, string_agg(distinct na::text, ',') as s2 from a
select mode() within group (order by id) as m, percentile_disc(array[0.25, 0.5]) within group (order by id) as pd, percentile_cont(0.5) within group (order by n) filter (where id > 1) as pc, dense_rank(1, 2) within group (order by id, id desc) as dr from a
select generate_series(1, 3) as g, unnest(array[1, 2]) as u
select * from generate_series(1, 10, 2) as g(i) where i > 3
select * from generate_series('2020-01-01'::timestamp, '2020-01-03', '1 day') d
select * from current_date
select * from k1 tablesample system (50)
select jsonb_path_query_array('{"a":1}', '$.a') as q, '{"a":1}'::jsonb @? '$.a' as e, '{"a":1}'::jsonb -> 'a' ->> 0 as g, ('{"a":1}'::jsonb)['a'] as s
select jsonb_object_agg(id, g) as o, json_agg(k1) as j, json_agg(k1.*) as j2, to_jsonb(k1) as t from k1 group by k1.*
select p.id from pg_class c, pg_type t, p where c.oid = 'k1'::regclass and t.oid = 23 and c.relname = 'x'
select id from k1 where id = any (select g from k1) and id = some (array[1, 2]) and g < all ('{1,2}') and id <> any (array[1])
select max(id) over (partition by g order by id range between '1' preceding and current row) from k1
select (array[1,2,3])[1:2] as s, (array[1,2,3])[2] as e, (select array[1,2])[1] as f
select k1.tableoid, tableoid::regclass as t from k1
select bool_and(id > 1) as b, every(g > 1) as e, corr(id, g) as c, bit_or(id) as bo, stddev(n) as sd from a join k1 using (id)
select format('%s %s', id, 'x') as f, concat_ws(',', 'a', id) as c, quote_literal(id) as q, to_char(now(), 'YYYY') as t, left('abc', 1) as l, "right"('abc', 1) as r, replace('a', 'b', 'c') as re from k1
select id from (select * from k1 order by g limit 3) s order by id
select * from base where id = 1 and base.g > 2
select new.id from k1 new
select a.id from k1 a where exists (select 1 from k1 a, k1 b where a.id = b.id and exists (select 1 from k1 a where a.g = b.g))
