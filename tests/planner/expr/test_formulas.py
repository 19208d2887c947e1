"""Formulas against the evaluator: the same words, or the formula hands the rows back."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from ivm import workers
from ivm.kernels.formula import map_block
from ivm.rows import Vector, Words, pack
from ivm.trace import shards
from ivm.trace.batch import Block
from ivm.words import BOOL, DATE, INT2, INT4, INT8, NUMERIC, TEXT, ColumnType, Kind, Schema, SqlType
from planner.aggregates.accumulable import Accumulation, shape_of
from planner.aggregates.components import AggregateCall
from planner.aggregates.reducers import Accumulate
from planner.aggregates.reducers import result_formula as finishing
from planner.expr.context import Context
from planner.expr.scalar import And, Call, Case, Coalesce, Column, Literal, Or, Scalar
from planner.physical.arrangement_programs import Keyed, Repeat, Weigh, Weight
from planner.physical.nodes import RowProgram
from planner.physical.row_formulas import formula_of
from planner.physical.row_programs import MapFilter
from storage.dictionary import Dictionary
from storage.types.numeric import DIRECT_NAN
from tests.support.profiles import scaled

NUMERIC9_2: Final = SqlType(Kind.NUMERIC, 9, 2)
NUMERIC3_5: Final = SqlType(Kind.NUMERIC, 3, 5)
THOUSANDS: Final = SqlType(Kind.NUMERIC, 2, -3)
SCHEMA: Final[Schema] = (
    ColumnType(INT2), ColumnType(INT4), ColumnType(INT8), ColumnType(INT8, False), ColumnType(BOOL),
    ColumnType(DATE), ColumnType(NUMERIC), ColumnType(TEXT), ColumnType(INT4, False), ColumnType(NUMERIC9_2),
    ColumnType(NUMERIC3_5), ColumnType(THOUSANDS),
)  # fmt: skip
BITS: Final = {Kind.INT2: 16, Kind.INT4: 32, Kind.INT8: 64}
CONTEXT: Final = Context(Dictionary(b"0123456789abcdef"))
TEXTS: Final = CONTEXT.dictionary.intern([b"", b"a", b"ab"]).tolist()
WIDE: Final = CONTEXT.dictionary.intern([b"NaN", b"123456789012345678901234567890"]).tolist()


def integers(bits: int) -> st.SearchStrategy[int]:
    """Small integers, extremes, and any others."""
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    edges = st.sampled_from([least, least + 1, most, most - 1, -1, 0, 1, 2 ** (bits // 2), -(2 ** (bits // 2))])
    return st.one_of(st.integers(-3, 3), st.integers(-3, 3), edges, st.integers(least, most))


def words_of(type_: SqlType) -> st.SearchStrategy[int]:
    """Words of a type."""
    if type_.kind in BITS:
        return integers(BITS[type_.kind])
    if type_ == BOOL:
        return st.integers(0, 1)
    if type_ == TEXT:
        return st.sampled_from(TEXTS)
    if type_ == NUMERIC:
        small = st.builds(lambda m, s: m << 6 | s << 1, st.integers(-5, 5), st.sampled_from([0, 0, 0, 2]))
        large = st.builds(lambda m: m << 6, st.integers(-(2**57), 2**57 - 1))
        return st.one_of(small, small, small, large, st.sampled_from(WIDE))
    if type_ == NUMERIC9_2:
        return st.one_of(st.integers(-999_999_999, 999_999_999), st.integers(-3, 3), st.just(DIRECT_NAN))
    if type_ == NUMERIC3_5:
        return st.one_of(st.integers(-999, 999), st.integers(-3, 3), st.just(DIRECT_NAN))
    if type_ == THOUSANDS:
        return st.one_of(st.integers(-99, 99).map(lambda m: m * 1000 << 6), st.just(WIDE[0]))
    return st.integers(-3, 3)


@st.composite
def rows(draw: st.DrawFn, schema: Schema = SCHEMA) -> Words:
    """Rows of the schema, as the engine has them."""
    count = draw(st.integers(1, 6))
    vectors = []
    for column in schema:
        words = np.array(draw(st.lists(words_of(column.type), min_size=count, max_size=count)), np.int64)
        nulls = np.zeros(count, np.bool_)
        if column.nullable:
            nulls = np.array(draw(st.lists(st.sampled_from([0, 0, 1]), min_size=count, max_size=count)), np.bool_)
        vectors.append(Vector(np.where(nulls, 0, words), nulls))
    return pack(vectors, schema, count)


def column(index: int) -> Column:
    return Column(index, SCHEMA[index].type, SCHEMA[index].nullable)


def key(name: str, *args: Scalar) -> str:
    return f"{name}({','.join(a.type.kind.value for a in args)})"


@st.composite
def whole(draw: st.DrawFn, depth: int) -> Scalar:
    """An expression of an integer type."""
    if depth == 0:
        type_ = draw(st.sampled_from([INT2, INT4, INT8]))
        literal = Literal(draw(integers(BITS[type_.kind])), type_)
        return draw(st.one_of(st.sampled_from([column(i) for i in (0, 1, 2, 3, 8)]), st.just(literal)))
    how = draw(st.sampled_from(["+", "-", "*", "/", "%", "neg", "abs", "~", "bits", "cast", "case", "coalesce",
                                "nullif", "numeric", "bool"]))  # fmt: skip
    a = draw(whole(depth - 1))
    match how:
        case "+" | "-" | "*" | "/":
            b = draw(whole(depth - 1))
            return Call(key(how, a, b), (a, b), max(a.type, b.type, key=lambda t: BITS[t.kind]))
        case "%" | "bits" | "nullif":
            b = Call("cast", (draw(whole(depth - 1)),), a.type)
            if how == "nullif":
                return Call("nullif", (a, b), a.type)
            name = draw(st.sampled_from(["&", "|", "#"])) if how == "bits" else draw(st.sampled_from(["%", "mod"]))
            return Call(key(name, a, b), (a, b), a.type)
        case "neg":
            return Call(key("-", a), (a,), a.type)
        case "abs" | "~":
            return Call(key(how, a), (a,), a.type)
        case "cast":
            return Call("cast", (a,), draw(st.sampled_from([INT2, INT4, INT8])))
        case "numeric":
            return Call("cast", (column(6),), draw(st.sampled_from([INT2, INT4, INT8])))
        case "bool":
            return Call("cast", (draw(truth(depth - 1)),), INT4)
        case "coalesce":
            return Coalesce((a, Call("cast", (draw(whole(depth - 1)),), a.type)), a.type)
        case _:
            arms = ((draw(truth(depth - 1)), Call("cast", (draw(whole(depth - 1)),), INT8)),
                    (draw(truth(depth - 1)), Call("cast", (a,), INT8)))  # fmt: skip
            return Case(arms[: draw(st.integers(1, 2))], Call("cast", (draw(whole(depth - 1)),), INT8), INT8)


@st.composite
def truth(draw: st.DrawFn, depth: int) -> Scalar:
    """An expression of type boolean."""
    if depth == 0:
        return draw(st.sampled_from([column(4), Literal(True, BOOL), Literal(False, BOOL), Literal(None, BOOL)]))
    how = draw(st.sampled_from(["compare", "compare", "and", "or", "not", "is", "distinct", "text", "numeric", "date",
                                "cast", "same"]))  # fmt: skip
    comparison = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
    match how:
        case "compare":
            a, b = draw(whole(depth - 1)), draw(whole(depth - 1))
            return Call(key(comparison, a, b), (a, b), BOOL)
        case "and" | "or":
            args = tuple(draw(truth(depth - 1)) for _ in range(draw(st.integers(2, 3))))
            return And(args) if how == "and" else Or(args)
        case "not":
            return Call("not", (draw(truth(depth - 1)),), BOOL)
        case "is":
            name = draw(st.sampled_from(["is null", "is not null", "is true", "is not true", "is false",
                                         "is not false", "is unknown", "is not unknown"]))  # fmt: skip
            return Call(name, (draw(truth(depth - 1)),), BOOL, False)
        case "distinct":
            name = draw(st.sampled_from(["is distinct from", "is not distinct from"]))
            a = draw(whole(depth - 1))
            return Call(name, (a, Call("cast", (draw(whole(depth - 1)),), a.type)), BOOL, False)
        case "text":
            return Call(f"{draw(st.sampled_from(['=', '<>']))}(text,text)", (column(7), column(7)), BOOL)
        case "numeric":
            numbers = st.sampled_from([*map(column, (6, 9, 10, 11)), Call("cast", (column(2),), NUMERIC)])
            return Call(f"{comparison}(numeric,numeric)", (draw(numbers), draw(numbers)), BOOL)
        case "date":
            return Call(f"{comparison}(date,date)", (column(5), column(5)), BOOL)
        case "same":
            return Call("is null", (column(draw(st.integers(0, 9))),), BOOL, False)
        case _:
            return Call("cast", (Call("cast", (draw(whole(depth - 1)),), INT4),), BOOL)


def by_three(source: Block, like: Block, formula: Words) -> Block:
    """The result of three threads, each on one part."""
    target = Block(like.width, like.diff_width, max(source.n, 1))
    workers.use(3, 1)
    try:
        shards.mapped(source, target, formula)
    finally:
        workers.use(1)
    return target


def check(program: RowProgram, given: Words) -> str:
    """Runs both and compares them; gives the outcome."""
    formula = formula_of(program, CONTEXT)
    assert formula is not None
    count = len(given)
    diffs = np.arange(1, count + 1).reshape(-1, 1) * np.where(np.arange(count) % 2, -1, 1).reshape(-1, 1)
    source = Block.of(given.copy(), np.arange(100, 100 + count), diffs)
    target = Block(program.out_width, program.diff_width)
    target.reserve(count)
    made = map_block(source.d, target.d, formula)
    mapped = program.run(given, CONTEXT)
    in_parts = by_three(source, target, formula)
    if made < 0:
        assert target.d[0] == in_parts.d[0] == 0
        return "told nothing" if mapped.errors is None else "failed"
    assert mapped.errors is None
    assert target.sync() == in_parts.sync() == made
    for one, other in zip(target.arrays(), in_parts.arrays(), strict=True):
        assert one.tolist() == other.tolist()
    origin = np.arange(count) if mapped.source is None else mapped.source
    weights = np.ones((len(origin), 1), np.int64) if mapped.weights is None else mapped.weights
    found, times, found_diffs = target.arrays()
    assert found.tolist() == mapped.rows.tolist()
    assert times.tolist() == (100 + origin).tolist()
    assert found_diffs.tolist() == (diffs[origin] * weights).tolist()
    return "same"


@settings(max_examples=scaled(100), deadline=None)
@given(rows(), st.lists(truth(2), max_size=2), st.lists(st.one_of(whole(3), truth(3)), max_size=3))
def test_map_filter(given: Words, predicates: list[Scalar], exprs: list[Scalar]) -> None:
    """Filters, then expressions."""
    event(check(MapFilter(SCHEMA, tuple(predicates), (*exprs, column(2), column(7))), given))


@settings(max_examples=scaled(75), deadline=None)
@given(rows(), st.lists(truth(2), min_size=1, max_size=3))
def test_filter(given: Words, predicates: list[Scalar]) -> None:
    """A filter passes rows unchanged, with their null bits."""
    event(check(MapFilter(SCHEMA, tuple(predicates)), given))


ARGS: Final = (1, 2, 4, 9, 10)
CALLS: Final = {
    "count(any)": ARGS, "sum(int4)": (1,), "sum(int8)": (2,), "sum(numeric)": (9, 10), "bool_and(bool)": (4,),
    "bool_or(bool)": (4,),
}  # fmt: skip


def accumulation(names: list[str], always: bool = False) -> tuple[tuple[Scalar, ...], Accumulation]:
    """Draws the arguments and the layout of some aggregates."""
    args = tuple(column(i) for i in ARGS)
    calls = [AggregateCall("count(*)", (), ())]
    for name in names:
        for argument in CALLS[name][:2]:
            place = ARGS.index(argument)
            calls.append(AggregateCall(name, (place,), (args[place].type,)))
    return args, Accumulation(tuple(dict.fromkeys(calls)), always)


aggregates = st.lists(st.sampled_from(sorted(CALLS)), max_size=4)


@settings(max_examples=scaled(75), deadline=None)
@given(rows(), st.lists(whole(2), max_size=2), aggregates, st.booleans())
def test_weigh(given: Words, keys: list[Scalar], names: list[str], always: bool) -> None:
    """A row's keys, and its contribution to each sum."""
    args, layout = accumulation(names, always)
    event(check(Weigh(SCHEMA, tuple(keys), args, layout), given))


