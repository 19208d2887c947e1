"""The table of aggregates, and how each kind is laid out for the engine (``planner/aggregates/reducers.py`` computes).

An entry has everything about an aggregate, see ``planner.aggregates.function``. To add one, write its result rule
(``results.py``) or its fold (``folds.py``), and an entry here.

What the planner builds (rows of an arrangement are [key words | val words], diffs are vectors):

**accumulable** (count, sum, avg, bool_and, stddev, …): all accumulable aggregates of a Reduce share one node::

    calls  = tuple(AggregateCall(key, arg column positions, arg types), …)     # FILTER gone: see ``without_filter``
    layout = Accumulation(calls)                                               # planner/aggregates/accumulable.py
    FlatMap:  e = layout.expand(vectors, count, dictionary)
              rows    = [key words of row e.source[i] | e.slots[i] if layout.val_width]   (e.source None: one for one)
              weights = e.weights, int64[m, layout.diff_width]                 # diff column 0 counts the group's rows
    Arrange:  key = the group's key words (null words included), val_width = layout.val_width (0 or 1), order WORD
    Reduce:   Accumulate(layout, dictionary) → vals row = pack(layout.schema): one word for each call, in order, then
              null words if any is nullable (all but count are). No row when the group counts <= 0 rows.

``slot`` 0 is the group's main row; other slots carry limbs of exact float and numeric sums (diff column 0 only).
A Reduce without keys gives a row even for no input: concatenate a Constant of val (0,) * val_width with weights
``layout.empty_weights`` (it counts as a row and adds to no aggregate). DISTINCT aggregates: make (key, arg by equality
class) distinct first, then lay them out the same way and join the results on the key.

**ordered** (min, max, any_value): one arrangement and Reduce each, limit 1::

    layout = ordered_layout(aggregate)          # planner/aggregates/reducers.py
    Arrange:  [key | the word of each of layout.exprs (null bits forgotten)], order = (WORD,) * key + layout.order
    Reduce:   layout.reducer → vals row = [value word, null word]; no null word if neither aggregate nor argument is
              nullable (reducer.out_width tells).

**basic** (string_agg, array_agg, users' own in Python): one arrangement and Reduce each, of all rows that count::

    layout = basic_layout(aggregate, dictionary)    # the same fields; vals row = [value word, null word]

**ranked** (percentile_cont, percentile_disc): one Reduce each, of the rows at a few ranks, which the engine finds by
search (``ivm/kernels/rank.py``); ``args`` are the ordered expression and the fraction, which reads no columns::

    layout = percentile_layout(aggregate, percentile(aggregate, context))    # the same fields

**mode**: counts by (key, value), themselves arranged by (key, descending count, value): ``planner/lower/reduce.py``.

The other kinds have ``layout.empty_row``, the val words of the Constant to concatenate if there are no keys. The layout
covers ORDER BY and FILTER. DISTINCT: ordered aggregates ignore it (it changes nothing); basic ones apply it themselves
if there is no ORDER BY of another expression (Postgres requires that too). An argument may be of type numeric(p, s).

NULL rules: count is never NULL; every other aggregate is NULL if it has no non-NULL input (``result_nullable``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, assert_never

from ivm.words import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    JSON,
    JSONB,
    NUMERIC,
    OID,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
    SqlType,
)  # fmt: skip
from planner.aggregates import folds, json_folds, moments, result_formulas, results
from planner.aggregates.function import (
    Addends,
    AggregateFunction,
    AggregateKind,
    Extreme,
    FoldRule,
    FormulaRule,
    NullResult,
    ResultRule,
)  # fmt: skip
from planner.expr.functions import bits, ranges
from planner.expr.functions.boolean import IS_NOT_NULL
from planner.expr.functions.table import (
    ANY,
    ANYARRAY,
    ANYELEMENT,
    ANYENUM,
    ANYMULTIRANGE,
    ANYNONARRAY,
    ANYRANGE,
    ArgumentType,
    function_key,
)  # fmt: skip
from planner.expr.scalar import Aggregate, Call, Case, Literal, Scalar
from storage.types.definitions import DEFINITIONS
from storage.types.range_values import multirange_of, range_type_of

COUNT_ROWS: Final = "count(*)"
COUNT_VALUES: Final = "count(any)"


def aggregate_overloads(name: str) -> tuple[AggregateFunction, ...]:
    """All overloads of an aggregate's (lower-case) name; () if it is not an aggregate."""
    return _BY_NAME.get(name, ())


