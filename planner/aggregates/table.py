"""The aggregate functions, and how each is laid out for the engine. ``planner/aggregates/reducers.py`` computes them.

What PLANNER composes (rows of an arrangement are [key words | val words], diffs are vectors):

**accumulable** (count, sum, avg, bool_and, stddev, …): all of a Reduce's accumulable aggregates share one node::

    calls  = tuple(AggregateCall(key, arg column positions, arg types), …)     # FILTER gone: see ``without_filter``
    layout = Accumulation(calls)                                               # planner/aggregates/accumulable.py
    FlatMap:  e = layout.expand(vectors, count, dictionary)
              rows    = [key words of row e.source[i] | e.slots[i] if layout.val_width]   (e.source None: one for one)
              weights = e.weights, int64[m, layout.diff_width]                 # diff column 0 counts the group's rows
    Arrange:  key = the group's key words (null words included), val_width = layout.val_width (0 or 1), order WORD
    Reduce:   Accumulate(layout, dictionary) → vals row = pack(layout.schema): one word for each call, in order, then
              null words if any is nullable (all but count are). No row when the group counts <= 0 rows.

``slot`` 0 is the group's main row; other slots carry limbs of exact float and numeric sums (diff column 0 only).
A Reduce without keys must have a row for no input: concat a Constant of val (0,) * val_width with weights
``layout.empty_weights`` (its row count only; it adds to no aggregate). DISTINCT aggregates: make (key, arg by equality
class) distinct first, then lay them out the same way and join the results on the key.

**ordered** (min, max, any_value): one arrangement and Reduce each, limit 1::

    layout = ordered_layout(aggregate)          # planner/aggregates/reducers.py
    Arrange:  [key | the word of each of layout.exprs (null bits forgotten)], order = (WORD,) * key + layout.order
    Reduce:   layout.reducer → vals row = [value word, null word]; no null word if neither aggregate nor argument is
              nullable (reducer.out_width tells).

**basic** (string_agg, array_agg, users' own in Python): one arrangement and Reduce each, from all the rows that count::

    layout = basic_layout(aggregate, dictionary)    # the same fields; vals row = [value word, null word]

**ranked** (percentile_cont, percentile_disc): one Reduce each, of the rows at a few ranks, which the engine finds by
search (``ivm/kernels/rank.py``); ``args`` are what is ordered and the fraction, an expression without columns::

    layout = percentile_layout(aggregate, percentile(aggregate, context))    # the same fields

**mode**: counts by (key, value), themselves arranged by (key, count downwards, value): ``planner/lower/reduce.py``.

The others have ``layout.empty_row``, the Constant val words to concat when there are no keys. ORDER BY and FILTER are
in the layout. DISTINCT: for ordered ones drop it (it changes nothing); basic ones do it themselves when there is no
ORDER BY of another expression (Postgres requires that too). An aggregate's argument may be of type numeric(p, s).

NULL rules: count is never NULL, every other aggregate of no non-NULL input is (``result_nullable``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from ivm.errors import unsupported
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
    NUMERIC,
    OID,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
    SqlType,
)  # fmt: skip
from planner.expr.functions.boolean import IS_NOT_NULL
from planner.expr.functions.table import ANY, ANYARRAY, ANYELEMENT, ANYENUM, ANYNONARRAY, ArgumentType, function_key
from planner.expr.scalar import Aggregate, Call, Case, Literal, Scalar


class AggregateKind(Enum):
    """How the engine maintains an aggregate, see the module's text."""

    ACCUMULABLE = "accumulable"
    ORDERED = "ordered"
    BASIC = "basic"
    RANKED = "ranked"
    MODE = "mode"


