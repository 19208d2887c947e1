"""Every function and cast on the extremes of its types: as a formula, by the evaluator, and in batches of every kind.

The oracle is the evaluator on one batch of all combinations. A formula gives the same words or hands the rows back; a
row alone, and rows in other company, give what they give among all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

from ivm.errors import SqlError
from ivm.kernels.formula import map_block
from ivm.rows import Vector, Words, pack
from ivm.trace.batch import Block
from ivm.words import BOOL, ColumnType, Kind, Schema, SqlType
from planner.aggregates.table import ORDERED_SETS
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import Compiled, compile_expressions
from planner.expr.functions.compare import ORDER_BYTES
from planner.expr.functions.library import CAST, FUNCTIONS, find_cast
from planner.expr.functions.row import FIELD
from planner.expr.functions.table import Raises
from planner.expr.ordering import needs_order_bytes
from planner.expr.scalar import Call, Case, Coalesce, Column, Literal, Scalar
from planner.physical.row_formulas import formula_of
from planner.physical.row_programs import MapFilter
from storage.dictionary import Dictionary
from storage.types.codec import encode
from tests.support.extremes import EXTREMES, NUMERICS, RECORD, drawn, extremes, result_type, signatures
from tests.support.profiles import scaled

ROWS = scaled(150)
"""The most combinations of extremes that are tried of one call, drawn evenly."""
ALONE = scaled(8)
"""The most rows of a call that are tried alone and in threes."""
TYPES = (*EXTREMES, *NUMERICS)


@pytest.fixture(scope="module")
def context() -> Context:
    return Context(Dictionary(b"0123456789abcdef"))


@dataclass(frozen=True)
class Tried:
    """A call over columns, and the rows that it is tried on."""

    name: str
    expr: Call
    types: tuple[SqlType, ...]
    schema: Schema
    rows: list[tuple[object, ...]]

    @staticmethod
    def of(name: str, key: str, types: tuple[SqlType, ...], result: SqlType) -> Tried:
        rows = drawn(types, ROWS, name)
        expr = Call(key, tuple(Column(i, t) for i, t in enumerate(types)), result)
        return Tried(name, expr, types, tuple(map(ColumnType, types)), rows)

    def vectors(self, context: Context) -> list[Vector]:
        return [encode(t, [row[i] for row in self.rows], context.dictionary) for i, t in enumerate(self.types)]


def calls() -> Iterator[Tried]:
    """Every entry whose result depends on nothing but its arguments, and every cast between two types."""
    for function in FUNCTIONS.values():
        if function.volatility in ("volatile", "stable") or function.key in (CAST, FIELD) or "cast" in function.key:
            continue
        if (function.internal and function.raises is not Raises.NEVER) or function.name in ORDERED_SETS:
            continue  # the planner gives it only what it has made
        for types in signatures(function):
            if function.name == "array" and types[0] == RECORD:
                continue  # there are no arrays of rows
            if function.key != ORDER_BYTES or needs_order_bytes(types[0]):
                yield Tried.of(f"{function.key} {types}", function.key, types, result_type(function, types))
    for source, target in product(TYPES, TYPES):
        if source != target and find_cast(source, target) is not None:
            yield Tried.of(f"{source} as {target}", CAST, (source,), target)


def with_typmods() -> Iterator[Tried]:
    """Calls of functions of one or two numerics on numerics with a typmod."""
    for function in FUNCTIONS.values():
        for types in signatures(function):
            if function.formula is None or not any(t.kind is Kind.NUMERIC for t in types):
                continue
            for narrow in product(*((t, *NUMERICS) if t.kind is Kind.NUMERIC else (t,) for t in types)):
                result = result_type(function, narrow)
                yield Tried.of(f"{function.key} {narrow}", function.key, narrow, result)


def forms(tried: Tried) -> Iterator[tuple[tuple[Scalar, ...], tuple[Scalar, ...]]]:
    """Predicates and expressions around a call: itself, its branches, and as a condition."""
    call, type_ = tried.expr, tried.expr.type
    yield (), (call,)
    if type_ in TYPES:
        yield (), (Coalesce((call, Literal(extremes(type_)[1], type_)), type_),)
    yield (), (Case(((Call("is not null", (call,), BOOL, False), call),), Literal(None, type_), type_), call)
    if type_ == BOOL:
        yield (call,), tuple(Column(i, t) for i, t in enumerate(tried.types))


def same_by_formula(program: MapFilter, formula: Words, given: Words, context: Context) -> bool:
    """Whether the formula tells the rows; asserts that it tells what the evaluator does."""
    target = Block(program.out_width)
    target.reserve(len(given))
    source = Block.of(given.copy(), np.arange(len(given)), np.ones((len(given), 1), np.int64))
    made = map_block(source.d, target.d, formula)
    if made < 0:
        return False
    mapped = program.run(given, context)
    assert mapped.errors is None
    target.sync()
    rows, origin, _ = target.arrays()
    assert rows.tolist() == mapped.rows.tolist()
    assert origin.tolist() == (np.arange(len(given)) if mapped.source is None else mapped.source).tolist()
    return True


def try_formula(tried: Tried, context: Context) -> Counter[str]:
    """Runs each form of a call as a formula, on all rows at once and on many alone."""
    told: Counter[str] = Counter()
    given = pack(tried.vectors(context), tried.schema, len(tried.rows))
    for predicates, exprs in forms(tried):
        program = MapFilter(tried.schema, predicates, exprs)
        formula = formula_of(program, context)
        if formula is None:
            continue
        told["formulas"] += 1
        alone = np.random.default_rng(len(given)).permutation(len(given))[: 2 * ALONE]
        batches = [given, *(given[i : i + 1] for i in alone.tolist())]
        for batch in batches:
            try:
                told["told" if same_by_formula(program, formula, batch, context) else "handed back"] += 1
            except AssertionError as error:
                raise AssertionError(f"{tried.name}: {exprs}") from error
    return told


def test_formulas_give_what_the_evaluator_gives(context: Context) -> None:
    told: Counter[str] = Counter()
    for tried in (*calls(), *with_typmods()):
        told += try_formula(tried, context)
    assert told["formulas"] > 1000
    assert told["told"] > told["handed back"]


def results(run: Compiled, columns: list[Vector], rows: Words, context: Context) -> list[object]:
    """The words of rows of the columns computed as one batch; None for NULL, the text of an error."""
    vectors = [Vector(v.words[rows], None if v.nulls is None else v.nulls[rows]) for v in columns]
    ((vector,), failures) = run(vectors, len(rows), context)
    found: list[object] = vector.words.tolist()
    if vector.nulls is not None:
        found = [None if null else word for word, null in zip(found, vector.nulls.tolist(), strict=True)]
    errors: list[SqlError] = [] if failures is None else failures.errors
    for row, error in zip([] if failures is None else failures.rows.tolist(), errors, strict=True):
        found[row] = f"{error.sqlstate} {error.message}"
    return found


def test_a_row_gives_the_same_in_any_company(context: Context) -> None:
    """Alone, in threes and among all; what an earlier batch computed is forgotten in between."""
    rows = 0
    for tried in calls():
        count = len(tried.rows)
        run, columns = compile_expressions((tried.expr,)), tried.vectors(context)
        wanted = results(run, columns, np.arange(count), context)
        order = np.random.default_rng(count).permutation(count)[:ALONE]
        for size in (1, 3):
            context.dictionary.memos.clear()
            for at in range(0, len(order), size):
                some = order[at : at + size]
                found = results(run, columns, some, context)
                assert found == [wanted[i] for i in some], (tried.name, tried.rows[some[0]])
                rows += len(some)
    assert rows > 20_000
