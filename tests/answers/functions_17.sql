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
