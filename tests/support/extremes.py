"""The extreme values of each type, and the concrete signatures of the table's functions: what tests of the whole table
try every entry on."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from itertools import product
from math import prod
from random import Random
from typing import Any

from ivm.words import (
    BOOL,
    BYTEA,
    CHAR1,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    NAME,
    NEGATIVE_INFINITY,
    NUMERIC,
    OID,
    POSITIVE_INFINITY,
    REGCLASS,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    EnumType,
    Kind,
    SqlType,
)  # fmt: skip
from planner.expr.functions.row import ROW
from planner.expr.functions.table import Function, Polymorphic
from storage.types.range_values import multirange_of, range_type_of, subtype_of
from storage.types.ranges import BUILT_IN
from storage.types.text import parse_datum

ENUM = SqlType(Kind.ENUM, enum=EnumType(70001, 70002, "level", "level", {1: "low", 2: "high"}, {"low": 1, "high": 2}))
BPCHAR, VARCHAR, JSONB = SqlType(Kind.BPCHAR), SqlType(Kind.VARCHAR), SqlType(Kind.JSONB)
RECORD = SqlType(Kind.RECORD, fields=(("a", INT4), ("b", TEXT)))
INT4RANGE, NUMRANGE = BUILT_IN[0], BUILT_IN[1]
BIT, VARBIT = SqlType(Kind.BIT), SqlType(Kind.VARBIT)
TEXTS: dict[SqlType, tuple[str, ...]] = {
    **dict.fromkeys(BUILT_IN, ("empty", "(,)")), **{multirange_of(type_): ("{}", "{(,)}") for type_ in BUILT_IN},
    SqlType(Kind.TIMETZ): ("00:00:00+15:59:59", "24:00:00-15:59:59", "04:05:06.789-08"),
    SqlType(Kind.JSONPATH): ("$", "strict $.a[*] ? (@ > 1).b", '$.**{2 to last}.size() + 1', "1"),
    SqlType(Kind.TSVECTOR): ("", "a:1A,16383 'b c'", "fat cat:3B"), SqlType(Kind.REGCONFIG): ("simple", "english"),
    SqlType(Kind.REGDICTIONARY): ("simple", "english_stem"),
    SqlType(Kind.TSQUERY): ("", "a & !( b:*A | c ) <16384> d", "a"),
    SqlType(Kind.INET): ("0.0.0.0/0", "255.255.255.255", "10.1.2.3/8", "::/0", "ffff::ffff"),
    SqlType(Kind.CIDR): ("0.0.0.0/0", "10.0.0.0/8", "::/0", "::1"),
    SqlType(Kind.MACADDR): ("00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff"),
    SqlType(Kind.MACADDR8): ("00:00:00:00:00:00:00:00", "12:34:56:ff:fe:78:90:ab"),
    SqlType(Kind.POINT): ("(0,0)", "(-0,1e308)", "(NaN,Infinity)", "(-1.5,2)", "(1e-300,-1e300)"),
    BIT: ("", "1", "0", "10" * 20), VARBIT: ("", "1", "0", "10" * 20),
    INT4RANGE: ("empty", "(,)", "[-2147483648,2147483647)", "[1,1]", "(,5)"),
    NUMRANGE: ("empty", "[1.0,2)", "(1.00,2.00]", "[NaN,]"),
    multirange_of(INT4RANGE): ("{}", "{(,1),[3,)}", "{[1,2),[3,4)}"),
    multirange_of(NUMRANGE): ("{}", "{(,1.0),[3,)}", "{[1.00,2.0),(2.0,4)}"),
}  # fmt: skip
"""The types whose extremes are given as text."""
STRINGS = ("", " ", "a", "A ß\\", "%_\\", "ŉİ" * 3, "x" * 100)
STAMPS = (NEGATIVE_INFINITY, -211813488000000000, -1, 0, 9223371331199999999, POSITIVE_INFINITY)
FLOATS = (float("-inf"), -1.7976931348623157e308, -0.0, 0.0, 5e-324, 1.5, float("inf"), float("nan"))
REALS = (float("-inf"), -3.4028234663852886e38, -0.0, 0.0, 1.401298464324817e-45, 1.5, float("nan"))
EXTREMES: dict[SqlType, tuple[Any, ...]] = {
    BOOL: (False, True),
    INT2: (-(2**15), -1, 0, 1, 2**15 - 1),
    INT4: (-(2**31), -1, 0, 1, 2**31 - 1),
    INT8: (-(2**63), -1, 0, 1, 2**63 - 1),
    FLOAT4: REALS,
    FLOAT8: FLOATS,
    NUMERIC: tuple(
        map(Decimal, ("NaN", "-Infinity", "Infinity", "0", "0.00", "-1", "1.0", "1E-40", "1E+60", "9" * 18))
    ),
    TEXT: STRINGS, VARCHAR: STRINGS, BPCHAR: STRINGS, NAME: ("", "a", "n" * 63), CHAR1: ("", "a", "\xff"),
    BYTEA: (b"", b"\0", b"\xff" * 300),
    DATE: (NEGATIVE_INFINITY, -2451545, 0, 2145031948, POSITIVE_INFINITY),
    TIME: (0, 1, 86_400_000_000),
    TIMESTAMP: STAMPS, TIMESTAMPTZ: STAMPS,
    INTERVAL: ((0, 0, 0), (-(2**31), -(2**31), -(2**63)), (2**31 - 1, 2**31 - 1, 2**63 - 1), (1, -30, 0)),
    UUID: (bytes(16), b"\xff" * 16),
    **{type_: tuple(parse_datum(type_, text) for text in texts) for type_, texts in TEXTS.items()},
    SqlType(Kind.JSON): ("null", " 1.50 ", '"\\u00e9"', '{"a": 1, "a":[2 ]}'),
    JSONB: ("null", "0", '"a"', "[]", '{"a": [1, {"b": null}]}'),
    OID: (0, 2**32 - 1), REGCLASS: (0, 2**32 - 1),
    ENUM: (1, 2),
    RECORD: ((None, None), (1, "a"), (-(2**31), "")),
}  # fmt: skip
ELEMENTS = tuple(t for t in EXTREMES if t not in (RECORD, VARCHAR))
NUMERICS: dict[SqlType, tuple[Any, ...]] = {
    SqlType(Kind.NUMERIC, 9, 2): tuple(map(Decimal, ("NaN", "-9999999.99", "-0.01", "0.00", "1.00", "9999999.99"))),
    SqlType(Kind.NUMERIC, 18, 0): tuple(map(Decimal, ("NaN", "-" + "9" * 18, "-1", "0", "1", "9" * 18))),
    SqlType(Kind.NUMERIC, 30, 5): tuple(map(Decimal, ("NaN", "0.00000", "-1.00000", "1E-5", "9" * 25 + ".99999"))),
    SqlType(Kind.NUMERIC, 3, 5): tuple(map(Decimal, ("NaN", "-0.00999", "-0.00001", "0.00000", "0.00100", "0.00999"))),
    SqlType(Kind.NUMERIC, 2, -3): tuple(map(Decimal, ("NaN", "-99000", "-1000", "0", "10000", "99000"))),
    SqlType(Kind.NUMERIC, 2, -18): tuple(map(Decimal, ("NaN", "-99" + "0" * 18, "0", "1" + "0" * 18, "9" + "0" * 18))),
    SqlType(Kind.NUMERIC, 2, 40): tuple(map(Decimal, ("NaN", "-99E-40", "0E-40", "1E-40"))),
}  # fmt: skip
"""Numerics with a typmod: those of at most 18 digits with a scale of 0 to 18 are stored as scaled integers, the others
as numerics without typmod are."""


def array_of(element: SqlType) -> SqlType:
    return SqlType(Kind.ARRAY, element=element)


@cache
def extremes(type_: SqlType) -> tuple[Any, ...]:
    """NULL and the type's extreme datums."""
    if type_.element is None:
        return (None, *(EXTREMES[type_] if type_ in EXTREMES else NUMERICS[type_]))
    few = EXTREMES[type_.element][:3]
    return (None, (), (None,), few, (few, few), EXTREMES[type_.element])


