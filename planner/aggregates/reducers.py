"""The Reducers of aggregates. See ``planner/aggregates/table.py`` for the layouts that they expect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import ClassVar, Final, TypeVar

import numpy as np

from ivm.errors import SqlError
from ivm.graph import Order, Picks, Reduced, Window
from ivm.rows import Vector, Words, pack
from ivm.words import BOOL, BYTEA, INT8, ColumnType, Kind, SqlType, row_width
from planner import gathers
from planner.aggregates.accumulable import Accumulation
from planner.aggregates.components import SLOT_SHIFT, DiffColumn, Groups, SlotSet
from planner.aggregates.function import AggregateKind, Extreme, FoldRule
from planner.aggregates.percentile import Percentile
from planner.aggregates.table import AGGREGATES, without_filter
from planner.expr.context import Context
from planner.expr.functions.boolean import IS_NOT_NULL, IS_NOT_TRUE, IS_NULL
from planner.expr.functions.casts.registry import CAST
from planner.expr.functions.compare import ORDER_BYTES, ORDER_PREFIX
from planner.expr.functions.row import ROW
from planner.expr.ordering import is_its_own_order, needs_order_bytes
from planner.expr.python_function import PythonFunction
from planner.expr.python_values import OutOfRangeError, to_python
from planner.expr.row_errors import error_words
from planner.expr.scalar import Aggregate, Call, Case, Literal, Scalar, SortKey
from planner.expr.state_fold import StateFold
from storage.dictionary import Dictionary
from storage.types import codec

ALL_THAT_COUNT: Final = Picks((Window(),), flagged=True)
T = TypeVar("T")
Limbs = dict[SlotSet, dict[int, dict[int, int]]]


@dataclass(frozen=True, slots=True)
class Accumulate:
    """All accumulable aggregates of a Reduce at once. Vals: () or (slot); diffs: as ``layout`` lays them out."""

    layout: Accumulation
    dictionary: Dictionary
    limit: ClassVar[int | None] = None

    @property
    def out_width(self) -> int:
        return row_width(self.layout.schema)

    def formula(self) -> Words | None:
        """See ``ivm.graph.FormulaReducer``."""
        return result_formula(self.layout)

    def __call__(self, keys: Words, offsets: Words, vals: Words, diffs: Words, /) -> Reduced:
        if self.layout.val_width:
            segments = np.repeat(np.arange(len(keys)), np.diff(offsets))
            main = np.flatnonzero((vals[:, 0] == 0) & (diffs[:, 0] > 0))
            segment = segments[main]
            limbs = self._limbs(segment, segments, vals, diffs)
        else:
            # each group is a single row
            segment = main = np.flatnonzero(diffs[:, 0] > 0)
            limbs = {}
        groups = Groups(diffs if len(main) == len(diffs) else diffs[main], limbs, self.dictionary)
        vectors: list[Vector] = []
        failures: dict[int, SqlError] = {}
        for plan in self.layout.plans:
            finish = AGGREGATES[plan.call.function].finish
            assert finish is not None, plan.call.function
            vector, failed = finish(plan, groups)
            vectors.append(vector)
            for group, error in failed:
                failures.setdefault(group, error)
        rows = pack(vectors, self.layout.schema, len(main))
        if not failures:
            return Reduced(segment, rows)
        bad = np.array(sorted(failures), np.int64)
        good = np.ones(len(main), np.bool_)
        good[bad] = False
        errors = error_words([failures[group] for group in bad.tolist()], [None] * len(bad), self.dictionary)
        return Reduced(segment[good], rows[good], errors, segment[bad])

    def _limbs(self, kept: Words, segments: Words, vals: Words, diffs: Words) -> Limbs:
        sets: Limbs = {s: {} for s in self.layout.slot_sets}
        group_of = {segment: group for group, segment in enumerate(kept.tolist())}
        rows = np.flatnonzero(vals[:, 0])
        slots = vals[rows, 0]
        which, codes = (slots >> SLOT_SHIFT).tolist(), (slots & ((1 << SLOT_SHIFT) - 1)).tolist()
        amounts, owners = diffs[rows, 0].tolist(), segments[rows].tolist()
        for owner, number, code, amount in zip(owners, which, codes, amounts, strict=True):
            group = group_of.get(owner)
            if group is not None:
                sets[self.layout.slot_sets[number - 1]].setdefault(group, {})[code] = amount
        return sets


def result_formula(layout: Accumulation) -> Words | None:
    """The formula from a group's sums (one word per diff column) to its row of results; drops groups without rows."""
    from ivm.formula import GREATER, Formula, Register

    if layout.slot_sets:
        return None
    formula = Formula()
    zero = formula.constant(0)
    keep = formula.compare(formula.column(0), zero, GREATER)
    words: list[int] = []
    nulls: list[tuple[int, int, Register]] = []
    for i, (plan, column) in enumerate(zip(layout.plans, layout.schema, strict=True)):
        rule = AGGREGATES[plan.call.function].formula
        if rule is None:
            return None
        counts = formula.column(plan.places[DiffColumn.COUNT if plan.call.args else DiffColumn.ROWS])
        some = formula.compare(counts, zero, GREATER) if column.nullable else formula.always
        result = rule(formula, plan, counts, formula.both(keep, some))
        if result is None:
            return None
        if column.nullable:
            result = formula.choose(some, result, formula.constant(None))
            nulls.append((len(layout.schema) + i // 64, i % 64, result))
        words.append(result)
    words += [zero] * (gathers.width(layout.schema) - len(words))
    return formula.made(keep, words, nulls)


@dataclass(frozen=True, slots=True)
class First:
    """The first row's value: min, max. ``value``: the position of its word in the vals; ``null``: that of its 0/1 null
    word, or None; ``complement``: the vals hold the word's complement. Vals out: word, then null word if ``null``."""

    value: int
    null: int | None
    complement: bool
    limit: ClassVar[int | None] = 1

    @property
    def out_width(self) -> int:
        return 1 if self.null is None else 2

    def __call__(self, keys: Words, offsets: Words, vals: Words, diffs: Words, /) -> Reduced:
        first = offsets[:-1]
        words = vals[first, self.value]
        if self.complement:
            words = ~words
        out = np.empty((len(keys), self.out_width), np.int64)
        out[:, 0] = words
        if self.null is not None:
            none = vals[first, self.null]
            out[:, 0] = np.where(none != 0, 0, words)
            out[:, 1] = none
        return Reduced(np.arange(len(keys)), out)


@dataclass(frozen=True, slots=True)
class Basic:
    """An aggregate of all rows that count, in the arrangement's order. Vals: 0 where the row counts, ``skip`` ordering
    words, then the word and 0/1 null word of each argument that is ``held``. ``distinct``: rows with equal ordering
    words count once. Vals out: word, null word. ``look``: called before each group of a user's function; it raises to
    end the pass.
    ``context``: in which that function runs, if not only over the dictionary.
    """

    function: str
    types: tuple[SqlType, ...]
    skip: int
    distinct: bool
    dictionary: Dictionary
    python: PythonFunction | StateFold | None = None
    look: Callable[[], object] | None = None
    context: Context | None = field(default=None, compare=False)
    out_width: ClassVar[int] = 2
    limit: ClassVar[int | None] = None
    picks: ClassVar[Picks] = ALL_THAT_COUNT

    def __call__(self, keys: Words, offsets: Words, vals: Words, diffs: Words, /) -> Reduced:
        function = AGGREGATES[self.function]
        result = function.result_type(self.types) if self.python is None else self.python.result
        first = 1 + self.skip
        counts = diffs[:, 0]
        if self.distinct:
            counts = np.minimum(counts, 1)
            same = (vals[1:, :first] == vals[:-1, :first]).all(axis=1)
            starts = np.zeros(len(vals), np.bool_)
            starts[offsets[:-1]] = True
            counts[1:][same & ~starts[1:]] = 0
        # only rows that count: the row that makes an empty group exist has no values
        kept = np.flatnonzero(counts)
        types = held(self.function, self.types)
        columns = [codec.decode(t, _vector(vals[kept], first + 2 * i), self.dictionary)
                   for i, t in enumerate(types)]  # fmt: skip
        ends = np.searchsorted(kept, offsets)
        datums: list[object] = []
        failures: dict[int, SqlError] = {}
        for group, (low, high) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)):
            try:
                datums.append(self._fold(function.fold, columns, counts[kept[low:high]], low))
            except SqlError as error:
                failures[group] = error.with_traceback(None)
        return self._reduced(result, datums, failures, len(keys))

    def _fold(self, fold: FoldRule | None, columns: list[list[object]], counts: Words, low: int) -> object:
        if self.python is not None:
            return self._called(self.python, columns, counts.tolist(), low)
        assert fold is not None, self.function
        rows = np.repeat(np.arange(low, low + len(counts)), counts).tolist()
        values = [columns[0][row] for row in rows]
        return fold(self.types[0], values, [columns[-1][row] for row in rows]) if values else None

    def _called(
        self, python: PythonFunction | StateFold, columns: list[list[object]], counts: list[int], low: int
    ) -> object:
        """Calls a user's function. Raises 22008 for values that Python has no object for."""
        if self.look is not None:
            self.look()
        rows = np.repeat(np.arange(low, low + len(counts)), counts).tolist()
        values = [[column[row] for row in rows] for column in columns]
        return called(python, self.types, values, len(rows), self.context or Context(self.dictionary))

    def watched(self, look: Callable[[], object]) -> Basic:
        """See ``ivm.graph.WatchedReducer``."""
        return self if self.python is None else replace(self, look=look)

    def _reduced(self, result: SqlType, datums: list[object], failures: dict[int, SqlError], groups: int) -> Reduced:
        vector = codec.encode(result, datums, self.dictionary)
        rows = pack([vector], (ColumnType(result),), len(datums))
        if not failures:
            return Reduced(np.arange(groups), rows)
        bad = np.array(list(failures), np.int64)
        errors = error_words(list(failures.values()), [None] * len(bad), self.dictionary)
        return Reduced(np.setdiff1d(np.arange(groups), bad), rows, errors, bad)