@settings(max_examples=scaled(100), deadline=None)
@given(rows(), st.lists(whole(2), max_size=2), st.lists(st.one_of(whole(2), truth(2)), max_size=2), st.booleans())
def test_keyed(given: Words, keys: list[Scalar], words: list[Scalar], whole_rows: bool) -> None:
    event(check(Keyed(SCHEMA, tuple(keys), tuple(words), whole_rows), given))


@settings(max_examples=scaled(30), deadline=None)
@given(rows())
def test_copies(given: Words) -> None:
    """Rows copied and weighed."""
    assert check(Weight(given.shape[1], (2, 0, -3)), given) == "same"
    assert check(Repeat(2, 3), given) == "same"


@settings(max_examples=scaled(100), deadline=None)
@given(st.data(), aggregates)
def test_finishing(data: st.DataObject, names: list[str]) -> None:
    """Results of sums, including sums that are not final."""
    _, layout = accumulation(names)
    formula = finishing(layout)
    assert formula is not None
    amounts = st.one_of(st.integers(-2, 3), st.integers(-2, 3), integers(64), st.integers(-(2**40), 2**40))
    width = layout.diff_width
    count = data.draw(st.integers(1, 4))
    sums = np.array(data.draw(st.lists(amounts, min_size=count * width, max_size=count * width)), np.int64)
    sums = sums.reshape(count, width)
    source = Block.of(sums.copy(), np.arange(count), np.ones((count, 1), np.int64))
    target = Block(len(layout.calls) + 1)
    target.width = Accumulate(layout, CONTEXT.dictionary).out_width
    target = Block(target.width)
    target.reserve(count)
    made = map_block(source.d, target.d, formula)
    reduced = Accumulate(layout, CONTEXT.dictionary)(sums, np.arange(count + 1), sums[:, :0], sums)
    if made < 0:
        event("told nothing")
        return
    target.sync()
    event("same")
    assert reduced.errors is None
    assert target.arrays()[1].tolist() == reduced.segment.tolist()
    assert target.arrays()[0].tolist() == reduced.vals.tolist()


