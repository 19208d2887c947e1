# ruff: noqa: E501 (a case a line)
"""Asks a real PostgreSQL 15 what functions, text forms and aggregates give: writes values.json beside this file.

Run: python tests/answers/make_values.py 'host=localhost port=5499 user=postgres' (needs psycopg; not part of the tests).
A case is (what, name, arguments as "type:text", or "type!" for NULL); the answer is the text of the result, None for NULL,
or {"sqlstate": …}.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent

STRINGS = """
length|text:héllo
octet_length|text:héllo
bit_length|text:abc
upper|text:hello World1
lower|text:HELLO World
initcap|text:hi THOMAS o'neil x1y 9lives
ltrim|text:  x  |text: 
ltrim|text:zzzytest|text:xyz
rtrim|text:testxxzx|text:xyz
btrim|text:xyxtrimyyx|text:xyz
btrim|text:  a b  
lpad|text:hi|int4:5|text:xy
lpad|text:hello|int4:3|text:xy
lpad|text:hi|int4:-1
lpad|text:hi|int4:6|text:
rpad|text:hi|int4:5|text:xy
rpad|text:hi|int4:5
substr|text:alphabet|int4:3
substr|text:alphabet|int4:3|int4:2
substr|text:alphabet|int4:-1|int4:4
substr|text:alphabet|int4:3|int4:-2
substr|text:alphabet|int4:-5
left|text:abcde|int4:2
left|text:abcde|int4:-2
left|text:abcde|int4:-9
right|text:abcde|int4:2
right|text:abcde|int4:-2
right|text:abcde|int4:9
right|text:abcde|int4:0
strpos|text:high|text:ig
strpos|text:high|text:zz
strpos|text:high|text:
replace|text:abcdefabcdef|text:cd|text:XX
replace|text:abc|text:|text:XX
translate|text:12345|text:143|text:ax
split_part|text:abc~@~def~@~ghi|text:~@~|int4:2
split_part|text:abc,def,ghi,jkl|text:,|int4:-2
split_part|text:abc,def|text:,|int4:9
split_part|text:abc,def|text:,|int4:0
split_part|text:abc,def|text:|int4:1
split_part|text:|text:,|int4:1
reverse|text:abcde
repeat|text:Pg|int4:4
repeat|text:Pg|int4:-4
ascii|text:x
ascii|text:
ascii|text:é
chr|int4:65
chr|int4:0
md5|text:abc
to_hex|int4:2147483647
to_hex|int8:-1
starts_with|text:alphabet|text:alph
overlay|text:Txxxxas|text:hom|int4:2|int4:4
overlay|text:Txxxxas|text:hom|int4:2
overlay|text:Txxxxas|text:hom|int4:0
quote_ident|text:Foo bar
quote_ident|text:foo
quote_ident|text:select
quote_ident|text:a"b
quote_literal|text:O'Reilly
quote_literal|text:a\\b
quote_nullable|text!
string_to_array|text:xx~~yy~~zz|text:~~|text:yy
string_to_array|text:a,b,,c|text:,
string_to_array|text:|text:,
string_to_array|text:abc|text!
string_to_array|text:abc|text:
encode|bytea:\\x1234ff|text:base64
encode|bytea:\\x1234ff|text:hex
encode|bytea:\\x12005cff|text:escape
decode|text:MTIz|text:base64
sha256|bytea:\\x616263
sha512|bytea:\\x616263
~~|text:abc|text:a%
~~|text:abc|text:_b_
~~|text:abc|text:c
~~|text:a%c|text:a\\%c
~~|text:abc|text:abc\\
!~~|text:abc|text:a%
~~*|text:ABC|text:a_c
like_escape|text:a#%b|text:#
similar_to_escape|text:(b|c)%
~|text:abc|text:^a.c$
~|text:foobar|text:\\mbar
~|text:foo bar|text:\\mbar\\M
~|text:foo_1|text:^[[:alnum:]_]+$
~|text:foo-1|text:^[[:alnum:]_]+$
~|text:a|text:(
~|text:a|text:[
~|text:a|text:a**
~*|text:ABC|text:^abc$
!~|text:abc|text:b
!~*|text:ABC|text:b
substring|text:foobar|text:o.b
substring|text:foobar|text:o(.)b
substring|text:foobar|text:z
regexp_match|text:foobarbequebaz|text:bar.*que
regexp_match|text:foobarbequebaz|text:(bar)(beque)
regexp_match|text:foobar|text:foo|foobar
regexp_match|text:abc|text:(z)?abc
regexp_match|text:xxabab|text:(ab|abab)
regexp_match|text:foo|text:FOO|text:i
regexp_match|text:foo|text:FOO|text:g
regexp_replace|text:foobarbaz|text:b..|text:X
regexp_replace|text:foobarbaz|text:b..|text:X|text:g
regexp_replace|text:foobarbaz|text:b(..)|text:X\\1Y|text:g
regexp_replace|text:Thomas|text:.[mN]a.|text:M
regexp_replace|text:abc|text:|text:-|text:g
regexp_replace|text:a.b.c|text:\\.|text:\\&\\&|text:g
regexp_replace|text:  x  y |text:\\s+|text: |text:g
regexp_split_to_array|text:hello  world|text:\\s+
regexp_split_to_array|text:hello|text:
regexp_split_to_array|text:,a,b,|text:,
regexp_split_to_array|text:the quick|text:\\s*
regexp_count|text:ABCABCAXYaxy|text:A.
regexp_like|text:Hello|text:HELLO|text:i
array_to_string|int4[]:{1,2,NULL,3}|text:,
array_to_string|int4[]:{1,2,NULL,3}|text:,|text:*
array_to_string|bool[]:{t,f}|text:,
""".strip("\n")

ARRAYS = """
array_length|int4[]:{1,2,3}|int4:1
array_length|int4[]:{}|int4:1
array_length|int4[]:{{1,2,3},{4,5,6}}|int4:2
array_upper|int4[]:{1,2,3}|int4:1
array_lower|int4[]:{1,2,3}|int4:1
array_ndims|int4[]:{{1,2},{3,4}}
array_dims|int4[]:{{1,2},{3,4}}
cardinality|int4[]:{{1,2},{3,4}}
cardinality|text[]:{}
array_append|int4[]:{1,2}|int4:3
array_append|int4[]!|int4:3
array_prepend|int4:3|int4[]:{1,2}
array_cat|int4[]:{1,2}|int4[]:{3}
array_cat|int4[]:{{1,2}}|int4[]:{3,4}
array_cat|int4[]:{1,2}|int4[]:{{3,4,5}}
array_position|text[]:{sun,mon,tue,mon}|text:mon
array_position|text[]:{sun,mon,tue,mon}|text:mon|int4:3
array_positions|text[]:{A,A,B,A}|text:A
array_remove|int4[]:{1,2,3,2}|int4:2
array_remove|int4[]:{1,NULL,2}|int4!
array_replace|int4[]:{1,2,5,4}|int4:5|int4:3
@>|int4[]:{1,4,3}|int4[]:{3,1,3}
<@|int4[]:{2,2,7}|int4[]:{1,7,4,2,6}
&&|int4[]:{1,4,3}|int4[]:{2,1}
&&|int4[]:{1,NULL}|int4[]:{NULL}
@>|numeric[]:{1.0,2}|numeric[]:{1.00}
trim_array|int4[]:{1,2,3,4,5,6}|int4:2
""".strip("\n")

TIMES = """
+|date:2001-09-28|int4:7
-|date:2001-10-01|int4:7
-|date:2001-10-01|date:2001-09-28
-|date:infinity|date:2001-09-28
+|date:infinity|int4:1
+|date:5874897-12-31|int4:1
+|date:2001-09-28|interval:1 hour
+|date:2001-09-28|time:03:00
+|timestamp:2001-09-28 01:00|interval:23 hours
+|timestamp:2024-01-31|interval:1 month
+|timestamp:2024-01-31|interval:1 mon 1 day -2:00
-|timestamp:2024-03-31|interval:1 month
-|timestamp:2001-09-29 03:00|timestamp:2001-07-27 12:00
-|timestamp:2001-07-27 12:00|timestamp:2001-09-29 03:00
-|timestamp:infinity|timestamp:2001-09-29 03:00
+|timestamptz:2024-03-10 00:30 America/New_York|interval:1 day
+|timestamptz:2024-03-30 12:00+00|interval:1 mon 3:00
-|timestamptz:2024-03-30 12:00+00|timestamptz:2024-03-10 00:30 America/New_York
+|interval:1 day|interval:1 hour
-|interval:1 day|interval:1 hour
-|interval:1 day 2:00
*|interval:1 second|float8:900
*|interval:1 day|float8:0.3
*|interval:1 mon|float8:0.3333
*|interval:1 year 2 mons 3 days 04:05:06.7|float8:-1.7
/|interval:1 hour|float8:1.5
/|interval:1 mon 1 day|float8:7
/|interval:1 day|float8:0
+|time:01:00|interval:3 hours
-|time:05:00|time:03:00
-|time:05:00|interval:6 hours
+|time:23:00|interval:2 days 3 hours
age|timestamp:2001-04-10|timestamp:1957-06-13
age|timestamp:1957-06-13|timestamp:2001-04-10
age|timestamp:2024-03-01|timestamp:2024-01-31
age|timestamp:2024-03-01 01:00|timestamp:2024-02-29 23:30:00.5
age|timestamptz:2024-03-01 01:00|timestamptz:2024-02-28 23:30:00.5
date_trunc|text:hour|timestamp:2001-02-16 20:38:40.5
date_trunc|text:week|timestamp:2001-02-16 20:38:40
date_trunc|text:month|timestamp:2001-02-16 20:38:40
date_trunc|text:quarter|timestamp:2001-06-16 20:38:40
date_trunc|text:year|timestamp:2001-02-16 20:38:40
date_trunc|text:decade|timestamp:2001-02-16 20:38:40
date_trunc|text:century|timestamp:2001-02-16 20:38:40
date_trunc|text:century|timestamp:2000-02-16 20:38:40
date_trunc|text:millennium|timestamp:2001-02-16 20:38:40
date_trunc|text:century|timestamp:0055-02-16 BC
date_trunc|text:decade|timestamp:0055-02-16 BC
date_trunc|text:MILLIseconds|timestamp:2001-02-16 20:38:40.123456
date_trunc|text:fortnight|timestamp:2001-02-16 20:38:40
date_trunc|text:timezone|timestamp:2001-02-16 20:38:40
date_trunc|text:day|timestamptz:2001-02-16 20:38:40+00|text:Australia/Sydney
date_trunc|text:hour|interval:3 days 02:47:33
date_trunc|text:quarter|interval:1 year 5 mons 3 days
date_trunc|text:week|interval:1 year
date_bin|interval:15 minutes|timestamp:2020-02-11 15:44:17|timestamp:2001-01-01
date_bin|interval:15 minutes|timestamp:2000-02-11 15:44:17|timestamp:2001-01-01 00:02:30
date_bin|interval:1 mon|timestamp:2000-02-11 15:44:17|timestamp:2001-01-01
make_date|int4:2013|int4:7|int4:15
make_date|int4:-44|int4:3|int4:15
make_date|int4:2013|int4:2|int4:30
make_time|int4:8|int4:15|float8:23.5
make_time|int4:25|int4:15|float8:23.5
make_timestamp|int4:2013|int4:7|int4:15|int4:8|int4:15|float8:23.5
make_interval|int4:1|int4:2|int4:3|int4:4|int4:5|int4:6|float8:7.5
justify_days|interval:35 days
justify_hours|interval:27 hours
justify_interval|interval:1 mon -1 hour
justify_interval|interval:-1 mon 35 days 25 hours
to_timestamp|float8:1284352323.5
to_timestamp|float8:1e300
isfinite|date:infinity
isfinite|timestamp:2001-02-16
timezone|text:America/Denver|timestamp:2001-02-16 20:38:40
timezone|text:America/Denver|timestamptz:2001-02-16 20:38:40-05
timezone|text:UTC+3|timestamp:2001-02-16 20:38:40
timezone|text:+03|timestamp:2001-02-16 20:38:40
timezone|text:EST|timestamp:2001-02-16 20:38:40
timezone|text:Mars/Base|timestamp:2001-02-16 20:38:40
timezone|interval:-03:00|timestamp:2001-02-16 20:38:40
timezone|interval:02:30|timestamptz:2001-02-16 20:38:40+00
timezone|text:America/New_York|timestamp:2024-03-10 02:30
timezone|text:America/New_York|timestamp:2024-11-03 01:30
""".strip("\n")

EXTRACT_UNITS = [
    "microseconds",
    "milliseconds",
    "second",
    "minute",
    "hour",
    "day",
    "week",
    "month",
    "quarter",
    "year",
    "decade",
    "century",
    "millennium",
    "julian",
    "isoyear",
    "dow",
    "isodow",
    "doy",
    "epoch",
    "timezone",
    "timezone_hour",
    "timezone_minute",
    "nonsense",
]
EXTRACT_FROM = [
    "timestamp:2001-02-16 20:38:40.12", "timestamp:0044-03-15 BC", "timestamp:infinity", "timestamp:2005-01-01",
    "timestamptz:2001-02-16 20:38:40.12-05", "date:2001-02-16", "date:2024-12-30", "date:-infinity",
    "time:20:38:40.125", "interval:6 years 5 mons 4 days 03:02:01.5", "interval:-13 mons -4 days -03:02:01.5",
]  # fmt: skip

CHAR_STAMPS = [
    "timestamp:2001-02-06 20:08:04.0456",
    "timestamp:1999-12-31 00:00:00",
    "timestamp:0044-03-15 01:02:03 BC",
]
CHAR_PATTERNS = [
    "HH12:MI:SS AM", "HH24:MI:SS.MS", "HH:MI:SS.US p.m.", "YYYY-MM-DD", "Y,YYY YYY YY Y", "IYYY IW ID IDDD", "BC ad A.D.",
    "MONTH Month month", "FMMONTH FMMonth FMmonth|", "MON Mon mon", "DAY Day day|", "FMDay, FMDDth FMMonth YYYY", "DY Dy dy",
    "DDD DD D", "W WW CC J Q", "RM rm|FMRM|", "SSSS SSSSS", "FF1 FF2 FF3 FF4 FF5 FF6", '"Year:" YYYY', "DDTH ddth HH24TH",
    "FMHH:FMMI:FMSS", "YYYY\"x\"MM", "day FMday dd", "FMDD FMMM FMYY FMWW", "",
]  # fmt: skip
CHAR_INTERVALS = ["interval:15 h 2 m 12 s", "interval:1 year 2 mons 3 days 30:05:06.7", "interval:-3 days -04:05:06"]
CHAR_INTERVAL_PATTERNS = ["HH24:MI:SS", "HH12:MI:SS AM", "DD MM YYYY", "HH24:MI:SS.MS", "SSSS", "Month"]

CHAR_NUMBERS = [
    "0",
    "1",
    "-1",
    "0.1",
    "-0.1",
    "12",
    "125",
    "-485",
    "485.8",
    "-12.454",
    "148.5",
    "1234567.891",
    "0.45",
    "-0.009",
]
CHAR_NUMBER_PATTERNS = [
    "9", "999", "0000", "999D99", "99.9", "FM99.9", "FM999.009", "FM999.99", "0.9", "FM0.9", "9,999", "9,999,999.99",
    "S999", "999S", "999MI", "MI999", "PL999", "999PL", "SG999", "9SG99", "999PR", "FM999PR", "FM999MI", "L999", "999th", "9999V99",
    "RN", "FMRN", "0999.9", "099.99", "FM9999999", "FM0999", "S0.99", "9.99EEEE", "999 x", '"Good" 999.9', "B9", "FM9,999,990.00",
    "$999", "00.99", "S9.9", "9G999D9", "FMS999", "9999.0",
]  # fmt: skip

TO_DATES = """
to_date|text:05 Dec 2000|text:DD Mon YYYY
to_date|text:20240229|text:YYYYMMDD
to_date|text:2024-1-5|text:YYYY-MM-DD
to_date|text:2024-02-30|text:YYYY-MM-DD
to_date|text:12/25/99|text:MM/DD/YY
to_date|text:2024 123|text:YYYY DDD
to_date|text:January 5, 2024|text:Month DD, YYYY
to_date|text:abc|text:YYYY
to_date|text:2024-W05-3|text:IYYY-"W"IW-ID
to_date|text:44-02-01 BC|text:YYYY-MM-DD BC
to_timestamp|text:05 Dec 2000 13:14:15|text:DD Mon YYYY HH24:MI:SS
to_timestamp|text:2024-01-02 03:04:05.678|text:YYYY-MM-DD HH24:MI:SS.MS
to_timestamp|text:2024-01-02 11:04 PM|text:YYYY-MM-DD HH:MI PM
to_timestamp|text:2024-01-02 25:04|text:YYYY-MM-DD HH24:MI
to_number|text:12,454.8-|text:99G999D9S
to_number|text:-34,338,492|text:99G999G999
to_number|text:  12.5 |text:99.99
to_number|text:<564646.654564>|text:999999.999999PR
""".strip("\n")

TEXT_FORMS: dict[str, list[str]] = {
    "bool": ["t", "TRUE", " yes ", "on", "0", "of", "o", "2", ""],
    "int2": ["32767", "32768", "-32768", " 7 ", "7.5", "", "+5", "0x1"],
    "int4": ["2147483647", "2147483648", "abc", "1 2", "-0", "1_000"],
    "int8": ["9223372036854775807", "9223372036854775808", "-9223372036854775808"],
    "oid": ["4294967295", "-1", "x"],
    "float8": ["0.1", "1e15", "123456789012345", "1234567890123456", "1e-4", "0.00001234", "1e308", "1e309", "1e-400", "NaN",
               "-Infinity", "inf", "1.5e", "  2.50", "-0", "5e-324", "0.1e1", ".5", "5.", "100", "1e23"],
    "float4": ["0.1", "1e6", "123456", "1234567", "16777217", "1e39", "1e-46", "3.4028235e38", "1e-5", "0.0001", "nan", "1.1e10"],
    "numeric": ["1.500", "1e3", "-0.00", "NaN", "inf", "-Infinity", "1e-5", "123456789012345678901234567890.123", ".5", "5.", "x", "1e",
                "0000.10"],
    "numeric(5,2)": ["1.005", "999.994", "999.995", "-1.005", "NaN", "Infinity"],
    "varchar(3)": ["abc", "abc  "],
    "bpchar(5)": ["ab", "abcde   "],
    "bytea": ["\\x00ff", "abc", "a\\\\b", "\\001x", "\\xabc", "\\xzz", "\\9"],
    "uuid": ["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "{a0eebc999c0b4ef8bb6d6bb9bd380a11}", "a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11",
             "a0eebc99", "g0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
    "date": ["1999-01-08", "January 8, 1999", "1/8/1999", "1/18/1999", "18/1/1999", "01/02/03", "1999-Jan-08", "Jan-08-1999", "08-Jan-1999",
             "19990108", "990108", "1999.008", "J2451187", "January 8, 99 BC", "0044-03-15 BC", "infinity", "-infinity", "epoch",
             "2024-02-30", "2024-13-01", "2024-02-29", "2023-02-29", "0000-01-01", "5874898-01-01", "foo", "", "1999-01-08 04:05:06",
             "Mon Jan 08 1999", "8 Jan 1999", "2024-1-5", "99-Jan-08", "1999 Jan 8", "12024-01-01", "2024/03/05", "20240105T101112"],
    "time": ["04:05:06.789", "04:05:06", "04:05", "040506", "04:05 AM", "04:05 PM", "12:00 AM", "24:00:00", "24:00:01", "25:00", "04:60",
             "04:05:06.1234567", "x", "2003-04-12 04:05:06", "23:59:60", "allballs", "13:05 PM"],
    "time(2)": ["04:05:06.789"],
    "timestamp": ["1999-01-08 04:05:06", "2004-10-19 10:23:54+02", "2024-01-01T00:00:00Z", "Wed Dec 17 07:37:16 1997 PST", "infinity",
                  "epoch", "2024-01-01 24:00:00", "2024-06-01 12:30:00.123456789", "294276-12-31 23:59:59.999999", "294277-01-01",
                  "4714-11-24 00:00:00 BC", "4714-11-23 BC", "20240102 030405", "20240102T030405", "2024-01-01 1:2:3", "12/25/2024 3:04 PM",
                  "Jan 5 2024 10:11", "2024-01-01 10:11:12.5 BC", "x", "2024-01-01 10:61", "1999-01-08 04:05:06 America/New_York",
                  "1999-01-08 04:05:06 Foo/Bar", "2024-01-01 00:00:00+25"],
    "timestamp(0)": ["2024-01-01 00:00:00.5", "2024-01-01 00:00:01.5"],
    "timestamptz": ["1999-01-08 04:05:06", "1999-01-08 04:05:06 -8:00", "2004-10-19 10:23:54+02", "2024-07-01 00:00 America/New_York",
                    "2024-01-01 00:00:00+05:30", "2024-01-01 00:00:00 EST", "infinity", "epoch", "2024-03-10 02:30 America/New_York",
                    "2024-11-03 01:30 America/New_York", "0044-03-15 BC", "1800-01-01 00:00 Europe/Berlin", "2024-01-01 00:00:00-03:30:15"],
    "interval": ["1 year 2 months 3 days 04:05:06.7", "1-2", "3 4:05:06", "P1Y2M3DT4H5M6S", "P0001-02-03T04:05:06", "PT36H", "1.5 months",
                 "1.5 years", "1.5 weeks", "0.5 days", "-1 day", "1 day ago", "@ 1 minute", "1 mon -1 day", "-1 mon +2 days", "1h 2m 3s",
                 "4:05", "10", "1.5", "04:05:06.1234567", "x", "", "1 dayz", "2 weeks 1 week", "1 century 2 decades", "100 ms 5 us", "-00:00:01",
                 "1 year -25 hours", "P-1Y-2M", "-P1D", "1 day -04:05", "0", "1e3 days", "1 day 1 day", "PT1.5S", "P1W", "6 months ago 3 days",
                 "1:2:3.5", "2147483648 days", "1 12:59:10"],
    "jsonb": ['{"b": 1, "a": {"c":[1, 2.50, null, true]}, "b": 2}', '"x\\u00e9\\n"', "[]", "{}", "1e3", "nul", '{"a":}', '{"aa":1,"b":2,"c":3}',
              '"\\"\\\\/"', "-0", "[1,[2]]"],
    "int4[]": ["{1,2,3}", "{}", "{1,NULL,3}", "{{1,2},{3,4}}", "{{1,2},{3}}", "{1,2", "1,2", "{ 1 , 2 }", "{a}", "{{}}", "{1}x", "[1:2]={1,2}"],
    "text[]": ['{a,"b c","",NULL,"NULL","q\\"x","b\\\\s"}', "{a b, c }", '{"a,b",{x}}', '{"unterminated}'],
    "interval[]": ["{1 day,2:00}", "{{1 day},{2:00}}"],
    "date[]": ["{2024-01-01,infinity}"],
}  # fmt: skip

INTS = ["1", "2", "2", "5", None, "-7", "100"]
AGGREGATES: list[tuple[str, str, list[str | None]]] = [
    (name, type_, values)
    for name in ("sum", "avg", "min", "max", "count", "stddev", "stddev_pop", "variance", "var_pop")
    for type_, values in [
        ("int2", INTS), ("int4", INTS), ("int8", INTS), ("int4", [None]), ("int8", ["9223372036854775807"] * 3 + ["-5"]),
        ("int8", ["-9223372036854775808", "9223372036854775807", "3"]), ("int4", ["7"]), ("int4", ["10", "11"]),
        ("numeric", ["1.10", "2.2", "-3.300", None]), ("numeric", ["1.00", "-1.00"]), ("numeric", ["NaN", "1"]),
        ("numeric", ["Infinity", "1"]), ("numeric", ["Infinity", "-Infinity"]), ("numeric", ["123456789012345678901234.5", "0.0001"]),
        ("numeric", ["1e-20", "3e25", "7"]), ("numeric(10,2)", ["1.10", "2.2", "-3.30", None]), ("numeric(10,2)", ["NaN", "1"]),
        ("numeric(18,4)", ["99999999999999.9999"] * 5 + ["0.0001"]),
        ("float8", ["1.5", "2.25", "-3", None]), ("float8", ["Infinity", "1"]), ("float8", ["NaN", "1"]), ("float8", ["-Infinity", "Infinity"]),
        ("float8", ["1e308", "1e308"]), ("float4", ["1.5", "2.25", "0.1"]), ("float8", ["0.1", "0.2", "0.3"]), ("float8", ["1e-300", "2e-310"]),
    ]
] + [
    (name, type_, values)
    for name in ("min", "max", "count")
    for type_, values in [
        ("text", ["b", "a", None, "abc", "ab", "aaaaaaaaz", "aaaaaaaab"]), ("date", ["2024-01-01", "infinity", None, "1999-01-01"]),
        ("interval", ["1 mon", "30 days 1 us", "29 days"]), ("timestamp", ["2024-01-01", "1999-01-01"]), ("time", ["01:00", "00:59"]),
        ("int4[]", ["{1,2}", "{1,2,3}", "{1}"]), ("bpchar(3)", ["b", "a"]), ("oid", ["5", "4294967295"]),
    ]
] + [
    (name, "bool", values) for name in ("bool_and", "bool_or", "every", "count")
    for values in (["t", "f", None], ["t", "t"], ["f"], [None])
] + [
    (name, "interval", values) for name in ("sum", "avg")
    for values in (["1 day", "2:00", None], ["1 mon", "2 mons 1 day", "10:00"], ["-1 year", "1 day 00:00:00.5"])
] + [
    (name, type_, INTS) for name in ("bit_and", "bit_or", "bit_xor") for type_ in ("int2", "int4", "int8")
] + [
    ("array_agg", "int4", ["2", "1", None]), ("array_agg", "text", ["b", "a", "b"]), ("array_agg", "int4[]", ["{1,2}", "{3,4}"]),
    ("string_agg", "text", ["b", "a", None, "c"]),
]  # fmt: skip

SERIES = [
    ("generate_series", ["int4:1", "int4:5"]), ("generate_series", ["int4:5", "int4:1", "int4:-2"]),
    ("generate_series", ["int8:1", "int8:0"]), ("generate_series", ["int4:1", "int4:3", "int4:0"]),
    ("generate_series", ["numeric:0", "numeric:1", "numeric:0.25"]),
    ("generate_series", ["timestamp:2024-01-30", "timestamp:2024-05-01", "interval:1 month"]),
    ("generate_series", ["timestamptz:2024-03-09 12:00-05", "timestamptz:2024-03-11 12:00-05", "interval:1 day"]),
    ("unnest", ["int4[]:{{1,2},{3,NULL}}"]), ("unnest", ["text[]:{}"]), ("generate_subscripts", ["int4[]:{{1,2},{3,4}}", "int4:2"]),
    ("regexp_split_to_table", ["text:a b  c", "text:\\s+"]), ("string_to_table", ["text:a,b", "text:,"]),
    ("regexp_matches", ["text:foobarbequebazilbarfbonk", "text:(b[^b]+)(b[^b]+)", "text:g"]),
]  # fmt: skip


def cases() -> list[tuple[str, str, list[str]]]:
    """Every case: (kind, name, arguments)."""
    found: list[tuple[str, str, list[str]]] = []
    for block in (STRINGS, ARRAYS, TIMES, TO_DATES):
        for line in block.splitlines():
            name, args = _split(line)
            if args and name:
                found.append(("function", name, args))
    found += [("function", "extract", [f"text:{unit}", value]) for value in EXTRACT_FROM for unit in EXTRACT_UNITS]
    found += [("function", "date_part", [f"text:{unit}", EXTRACT_FROM[0]]) for unit in EXTRACT_UNITS]
    found += [("function", "to_char", [v, f"text:{p}"]) for v in CHAR_STAMPS for p in CHAR_PATTERNS]
    found += [("function", "to_char", [v, f"text:{p}"]) for v in CHAR_INTERVALS for p in CHAR_INTERVAL_PATTERNS]
    found += [
        ("function", "to_char", [f"numeric:{v}", f"text:{p}"]) for v in CHAR_NUMBERS for p in CHAR_NUMBER_PATTERNS
    ]
    found += [
        ("function", "to_char", [f"float8:{v}", f"text:{p}"])
        for v in ("485.8", "-0.1", "1e20")
        for p in ("999.99", "FM9")
    ]
    found += [
        ("function", "to_char", [f"int4:{v}", f"text:{p}"])
        for v in ("485", "-1")
        for p in ("9999.99", "FM9", "999th", "RN")
    ]
    found += [("text", type_, [value]) for type_, values in TEXT_FORMS.items() for value in values]
    found += [
        ("aggregate", name, [type_, *("\0" if v is None else v for v in values)]) for name, type_, values in AGGREGATES
    ]
    found += [("table", name, args) for name, args in SERIES]
    return found


def _split(line: str) -> tuple[str, list[str]]:
    # '|' separates, but also is in some values: a separator is followed by "type:" or "type!"
    import re

    parts = re.split(r"\|(?=[a-z0-9]+(?:\[\])?[:!])", line.replace("\\n", "\n").replace("\\\\", "\\"))
    return parts[0], parts[1:]


def sql_of(kind: str, name: str, args: list[str]) -> tuple[str, list[str | None]]:
    """The query that PostgreSQL answers, and its parameters."""
    if kind == "text":
        return f"select concat('', %s::{name})", list(args)
    if kind == "aggregate":
        type_, values = args[0], [None if v == "\0" else v for v in args[1:]]
        rows = ", ".join(f"({i}, %s::{type_})" for i in range(len(values)))
        call = f"{name}(v, ',')" if name == "string_agg" else f"{name}(v)"
        order = " order by v" if name in ("array_agg", "string_agg") else ""
        call = call.replace(")", f"{order})") if order else call
        return f"select concat('', ({call})) , ({call}) is null from (values {rows}) t(i, v)", list(values)
    typed, params = [], []
    for arg in args:
        type_, mark, value = arg.partition("!") if arg.endswith("!") else arg.partition(":")
        typed.append(f"%s::{type_}")
        params.append(None if mark == "!" else value)
    if kind == "table":
        return f"select concat('', v) from {name}({', '.join(typed)}) with ordinality t(v, n) order by n", params
    if name[0].isalpha():
        expr = f'pg_catalog."{name}"({", ".join(typed)})'
    else:
        op = name.replace("%", "%%")
        expr = f"({typed[0]} {op} {typed[1]})" if len(typed) == 2 else f"({op} {typed[0]})"
    return f"select concat('', {expr}), {expr} is null", params + params


def main(conninfo: str) -> None:
    import psycopg

    answers = []
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("set timezone = 'America/New_York'; set intervalstyle = postgres; set lc_messages = 'C'")
        for kind, name, args in cases():
            sql, params = sql_of(kind, name, args)
            try:
                rows = psycopg.ClientCursor(connection).execute(sql, params).fetchall()
                if kind == "table":
                    answer = [row[0] for row in rows]
                else:
                    answer = None if len(rows[0]) > 1 and rows[0][1] else rows[0][0]
            except psycopg.Error as error:
                answer = {"sqlstate": error.sqlstate, "message": error.diag.message_primary}
            answers.append([kind, name, args, answer])
    lines = ",\n".join(json.dumps(answer, ensure_ascii=False) for answer in answers)
    (HERE / "values.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "host=localhost port=5499 user=postgres dbname=postgres")
