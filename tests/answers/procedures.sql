create table test1 (a int primary key, b text)

create procedure p1(x int, y text) language plpgsql as $$ begin for i in 0..x loop insert into test1(a,b) values (i,y); if i % 2 = 0 then commit; else rollback; end if; end loop; end $$

call p1(9, 'foo')

select * from test1 order by 1

truncate test1

do $$ begin for i in 0..9 loop insert into test1(a) values (i); if i % 2 = 0 then commit; else rollback; end if; end loop; end $$

select * from test1 order by 1

begin

call p1(9,'error')

commit

begin

do $$ begin commit; end $$

rollback

create function f1() returns int language plpgsql as $$ begin insert into test1 values (100, 'x'); commit; return 1; end $$

select f1()

create function f2() returns int language plpgsql as $$ begin call p1(9, 'error'); return 1; end $$

select f2()

create function f3() returns int language plpgsql as $$ begin execute 'call p1(9, ''error'')'; return 1; end $$

select f3()

create procedure p4() language plpgsql as $$ declare c int; begin insert into test1 values (20, 'bar'); commit; insert into test1 values (20, 'bar'); end $$

truncate test1

call p4()

select * from test1

truncate test1

do $$ begin begin insert into test1 values (1); commit; exception when others then raise notice 'caught % %', sqlstate, sqlerrm; end; end $$

do $$ begin begin insert into test1 values (1); rollback; exception when others then raise notice 'caught % %', sqlstate, sqlerrm; end; end $$

do $$ begin begin insert into test1 values (1); insert into test1 values (1); exception when unique_violation then insert into test1 values (2); commit; insert into test1 values (3); rollback; end; insert into test1 values (4); end $$

select a from test1 order by 1

truncate test1

create table test2 (x int)

insert into test2 values (0),(1),(2),(3),(4)

do $$ declare r record; begin for r in select * from test2 order by x loop insert into test1(a) values (r.x); commit; end loop; end $$

select a from test1 order by 1

truncate test1

do $$ declare r record; begin for r in select * from test2 order by x loop insert into test1(a) values (12 / (r.x - 2)); commit; end loop; end $$

select a from test1 order by 1

truncate test1

do $$ declare r record; begin for r in select * from test2 order by x loop insert into test1(a) values (r.x); rollback; end loop; end $$

select a from test1 order by 1

do $$ declare r record; begin for r in update test2 set x = x * 2 returning x loop insert into test1(a) values (r.x); commit; end loop; end $$

do $$ declare r record; begin for r in update test2 set x = x * 2 returning x loop insert into test1(a) values (r.x); rollback; end loop; end $$

do $$ declare c cursor for select * from test2 order by x; r record; begin for r in c loop insert into test1(a) values (r.x); commit; end loop; end $$

select a from test1 order by 1

truncate test1

do $$ begin execute 'commit'; end $$

do $$ begin savepoint x; end $$

do $$ begin insert into test1 values (1); commit and chain; insert into test1 values (2); rollback and chain; insert into test1 values (3); commit and no chain; end $$

select a from test1 order by 1

truncate test1

do $$ begin set local timezone to 'UTC'; set intervalstyle to 'postgres_verbose'; raise notice '%', current_setting('timezone'); commit; raise notice '%', current_setting('intervalstyle'); set local extra_float_digits = 0; rollback; raise notice '%', current_setting('extra_float_digits'); end $$

show intervalstyle

reset intervalstyle

do $$ begin set transaction isolation level repeatable read; perform 1; commit and chain; raise notice '%', current_setting('transaction_isolation'); rollback; raise notice '%', current_setting('transaction_isolation'); end $$

do $$ begin perform 1; commit; set transaction isolation level serializable; raise notice '%', current_setting('transaction_isolation'); end $$

create table d (a int primary key deferrable initially deferred)

do $$ begin insert into d values (1), (1); raise notice 'x'; commit; raise notice 'no'; end $$

select * from d

create procedure outer_p() language plpgsql as $$ begin insert into test1 values (1); call inner_p(); insert into test1 values (3); rollback; end $$

create procedure inner_p() language plpgsql as $$ begin insert into test1 values (2); commit; end $$

call outer_p()

select a from test1 order by 1

truncate test1

do $$ begin begin call inner_p(); exception when others then raise notice '%', sqlerrm; end; end $$

create procedure sql_p() language sql as $$ call inner_p() $$

create function trg() returns trigger language plpgsql as $$ begin commit; return new; end $$

create trigger t before insert on test2 for each row execute function trg()

insert into test2 values (9)

do $$ begin insert into test2 values (9); end $$

drop trigger t on test2

create procedure outp(inout x int) language plpgsql as $$ begin x := x + 1; commit; x := x * 2; end $$

call outp(3)

do $$ declare y int := 5; begin call outp(y); raise notice '%', y; end $$

do $$ begin create table made(x int); insert into made values (1); commit; insert into made values (2); rollback; end $$

select * from made

drop table made

do $$ begin create table made(x int); rollback; create table made(y int); insert into made(y) values (1); end $$

select * from made

drop table made

do $$ begin perform f1(); end $$

do $$ begin do 'begin commit; end'; end $$

do $$ begin execute 'do ''begin commit; end'''; end $$

call p1(1, 'a')

create procedure nodef() language sql as 'commit'

create procedure nodef() language plpgsql as 'begin start transaction

end'

select a from test1

select count(*) from test1

create procedure named(text) language plpgsql as $$ begin perform set_config('x.y', $1, true); commit; raise notice 'now <%>', current_setting('x.y', true); end $$

call named('z')

create function sqlf() returns int language sql as 'savepoint x; select 1'

do $$ begin for r in 1..3 loop begin insert into test1 values (r); if r = 2 then raise exception 'two'; end if; exception when raise_exception then null; end; commit; end loop; rollback; end $$

select a from test1 order by 1

do $$ declare c cursor for select x from test2 where x < 100 order by x; begin for r in c loop if r.x > 1 then rollback; end if; update test2 set x = x + 100 where x = r.x; commit; end loop; end $$

select x from test2 order by 1
