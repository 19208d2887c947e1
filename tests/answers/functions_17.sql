-- Functions that PostgreSQL has since 16 or 17.
select erf(0.5), erf(0), erfc(1), erf('Infinity'), erfc('NaN')
select to_bin(-1234), to_bin(5::bigint), to_oct(-1234), to_oct(8::bigint), to_bin(0)
select uuid_extract_version('11111111-1111-5111-8111-111111111111'), uuid_extract_version('00000000-0000-0000-0000-000000000000'), uuid_extract_timestamp('C232AB00-9414-11EC-B3C8-9F6BDECED846'), uuid_extract_timestamp('019008fb-0dc4-7000-8000-000000000000')
select date_add('2021-10-31 00:00:00+02'::timestamptz, '1 day'::interval, 'Europe/Warsaw'), date_subtract('2021-11-01 00:00:00+01'::timestamptz, '1 day'::interval, 'Europe/Warsaw'), date_add('2021-10-31 00:00:00+02'::timestamptz, '1 mon'::interval)
select width_bucket(5, array[1,3,4,9]), width_bucket(0, array[1,3]), width_bucket(9.5, array[1,3]), width_bucket('NaN'::float8, array[1,2]), width_bucket(now(), array['yesterday','today','tomorrow']::timestamptz[]), width_bucket('b', array['a','c'])
select width_bucket(5, '{}'::int[]), width_bucket(null, array[1]), width_bucket(1, null::int[])
select width_bucket(5, array[1,null])
select width_bucket(5, array[[1,2],[3,4]])
select width_bucket('{}'::json, array['{}'::json])
select width_bucket(5, array[9,1,7,2,8,3])
select width_bucket('a'::text, array[1,2])
select cardinality(array_shuffle(array[1,2,3])), array_sample(array[7], 1), array_sample(array[1,2,3], 0), array_length(array_sample(array[[1,2],[3,4],[5,6]], 2), 1), array_length(array_shuffle(array[[1,2],[3,4],[5,6]]), 2)
select array_sample(array[1,2,3], 4)
select array_sample(array[1,2,3], -1)
select array_sample('{}'::int[], 0), array_shuffle('{}'::int[]), array_shuffle(null::int[])
select timestamp '2001-02-16 20:38:40' at local, timestamptz '2001-02-16 20:38:40+00' at local, timetz '20:38:40-05' at local
set timezone = 'America/Denver'; select (timestamp '2001-02-16 20:38:40' at local)::text, timestamptz '2001-02-16 20:38:40+00' at local, timestamp '2001-02-16 20:38:40' at local at time zone 'UTC'
select timezone(timestamp '2001-02-16 20:38:40'), timezone(timestamp 'infinity')
select x from generate_series('2021-10-31 00:00+02'::timestamptz, '2021-11-02 00:00+01', '1 day', 'Europe/Warsaw') x
select x from generate_series('2021-10-31 00:00+02'::timestamptz, '2021-11-02 00:00+01', '1 day', 'nowhere') x
select x from generate_series('2021-10-31 00:00+02'::timestamptz, '2021-11-02 00:00+01', '0 day', 'UTC') x
select * from string_to_table('a,b,NULL,c', ',', 'NULL') with ordinality
select * from string_to_table('abc', null), string_to_table('', ','), string_to_table(null, ',')
select * from string_to_table('abc', null, 'b')
select "timestamp"(date '2001-02-03', time '04:05'), timestamptz(date '2001-02-03', time '04:05'), timestamptz(date '2001-02-03', timetz '04:05-08')
select "timestamp"(date '2001-02-03', time '04:05')
set timezone = 'America/New_York'; select timestamptz(date '2021-03-14', time '02:30')::text, timestamptz(date 'infinity', time '02:30')
select (timetz '00:00+00', timetz '01:00+00') overlaps (timetz '00:30+01', timetz '01:30-01'), overlaps(timetz '00:00+00', timetz '01:00+00', timetz '04:30+01', null)
select isvertical(point '(1,2)', point '(1,5)'), ishorizontal(point '(1,2)', point '(1,5)')
select slope(point '(1,2)', point '(3,8)'), slope(point '(1,2)', point '(1,8)'), slope(point '(1,2)', point '(0,2)')
select length(timeofday()) > 25, timeofday() like '___ ___ __ __:__:__.______ ____ UTC'
select array_shuffle(array[null, null]), cardinality(array_sample(array[1,null,3], 2))
select pg_sleep(0.01) is null, pg_sleep_for('10 ms'), pg_sleep_until(now()), pg_sleep(-1), pg_sleep(null)
select pg_input_is_valid('42', 'int4'), pg_input_is_valid('4x', 'integer'), pg_input_is_valid('abc', 'varchar(2)'), pg_input_is_valid('a', 'varchar(2)'), pg_input_is_valid('1e400', 'float8'), pg_input_is_valid('{1,2}', 'int[]'), pg_input_is_valid('(1,2)', 'point'), pg_input_is_valid(null, 'int'), pg_input_is_valid('1234.567', 'numeric(7,4)'), pg_input_is_valid('{"a":', 'json')
select * from pg_input_error_info('50000000000', 'int4')
select * from pg_input_error_info('abc', 'int4')
select * from pg_input_error_info('1234.567', 'numeric(7,4)')
select * from pg_input_error_info('{1,2', 'int[]')
select * from pg_input_error_info('{"a":', 'json')
select * from pg_input_error_info('12', 'int4')
select * from pg_input_error_info(null, 'int4')
select pg_input_error_info('abc', 'int4')
select pg_input_is_valid('1', 'nope')
select pg_input_is_valid('1', 'int4 + 1')
create domain posint as int check (value > 0); select pg_input_is_valid('-1', 'posint'), pg_input_is_valid('1', 'posint'); 
select * from pg_input_error_info('-1', 'posint')
create type mood as enum ('sad', 'ok'); select * from pg_input_error_info('glad', 'mood')
select to_regtypemod('varchar(32)'), to_regtypemod('numeric(5,2)'), to_regtypemod('int4'), to_regtypemod('nope'), to_regtypemod('timestamp(3)'), to_regtypemod('interval day to second(2)')
select word, catcode, barelabel, catdesc, baredesc from pg_get_keywords() where word in ('select', 'abort', 'between', 'left', 'day', 'as', 'isnull', 'char') order by word
select count(*), count(*) filter (where barelabel) from pg_get_keywords() where catcode in ('T')
create table parted (a int, b text) partition by list (a); create table parted1 partition of parted for values in (1); create table parted2 partition of parted for values in (2) partition by list (b); create table parted21 partition of parted2 for values in ('x')
select relid::text, parentrelid::text, isleaf, level from pg_partition_tree('parted') order by 4, 1
select relid::text, level from pg_partition_tree('parted2') order by 2
select pg_partition_root('parted21')::text, pg_partition_root('parted')::text, pg_partition_root('pg_class')
select * from pg_partition_tree('pg_class')
create table obj (id serial primary key, b int default 5, c text unique, check (b > 1)); create view objv as select * from obj; create index obji on obj (b); create function objf(a int, b text, out c oid) language sql as 'select 1::oid'; create type objt as (a int); create schema objs; create table objs.obj2 (a int references obj); create procedure objp(a int[]) language sql as 'select 1'
select pg_describe_object('pg_class'::regclass, 'obj'::regclass, 0), pg_describe_object('pg_class'::regclass, 'obj'::regclass, 2), pg_describe_object('pg_class'::regclass, 'objv'::regclass, 0), pg_describe_object('pg_class'::regclass, 'obji'::regclass, 0), pg_describe_object('pg_class'::regclass, 'obj_id_seq'::regclass, 0), pg_describe_object('pg_class'::regclass, 'objs.obj2'::regclass, 1), pg_describe_object('pg_type'::regclass, 'int4'::regtype, 0), pg_describe_object('pg_type'::regclass, 'objt'::regtype, 0), pg_describe_object('pg_proc'::regclass, (select oid from pg_proc where proname = 'objf'), 0), pg_describe_object('pg_proc'::regclass, (select oid from pg_proc where proname = 'objp'), 0), pg_describe_object('pg_namespace'::regclass, 'objs'::regnamespace, 0), pg_describe_object('pg_constraint'::regclass, (select oid from pg_constraint where conname = 'obj_pkey'), 0), pg_describe_object('pg_constraint'::regclass, (select oid from pg_constraint where conname = 'obj2_a_fkey'), 0), pg_describe_object('pg_attrdef'::regclass, (select oid from pg_attrdef where adrelid = 'obj'::regclass and adnum = 2), 0), pg_describe_object('pg_class'::regclass, 1, 0), pg_describe_object('pg_class'::regclass, 'obj'::regclass, 77)
select i.* from (values ('pg_class'::regclass::oid, 'obj'::regclass::oid, 0), ('pg_class'::regclass, 'obj'::regclass, 2), ('pg_class'::regclass, 'obji'::regclass, 0), ('pg_class'::regclass, 'objs.obj2'::regclass, 1), ('pg_type'::regclass, 'int4'::regtype, 0), ('pg_type'::regclass, 'text[]'::regtype, 0), ('pg_type'::regclass, 'text'::regtype, 0), ('pg_type'::regclass, 'objt'::regtype, 0), ('pg_proc'::regclass, (select oid from pg_proc where proname = 'objf'), 0), ('pg_proc'::regclass, (select oid from pg_proc where proname = 'objp'), 0), ('pg_namespace'::regclass, 'objs'::regnamespace, 0), ('pg_constraint'::regclass, (select oid from pg_constraint where conname = 'obj2_a_fkey'), 0), ('pg_attrdef'::regclass, (select oid from pg_attrdef where adrelid = 'obj'::regclass and adnum = 2), 0), ('pg_class'::regclass, 1, 0), ('pg_type'::regclass, 'posint'::regtype, 0), ('pg_class'::regclass, 1259, 0)) v(a, b, c), pg_identify_object(a, b, c) i order by identity, type
select i.* from (values ('pg_class'::regclass::oid, 'obj'::regclass::oid, 0), ('pg_class'::regclass, 'obj'::regclass, 2), ('pg_class'::regclass, 'obji'::regclass, 0), ('pg_class'::regclass, 'objs.obj2'::regclass, 1), ('pg_type'::regclass, 'int4'::regtype, 0), ('pg_type'::regclass, 'text[]'::regtype, 0), ('pg_type'::regclass, 'objt'::regtype, 0), ('pg_proc'::regclass, (select oid from pg_proc where proname = 'objf'), 0), ('pg_proc'::regclass, (select oid from pg_proc where proname = 'objp'), 0), ('pg_namespace'::regclass, 'objs'::regnamespace, 0), ('pg_constraint'::regclass, (select oid from pg_constraint where conname = 'obj2_a_fkey'), 0), ('pg_attrdef'::regclass, (select oid from pg_attrdef where adrelid = 'obj'::regclass and adnum = 2), 0), ('pg_class'::regclass, 1, 0)) v(a, b, c), pg_identify_object_as_address(a, b, c) i order by object_names, type
select pg_identify_object('pg_class'::regclass, 'obj'::regclass, 2)
select * from pg_sequence_parameters('obj_id_seq'::regclass)
select pg_get_function_arg_default((select oid from pg_proc where proname = 'objf'), 1), pg_basetype('posint'::regtype)::text, pg_basetype('int4')::text, pg_basetype(1)
select has_column_privilege('obj', 1::int2, 'select'), has_language_privilege('sql', 'usage'), row_security_active('obj'), pg_has_role('postgres'::name, 'postgres', 'member'), has_parameter_privilege('work_mem', 'set')
select pg_encoding_max_length(6), pg_encoding_max_length(0), pg_encoding_max_length(-1), pg_jit_available() is not null, pg_notification_queue_usage()
select pg_advisory_lock_shared(5), pg_advisory_lock_shared(5), pg_try_advisory_lock(5), pg_advisory_unlock_shared(5), pg_advisory_unlock_shared(5), pg_advisory_unlock_shared(5), pg_advisory_unlock(5), pg_advisory_unlock(5)
select i.* from pg_identify_object('pg_class'::regclass, 1, 3) i union all select i.* from pg_identify_object('pg_proc'::regclass, 1, 0) i union all select i.* from pg_identify_object('pg_constraint'::regclass, 1, 0) i union all select i.* from pg_identify_object('pg_attrdef'::regclass, 1, 0) i union all select i.* from pg_identify_object('pg_namespace'::regclass, 1, 0) i union all select i.* from pg_identify_object('pg_trigger'::regclass, 1, 0) i
