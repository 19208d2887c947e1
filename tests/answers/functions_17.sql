-- Functions that PostgreSQL has since 16 or 17.
select erf(0.5), erf(0), erfc(1), erf('Infinity'), erfc('NaN')
select to_bin(-1234), to_bin(5::bigint), to_oct(-1234), to_oct(8::bigint), to_bin(0)
select uuid_extract_version('11111111-1111-5111-8111-111111111111'), uuid_extract_version('00000000-0000-0000-0000-000000000000'), uuid_extract_timestamp('C232AB00-9414-11EC-B3C8-9F6BDECED846'), uuid_extract_timestamp('019008fb-0dc4-7000-8000-000000000000')
select date_add('2021-10-31 00:00:00+02'::timestamptz, '1 day'::interval, 'Europe/Warsaw'), date_subtract('2021-11-01 00:00:00+01'::timestamptz, '1 day'::interval, 'Europe/Warsaw'), date_add('2021-10-31 00:00:00+02'::timestamptz, '1 mon'::interval)