def result_nullable(function: AggregateFunction, args_nullable: Sequence[bool], grouped: bool, filtered: bool) -> bool:
    """Whether the result may be NULL. ``grouped``: there are keys, so no group is empty."""
    match function.null_result:
        case NullResult.NEVER:
            return False
        case NullResult.POSSIBLE:
            return True
        case NullResult.NO_ROWS:
            return not grouped or filtered
        case NullResult.NO_VALUES:
            return not grouped or filtered or any(args_nullable[:1])
        case null_result:
            assert_never(null_result)


def without_filter(aggregate: Aggregate) -> Aggregate:
    """Moves the FILTER of an accumulable or ordered aggregate into a CASE (equivalent, since they ignore NULLs)."""
    if aggregate.filter is None:
        return aggregate
    if aggregate.function == COUNT_ROWS:
        counted = Case(((aggregate.filter, Literal(True, BOOL)),), Literal(None, BOOL), BOOL)
        return replace(aggregate, function=COUNT_VALUES, args=(counted,), filter=None)
    first, *rest = aggregate.args
    return replace(aggregate, args=(_where(aggregate.filter, first), *rest), filter=None)


def _where(condition: Scalar, value: Scalar) -> Scalar:
    return Case(((condition, value),), Literal(None, value.type), value.type)


def of_pairs(aggregate: Aggregate) -> Aggregate:
    """Rewrites an aggregate of pairs without FILTER so that both arguments are NULL where either is."""
    if not AGGREGATES[aggregate.function].of_pairs:
        return aggregate
    y, x = aggregate.args
    return replace(aggregate, args=(_where(_present(x), y), _where(_present(y), x)))


def _present(value: Scalar) -> Scalar:
    return Call(IS_NOT_NULL, (value,), BOOL, False)


def _own(args: Sequence[SqlType]) -> SqlType:
    # min(numeric(10, 2)) keeps its type, so that its words stay the same
    return args[0]


def _array(args: Sequence[SqlType]) -> SqlType:
    return args[0] if args[0].kind is Kind.ARRAY else SqlType(Kind.ARRAY, element=args[0])


def _multirange(args: Sequence[SqlType]) -> SqlType:
    return multirange_of(range_type_of(args[0]))


_NUMBERS: Final = (INT2, INT4, INT8, NUMERIC, FLOAT4, FLOAT8)
_COMPARED: Final[tuple[ArgumentType, ...]] = (
    *_NUMBERS, TEXT, SqlType(Kind.BPCHAR), DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL, OID,
    *(SqlType(own.kind) for own in DEFINITIONS.values() if own.extremes),
)  # fmt: skip
_FLOATS: Final = SqlType(Kind.ARRAY, element=FLOAT8)
_INTERVALS: Final = SqlType(Kind.ARRAY, element=INTERVAL)


def _mean(argument: SqlType) -> SqlType:
    """The result type of a mean or a moment."""
    return FLOAT8 if argument in (FLOAT4, FLOAT8) else NUMERIC


def _sums(
    name: str,
    signatures: Iterable[tuple[SqlType, SqlType]],
    addends: Addends,
    finish: ResultRule,
    formula: FormulaRule | None = None,
    null_result: NullResult = NullResult.NO_VALUES,
    can_fail: bool = True,
) -> list[AggregateFunction]:
    """The overloads of an accumulable aggregate of one argument, by (argument, result)."""
    return [
        AggregateFunction(
            function_key(name, (a,)), name, (a,), r, AggregateKind.ACCUMULABLE, null_result, can_fail, addends, finish,
            formula,
        )
        for a, r in signatures
    ]  # fmt: skip


def _counts() -> list[AggregateFunction]:
    count = partial(
        AggregateFunction, name="count", result=INT8, kind=AggregateKind.ACCUMULABLE, null_result=NullResult.NEVER,
        can_fail=False, finish=results.counted, formula=result_formulas.counted,
    )  # fmt: skip
    return [count(key=COUNT_ROWS, args=()), count(key=COUNT_VALUES, args=(ANY,))]


