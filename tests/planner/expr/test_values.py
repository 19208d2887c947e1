"""Functions, text forms, aggregates and table functions against a real PostgreSQL's answers (answers/values.json)."""

from __future__ import annotations

import json
import math
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from ivm.errors import SqlError
from ivm.rows import Vector, unpack
from ivm.words import NUMERIC, TEXT, ColumnType, Kind, SqlType
from planner.aggregates.accumulable import Accumulation
from planner.aggregates.components import AggregateCall
from planner.aggregates.function import AggregateKind
from planner.aggregates.reducers import Accumulate, basic_layout, ordered_layout
from planner.aggregates.table import AGGREGATES, aggregate_overloads
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import evaluate
from planner.expr.functions.library import FUNCTIONS, overloads
from planner.expr.functions.table import Polymorphic, function_key
from planner.expr.functions.table_functions import table_overloads
from planner.expr.row_errors import decode_error
from planner.expr.scalar import Aggregate, Call, Column, Literal
from sql.catalog.column_types import array_of, parse_type
from storage.dictionary import Dictionary
from storage.types import codec
from storage.types.text import TextStyle, format_datum, format_text, parse_datum
from tests.support.paths import ANSWERS

STYLE = TextStyle("America/New_York")
DICTIONARY = Dictionary(bytes(16))
CONTEXT = Context(DICTIONARY, timezone="America/New_York")
CASES: list[list[Any]] = json.loads((ANSWERS / "values.json").read_text())

# Known differences, each with its reason.
OVERFLOW = ["float8", "1e308", "1e308"]
"""PostgreSQL adds doubles up before it divides, so this overflows there; an exact sum does not."""


def of_kind(kind: str) -> list[Any]:
    return [pytest.param(*case[1:], id=f"{case[1]}|{'|'.join(case[2])}"[:100]) for case in CASES if case[0] == kind]


def argument(text: str) -> tuple[SqlType, object]:
    if text.endswith("!"):
        return parse_type(text[:-1]), None
    name, _, value = text.partition(":")
    type_ = parse_type(name)
    return type_, parse_datum(type_, value, STYLE)


@lru_cache(512)
def find(name: str, types: tuple[SqlType, ...]) -> Any:
    exact = FUNCTIONS.get(function_key(name, types))
    if exact is not None:
        return exact
    for candidate in overloads(name):
        if len(candidate.args) == len(types) and all(_fits(a, t) for a, t in zip(candidate.args, types, strict=True)):
            return candidate
    raise AssertionError(f"no function {name}{types}")


def _fits(declared: Any, given: SqlType) -> bool:
    if not isinstance(declared, Polymorphic):
        return bool(declared == given)
    if declared.value in ("any", "anyelement", "anycompatible"):
        return True
    return (given.kind is Kind.ARRAY) == (declared.value in ("anyarray", "anycompatiblearray"))


def result_type(function: Any, types: tuple[SqlType, ...]) -> SqlType:
    if isinstance(function.result, SqlType):
        return function.result
    return next(t for t in types if t.kind is Kind.ARRAY)


def agree(type_: SqlType, mine: str | None, answer: str | None) -> bool:
    if type_.kind in (Kind.FLOAT4, Kind.FLOAT8) and mine and answer and mine != answer:
        return math.isclose(float(mine), float(answer), rel_tol=1e-6 if type_.kind is Kind.FLOAT4 else 1e-13)
    return mine == answer


def check_error(error: SqlError, answer: Any) -> None:
    assert isinstance(answer, dict), f"{error} where PostgreSQL gives {answer!r}"
    assert error.sqlstate == answer["sqlstate"], (str(error), answer)
    assert error.message == answer["message"]


@pytest.mark.parametrize(("name", "args", "answer"), of_kind("function"))
def test_function(name: str, args: list[str], answer: Any) -> None:
    given = [argument(a) for a in args]
    types = tuple(t for t, _ in given)
    function = find(name, types)
    result = result_type(function, types)
    columns = [codec.encode(t, [d], DICTIONARY) for t, d in given]
    call = Call(function.key, tuple(Column(i, t) for i, t in enumerate(types)), result)
    vectors, failures = evaluate((call,), columns, 1, CONTEXT)
    if failures is not None:
        check_error(failures.errors[0], answer)
        return
    text = format_text(result, vectors[0], DICTIONARY, STYLE)[0]
    assert agree(result, None if text is None else text.decode(), answer)


@pytest.mark.parametrize(("name", "args", "answer"), of_kind("text"))
def test_text_form(name: str, args: list[str], answer: Any) -> None:
    type_ = parse_type(name)
    try:
        datum = parse_datum(type_, args[0], STYLE)
    except SqlError as error:
        check_error(error, answer)
        return
    assert format_datum(type_, datum, STYLE) == answer
    vector = codec.encode(type_, [datum], DICTIONARY)
    assert format_text(type_, vector, DICTIONARY, STYLE) == [answer.encode()]