def called(
    python: PythonFunction | StateFold, types: Sequence[SqlType], columns: Sequence[Sequence[object]], count: int,
    context: Context,
) -> object:  # fmt: skip
    """A user's aggregate of the ``count`` rows of a group. Raises 22008 for values that Python has no object for."""
    if isinstance(python, StateFold):
        return python.fold(columns, count, context)
    args: list[list[object]] = []
    for type_, column in zip(types, columns, strict=True):
        convert = to_python(type_)
        try:
            args.append([None if v is None else convert(v) for v in column])
        except OutOfRangeError as error:
            raise SqlError("22008", f"aggregate {python.name} cannot be given {error}") from None
    return python(args)


def _vector(vals: Words, at: int) -> Vector:
    nulls = vals[:, at + 1] != 0
    return Vector(vals[:, at], nulls if nulls.any() else None)


@dataclass(frozen=True, slots=True)
class GroupLayout:
    """The arrangement of an ordered or basic aggregate. ``exprs`` give one word each (null bits are not needed),
    ``order`` how each word sorts; ``empty_row``: the row that makes a group exist without input."""

    exprs: tuple[Scalar, ...]
    order: tuple[Order, ...]
    reducer: First | Basic | Percentile

    @property
    def empty_row(self) -> tuple[int, ...]:
        first = 0 if isinstance(self.reducer, First) and self.reducer.null is None else 1
        return (first,) + (0,) * (len(self.exprs) - 1)


