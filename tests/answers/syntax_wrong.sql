select a, from t
select a from t,
select * from t qualify x
select top 1 a from t
select * exclude (a) from t
from t select a
select * from t pivot (sum(a) for b in (1))
select f(x -> x + 1 limit 2)
select f(a, distinct b)
select f(a ignore nulls)
select case when a b end
select case when a then b
select a between 1 2
insert t values (1)
insert into t values 1, 2
insert into table t values (1)
insert overwrite t values (1)
update t set a = 1 order by a
delete t where a
select * from a join b
select * from a cross join b on true
select * from a natural join b using (x)
select * from (a)
select * from 't'
select a as 'label' from t
select 123abc
select 1 where a where b
select 1 group by a where b
select 1 order by a group by b
select 1 order by 1 union select 2
select 1 limit 1 union select 2
values 1, 2
values (1),
select (1, 2
select cast(a int)
select cast(a as int
select extract(year, a)
select a::
select a[1
select a = b = c
select a < b > c
select a between 1 and 2 between 3 and 4
select a like b like c
select a is distinct from b is null
select = 1
select * from t at x
select * from t not indexed
select * from t with (nolock)
select * from values (1)
select now()[1]
select array[1][1]
select f(x).y
select distinct from t
select all distinct a
with a (select 1) select * from a
with a as (select 1), select 2
with a as (select 1) with b as (select 2) select 3
create table t (a)
create table t (a int, )
create table t (k primary key)
create table t ()  as select 1
create view v select 1
create or view v as select 1
drop materialized t
truncate table
select * from t order a
select a from t group a
select 'a' 'b'
select a collate null
select exists 1
select x.1
select * from t limit
select * from f() with ordinaly
select interval 1 day
select a at time 'utc'
select not
1 + 2
select a filter (where b) from t
select count(* from t
select row(1,2).f1
select (select 1
select $1.x.
select t.*.x
select "a" "b" "c"
select * from lateral t
select a from t fetch 1 row only
select a from t for nothing
update t set a
update set a = 1
update t a b set c = 1
delete from t using where a
insert into t (a, ) values (1)
insert into t default