def combinations(types: tuple[SqlType, ...]) -> list[tuple[Any, ...]]:
    """Rows of all combinations of the types' extremes. A path into jsonb has one dimension."""
    rows = product(*map(extremes, types))
    return [row for row in rows if JSONB not in types or not any(map(_is_nested, row))]


def drawn(types: tuple[SqlType, ...], count: int, seed: str) -> list[tuple[Any, ...]]:
    """At most ``count`` of the combinations, drawn evenly without making all of them."""
    values = [extremes(type_) for type_ in types]
    total = prod(map(len, values))
    rows = []
    for drawn_place in Random(seed).sample(range(total), min(total, count)):
        place, row = drawn_place, []
        for choices in values:
            place, at = divmod(place, len(choices))
            row.append(choices[at])
        rows.append(tuple(row))
    return [row for row in rows if JSONB not in types or not any(map(_is_nested, row))]


def _is_nested(value: object) -> bool:
    return isinstance(value, tuple) and any(isinstance(part, tuple) for part in value)


def signatures(function: Function) -> Iterator[tuple[SqlType, ...]]:
    """Concrete argument types of a function, several if it is polymorphic; a variadic last argument occurs twice."""
    declared = function.args + function.args[-1:] * function.variadic
    polymorphic = {a for a in declared if isinstance(a, Polymorphic)}
    if not polymorphic:
        yield tuple(RECORD if t.kind is Kind.RECORD else t for t in declared)  # type: ignore[union-attr]
        return
    if polymorphic & {Polymorphic.ANYRANGE, Polymorphic.ANYMULTIRANGE}:
        for base in (INT4RANGE, NUMRANGE):
            yield tuple(_of_range(a, base) for a in declared)
        return
    bases: tuple[SqlType, ...] = (ENUM,) if Polymorphic.ANYENUM in polymorphic else ELEMENTS
    if Polymorphic.ANY in polymorphic or Polymorphic.ANYCOMPATIBLE in polymorphic:
        bases = (*bases, array_of(INT4), array_of(TEXT), RECORD)
    for base in bases:
        if (base.element is not None or base == RECORD) and any("array" in p.value for p in polymorphic):
            continue
        yield tuple(_concrete(a, base) for a in declared)


