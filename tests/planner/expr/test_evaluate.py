"""The evaluator's rules: on which rows an argument is evaluated, failures, NULLs, folding, memoisation."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivm.errors import SqlError
from ivm.words import BOOL, FLOAT8, INT4, INT8, NUMERIC, TEXT, Kind, SqlType
from planner.expr.evaluate.evaluator import Context, compile_expressions, constant, evaluate
from planner.expr.functions import table as functions
from planner.expr.functions.casts.registry import cast_context
from planner.expr.functions.library import FUNCTIONS, overloads
from planner.expr.functions.table import per_value
from planner.expr.ordering import needs_order_bytes
from planner.expr.scalar import And, Call, Case, Coalesce, Column, Literal, Or, Parameter, Scalar
from storage.dictionary import Dictionary
from storage.types.codec import decode, encode

A, B = Column(0, INT4), Column(1, INT4)
P, Q = Column(0, BOOL), Column(1, BOOL)
ZERO, ONE, NULL = Literal(0, INT4), Literal(1, INT4), Literal(None, INT4)
TRUE, FALSE = Literal(True, BOOL), Literal(False, BOOL)
VARCHAR3 = SqlType(Kind.VARCHAR, 3)


def divide(x: Scalar, y: Scalar) -> Call:
    return Call("/(int4,int4)", (x, y), INT4)


def compare(name: str, x: Scalar, y: Scalar) -> Call:
    return Call(f"{name}(int4,int4)", (x, y), BOOL)


@pytest.fixture
def context() -> Context:
    return Context(Dictionary(b"0123456789abcdef"))


def run(context: Context, expr: Scalar, *columns: list[Any], types: tuple[SqlType, ...] | None = None) -> list[Any]:
    """Each row's datum, or its SQLSTATE where it failed."""
    kinds = types or (INT4,) * len(columns)
    vectors = [encode(t, c, context.dictionary) for t, c in zip(kinds, columns, strict=True)]
    count = len(columns[0]) if columns else 1
    (out,), failures = evaluate((expr,), vectors, count, context)
    result = decode(expr.type, out, context.dictionary)
    if failures is not None:
        assert failures.rows.tolist() == sorted(set(failures.rows.tolist()))
        for row, error in zip(failures.rows.tolist(), failures.errors, strict=True):
            result[row] = error.sqlstate
    return result


def test_strict_functions_skip_nulls(context: Context) -> None:
    # the NULL row's words are 0, and 1/0 would fail
    assert run(context, divide(A, B), [1, None, 6, 1], [1, None, 3, 0]) == [1, None, 2, "22012"]


def test_and_evaluates_where_not_false(context: Context) -> None:
    guarded = And((compare("<>", B, ZERO), compare(">", divide(A, B), ONE)))
    assert run(context, guarded, [4, 4, None, 4], [2, 0, 0, None]) == [True, False, False, None]
    assert run(context, And((compare(">", divide(A, B), ONE), compare("<>", B, ZERO))), [4], [0]) == ["22012"]


def test_or_evaluates_where_not_true(context: Context) -> None:
    guarded = Or((compare("=", B, ZERO), compare(">", divide(A, B), ONE)))
    assert run(context, guarded, [4, 4, 1], [2, 0, None]) == [True, True, None]


def test_case_evaluates_chosen_arms(context: Context) -> None:
    expr = Case(
        ((compare("=", B, ZERO), Literal(-1, INT4)), (compare("=", divide(A, B), ONE), divide(ZERO, A))),
        divide(A, B),
        INT4,
    )
    assert run(context, expr, [5, 0, 0, 7, 6, None], [0, 0, 5, 7, 2, 1]) == [-1, -1, 0, 0, 3, None]
    fails = Case(((compare("=", divide(ONE, A), ONE), ONE),), ZERO, INT4)
    assert run(context, fails, [1, 0, 2], [0, 0, 0]) == [1, "22012", 0]
    assert run(context, Case(((TRUE, ONE),), divide(ONE, ZERO), INT4), [1, 2]) == [1, 1]


def test_coalesce_evaluates_where_null(context: Context) -> None:
    assert run(context, Coalesce((A, divide(ONE, B)), INT4), [7, None, None, None], [0, 1, 0, None]) == [
        7,
        1,
        "22012",
        None,
    ]
    assert run(context, Coalesce((A, ONE), INT4), [None, 3]) == [1, 3]
    assert run(context, Coalesce((NULL, NULL), INT4), [1, 2]) == [None, None]