class Family(Enum):
    """What is computed; ``planner/aggregates/accumulable.py``, ``planner/aggregates/reducers.py`` have one
    implementation for each."""

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    VAR_SAMP = "var_samp"
    VAR_POP = "var_pop"
    STDDEV_SAMP = "stddev_samp"
    STDDEV_POP = "stddev_pop"
    BOOL_AND = "bool_and"
    BOOL_OR = "bool_or"
    MIN = "min"
    MAX = "max"
    ANY_VALUE = "any_value"
    STRING_AGG = "string_agg"
    ARRAY_AGG = "array_agg"
    BIT_AND = "bit_and"
    BIT_OR = "bit_or"
    BIT_XOR = "bit_xor"
    PERCENTILE_CONT = "percentile_cont"
    PERCENTILE_DISC = "percentile_disc"
    MODE = "mode"
    CORR = "corr"
    COVAR_POP = "covar_pop"
    COVAR_SAMP = "covar_samp"
    REGR_AVGX = "regr_avgx"
    REGR_AVGY = "regr_avgy"
    REGR_COUNT = "regr_count"
    REGR_INTERCEPT = "regr_intercept"
    REGR_R2 = "regr_r2"
    REGR_SLOPE = "regr_slope"
    REGR_SXX = "regr_sxx"
    REGR_SXY = "regr_sxy"
    REGR_SYY = "regr_syy"
    PYTHON = "python"


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """One aggregate overload. ``result`` None: the (first) argument's own type, an array of it for array_agg."""

    key: str
    name: str
    args: tuple[ArgumentType, ...]
    result: SqlType | None
    kind: AggregateKind
    family: Family

    def result_type(self, args: Sequence[SqlType]) -> SqlType:
        """The result's type for arguments of these types."""
        if self.result is not None:
            return self.result
        if self.family is Family.ARRAY_AGG:
            if args[0].kind is Kind.RECORD:
                raise unsupported("an array of rows")
            return args[0] if args[0].kind is Kind.ARRAY else SqlType(Kind.ARRAY, element=args[0])
        # min(numeric(10, 2)) stays what it is, so that its words do too
        return args[0]


def aggregate_overloads(name: str) -> tuple[AggregateFunction, ...]:
    """Every overload of an aggregate's (lower-case) name; () when it is no aggregate."""
    return _BY_NAME.get(name, ())


def result_nullable(function: AggregateFunction, args_nullable: Sequence[bool], grouped: bool, filtered: bool) -> bool:
    """Whether the result may be NULL: ``grouped`` tells that there are keys, so that no group is empty."""
    if function.family in COUNTS:
        return False
    if function.family in PAIRS or function.family is Family.PYTHON:
        return True
    if function.family in (Family.VAR_SAMP, Family.STDDEV_SAMP):
        return True
    if function.family is Family.ARRAY_AGG:
        return not grouped or filtered
    return not grouped or filtered or any(args_nullable[:1])


def without_filter(aggregate: Aggregate) -> Aggregate:
    """An accumulable or ordered aggregate with its FILTER moved into a CASE (they ignore NULLs, so this is equal)."""
    if aggregate.filter is None:
        return aggregate
    if aggregate.function == "count(*)":
        counted = Case(((aggregate.filter, Literal(True, BOOL)),), Literal(None, BOOL), BOOL)
        return replace(aggregate, function="count(any)", args=(counted,), filter=None)
    first, *rest = aggregate.args
    return replace(aggregate, args=(_where(aggregate.filter, first), *rest), filter=None)


def _where(condition: Scalar, value: Scalar) -> Scalar:
    return Case(((condition, value),), Literal(None, value.type), value.type)


def of_pairs(aggregate: Aggregate) -> Aggregate:
    """An aggregate of pairs without FILTER, with both arguments NULL where either is."""
    if len(aggregate.args) != 2 or AGGREGATES[aggregate.function].family not in PAIRS:
        return aggregate
    y, x = aggregate.args
    return replace(aggregate, args=(_where(_present(x), y), _where(_present(y), x)))


def _present(value: Scalar) -> Scalar:
    return Call(IS_NOT_NULL, (value,), BOOL, False)


PAIRS: Final = (
    Family.CORR, Family.COVAR_POP, Family.COVAR_SAMP, Family.REGR_AVGX, Family.REGR_AVGY, Family.REGR_COUNT,
    Family.REGR_INTERCEPT, Family.REGR_R2, Family.REGR_SLOPE, Family.REGR_SXX, Family.REGR_SXY, Family.REGR_SYY,
)  # fmt: skip
COUNTS: Final = (Family.COUNT, Family.REGR_COUNT)
BITS: Final = (Family.BIT_AND, Family.BIT_OR, Family.BIT_XOR)

_NUMBERS: Final = (INT2, INT4, INT8, NUMERIC, FLOAT4, FLOAT8)
_ORDERED: Final = (*_NUMBERS, TEXT, SqlType(Kind.BPCHAR), DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL, OID)
_SUMS: Final = {
    INT2: INT8, INT4: INT8, INT8: NUMERIC, NUMERIC: NUMERIC, FLOAT4: FLOAT4, FLOAT8: FLOAT8, INTERVAL: INTERVAL,
}  # fmt: skip
_MOMENTS: Final = {
    "stddev": Family.STDDEV_SAMP, "stddev_samp": Family.STDDEV_SAMP, "stddev_pop": Family.STDDEV_POP,
    "variance": Family.VAR_SAMP, "var_samp": Family.VAR_SAMP, "var_pop": Family.VAR_POP,
}  # fmt: skip
_TRUTH: Final = {"bool_and": Family.BOOL_AND, "every": Family.BOOL_AND, "bool_or": Family.BOOL_OR}
_BITS: Final = {"bit_and": Family.BIT_AND, "bit_or": Family.BIT_OR, "bit_xor": Family.BIT_XOR}