def accumulated(call: AggregateCall, column: Vector) -> tuple[SqlType, Vector] | SqlError:
    layout = Accumulation((call,))
    count = len(column.words)
    made = layout.expand([column], count, DICTIONARY)
    # consolidated as in the engine: equal slots added up, zeros dropped
    sums: dict[int, np.ndarray[Any, Any]] = {}
    for slot, weights in zip(made.slots.tolist(), made.weights, strict=True):
        sums[slot] = sums.get(slot, 0) + weights
    slots = sorted(slot for slot, weights in sums.items() if weights.any())
    vals = np.array(slots, np.int64).reshape(-1, 1) if layout.val_width else np.zeros((len(slots), 0), np.int64)
    diffs = np.array([sums[slot] for slot in slots], np.int64)
    reduced = Accumulate(layout, DICTIONARY)(np.zeros((1, 0), np.int64), np.array([0, len(slots)]), vals, diffs)
    if reduced.errors is not None and len(reduced.errors):
        return decode_error(DICTIONARY.lookup(reduced.errors[:, 0])[0])[0]
    return layout.schema[0].type, unpack(reduced.vals, layout.schema)[0]


def grouped(aggregate: Aggregate, columns: list[Vector]) -> Vector:
    basic = AGGREGATES[aggregate.function].kind is AggregateKind.BASIC
    layout = basic_layout(aggregate, DICTIONARY) if basic else ordered_layout(aggregate)
    vectors, failures = evaluate(layout.exprs, columns, len(columns[0].words), CONTEXT)
    assert failures is None
    rows = np.stack([np.asarray(v.words) for v in vectors], axis=1)
    key = [
        tuple(
            DICTIONARY.lookup_one(w) if o.name == "BYTES" and w else (_descending(w) if o.name != "WORD" and w else w)
            for w, o in zip(row, layout.order, strict=True)
        )
        for row in rows.tolist()
    ]
    rows = rows[sorted(range(len(rows)), key=lambda i: key[i])]
    counts = np.ones((len(rows), 1), np.int64)
    reduced = layout.reducer(np.zeros((1, 0), np.int64), np.array([0, len(rows)]), rows, counts)
    result = AGGREGATES[aggregate.function].result_type([a.type for a in aggregate.args])
    return unpack(reduced.vals, (ColumnType(result, reduced.vals.shape[1] > 1),))[0]


class _descending:  # noqa: N801
    def __init__(self, word: int) -> None:
        self.data = DICTIONARY.lookup_one(word)

    def __lt__(self, other: _descending) -> bool:
        return self.data > other.data

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _descending) and self.data == other.data

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(("name", "args", "answer"), of_kind("aggregate"))
def test_aggregate(name: str, args: list[str], answer: Any) -> None:
    type_ = parse_type(args[0])
    column = codec.encode(type_, [None if v == "\0" else parse_datum(type_, v, STYLE) for v in args[1:]], DICTIONARY)
    bare = SqlType(type_.kind, element=type_.element)
    function = next(f for f in aggregate_overloads(name) if f.args and _fits(f.args[0], bare))
    if args == OVERFLOW and name != "sum" and isinstance(answer, dict):
        assert answer["sqlstate"] == "22003"
        return
    if function.kind is AggregateKind.ACCUMULABLE:
        found = accumulated(AggregateCall(function.key, (0,), (type_,)), column)
        if isinstance(found, SqlError):
            check_error(found, answer)
            return
        result, vector = found
    else:
        extra = (Literal(",", TEXT),) if name == "string_agg" else ()
        aggregate = Aggregate(function.key, (Column(0, type_), *extra), function.result_type((type_,)))
        result, vector = function.result_type((type_,)), grouped(aggregate, [column])
    text = format_text(result, vector, DICTIONARY, STYLE)[0]
    assert agree(result, None if text is None else text.decode(), answer)


@pytest.mark.parametrize(("name", "args", "answer"), of_kind("table"))
def test_table_function(name: str, args: list[str], answer: Any) -> None:
    given = [argument(a) for a in args]
    types = tuple(t for t, _ in given)
    entry = next(
        e for e in table_overloads(name)
        if len(e.args) == len(types) and all(_fits(a, t) for a, t in zip(e.args, types, strict=True))
    )  # fmt: skip
    columns = [codec.encode(t, [d], DICTIONARY) for t, d in given]
    expansion = entry.implementation(columns, types, 1, CONTEXT)
    if expansion.failures is not None:
        check_error(expansion.failures.errors[0], answer)
        return
    (column,) = entry.columns(types)
    texts = format_text(column.type, expansion.columns[0], DICTIONARY, STYLE)
    assert ["" if t is None else t.decode() for t in texts] == answer


def test_types_round_trip() -> None:
    assert parse_type("decimal") == NUMERIC
    assert array_of(TEXT) == parse_type("text[]")