def _of_range(declared: SqlType | Polymorphic, base: SqlType) -> SqlType:
    if isinstance(declared, SqlType):
        return declared
    if declared is Polymorphic.ANYELEMENT:
        return subtype_of(base)
    return base if declared is Polymorphic.ANYRANGE else multirange_of(base)


def _concrete(declared: SqlType | Polymorphic, base: SqlType) -> SqlType:
    if isinstance(declared, SqlType):
        return declared
    arrays = (Polymorphic.ANYARRAY, Polymorphic.ANYCOMPATIBLEARRAY)
    return array_of(base) if declared in arrays else base


def result_type(function: Function, types: tuple[SqlType, ...]) -> SqlType:
    if function.key == ROW:
        return SqlType(Kind.RECORD, fields=tuple((f"f{i}", t) for i, t in enumerate(types)))
    if isinstance(function.result, SqlType):
        return function.result
    ranges = [t for t in types if t.kind in (Kind.RANGE, Kind.MULTIRANGE)]
    if ranges and {Polymorphic.ANYRANGE, Polymorphic.ANYMULTIRANGE}.intersection(function.args):
        return _of_range(function.result, range_type_of(ranges[0]))
    if function.result in function.args:
        return types[function.args.index(function.result)]
    given = types[0]
    if "array" in function.result.value and given.element is None:
        return array_of(given)
    return given.element if given.element is not None and function.result is Polymorphic.ANYELEMENT else given