def test_the_first_error_of_a_row_counts(context: Context) -> None:
    overflow = Call("+(int4,int4)", (Literal(2**31 - 1, INT4), A), INT4)
    vectors = [encode(INT4, [1, 1], context.dictionary), encode(INT4, [0, 1], context.dictionary)]
    _, failures = evaluate((divide(A, B), overflow), vectors, 2, context)
    assert failures is not None
    assert failures.rows.tolist() == [0, 1]
    assert [e.sqlstate for e in failures.errors] == ["22012", "22003"]


def test_failed_rows_are_null_above(context: Context) -> None:
    expr = Call("upper(text)", (Call("cast", (divide(A, B),), TEXT),), TEXT)
    assert run(context, expr, [6, 1], [2, 0]) == ["3", "22012"]


def test_failing_constants_fail_each_row_that_reaches_them(context: Context) -> None:
    boom = divide(ONE, ZERO)
    assert run(context, boom, [1, 2]) == ["22012", "22012"]
    assert run(context, Case(((compare("=", A, ONE), boom),), A, INT4), [1, 2]) == ["22012", 2]
    assert evaluate((boom,), (), 0, context)[1] is None
    with pytest.raises(SqlError) as caught:
        constant(boom, context)
    assert caught.value.sqlstate == "22012"


def test_parameters_and_literals(context: Context) -> None:
    with_parameters = Context(context.dictionary, parameters=(5, None, "x"))
    assert run(with_parameters, Call("+(int4,int4)", (A, Parameter(1, INT4)), INT4), [1, None]) == [6, None]
    assert run(with_parameters, Parameter(2, INT4), [1, 2]) == [None, None]
    assert run(with_parameters, Parameter(3, TEXT), [1, 2]) == ["x", "x"]
    assert constant(Call("||(text,text)", (Literal("a", TEXT), Parameter(3, TEXT)), TEXT), with_parameters) == "ax"


def test_one_compiled_form_serves_several_dictionaries() -> None:
    compiled = compile_expressions(
        (Call("||(text,text)", (Column(0, TEXT), Literal("!", TEXT)), TEXT), Literal("z", TEXT))
    )
    parent = Dictionary(b"0123456789abcdef")
    for dictionary in (parent, parent.scratch(), Dictionary(b"fedcba9876543210"), parent):
        vectors, failures = compiled((encode(TEXT, ["a", "b"], dictionary),), 2, Context(dictionary))
        assert failures is None
        assert decode(TEXT, vectors[0], dictionary) == ["a!", "b!"]
        assert decode(TEXT, vectors[1], dictionary) == ["z", "z"]


CALLS: list[tuple[str, Any]] = []


@pytest.fixture
def counted() -> Iterator[list[tuple[str, Any]]]:
    def register(name: str, volatility: Any, strict: bool = True) -> None:
        def implementation(value: Any) -> Any:
            CALLS.append((name, value))
            if value == "bad":
                raise SqlError("22000", "bad")
            return None if value == "none" else value

        per_value(name, (TEXT,), TEXT, volatility=volatility, strict=strict)(implementation)

    for name, volatility, strict in (
        ("t_im", "immutable", True),
        ("t_st", "stable", True),
        ("t_vo", "volatile", True),
        ("t_nu", "immutable", False),
    ):
        register(name, volatility, strict)
    CALLS.clear()
    yield CALLS
    for name in ("t_im", "t_st", "t_vo", "t_nu"):
        functions._BY_NAME.pop(name)
        FUNCTIONS.pop(f"{name}(text)")


def test_once_for_each_distinct_value(context: Context, counted: list[tuple[str, Any]]) -> None:
    values = ["a", "b", "a", None, "bad", "none", "bad"]
    wanted = ["a", "b", "a", None, "22000", None, "22000"]
    for name, calls in (("t_im", 4), ("t_st", 4), ("t_vo", 6), ("t_nu", 5)):
        counted.clear()
        assert run(context, Call(f"{name}(text)", (Column(0, TEXT),), TEXT), values, types=(TEXT,)) == wanted
        assert len(counted) == calls, name
        counted.clear()
        assert run(context, Call(f"{name}(text)", (Column(0, TEXT),), TEXT), values, types=(TEXT,)) == wanted
        assert len(counted) == (0 if name in ("t_im", "t_nu") else calls), name
        assert [run(context, Call(f"{name}(text)", (Column(0, TEXT),), TEXT), [v], types=(TEXT,)) for v in values] == [
            [w] for w in wanted
        ]