def test_most_are_told() -> None:
    """What a formula covers is computed, not handed back."""
    given = pack(
        [Vector(np.array([w, w], np.int64)) for w in (1, 7, 8, 9, 1, 5, 3 << 6, TEXTS[1], 2, 100, 7, 5000 << 6)],
        SCHEMA,
        2,
    )
    more = Call("+(int8,int4)", (Call("*(int8,int4)", (column(2), Literal(85, INT4)), INT8), column(1)), INT8)
    divided = Call("/(int8,int8)", (more, column(3)), INT8)
    assert check(MapFilter(SCHEMA, (), (divided, Call("cast", (column(6),), INT8))), given) == "same"
    _, layout = accumulation(sorted(CALLS))
    formula = finishing(layout)
    assert formula is not None
    target = Block(Accumulate(layout, CONTEXT.dictionary).out_width)
    sums = Block.of(np.full((1, layout.diff_width), 1), np.zeros(1, np.int64), np.ones((1, 1), np.int64))
    assert map_block(sums.d, target.d, formula) == -1  # a NaN
    assert shape_of(NUMERIC9_2).value == "long"


@pytest.mark.parametrize(
    "expr",
    [
        Call("/(int4,int4)", (Literal(1, INT4), column(1)), INT4),
        Call(
            "+(int4,int4)", (Literal(2**31 - 1, INT4), Call("+(int4,int4)", (column(1), Literal(1, INT4)), INT4)), INT4
        ),
        Call("*(int8,int8)", (Literal(2**62, INT8), Call("+(int8,int4)", (column(1), Literal(2, INT4)), INT8)), INT8),
        Call("cast", (Call("+(int8,int8)", (column(2), Literal(2**15, INT8)), INT8),), INT2),
    ],
)
def test_what_fails_is_not_told(expr: Scalar) -> None:
    zeros = pack([Vector(np.zeros(300, np.int64)) for _ in SCHEMA], SCHEMA, 300)
    assert check(MapFilter(SCHEMA, (), (expr,)), zeros) == "failed"
    guarded = Case(
        ((Call("=(int4,int4)", (column(1), Literal(0, INT4)), BOOL), Literal(7, expr.type)),), expr, expr.type
    )
    assert check(MapFilter(SCHEMA, (), (guarded,)), zeros) == "same"
    late = Call("is null", (expr,), BOOL, False)
    never = Call("<>(int4,int4)", (column(1), Literal(0, INT4)), BOOL)
    assert check(MapFilter(SCHEMA, (), (And((never, late)), Or((Call("not", (never,), BOOL), late)))), zeros) == "same"
    assert check(MapFilter(SCHEMA, (never,), (expr,)), zeros) == "same"
    assert check(MapFilter(SCHEMA, (), (Coalesce((column(3), expr), INT8),)), zeros) == "same"
