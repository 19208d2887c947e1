"""What random queries are made of: types, values that meet, calls by the type of their result, aggregates, frames."""

from __future__ import annotations

from typing import Final

from tests.support.forms import forms

TYPES: Final = (
    "int", "bigint", "smallint", "numeric", "numeric(8,2)", "double precision", "text", "char(3)", "varchar(4)",
    "boolean", "date", "timestamp", "timestamptz", "interval", "jsonb", "int[]", "time", "uuid", "bytea", "int4range",
    "daterange", "int4multirange", "json", "text[]", "inet", "bit(3)",
)  # fmt: skip
VALUES: Final[dict[str, tuple[str, ...]]] = {
    "int": ("0", "1", "2", "3", "-1", "7", "2147483647", "-2147483648"),
    "bigint": ("0", "1", "2", "5", "-3", "9223372036854775807"),
    "smallint": ("0", "1", "2", "-2", "32767"),
    "numeric": ("0", "1.0", "1.00", "2.5", "-0.001", "1e10", "NaN", "12345678901234567890.123"),
    "numeric(8,2)": ("0", "1.5", "-2.25", "999999.99"),
    "double precision": ("0", "-0", "1.5", "0.1", "1e300", "5e-324", "NaN", "Infinity"),
    "text": ("", "a", "b", "ab", "B", "€", "a b", "%_x"),
    "char(3)": ("", "a", "b  ", "abc"),
    "boolean": ("t", "f"),
    "date": ("2024-02-29", "2024-03-01", "1999-12-31", "2000-01-01", "infinity"),
    "timestamp": ("2024-02-29 12:00:00", "2024-03-01 00:00:00", "1970-01-01 00:00:00.000001"),
    "timestamptz": ("2024-02-29 12:00:00+00", "2024-03-10 10:00:00+00", "2024-11-03 09:30:00+00"),
    "interval": ("1 day", "24 hours", "1 mon", "30 days", "-1 hour", "0"),
    "jsonb": ("{}", '{"a": 1}', '{"a": "x", "b": [1, 2]}', "[1, null, 2]", '"s"', "1.50", "null"),
    "int[]": ("{}", "{1}", "{1,2,3}", "{NULL,2}", "{3,1}"),
    "varchar(4)": ("", "a", "ab  ", "%_"),
    "time": ("00:00:00", "12:30:00.5", "23:59:59", "24:00:00"),
    "uuid": ("00000000-0000-0000-0000-000000000001", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
    "bytea": ("", "\\x00", "\\xff00", "abc"),
    "int4range": ("empty", "[1,3)", "[2,5]", "(,2)", "[3,)", "(,)"),
    "daterange": ("empty", "[2024-02-01,2024-03-01)", "[2024-02-29,2024-02-29]", "(,infinity)"),
    "int4multirange": ("{}", "{[1,3)}", "{[1,2),[4,6)}", "{(,)}"),
    "json": ("{}", '{"a": 1, "a":[2 ]}', "[1, null]", '"s"', " 1.50 ", "null"),
    "text[]": ("{}", "{a}", "{a,NULL,b}", '{"",ab}'),
    "inet": ("10.1.2.3/8", "10.0.0.0/8", "255.255.255.255", "::1"),
    "bit(3)": ("101", "000", "111"),
}
UNSORTED: Final = ("json",)
DIRECTIONS: Final = ("", "", " DESC", " NULLS FIRST", " DESC NULLS LAST")
RANKS: Final = ("row_number", "rank", "dense_rank", "ntile", "percent_rank", "lag", "lead")
FRAMES: Final = (
    "", "", " ROWS UNBOUNDED PRECEDING", " GROUPS BETWEEN CURRENT ROW AND 2 FOLLOWING EXCLUDE GROUP",
    " RANGE UNBOUNDED PRECEDING EXCLUDE TIES",
    " ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING", " ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING",
    " GROUPS 2 PRECEDING",
    " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE GROUP", " GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
    " ROWS 1 PRECEDING", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    " GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
    " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW", " ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING",
    " GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES",
)  # fmt: skip
PATTERNS: Final = ("'a%'", "'%b'", "'_'", "'%\\%%'", "''")
AGGREGATES: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "int": (("sum", "bigint"), ("avg", "numeric"), ("min", "int"), ("max", "int"), ("count", "bigint")),
    "numeric": (("sum", "numeric"), ("max", "numeric"), ("min", "numeric")),
    "double precision": (("max", "double precision"),),
    "text": (("min", "text"), ("max", "text"), ("count", "bigint")),
    "boolean": (("bool_and", "boolean"), ("bool_or", "boolean")),
    "date": (("min", "date"), ("max", "date")),
    "interval": (("max", "interval"), ("min", "interval"), ("sum", "interval"), ("avg", "interval")),
    "smallint": (("bit_and", "smallint"), ("bit_or", "smallint"), ("sum", "bigint"), ("stddev", "numeric")),
    "bigint": (("sum", "numeric"), ("max", "bigint"), ("bit_xor", "bigint"), ("var_pop", "numeric")),
    "timestamp": (("min", "timestamp"), ("max", "timestamp")),
    "timestamptz": (("max", "timestamptz"),),
    "time": (("max", "time"), ("sum", "interval")),
    "inet": (("max", "inet"),),
    "int4range": (("range_agg", "int4multirange"), ("range_intersect_agg", "int4range"), ("max", "int4range")),
    "int4multirange": (("range_agg", "int4multirange"),),
    "int[]": (("max", "int[]"), ("min", "int[]")),
}
CALLS: Final = forms("random_calls.txt")
"""Calls by the type of their result, with places for expressions of other types."""
OFFSETS: Final[dict[str, tuple[str, ...]]] = {
    "int": ("0", "1", "2"), "bigint": ("1", "3"), "smallint": ("1",), "numeric": ("0.5", "2"),
    "double precision": ("1.5",),
    "date": ("'1 day'::interval", "'1 mon'::interval"), "timestamp": ("'1 day'::interval", "'12 hours'::interval"),
    "timestamptz": ("'1 mon'::interval",), "interval": ("'1 day'::interval",), "time": ("'1 hour'::interval",),
}  # fmt: skip
"""Offsets of RANGE frames by the type of the order."""