def test_many_rows_know_what_single_ones_gave(context: Context, counted: list[tuple[str, Any]]) -> None:
    """NULLs and errors too; only of immutable functions."""
    values = ["a", "bad", "none", None]
    for name, calls in (("t_im", 3), ("t_st", 6), ("t_nu", 4)):
        expr = Call(f"{name}(text)", (Column(0, TEXT),), TEXT)
        counted.clear()
        alone = [run(context, expr, [value], types=(TEXT,))[0] for value in values]
        assert alone == ["a", "22000", None, None]
        assert run(context, expr, values, types=(TEXT,)) == alone
        assert len(counted) == calls, name


def test_equal_parts(context: Context, counted: list[tuple[str, Any]]) -> None:
    """Equal parts are computed once, those with a volatile call each by itself."""

    def twice(name: str) -> Call:
        cut = "substr(text,int4)"
        parts = [Call(cut, (Call(f"{name}(text)", (Column(0, TEXT),), TEXT), Literal(1, INT4)), TEXT) for _ in "ab"]
        return Call("concat(any)", (parts[0], parts[1]), TEXT, False)

    for name, calls in (("t_im", 2), ("t_vo", 4)):
        counted.clear()
        assert run(context, twice(name), ["a", "b"], types=(TEXT,)) == ["aa", "bb"], name
        assert len(counted) == calls, name


def test_folding(context: Context, counted: list[tuple[str, Any]]) -> None:
    def call(name: str) -> Call:
        return Call(f"{name}(text)", (Literal("x", TEXT),), TEXT)

    for name, calls in (("t_im", 1), ("t_st", 2), ("t_vo", 6)):
        counted.clear()
        compiled = compile_expressions((call(name),))
        for _ in range(2):
            vectors, _ = compiled((), 3, context)
            assert decode(TEXT, vectors[0], context.dictionary) == ["x"] * 3
        assert len(counted) == calls, name


def test_equal_parts_are_computed_once(context: Context, counted: list[tuple[str, Any]]) -> None:
    for name, calls in (("t_st", 1), ("t_vo", 2)):
        counted.clear()
        part = Call(f"{name}(text)", (Column(0, TEXT),), TEXT)
        assert run(context, Call("||(text,text)", (part, part), TEXT), ["q"], types=(TEXT,)) == ["qq"]
        assert len(counted) == calls


def test_many_distinct_values_do_not_fill_the_memo(context: Context) -> None:
    values = [f"value {i}" for i in range(70_000)]
    expr = Call("upper(text)", (Column(0, TEXT),), TEXT)
    assert run(context, expr, values, types=(TEXT,)) == [v.upper() for v in values]
    assert all(len(memo) <= 1 << 16 for memo in context.dictionary.memos.values())
    assert run(context, expr, values[::1000], types=(TEXT,)) == [v.upper() for v in values[::1000]]


def test_try(context: Context) -> None:
    cast = Call("try_cast", (Column(0, TEXT),), INT4)
    assert run(context, cast, ["1", "x", None], types=(TEXT,)) == [1, None, None]
    assert run(context, Call("try", (divide(A, B),), INT4), [4, 1], [2, 0]) == [2, None]
    assert run(context, Coalesce((Call("try", (divide(ONE, ZERO),), INT4), A), INT4), [9]) == [9]


def test_assignment_refuses_what_a_cast_cuts(context: Context) -> None:
    values = ["ab", "abc", "abcd", "abc  "]
    assert run(context, Call("cast", (Column(0, TEXT),), VARCHAR3), values, types=(TEXT,)) == [
        "ab",
        "abc",
        "abc",
        "abc",
    ]
    assigned = Call("assignment_cast", (Column(0, TEXT),), VARCHAR3)
    assert run(context, assigned, values, types=(TEXT,)) == ["ab", "abc", "22001", "abc"]
    assert run(context, Call("assignment_cast", (A,), VARCHAR3), [12, 1234]) == ["12", "22001"]


def test_scaled_numerics_meet_unconstrained_ones(context: Context) -> None:
    money = SqlType(Kind.NUMERIC, 10, 2)
    wide = SqlType(Kind.NUMERIC, 30, 4)
    x, y = Column(0, money), Column(1, wide)
    types = (money, wide)
    assert run(
        context, Call("+(numeric,numeric)", (x, y), NUMERIC), [Decimal("1.50")], [Decimal("2.0000")], types=types
    ) == [Decimal("3.5000")]
    assert run(
        context, Call("is distinct from", (x, y), BOOL), [Decimal("2.00")], [Decimal("2.0000")], types=types
    ) == [False]
    assert run(context, Call("greatest", (x, y), NUMERIC), [Decimal("1.50")], [Decimal("1.0000")], types=types) == [
        Decimal("1.50")
    ]
    assert run(context, Coalesce((x, y), NUMERIC), [None, Decimal("1.50")], [Decimal("2.0000"), None], types=types) == [
        Decimal("2.0000"),
        Decimal("1.50"),
    ]
    chosen = Case(((Call("is null", (x,), BOOL), y),), x, NUMERIC)
    assert run(context, chosen, [None, Decimal("1.50")], [Decimal("2.0000"), None], types=types) == [
        Decimal("2.0000"),
        Decimal("1.50"),
    ]