def _totals() -> list[AggregateFunction]:
    sums = (
        (INT2, INT8), (INT4, INT8), (INT8, NUMERIC), (NUMERIC, NUMERIC), (FLOAT4, FLOAT4), (FLOAT8, FLOAT8),
        (INTERVAL, INTERVAL),
    )  # fmt: skip
    means = (*((a, _mean(a)) for a in _NUMBERS), (INTERVAL, INTERVAL))
    return [
        *_sums("sum", sums, Addends.VALUES, results.summed, result_formulas.summed),
        *_sums("avg", means, Addends.VALUES, results.averaged),
    ]


def _moments() -> list[AggregateFunction]:
    """variance and stddev; those of a sample are NULL for a single value."""
    sample, population = NullResult.POSSIBLE, NullResult.NO_VALUES
    made = []
    for name, moment, null_result in (
        ("stddev", moments.STDDEV_SAMP, sample), ("stddev_samp", moments.STDDEV_SAMP, sample),
        ("stddev_pop", moments.STDDEV_POP, population), ("variance", moments.VAR_SAMP, sample),
        ("var_samp", moments.VAR_SAMP, sample), ("var_pop", moments.VAR_POP, population),
    ):  # fmt: skip
        signatures = [(a, _mean(a)) for a in _NUMBERS]
        made += _sums(name, signatures, Addends.SQUARES, results.moment(moment), null_result=null_result)
    return made


def _truths_and_bits() -> list[AggregateFunction]:
    boolean, integers = ((BOOL, BOOL),), [(a, a) for a in (INT2, INT4, INT8)]
    made = []
    for name, finish, formula in (
        ("bool_and", results.all_true, result_formulas.all_true),
        ("every", results.all_true, result_formulas.all_true),
        ("bool_or", results.any_true, result_formulas.any_true),
    ):
        made += _sums(name, boolean, Addends.TRUTH, finish, formula, can_fail=False)
    made += _sums("bit_and", integers, Addends.BITS, results.bits(lambda times, count: times >= count))
    made += _sums("bit_or", integers, Addends.BITS, results.bits(lambda times, count: times > 0))
    made += _sums("bit_xor", integers, Addends.BITS, results.bits(lambda times, count: times & 1 > 0))
    return made


def _pairs() -> list[AggregateFunction]:
    """corr, covar_* and regr_* of (y, x)."""
    args = (FLOAT8, FLOAT8)
    pair = partial(
        AggregateFunction, args=args, result=FLOAT8, kind=AggregateKind.ACCUMULABLE, null_result=NullResult.POSSIBLE,
        addends=Addends.PAIRS,
    )  # fmt: skip
    made = [
        pair(key=function_key(name, args), name=name, finish=results.pairs(rule)) for name, rule in moments.PAIR_RULES
    ]
    count = pair(
        key=function_key("regr_count", args), name="regr_count", result=INT8, null_result=NullResult.NEVER,
        can_fail=False, finish=results.counted, formula=result_formulas.counted,
    )  # fmt: skip
    return [*made, count]


def _ordered() -> list[AggregateFunction]:
    def choice(name: str, argument: ArgumentType, extreme: Extreme | None) -> AggregateFunction:
        result = argument if isinstance(argument, SqlType) else _own
        return AggregateFunction(
            function_key(name, (argument,)), name, (argument,), result, AggregateKind.ORDERED, can_fail=False,
            extreme=extreme,
        )  # fmt: skip

    made = [choice("any_value", ANYELEMENT, None)]
    for argument in (ANYENUM, ANYARRAY, *_COMPARED):
        made += [choice("min", argument, Extreme.LEAST), choice("max", argument, Extreme.GREATEST)]
    return made


def _basic() -> list[AggregateFunction]:
    strings = [
        AggregateFunction(
            function_key("string_agg", (a, a)), "string_agg", (a, a), a, AggregateKind.BASIC, fold=folds.string_agg
        )
        for a in (TEXT, BYTEA)
    ]
    arrays = [
        AggregateFunction(
            function_key("array_agg", (a,)), "array_agg", (a,), _array, AggregateKind.BASIC, NullResult.NO_ROWS,
            fold=folds.array_agg, skips_nulls=False,
        )
        for a in (ANYNONARRAY, ANYARRAY)
    ]  # fmt: skip
    combined = (("bit_and", bits.bit_and), ("bit_or", bits.bit_or), ("bit_xor", bits.bit_xor))
    of_bits = [
        AggregateFunction(
            function_key(name, (bits.BIT,)), name, (bits.BIT,), bits.BIT, AggregateKind.BASIC, fold=folds.bits(rule)
        )
        for name, rule in combined
    ]
    return [*strings, *arrays, *of_bits, *_of_ranges(), *_of_json()]


