"""Numeric arithmetic on words against Decimal, around the borders of what is inline."""

from __future__ import annotations

from decimal import Decimal, localcontext
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivm.rows import Vector
from ivm.words import BOOL, INT8, NUMERIC, Kind, SqlType
from planner.expr.evaluate.evaluator import Context, evaluate
from planner.expr.scalar import Call, Column, Scalar
from storage.dictionary import Dictionary
from storage.types.codec import decode, encode
from storage.types.numeric import INLINE_LIMIT, WIDE, numeric_text
from tests.support.numerics import some_long_numeric
from tests.support.profiles import scaled

CONTEXT = Context(Dictionary(b"0123456789abcdef"))
EDGES = [
    0,
    1,
    -1,
    INLINE_LIMIT - 1,
    INLINE_LIMIT,
    -INLINE_LIMIT,
    -INLINE_LIMIT - 1,
    10**17,
    10**9,
    379625062,
    5,
    15,
    -25,
    49,
    50,
]
VALUES = st.builds(
    lambda mantissa, scale: Decimal(mantissa).scaleb(-scale),
    st.sampled_from(EDGES) | st.integers(-(10**20), 10**20) | st.integers(-1000, 1000),
    st.sampled_from([0, 1, 2, 5, 17, 18, 30, 31, 32]),
)
PAIRS = st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=15)


def run(expr: Scalar, *columns: tuple[SqlType, list[Any]]) -> tuple[list[Any], dict[int, str]]:
    vectors = [encode(t, values, CONTEXT.dictionary) for t, values in columns]
    before = [v.words.copy() for v in vectors]
    (out,), failures = evaluate((expr,), vectors, len(vectors[0].words), CONTEXT)
    assert all((a == v.words).all() for a, v in zip(before, vectors, strict=True)), "an argument was written to"
    errors = (
        {}
        if failures is None
        else {r: e.sqlstate for r, e in zip(failures.rows.tolist(), failures.errors, strict=True)}
    )
    return decode(expr.type, Vector(out.words, out.nulls), CONTEXT.dictionary), errors


@pytest.mark.parametrize(("name", "operation"), [("+", WIDE.add), ("-", WIDE.subtract), ("*", WIDE.multiply)])
def test_exact_operators(name: str, operation: Any) -> None:
    call = Call(f"{name}(numeric,numeric)", (Column(0, NUMERIC), Column(1, NUMERIC)), NUMERIC)

    @given(PAIRS)
    def check(pairs: list[tuple[Decimal, Decimal]]) -> None:
        got, errors = run(call, (NUMERIC, [a for a, _ in pairs]), (NUMERIC, [b for _, b in pairs]))
        assert not errors
        for (a, b), value in zip(pairs, got, strict=True):
            wanted = operation(a, b)
            assert value == wanted
            assert value.as_tuple().exponent == wanted.as_tuple().exponent

    check()


@pytest.mark.parametrize(
    ("name", "operation"),
    [("+", WIDE.add), ("-", WIDE.subtract), ("*", WIDE.multiply), ("-", lambda a: -a), ("abs", abs)],
)
def test_many_long_numerics(name: str, operation: Any) -> None:
    """So many that a kernel computes them, but for the longest."""
    count = operation.__code__.co_argcount if hasattr(operation, "__code__") else 1 if operation is abs else 2
    random = Random(name)
    columns = [[some_long_numeric(random) for _ in range(scaled(300))] for _ in range(count)]
    call = Call(f"{name}({','.join(['numeric'] * count)})", tuple(Column(i, NUMERIC) for i in range(count)), NUMERIC)
    got, errors = run(call, *((NUMERIC, values) for values in columns))
    assert not errors
    with localcontext(WIDE):
        wanted = [operation(*row) for row in zip(*columns, strict=True)]
    assert [numeric_text(value) for value in got] == [numeric_text(value) for value in wanted]


@pytest.mark.parametrize("name", ["=", "<>", "<", "<=", ">", ">="])
def test_comparisons(name: str) -> None:
    call = Call(f"{name}(numeric,numeric)", (Column(0, NUMERIC), Column(1, NUMERIC)), BOOL)
    operation = {"=": "__eq__", "<>": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}[name]

    @given(PAIRS)
    def check(pairs: list[tuple[Decimal, Decimal]]) -> None:
        got, _ = run(call, (NUMERIC, [a for a, _ in pairs]), (NUMERIC, [b for _, b in pairs]))
        assert got == [getattr(a, operation)(b) for a, b in pairs]

    check()


TYPES = [
    SqlType(Kind.NUMERIC, p, s)
    for p, s in (
        (18, 0),
        (18, 18),
        (5, 2),
        (10, 3),
        (3, -2),
        (2, 4),
        (30, 5),
        (40, 35),
        (19, 0),
        (2, -18),
        (18, -17),
        (2, 40),
    )
]


def fitted(value: Decimal, type: SqlType) -> Decimal | None:
    assert type.precision is not None
    scale = type.scale or 0
    rounded = WIDE.quantize(value, Decimal((0, (1,), -scale)))
    if abs(int(rounded.scaleb(scale, WIDE))) >= 10**type.precision:
        return None
    return WIDE.quantize(rounded, Decimal(1)) if scale < 0 else rounded


