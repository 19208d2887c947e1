CREATE table a (id int primary key, x int, n numeric(8,2), v varchar(10), t text, d date, ts timestamp, tz timestamptz, b boolean, big bigint, f float8, c char(3), arr int[], j jsonb)
CREATE table b (id int, y int, t text, x bigint)
CREATE table s (x int, y int)

select * from a
select * from (select 1 as one, 'x' as two, null as three, -1, 1.5, -1.5, 10000000000, true, 'a'||t as cat from a) q(c0, c1, c2, c3, c4, c5, c6, c7, c8)
select * from (select id, x + 1 as plus, x * 2 + 3 as arith, (x + 1) * 2 as ar2, - x as neg, x - (x - 1) as m, n + 1, n * 1.5, f + 1, big + 1, x + big from a) q(c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10)
select a.id, b.y from a join b on a.id = b.id where a.x > 5 and (b.y < 3 or b.y is null) and not a.b
select id from a where t = 'x' or v = 'y' or c = 'abc' and d = '2020-01-01' and ts < '2020-01-01' and tz > '2020-01-01 00:00:00+00'
select id from a where x in (1,2,3) or t not in ('a','b') or v in ('a','b') or n in (1, 2) or x in (1) or x in (id, 1, 2)
select id, case when x > 1 then 'a' when x < 0 then 'b' end as c1, case x when 1 then 2 else 3 end as c2 from a
select coalesce(x, 0) as c, nullif(x, 1) as n, greatest(x, 1, 2) as g, least(n, 1) as l from a
select * from (select x::text, t::varchar(5), '5'::int, 5::bigint, n::int, '2020-01-01'::date, x::numeric(10,2), 'abc'::varchar(2), v::text, '1'::numeric(5,2) from a) q(c0, c1, c2, c3, c4, c5, c6, c7, c8, c9)
select count(*), sum(x), avg(n) filter (where x > 1), string_agg(t, ',' order by t desc), array_agg(distinct x) from a
select x, count(*) as c from a group by x having count(*) > 1 order by x desc nulls last limit 10 offset 5
select row_number() over (order by id) as rn, sum(x) over w as s, rank() over (w order by id) from a window w as (partition by t)
select sum(x) over (order by id rows between 1 preceding and current row) as s1, sum(x) over (order by id range between unbounded preceding and 1 following exclude ties) as s2, sum(x) over (order by id rows unbounded preceding) from a
select a.id from a union all select b.id from b union select 3
select id from a union select id from b order by 1 limit 3
(select id from a order by id limit 1) union all (select id from b) except select 5
select id from a intersect (select id from b union select x from s)
values (1, 'a'), (2, 'b')
with q as (select id from a), w(z) as (select y from b) select q.id, w.z from q, w
with recursive r(n) as (select 1 union all select n + 1 from r where n < 10) select n from r
select exists (select 1 from b where b.id = a.id) as e, (select max(y) from b) as m, id in (select id from b) as i, id not in (select id from b) as ni, x > any (select y from b) as an, x = all (select y from b) as al, array(select y from b order by y) as ar from a
select a.id from a left join b on a.id = b.id right join s on s.x = a.x full join b b2 on b2.id = s.x
select * from (select * from b join s using (x)) q(c0, c1, c2, c3, c4)
select * from b natural join s
select x, count(*) from s left join b using (x) group by x
select q.id, q.c from (select id, count(*) as c from a group by id) q where q.c > 1
select q.a1 from (select id, x from a) q(a1, b1)
select g from generate_series(1, 10) g
select * from generate_series(1, 3) with ordinality as t(a, b)
select * from a, unnest(a.arr) u
select * from unnest(array[1,2], array['a','b']) as t(x, y)
select * from rows from (generate_series(1,2), generate_series(1,3)) as t(a, b)
select * from (select extract(year from d) as y, position('a' in t) as p, substring(t from 1 for 2) as s, substring(t, 1, 2), trim(both 'x' from t), trim(t), overlay(t placing 'x' from 1 for 2), tz at time zone 'UTC' as u from a) q(c0, c1, c2, c3, c4, c5, c6, c7)
select upper(t), length(v), lower(c), round(n, 1), abs(-1), left(t, 2), now() from a
select current_date as cd, current_timestamp as ct, current_user as cu, localtimestamp(2) as lt
select x between 1 and 5 as b1, x not between 1 and 5 as b2, x between symmetric 1 and 5 as b3, x not between symmetric 1 and 5 from a
select * from (select t like 'a%' as l, t not like 'a%', t ilike 'b', t like 'a' escape '\', t similar to 'a', t ~ 'x' from a) q(c0, c1, c2, c3, c4, c5)
select * from (select x is null as n1, x is not null, b is true, b is not false, b is unknown, x is distinct from 1, x is not distinct from 1, x is distinct from null from a) q(c0, c1, c2, c3, c4, c5, c6, c7)
select array[x, 1] as a1, array['a','b'] as a2, array[]::int[] as a3, arr[1] as s, arr[1:2] as sl, array[array[1,2],array[3,4]] as n from a
select x = any(array[1,2]) as q, x = any(arr) as q2, x <> all(array[1]) as q3, t = any('{a,b}') as q4 from a
select t collate "C" as c from a order by t collate "C"
select a, a.id from a
select distinct x from a
select distinct on (x) x, id from a order by x, id desc
select x, y, count(*) from s group by rollup (x, y)
select x, y, count(*), grouping(x, y) from s group by grouping sets ((x), (y), ())
select x, y, count(*) from s group by cube (x, y), x
select x + y as z, count(*) from s group by x + y order by x + y
select x, sum(y) from s group by 1 order by 2
select j -> 'a' as a, j ->> 'b' as b, j #> '{a,b}' as c, j @> '{"a":1}' as d from a
select percentile_cont(0.5) within group (order by x) as p, mode() within group (order by t) as m, rank(3) within group (order by x) as r from a
select * from (select lag(x) over (order by id), lag(x, 2, 0) over (order by id), ntile(4) over (order by id), first_value(t) over (order by id), nth_value(x, 2) over (order by id) from a) q(c0, c1, c2, c3, c4)
select * from a a1 where exists (select 1 from a a1 where a1.id = 1)
select * from a where id in (select id from a)
select * from (select interval '1 day' as i, '1 hour'::interval as h, interval '1' year as y, d + interval '1 day', d + 1, ts - ts from a) q(c0, c1, c2, c3, c4, c5)
select x from s order by x using >
select x from s order by x fetch first 3 rows with ties
select (select id from a where a.x = s.x) from s
select j.x from (s join b using (x)) j
select j.x from s join b using (x) as j
select jt.* from (s cross join b) jt(p, q, r)
select * from lateral (select 1 as one) l
select a.id, l.y from a, lateral (select y from b where b.id = a.id) l
select a.id, l.y from a left join lateral (select y from b where b.id = a.id) l on true
select not (x > 1) as n, not b as nb, (b and x > 1) or x < 0 as o from a
select date '2020-01-01' as d, timestamp '2020-01-01 10:00' as t, time '10:00' as ti, B'101' as b, X'1F' as xx
select (d, d) overlaps (d, d) as o from a
select * from (select 'infinity'::float8, 'nan'::float8, 1e10, 1.0e-5, 'a''b' as q, E'a\\b' as bs) q(c0, c1, c2, c3, c4, c5)
select (a).id, (a).t from a
select a.* from a
select * from (select count(a.*), count(a) from a) q(c0, c1)
select x as "X y", id as select_ from a
select sum(distinct x), count(distinct t), max(d) from a
select to_char(n, '999'), date_trunc('month', ts), generate_series(1, x) from a
select concat(t, v, 1), format('%s', t), greatest('a', t) from a
select json_build_object('a', x), jsonb_agg(x), jsonb_build_array(1, 'a') from a group by x
select (x > 1) is true as a, (x is null) = true as b, -x + 3 as c, - (x + 1) as d, x % 2 as e, x ^ 2 as f, |/ f as g, x << 1 as h, x & 3 as i from a
select t || x as cat, t || v as cat2, c || t as c3 from a
select * from json_to_record('{"a":1}') as x(a int, b text)
select * from jsonb_each('{"a":1}') e(k, v)
select x from s tablesample bernoulli (10) repeatable (1)
select x from only s
with x as materialized (select 1 as y), z as not materialized (select 2 as w) select * from x, z
select s.x from s where (select count(*) from b where b.x = s.x) > 1
select min(x) filter (where y > 1) over (partition by y) as m from s
select x, y from s limit all
select x from s limit 5 + 5
select row(x, t) = row(1, 'a') as r, (x, id) = (1, 2) as e, (x, id) < (1, 2) as l, (x, id) in ((1,2),(3,4)) as i, (x, id) <> (1, 2) as n from a