def _of_json() -> list[AggregateFunction]:
    """json_agg, json_object_agg and their kind. What they gather is JSON text, which a function writes row by row."""
    made = []
    for type_, array, merged in (
        (JSON, json_folds.json_array, json_folds.json_object), (JSONB, json_folds.jsonb_array, json_folds.jsonb_object)
    ):  # fmt: skip
        prefix = type_.kind.value
        for strict in (False, True):
            suffix = "_strict" if strict else ""
            made.append(_gathered(f"{prefix}_agg{suffix}", (ANYELEMENT,), type_, f"{prefix}_element", array(strict)))
            for unique in (False, True):
                name = f"{prefix}_object_agg{'_unique' if unique else ''}{suffix}"
                fold = merged(strict, unique)
                made.append(_gathered(name, (ANY, ANY), type_, f"{prefix}_member{suffix}", fold))
    return made


def _gathered(
    name: str, args: tuple[ArgumentType, ...], result: SqlType, beside: str, fold: FoldRule
) -> AggregateFunction:
    return AggregateFunction(
        function_key(name, args), name, args, result, AggregateKind.BASIC, NullResult.NO_ROWS, fold=fold,
        skips_nulls=False, beside=function_key(beside, args),
    )  # fmt: skip


def _of_ranges() -> list[AggregateFunction]:
    return [
        AggregateFunction(
            function_key(name, (a,)), name, (a,), result, AggregateKind.BASIC, can_fail=False, fold=fold
        )
        for name, result, fold in (
            ("range_agg", _multirange, ranges.merged), ("range_intersect_agg", _own, ranges.intersected)
        )
        for a in (ANYRANGE, ANYMULTIRANGE)
    ]  # fmt: skip


def _ordered_sets() -> list[AggregateFunction]:
    """Ordered-set aggregates (WITHIN GROUP): the ordered argument, then the direct ones."""
    continuous = (
        (FLOAT8, FLOAT8, FLOAT8), (FLOAT8, _FLOATS, _FLOATS), (INTERVAL, FLOAT8, INTERVAL),
        (INTERVAL, _FLOATS, _INTERVALS),
    )  # fmt: skip
    return [
        *(
            AggregateFunction(
                function_key("percentile_cont", (a, f)), "percentile_cont", (a, f), r, AggregateKind.RANKED,
                interpolates=True,
            )
            for a, f, r in continuous
        ),
        *(
            AggregateFunction(
                function_key("percentile_disc", (ANYELEMENT, f)), "percentile_disc", (ANYELEMENT, f), _own,
                AggregateKind.RANKED,
            )
            for f in (FLOAT8, _FLOATS)
        ),
        AggregateFunction(
            function_key("mode", (ANYELEMENT,)), "mode", (ANYELEMENT,), _own, AggregateKind.MODE, can_fail=False
        ),
    ]  # fmt: skip


PYTHON: Final = AggregateFunction("python", "python", (), _own, AggregateKind.BASIC, NullResult.POSSIBLE)
"""All of the users' own, which ``Aggregate.python`` tells apart."""

_CALLED: Final = (
    *_counts(), *_basic(), *_ordered(), *_totals(), *_moments(), *_truths_and_bits(), *_pairs(),
)  # fmt: skip
_WITHIN: Final = tuple(_ordered_sets())
AGGREGATES: Final[dict[str, AggregateFunction]] = {f.key: f for f in (*_CALLED, *_WITHIN, PYTHON)}
ORDERED_SETS: Final = frozenset(f.name for f in _WITHIN)
"""The names of those that take WITHIN GROUP; the binder finds them in ``AGGREGATES`` by key."""
_BY_NAME: Final[dict[str, tuple[AggregateFunction, ...]]] = {
    name: tuple(f for f in _CALLED if f.name == name) for name in {f.name for f in _CALLED}
}
