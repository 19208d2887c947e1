"""Asks a real PostgreSQL 15 for the answers in scalar_core.json.

``python tests/answers/make_scalar_core.py 'host=localhost port=5499 user=postgres'``

Each case is [function key or "cast", [[type, text or null], …], result type, answer]; an answer is
{"text": "…"}, {"text": null} or {"sqlstate": "…", "message": "…"}.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import psycopg

SQL_NAMES = {"float4": "real", "float8": "double precision", "bpchar": "bpchar", "char": '"char"'}
INTEGERS = {
    "int2": ["0", "1", "-1", "7", "-7", "181", "32767", "-32768"],
    "int4": ["0", "1", "-1", "7", "-7", "46341", "2147483647", "-2147483648"],
    "int8": ["0", "1", "-1", "7", "-7", "3037000500", "9223372036854775807", "-9223372036854775808", "4294967296"],
}
FLOATS = [
    "0",
    "-0",
    "1",
    "-1.5",
    "2.5",
    "-0.5",
    "3.5",
    "1e-30",
    "1e30",
    "NaN",
    "Infinity",
    "-Infinity",
    "0.1",
    "123456.789",
]
FLOATS8 = [*FLOATS, "1e300", "1e-300", "4.9e-324", "710", "-750"]
NUMERICS = [
    "0",
    "0.00",
    "1",
    "-1",
    "1.0",
    "1.50",
    "-2.5",
    "2.5",
    "3",
    "7",
    "0.5",
    "-0.005",
    "100",
    "10000",
    "12345.6789",
    "1e-20",
    "99999999999999999.9",
    "123456789012345678901234567890.123",
    "-144115188075855872",
    "144115188075855871",
    "0.0001",
    "1.05",
    "NaN",
    "Infinity",
    "-Infinity",
    "999999999999999999",
    "0.9999999999",
    "65536",
    "3.14159265358979323846",
]
FEW_NUMERICS = [
    "0",
    "0.00",
    "1",
    "-1",
    "2",
    "-2.5",
    "0.5",
    "10",
    "1.1",
    "0.95",
    "123.456",
    "1e-10",
    "1e20",
    "-3",
    "NaN",
    "Infinity",
    "-Infinity",
    "1000",
    "33.333",
]
BOOLS = ["true", "false", None]
TEXTS = ["", "a", "b", "ab", "abc", "abcdefgh", "abcdefghi", "abcdefghj", "é", "z", "Z", " a", "a "]
DATES = ["2000-01-01", "1999-12-31", "infinity", "-infinity", "2024-02-29"]
STAMPS = ["2000-01-01 00:00:00", "1999-12-31 23:59:59.999999", "infinity", "-infinity", "2024-02-29 12:34:56.789012"]
INTERVALS = [
    "1 mon",
    "30 days",
    "29 days 24:00:00",
    "720:00:00",
    "-1 day",
    "1 year",
    "360 days",
    "00:00:00",
    "1 mon -30 days",
]
UUIDS = [
    "00000000-0000-0000-0000-000000000000",
    "ffffffff-ffff-ffff-ffff-ffffffffffff",
    "12345678-1234-1234-1234-123456789012",
]
ARRAYS = ["{}", "{1}", "{1,2}", "{1,NULL}", "{2}", "{NULL}", "{{1},{2}}", "{-5}"]
TEXT_ARRAYS = ["{}", "{a}", '{"a",b}', "{ab}", "{NULL}"]
BYTEAS = ["\\x", "\\x00", "\\x0001", "\\x61", "\\xff", "\\x6162636465666768", "\\x616263646566676800"]
# dates and times in text are test_text's matter
ODD = {
    (t, k)
    for t in ("99999999999", "1e3", "2024-02-30", "2024-02-29")
    for k in ("date", "timestamp", "time", "interval")
}
COMPARISONS = ["=", "<>", "<", "<=", ">", ">="]


def sql_type(name: str) -> str:
    return SQL_NAMES.get(name, name)


def literal(type_name: str, text: str | None) -> str:
    if text is None:
        return f"null::{sql_type(type_name)}"
    return "'" + text.replace("'", "''") + f"'::{sql_type(type_name)}"


class Cases:
    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection
        self.rows: list[list[object]] = []

    def ask(self, key: str, args: list[tuple[str, str | None]], result: str, sql: str) -> None:
        try:
            row = self.connection.execute(f"select ({sql})::text").fetchone()
            answer: dict[str, object] = {"text": row[0]}
        except psycopg.Error as error:
            answer = {"sqlstate": error.sqlstate, "message": error.diag.message_primary}
        self.rows.append([key, [list(a) for a in args], result, answer])

    def operator(self, name: str, left: tuple[str, str | None], right: tuple[str, str | None], result: str) -> None:
        key = f"{name}({left[0]},{right[0]})"
        self.ask(key, [left, right], result, f"{literal(*left)} {name} {literal(*right)}")

    def call(self, name: str, args: list[tuple[str, str | None]], result: str) -> None:
        key = f"{name}({','.join(a[0] for a in args)})"
        self.ask(key, args, result, f"{name}({', '.join(literal(*a) for a in args)})")

    def prefix(self, name: str, arg: tuple[str, str | None], result: str) -> None:
        self.ask(f"{name}({arg[0]})", [arg], result, f"{name} {literal(*arg)}")

    def cast(self, source: tuple[str, str | None], target: str) -> None:
        self.ask("cast", [source], target, f"{literal(*source)}::{sql_type(target)}")


def integers(cases: Cases) -> None:
    width = {"int2": 2, "int4": 4, "int8": 8}
    for a, b in itertools.product(INTEGERS, INTEGERS):
        result = max(a, b, key=lambda t: width[t])
        for name, x, y in itertools.product("+-*/", INTEGERS[a], INTEGERS[b]):
            cases.operator(name, (a, x), (b, y), result)
    for a, texts in INTEGERS.items():
        for name, x, y in itertools.product(["%", "&", "|", "#"], texts, texts):
            cases.operator(name, (a, x), (a, y), a)
        for name, x, y in itertools.product(["<<", ">>"], texts, ["0", "1", "15", "16", "31", "33", "64"]):
            cases.operator(name, (a, x), ("int4", y), a)
        for x in texts:
            for name in ("-", "~", "@"):
                cases.prefix(name, (a, x), a)
            cases.call("abs", [(a, x)], a)
            cases.operator("+", (a, x), (a, None), a)
    for name, a in itertools.product(["gcd", "lcm"], ["int4", "int8"]):
        for x, y in itertools.product(INTEGERS[a], INTEGERS[a]):
            cases.call(name, [(a, x), (a, y)], a)
    for x in ("0", "1", "20", "30", "-1"):
        cases.call("factorial", [("int8", x)], "numeric")


def floats(cases: Cases) -> None:
    for a, b in itertools.product(["float4", "float8"], repeat=2):
        result = "float4" if a == b == "float4" else "float8"
        for name, x, y in itertools.product("+-*/", FLOATS, FLOATS):
            cases.operator(name, (a, x), (b, y), result)
        for name, x, y in itertools.product(
            COMPARISONS, ["0", "-0", "0.1", "NaN", "Infinity", "-1.5"], ["0", "-0", "0.1", "NaN", "-Infinity"]
        ):
            cases.operator(name, (a, x), (b, y), "bool")
    for x, y in itertools.product(FLOATS8[-5:], FLOATS8[-5:]):
        for name in "*/":
            cases.operator(name, ("float8", x), ("float8", y), "float8")
    names = "abs ceil floor round trunc sign sqrt cbrt exp ln log log10 sin cos tan cot asin acos atan sinh cosh tanh"
    names += " asinh acosh atanh degrees radians"
    for name, x in itertools.product(names.split(), FLOATS8):
        cases.call(name, [("float8", x)], "float8")
    for x, y in itertools.product(
        ["0", "-0", "1", "-1", "2", "-2.5", "0.5", "3", "NaN", "Infinity", "-Infinity", "1000", "-1000"], repeat=2
    ):
        cases.call("power", [("float8", x), ("float8", y)], "float8")
        cases.call("atan2", [("float8", x), ("float8", y)], "float8")
    for x in ("-1", "0", "5.35", "10", "11"):
        cases.call("width_bucket", [("float8", x), ("float8", "0.024"), ("float8", "10.06"), ("int4", "5")], "int4")
        cases.call("width_bucket", [("numeric", x), ("numeric", "0.024"), ("numeric", "10.06"), ("int4", "5")], "int4")
        cases.call("width_bucket", [("numeric", x), ("numeric", "10"), ("numeric", "0"), ("int4", "4")], "int4")


def numerics(cases: Cases) -> None:
    pair = [("numeric", t) for t in NUMERICS]
    for name, x, y in itertools.product(["+", "-", "*", "/", "%"], pair, pair):
        cases.operator(name, x, y, "numeric")
    for name, x, y in itertools.product(["=", "<", ">="], pair, pair):
        cases.operator(name, x, y, "bool")
    for x, y in itertools.product(pair[:12], pair[:14]):
        for name in ("div", "gcd", "lcm"):
            cases.call(name, [x, y], "numeric")
    names = "abs ceil floor round trunc sign sqrt exp ln log scale min_scale trim_scale"
    for name, x in itertools.product(names.split(), dict.fromkeys([*NUMERICS, *FEW_NUMERICS])):
        cases.call(name, [("numeric", x)], "int4" if name.endswith("scale") and name != "trim_scale" else "numeric")
    for x in NUMERICS:
        cases.prefix("-", ("numeric", x), "numeric")
        for digits in ("0", "2", "-2", "5", "-40", "25"):
            for name in ("round", "trunc"):
                cases.call(name, [("numeric", x), ("int4", digits)], "numeric")
    for x, y in itertools.product(FEW_NUMERICS, FEW_NUMERICS):
        cases.call("power", [("numeric", x), ("numeric", y)], "numeric")
        cases.call("log", [("numeric", x), ("numeric", y)], "numeric")


def comparisons(cases: Cases) -> None:
    values = {
        "bool": BOOLS, "text": TEXTS, "date": DATES, "timestamp": STAMPS, "interval": INTERVALS, "uuid": UUIDS,
        "bytea": BYTEAS, "int4": INTEGERS["int4"], "name": TEXTS[:4], "bpchar": ["a", "a ", "ab", "", " "],
    }  # fmt: skip
    for name, texts in values.items():
        for operator, x, y in itertools.product(COMPARISONS, texts, texts):
            collate = ' collate "C"' if name in ("text", "name", "bpchar") else ""
            key = f"{operator}({name},{name})"
            cases.ask(
                key,
                [(name, x), (name, y)],
                "bool",
                f"{literal(name, x)}{collate} {operator} {literal(name, y)}{collate}",
            )
    for a, b in itertools.product(INTEGERS, INTEGERS):
        for operator, x, y in itertools.product(["=", "<"], INTEGERS[a][:5], INTEGERS[b][-4:]):
            cases.operator(operator, (a, x), (b, y), "bool")
    for name, texts in (("int4[]", ARRAYS), ("text[]", TEXT_ARRAYS)):
        for operator, x, y in itertools.product(COMPARISONS, texts, texts):
            cases.ask(
                f"{operator}(anyarray,anyarray)",
                [(name, x), (name, y)],
                "bool",
                f"{literal(name, x)} {operator} {literal(name, y)}",
            )
    for name, texts in (
        ("int4", ["1", "2", None]),
        ("numeric", ["1.0", "1.00", "2", "NaN", None]),
        ("float8", ["0", "-0", "NaN", None]),
        ("text", ["a", "b", None]),
        ("interval", ["1 mon", "30 days", None]),
    ):
        for x, y in itertools.product(texts, texts):
            a, b = literal(name, x), literal(name, y)
            cases.ask("is distinct from", [(name, x), (name, y)], "bool", f"{a} is distinct from {b}")
            cases.ask("is not distinct from", [(name, x), (name, y)], "bool", f"{a} is not distinct from {b}")
            cases.ask("nullif", [(name, x), (name, y)], name, f"nullif({a}, {b})")
            cases.ask("greatest", [(name, x), (name, y)], name, f"greatest({a}, {b})")
            cases.ask("least", [(name, x), (name, y)], name, f"least({a}, {b})")
    for x in BOOLS:
        for test in (
            "is null",
            "is not null",
            "is true",
            "is not true",
            "is false",
            "is not false",
            "is unknown",
            "is not unknown",
        ):
            cases.ask(test, [("bool", x)], "bool", f"{literal('bool', x)} {test}")
        cases.ask("not", [("bool", x)], "bool", f"not {literal('bool', x)}")


NUMBER_TARGETS = (
    "int2|int4|int8|float4|float8|numeric|numeric(5,2)|numeric(18,0)|numeric(20,5)|numeric(3,-2)|numeric(2,4)|text|"
    "varchar(3)|bpchar(12)"
)
MORE_FLOATS = "1.5|2147483647.5|9.3e18|-2147483648.5"
MORE_NUMERICS = "2147483647.4|2147483647.5|-0.5|0.5|1.5|32767.5|1e-400|9223372036854775807.4"
INPUTS = "| 12 |12|-5|1.5|abc|true|t|99999999999|1e3|NaN|infinity|2024-02-30|2024-02-29|12:00|1 day|{1,2}"
INPUT_TARGETS = (
    "int2|int4|int8|float4|float8|numeric|numeric(4,2)|bool|date|timestamp|time|interval|int4[]|varchar(2)|bpchar(3)|"
    "name|oid|char"
)
# source types, their texts, target types
CASTS = [
    (
        "numeric(5,2)",
        "1.25|999.99|-999.99|0.00|1.005|NaN",
        "numeric|numeric(4,1)|numeric(18,6)|numeric(30,3)|int4|int2",
    ),
    ("numeric(5,2)", "1.25|999.99|-999.99|0.00|1.005|NaN", "float8|text"),
    ("int4|int8", "0|1|-1|5", "oid"),
    ("int4", "0|1|-1|5", "bool"),
    ("bool", "true|false", "int4|text|varchar(2)"),
    ("oid", "0|1|4294967295", "int4|int8|text"),
    ("varchar|bpchar(5)|text|name", "abc|a|ab   |", "text|varchar(2)|bpchar(2)|bpchar(4)|name|varchar"),
    ("timestamp", "|".join(STAMPS), "date|time|timestamptz|text|timestamp(0)|timestamp(3)"),
    ("date", "|".join(DATES), "timestamp|timestamptz|text"),
    ("time", "12:34:56.789|00:00:00|24:00:00|23:59:59.9999", "interval|text|time(0)|time(2)"),
    ("interval", "|".join([*INTERVALS, "25:01:02.5", "-01:00:00"]), "time|text|interval(0)"),
    ("int4[]", "{1,2}|{}|{NULL,32768}|{{1,2},{3,4}}", "int2[]|int8[]|numeric[]|text[]|text|float8[]"),
]


def casts(cases: Cases) -> None:
    numbers = [(name, text) for name, texts in INTEGERS.items() for text in texts]
    numbers += [("float4", t) for t in FLOATS] + [("float8", t) for t in [*FLOATS8, *MORE_FLOATS.split("|")]]
    numbers += [("numeric", t) for t in [*NUMERICS, *MORE_NUMERICS.split("|")]]
    for source, target in itertools.product(numbers, NUMBER_TARGETS.split("|")):
        cases.cast(source, target)
    for text, target in itertools.product(INPUTS.split("|"), INPUT_TARGETS.split("|")):
        if (text, target) not in ODD:
            cases.cast(("text", text), target)
    for sources, texts, targets in CASTS:
        for name, text, target in itertools.product(sources.split("|"), texts.split("|"), targets.split("|")):
            cases.cast((name, text), target)


def main() -> None:
    with psycopg.connect(sys.argv[1], autocommit=True) as connection:
        connection.execute("set timezone = 'UTC'")
        connection.execute("set lc_messages = 'C'")
        cases = Cases(connection)
        for family in (integers, floats, numerics, comparisons, casts):
            family(cases)
    path = Path(__file__).with_name("scalar_core.json")
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in cases.rows)
    path.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