@pytest.mark.parametrize("target", TYPES, ids=str)
def test_typmods(target: SqlType) -> None:
    call = Call("cast", (Column(0, NUMERIC),), target)

    @given(st.lists(VALUES, min_size=1, max_size=15))
    def check(values: list[Decimal]) -> None:
        got, errors = run(call, (NUMERIC, values))
        for row, value in enumerate(values):
            wanted = fitted(value, target)
            if wanted is None:
                assert errors[row] == "22003"
            else:
                assert got[row] == wanted
                assert got[row].as_tuple().exponent == wanted.as_tuple().exponent

    check()


@pytest.mark.parametrize("source", TYPES, ids=str)
@pytest.mark.parametrize("target", [NUMERIC, TYPES[0], TYPES[3], TYPES[6]], ids=str)
def test_from_typmods(source: SqlType, target: SqlType) -> None:
    call = Call("cast", (Column(0, source),), target)
    assert source.precision is not None
    limit = 10**source.precision - 1
    scale = source.scale or 0
    values = [Decimal(m).scaleb(-scale, WIDE) for m in (0, 1, -1, limit, -limit, limit // 3, 5 if limit > 5 else 1)]
    values = [WIDE.quantize(v, Decimal(1)) if scale < 0 else v for v in values]
    got, errors = run(call, (source, values))
    for row, value in enumerate(values):
        wanted = value if target.precision is None else fitted(value, target)
        assert (errors.get(row) == "22003") if wanted is None else (got[row] == wanted and row not in errors)


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.sampled_from([2**63 - 1, -(2**63), 2**57, -(2**57)]), min_size=1))
def test_integers_become_numerics_and_return(values: list[int]) -> None:
    got, errors = run(Call("cast", (Column(0, INT8),), NUMERIC), (INT8, values))
    assert not errors
    assert got == [Decimal(v) for v in values]
    back, errors = run(Call("cast", (Column(0, NUMERIC),), INT8), (NUMERIC, got))
    assert not errors
    assert back == values


@given(st.lists(VALUES, min_size=1, max_size=15))
def test_rounding_to_integer(values: list[Decimal]) -> None:
    got, errors = run(Call("cast", (Column(0, NUMERIC),), INT8), (NUMERIC, values))
    for row, value in enumerate(values):
        wanted = int(WIDE.quantize(value, Decimal(1)))
        if -(2**63) <= wanted < 2**63:
            assert got[row] == wanted
        else:
            assert errors[row] == "22003"


@given(PAIRS)
def test_division_is_the_rounded_quotient(pairs: list[tuple[Decimal, Decimal]]) -> None:
    call = Call("/(numeric,numeric)", (Column(0, NUMERIC), Column(1, NUMERIC)), NUMERIC)
    got, errors = run(call, (NUMERIC, [a for a, _ in pairs]), (NUMERIC, [b for _, b in pairs]))
    for row, (a, b) in enumerate(pairs):
        if b == 0:
            assert errors[row] == "22012"
            continue
        scale = -got[row].as_tuple().exponent
        assert scale >= max(-a.as_tuple().exponent, -b.as_tuple().exponent, 0)
        assert abs(WIDE.subtract(WIDE.multiply(got[row], b), a)) <= abs(b) * Decimal(5).scaleb(-scale - 1)


@pytest.mark.parametrize(("precision", "scale"), [(10, 2), (18, 0), (18, 17), (17, 16), (25, 5), (3, -2), (40, 30)])
def test_many_long_numerics_round_as_few(precision: int, scale: int) -> None:
    """Those of many digits are read by a kernel where there are many of them."""
    random, dictionary = Random(precision), Dictionary(b"0123456789abcdef")
    odd = ["NaN", "-Infinity", "0." + "0" * 40, "-0.005" + "0" * 20 + "1", "1.005" + "0" * 30, "9.994" + "9" * 30]
    odd += [
        "-0.00" + "9" * 30,
        "9" * 17 + ".5" + "0" * 20,
        "9" * 16 + ".4" + "9" * 20,
        "1" * 40,
        "99999999.995" + "0" * 20,
    ]
    values = [Decimal(text) for text in odd]
    for _ in range(300):
        digits = random.choice(("", "-")) + str(random.randint(1, 10 ** random.randint(19, 40)))
        values.append(WIDE.create_decimal(digits).scaleb(-random.randint(15, 45)))
    words = encode(NUMERIC, values, dictionary).words
    target = SqlType(Kind.NUMERIC, precision, scale)
    cast = Call("cast", (Column(0, NUMERIC),), target)
    context = Context(dictionary)
    (many,), failures = evaluate((cast,), [Vector(words)], len(words), context)
    found: list[object] = decode(target, many, dictionary)
    for row, error in () if failures is None else zip(failures.rows.tolist(), failures.errors, strict=True):
        found[row] = error.sqlstate
    for row in range(len(words)):
        (one,), failed = evaluate((cast,), [Vector(words[row : row + 1])], 1, context)
        expected = decode(target, one, dictionary)[0] if failed is None else failed.errors[0].sqlstate
        assert str(found[row]) == str(expected), values[row]