def _make(
    name: str, args: tuple[ArgumentType, ...], result: SqlType | None, kind: AggregateKind, family: Family
) -> AggregateFunction:
    return AggregateFunction(function_key(name, args), name, args, result, kind, family)


def _floating(argument: SqlType) -> SqlType:
    return FLOAT8 if argument in (FLOAT4, FLOAT8) else NUMERIC


def _registry() -> list[AggregateFunction]:
    accumulable, ordered, basic = AggregateKind.ACCUMULABLE, AggregateKind.ORDERED, AggregateKind.BASIC
    made = [
        AggregateFunction("count(*)", "count", (), INT8, accumulable, Family.COUNT),
        _make("count", (ANY,), INT8, accumulable, Family.COUNT),
        _make("string_agg", (TEXT, TEXT), TEXT, basic, Family.STRING_AGG),
        _make("string_agg", (BYTEA, BYTEA), BYTEA, basic, Family.STRING_AGG),
        _make("array_agg", (ANYNONARRAY,), None, basic, Family.ARRAY_AGG),
        _make("array_agg", (ANYARRAY,), None, basic, Family.ARRAY_AGG),
        _make("any_value", (ANYELEMENT,), None, ordered, Family.ANY_VALUE),
        _make("min", (ANYENUM,), None, ordered, Family.MIN),
        _make("max", (ANYENUM,), None, ordered, Family.MAX),
        _make("min", (ANYARRAY,), None, ordered, Family.MIN),
        _make("max", (ANYARRAY,), None, ordered, Family.MAX),
    ]
    made += [_make("sum", (a,), r, accumulable, Family.SUM) for a, r in _SUMS.items()]
    made += [_make("avg", (a,), _floating(a), accumulable, Family.AVG) for a in _NUMBERS]
    made += [_make("avg", (INTERVAL,), INTERVAL, accumulable, Family.AVG)]
    made += [_make(n, (a,), _floating(a), accumulable, f) for n, f in _MOMENTS.items() for a in _NUMBERS]
    made += [_make(n, (BOOL,), BOOL, accumulable, f) for n, f in _TRUTH.items()]
    made += [_make(n, (a,), a, accumulable, f) for n, f in _BITS.items() for a in (INT2, INT4, INT8)]
    made += [_make("min", (a,), a, ordered, Family.MIN) for a in _ORDERED]
    made += [_make("max", (a,), a, ordered, Family.MAX) for a in _ORDERED]
    made += [
        _make(f.value, (FLOAT8, FLOAT8), INT8 if f is Family.REGR_COUNT else FLOAT8, accumulable, f) for f in PAIRS
    ]
    return made


_FLOATS: Final = SqlType(Kind.ARRAY, element=FLOAT8)
_INTERVALS: Final = SqlType(Kind.ARRAY, element=INTERVAL)
_WITHIN: Final = (
    *(
        _make("percentile_cont", (a, f), r, AggregateKind.RANKED, Family.PERCENTILE_CONT)
        for a, f, r in (
            (FLOAT8, FLOAT8, FLOAT8), (FLOAT8, _FLOATS, _FLOATS), (INTERVAL, FLOAT8, INTERVAL),
            (INTERVAL, _FLOATS, _INTERVALS),
        )
    ),
    _make("percentile_disc", (ANYELEMENT, FLOAT8), None, AggregateKind.RANKED, Family.PERCENTILE_DISC),
    _make("percentile_disc", (ANYELEMENT, _FLOATS), None, AggregateKind.RANKED, Family.PERCENTILE_DISC),
    _make("mode", (ANYELEMENT,), None, AggregateKind.MODE, Family.MODE),
)  # fmt: skip
"""Those that the binder makes of WITHIN GROUP, by key only."""

PYTHON: Final = AggregateFunction("python", "python", (), None, AggregateKind.BASIC, Family.PYTHON)
"""All of the users' own, which ``Aggregate.python`` tells apart."""

AGGREGATES: Final[dict[str, AggregateFunction]] = {f.key: f for f in (*_registry(), *_WITHIN, PYTHON)}
_BY_NAME: Final[dict[str, tuple[AggregateFunction, ...]]] = {
    name: tuple(f for f in _registry() if f.name == name) for name in {f.name for f in _registry()}
}