_TRUE: Final = Literal(True, BOOL)
_FALSE: Final = Literal(False, BOOL)


def is_null(expr: Scalar) -> Scalar:
    """1 if the expression is NULL, else 0."""
    return Call(IS_NULL, (expr,), BOOL, False)


def order_words(key: SortKey) -> list[tuple[Scalar, Order]]:
    """The words that sort rows as an ORDER BY key does, each with its order; the first places NULLs."""
    words: list[tuple[Scalar, Order]] = []
    expr = key.expr
    if expr.nullable:
        placed = IS_NOT_NULL if key.nulls_first else IS_NULL
        words.append((Call(placed, (expr,), BOOL, False), Order.WORD))
    return words + value_words(key)


def value_words(key: SortKey) -> list[tuple[Scalar, Order]]:
    """The words that sort rows as an ORDER BY key that is not NULL does, each with its order."""
    words: list[tuple[Scalar, Order]] = []
    expr = key.expr
    prefix: Scalar = Call(ORDER_PREFIX, (expr,), INT8, expr.nullable)
    if key.descending:
        prefix = Call("~(int8)", (prefix,), INT8, expr.nullable)
    words.append((prefix, Order.WORD))
    if needs_order_bytes(expr.type):
        order = Order.BYTES_DESCENDING if key.descending else Order.BYTES
        words.append((Call(ORDER_BYTES, (expr,), BYTEA, expr.nullable), order))
    return words