def test_array_casts_report_their_own_row(context: Context) -> None:
    texts = SqlType(Kind.ARRAY, element=TEXT)
    numbers = SqlType(Kind.ARRAY, element=INT4)
    cast = Call("cast", (Column(0, texts),), numbers)
    values = [("1", None), ("x",), (), None, (("1",), ("2",))]
    assert run(context, cast, values, types=(texts,)) == [(1, None), "22P02", (), None, ((1,), (2,))]


def test_registry() -> None:
    assert {f.key for f in overloads("+")} >= {"+(int4,int4)", "+(numeric,numeric)", "+(float8,float8)", "+(int2)"}
    assert overloads("no such function") == ()
    assert all(FUNCTIONS[f.key] is f for f in FUNCTIONS.values())
    assert [needs_order_bytes(t) for t in (INT8, FLOAT8, TEXT, NUMERIC, SqlType(Kind.NUMERIC, 5, 2))] == [
        False, False, True, True, False,
    ]  # fmt: skip


def test_cast_contexts() -> None:
    assert cast_context(INT4, INT8) == "implicit"
    assert cast_context(INT8, INT4) == "assignment"
    assert cast_context(INT4, BOOL) == "explicit"
    assert cast_context(TEXT, INT4) == "explicit"
    assert cast_context(INT4, TEXT) == "assignment"
    assert cast_context(BOOL, FLOAT8) is None
    assert cast_context(SqlType(Kind.ARRAY, element=INT4), SqlType(Kind.ARRAY, element=INT8)) == "implicit"


TRUTH = st.sampled_from([True, False, None])


def kleene_and(values: list[bool | None]) -> bool | None:
    return False if False in values else (None if None in values else True)


@given(st.lists(st.tuples(TRUTH, TRUTH, TRUTH), min_size=1, max_size=20), st.booleans())
def test_three_valued_logic(rows: list[tuple[bool | None, ...]], unsafe: bool) -> None:
    """AND and OR run in both ways: on all rows, and only on undecided ones."""
    context = Context(Dictionary(b"0123456789abcdef"))
    parts: tuple[Scalar, ...] = tuple(Column(i, BOOL) for i in range(3))
    if unsafe:
        parts = tuple(Call("cast", (Call("cast", (p,), TEXT),), BOOL) for p in parts)
    columns = [list(c) for c in zip(*rows, strict=True)]
    types = (BOOL,) * 3
    assert run(context, And(parts), *columns, types=types) == [kleene_and(list(r)) for r in rows]
    wanted = [None if (v := kleene_and([None if x is None else not x for x in r])) is None else not v for r in rows]
    assert run(context, Or(parts), *columns, types=types) == wanted


@given(st.lists(st.none() | st.integers(-3, 3), min_size=1, max_size=12), st.data())
def test_a_batch_is_its_rows(values: list[int | None], data: st.DataObject) -> None:
    """Any expression on a batch gives what it gives on each row alone."""
    context = Context(Dictionary(b"0123456789abcdef"))
    others = data.draw(st.lists(st.none() | st.integers(-3, 3), min_size=len(values), max_size=len(values)))
    numbers = st.deferred(lambda: leaves | st.builds(divide, numbers, numbers) | cases | coalesces)
    leaves = st.sampled_from([A, B, ZERO, ONE, NULL])
    conditions = st.deferred(
        lambda: (
            st.builds(compare, st.sampled_from(["=", "<", ">="]), numbers, numbers)
            | st.builds(lambda x, y: And((x, y)), conditions, conditions)
            | st.builds(lambda x, y: Or((x, y)), conditions, conditions)
        )
    )
    cases = st.builds(lambda c, v, o: Case(((c, v),), o, INT4), conditions, numbers, numbers)
    coalesces = st.builds(lambda x, y: Coalesce((x, y), INT4), numbers, numbers)
    expr = data.draw(numbers)
    together = run(context, expr, values, others)
    alone = [run(context, expr, [x], [y])[0] for x, y in zip(values, others, strict=True)]
    assert together == alone