def ordered_layout(aggregate: Aggregate) -> GroupLayout:
    """The arrangement and reducer of min, max or any_value."""
    aggregate = without_filter(aggregate)
    function = AGGREGATES[aggregate.function]
    assert function.kind is AggregateKind.ORDERED, aggregate.function
    expr = aggregate.args[0]
    if expr.type.storage is not aggregate.type.storage:
        expr = Call(CAST, (expr,), aggregate.type, expr.nullable)
    words = order_words(SortKey(expr, function.extreme is Extreme.GREATEST))
    if expr.nullable:
        null: int | None = 0
    elif aggregate.nullable:
        # the flag's only other value marks a group without input
        words.insert(0, (Literal(False, BOOL), Order.WORD))
        null = 0
    else:
        null = None
    if needs_order_bytes(expr.type) or expr.type.kind in (Kind.FLOAT4, Kind.FLOAT8):
        words.append((expr, Order.WORD))
        complement = False
    else:
        complement = function.extreme is Extreme.GREATEST
    exprs = tuple(expr for expr, _ in words)
    return GroupLayout(exprs, tuple(order for _, order in words), First(len(words) - 1, null, complement))


def dropped(aggregate: Aggregate, not_null: Sequence[Scalar]) -> Scalar:
    """0 if the row counts, that is, it passes the FILTER and none of ``not_null`` is NULL; else 1."""
    arms: list[tuple[Scalar, Scalar]] = []
    if aggregate.filter is not None:
        arms.append((Call(IS_NOT_TRUE, (aggregate.filter,), BOOL, False), _TRUE))
    arms += [(is_null(arg), _TRUE) for arg in not_null if arg.nullable]
    return Case(tuple(arms), _FALSE, BOOL, False) if arms else _FALSE


def counts_not(aggregate: Aggregate) -> Scalar:
    """0 if the row counts for a basic aggregate, else 1."""
    return dropped(aggregate, _not_null(aggregate))


def basic_layout(aggregate: Aggregate, dictionary: Dictionary) -> GroupLayout:
    """The arrangement and reducer of an aggregate of the whole group."""
    keys = list(aggregate.order)
    named = {key.expr for key in keys}
    # ties, and groups without ORDER BY, are ordered by the arguments' values, never by ids
    keys += [SortKey(arg) for arg in _ordering(aggregate) if arg not in named]
    words = [word for key in keys for word in order_words(key)]
    exprs = [counts_not(aggregate), *(expr for expr, _ in words)]
    order = [Order.WORD, *(order for _, order in words)]
    for arg in held(aggregate.function, aggregate.args):
        exprs += [arg, is_null(arg)]
        order += [Order.WORD, Order.WORD]
    types = tuple(arg.type for arg in aggregate.args)
    reducer = Basic(aggregate.function, types, len(words), aggregate.distinct, dictionary, aggregate.python)
    return GroupLayout(tuple(exprs), tuple(order), reducer)


def held(function: str, args: tuple[T, ...]) -> tuple[T, ...]:
    """Those of a basic aggregate's arguments that its fold reads: what is made of them, where something is."""
    return args if AGGREGATES[function].beside is None else args[-1:]


def _ordering(aggregate: Aggregate) -> list[Scalar]:
    """What orders rows, besides ORDER BY."""
    if AGGREGATES[aggregate.function].beside is None:
        return list(aggregate.args)
    *args, text = aggregate.args
    if aggregate.distinct:  # of equal values one counts, however they are written
        return args
    return [part for arg in args for part in _order_of(arg, text)]


def _order_of(arg: Scalar, text: Scalar) -> tuple[Scalar, ...]:
    """What orders values of which a text is made: they themselves, but of types that are slow to compare no more than
    a row's first fields before the text."""
    if arg.type.kind not in (Kind.RECORD, Kind.JSONB):
        return (arg,)
    fields = arg.args if isinstance(arg, Call) and arg.function == ROW else ()
    return *takewhile(lambda field: is_its_own_order(field.type), fields), text


def _not_null(aggregate: Aggregate) -> tuple[Scalar, ...]:
    """The arguments that must not be NULL for a basic aggregate's row to count."""
    if aggregate.python is not None:
        return aggregate.args if aggregate.python.strict else ()
    return aggregate.args[:1] if AGGREGATES[aggregate.function].skips_nulls else ()


def percentile_layout(aggregate: Aggregate, reducer: Percentile) -> GroupLayout:
    """The arrangement of a percentile with the given reducer. Its vals are [0 where the row counts | order | value]."""
    words = order_words(aggregate.order[0])
    exprs = (dropped(aggregate, aggregate.args[:1]), *(expr for expr, _ in words), aggregate.args[0])
    return GroupLayout(exprs, (Order.WORD, *(order for _, order in words), Order.WORD), reducer)
