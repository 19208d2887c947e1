"""Comparison operators for every comparable type, and the planner's keys (``planner.expr.ordering``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ivm.formula import TRUE, Register
from ivm.rows import Mask, Vector, Words
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
    JSONB,
    NAME,
    NUMERIC,
    OID,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
    SqlType,
    Storage,
)  # fmt: skip
from planner.expr import ordering
from planner.expr.comparison import Comparison
from planner.expr.functions.formula import Beyond, FormulaRule, FormulaSite
from planner.expr.functions.table import (
    ANY,
    ANYARRAY,
    ANYCOMPATIBLE,
    ANYENUM,
    ANYMULTIRANGE,
    ANYRANGE,
    ArgumentType,
    CallSite,
    Raises,
    vectorised,
)
from planner.expr.ordering import is_its_own_order
from storage.types.definitions import DEFINITIONS
from storage.types.numeric import SCALE_BITS, aligned, inline_parts

DISTINCT: Final = "is distinct from"
NOT_DISTINCT: Final = "is not distinct from"
EQUALITY_CLASS: Final = "equality_class"
ORDER_PREFIX: Final = "order_prefix"
ORDER_BYTES: Final = "order_bytes"
BPCHAR: Final = SqlType(Kind.BPCHAR)
RECORD: Final = SqlType(Kind.RECORD)
_INTEGERS: Final = (INT2, INT4, INT8)
_FLOATS: Final = (FLOAT4, FLOAT8)
_OTHERS: Final[tuple[ArgumentType, ...]] = (
    BOOL, NUMERIC, TEXT, BPCHAR, NAME, BYTEA, CHAR1, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL, JSONB, OID,
    ANYARRAY, ANYENUM, ANYRANGE, ANYMULTIRANGE, RECORD,
    *(SqlType(own.kind) for own in DEFINITIONS.values() if own.compared and not own.family),
)  # fmt: skip
_PAIRS: Final[tuple[tuple[ArgumentType, ArgumentType], ...]] = (
    *((a, b) for a in _INTEGERS for b in _INTEGERS),
    *((a, b) for a in _FLOATS for b in _FLOATS),
    *((a, a) for a in _OTHERS),
    (NAME, TEXT),
    (TEXT, NAME),
)
PATTERN_ORDER: Final = {
    "~<~": Comparison.LESS, "~<=~": Comparison.NOT_GREATER, "~>~": Comparison.GREATER, "~>=~": Comparison.NOT_LESS,
}  # fmt: skip
"""The operators of text_pattern_ops, which compare by code point as the others do here."""
Compare = Callable[[Any, Any], Mask]
_OPERATORS: Final[dict[Comparison, Compare]] = {
    Comparison.EQUAL: np.equal, Comparison.NOT_EQUAL: np.not_equal, Comparison.LESS: np.less,
    Comparison.NOT_GREATER: np.less_equal, Comparison.GREATER: np.greater, Comparison.NOT_LESS: np.greater_equal,
}  # fmt: skip
_EQUALITY: Final = (Comparison.EQUAL, Comparison.NOT_EQUAL)


def _plain(operator: Compare) -> Callable[[CallSite, Words, Words], Words]:
    """Comparison of DIRECT types, whose words compare as their values do (except -0.0 and 0.0, see ``_floats``)."""

    def implementation(_site: CallSite, left: Words, right: Words) -> Words:
        return operator(left, right).astype(np.int64)

    return implementation


def _floats(operator: Compare) -> Callable[[CallSite, Words, Words], Words]:
    def implementation(site: CallSite, left: Words, right: Words) -> Words:
        dictionary = site.context.dictionary
        a, b = (ordering.equality_class(FLOAT8, w, dictionary) for w in (left, right))
        return operator(a, b).astype(np.int64)

    return implementation


def _identical(operator: Compare) -> Callable[[CallSite, Words, Words], Words]:
    """Equality of interned types: compares the words of their equality classes."""

    def implementation(site: CallSite, left: Words, right: Words) -> Words:
        dictionary = site.context.dictionary
        a = ordering.equality_class(site.args[0], left, dictionary)
        b = ordering.equality_class(site.args[1], right, dictionary)
        return operator(a, b).astype(np.int64)

    return implementation


def _ordered(operator: Compare) -> Callable[[CallSite, Words, Words], Words]:
    def implementation(site: CallSite, left: Words, right: Words) -> Words:
        signs = ordering.compare(site.args[0], left, right, site.context.dictionary)
        return operator(signs, 0).astype(np.int64)

    return implementation


def _numerics(operator: Compare) -> Callable[[CallSite, Words, Words], Words]:
    slow = _ordered(operator)

    def implementation(site: CallSite, left: Words, right: Words) -> Words:
        if np.count_nonzero((left | right) & 1):
            return slow(site, left, right)
        if not np.count_nonzero((left ^ right) & SCALE_BITS):
            return operator(left, right).astype(np.int64)
        (m1, s1), (m2, s2) = inline_parts(left), inline_parts(right)
        (a, lost_a), (b, lost_b) = aligned(m1, np.maximum(s2 - s1, 0)), aligned(m2, np.maximum(s1 - s2, 0))
        if np.count_nonzero(lost_a | lost_b):
            return slow(site, left, right)
        return operator(a, b).astype(np.int64)

    return implementation


def _implementation(type: ArgumentType, comparison: Comparison) -> Callable[[CallSite, Words, Words], Words]:
    operator = _OPERATORS[comparison]
    if type in _FLOATS:
        return _floats(operator)
    if type == NUMERIC:
        return _numerics(operator)
    if type is ANYENUM or (isinstance(type, SqlType) and type.storage is Storage.DIRECT):
        return _plain(operator)
    return _identical(operator) if comparison in _EQUALITY else _ordered(operator)


def _compared(comparison: Comparison) -> FormulaRule:
    def rule(f: FormulaSite, a: Register, b: Register) -> Register:
        if comparison in _EQUALITY or NUMERIC in f.args:
            a, b = f.equal_words(a, b)
        elif not all(is_its_own_order(t) for t in f.args):
            raise Beyond
        return f.compare(comparison, a, b)

    return rule


for _left, _right in _PAIRS:
    _direct = _left is ANYENUM or (isinstance(_left, SqlType) and _left.storage is Storage.DIRECT)
    for _comparison in Comparison:
        vectorised(
            _comparison.value, (_left, _right), BOOL, total=_direct, raises=Raises.NEVER, makes_null=False,
            comparison=_comparison, formula=_compared(_comparison),
        )(_implementation(_left, _comparison))  # fmt: skip


for _type in (TEXT, BPCHAR):
    for _symbol, _comparison in PATTERN_ORDER.items():
        vectorised(_symbol, (_type, _type), BOOL, raises=Raises.NEVER, makes_null=False)(
            _implementation(_type, _comparison)
        )


def _nullif_formula(f: FormulaSite, a: Register, b: Register) -> Register:
    same = f.compare(Comparison.EQUAL, *f.equal_words(a, b))
    return f.choose(f.test(same, TRUE), f.constant(None), a)


def _order_formula(f: FormulaSite, a: Register) -> Register:
    if not is_its_own_order(f.args[0]):
        raise Beyond
    return a


def _both(left: Vector, right: Vector) -> tuple[Mask, Mask]:
    """Masks of the rows where both are NULL, and where exactly one is."""
    zero = np.zeros(len(left.words), np.bool_)
    a = zero if left.nulls is None else left.nulls
    b = zero if right.nulls is None else right.nulls
    return a & b, a ^ b


def _distinct(site: CallSite, left: Vector, right: Vector) -> Mask:
    both, one = _both(left, right)
    result = one.copy()
    rows = np.flatnonzero(~(both | one))
    same = ordering.equal(site.args[0], left.words[rows], right.words[rows], site.context.dictionary)
    result[rows] = ~same
    return result


@vectorised(
    DISTINCT, (ANYCOMPATIBLE, ANYCOMPATIBLE), BOOL, strict=False, key_is_name=True, raises=Raises.NEVER,
    commutative=True, formula=lambda f, a, b: f.distinct(*f.equal_words(a, b)),
)  # fmt: skip
def is_distinct_from(site: CallSite, left: Vector, right: Vector) -> Words:
    return _distinct(site, left, right).astype(np.int64)


@vectorised(
    NOT_DISTINCT, (ANYCOMPATIBLE, ANYCOMPATIBLE), BOOL, strict=False, key_is_name=True, raises=Raises.NEVER,
    commutative=True, formula=lambda f, a, b: f.not_distinct(*f.equal_words(a, b)),
)  # fmt: skip
def is_not_distinct_from(site: CallSite, left: Vector, right: Vector) -> Words:
    return (~_distinct(site, left, right)).astype(np.int64)


@vectorised(
    "nullif", (ANYCOMPATIBLE, ANYCOMPATIBLE), ANYCOMPATIBLE, strict=False, key_is_name=True, raises=Raises.NEVER,
    formula=_nullif_formula,
)  # fmt: skip
def nullif(site: CallSite, left: Vector, right: Vector) -> Vector:
    """NULL if the two are equal, else the first."""
    both, one = _both(left, right)
    nulls = both.copy() if left.nulls is None else left.nulls.copy()
    rows = np.flatnonzero(~(both | one))
    nulls[rows] = ordering.equal(site.args[0], left.words[rows], right.words[rows], site.context.dictionary)
    return Vector(np.where(nulls, 0, left.words), nulls)


def _extreme(site: CallSite, vectors: tuple[Vector, ...], sign: int) -> Vector:
    words = vectors[0].words.copy()
    nulls = np.zeros(len(words), np.bool_) if vectors[0].nulls is None else vectors[0].nulls.copy()
    for vector in vectors[1:]:
        present = np.ones(len(words), np.bool_) if vector.nulls is None else ~vector.nulls
        rows = np.flatnonzero(present & ~nulls)
        signs = ordering.compare(site.args[0], vector.words[rows], words[rows], site.context.dictionary)
        better = rows[signs == sign]
        first = np.flatnonzero(present & nulls)
        for chosen in (better, first):
            words[chosen] = vector.words[chosen]
        nulls[first] = False
    return Vector(words, nulls if np.count_nonzero(nulls) else None)


@vectorised(
    "greatest", (ANYCOMPATIBLE,), ANYCOMPATIBLE, strict=False, variadic=True, key_is_name=True, raises=Raises.NEVER
)
def greatest(site: CallSite, *vectors: Vector) -> Vector:
    """The largest that is not NULL; the first of equals."""
    return _extreme(site, vectors, 1)


@vectorised(
    "least", (ANYCOMPATIBLE,), ANYCOMPATIBLE, strict=False, variadic=True, key_is_name=True, raises=Raises.NEVER
)
def least(site: CallSite, *vectors: Vector) -> Vector:
    """The smallest that is not NULL; the first of equals."""
    return _extreme(site, vectors, -1)


@vectorised(EQUALITY_CLASS, (ANY,), ANY, key_is_name=True, raises=Raises.NEVER, internal=True)
def equality_class(site: CallSite, words: Words) -> Words:
    """The canonical word of x's equality class, of x's type."""
    return ordering.equality_class(site.args[0], words, site.context.dictionary)


@vectorised(ORDER_PREFIX, (ANY,), INT8, key_is_name=True, raises=Raises.NEVER, internal=True, formula=_order_formula)
def order_prefix(site: CallSite, words: Words) -> Words:
    """A word that preserves order; x itself for DIRECT types."""
    return ordering.order_prefix(site.args[0], words, site.context.dictionary)


@vectorised(ORDER_BYTES, (ANY,), BYTEA, key_is_name=True, raises=Raises.NEVER, internal=True)
def order_bytes(site: CallSite, words: Words) -> Words:
    """The id of bytes that order values with equal prefixes."""
    return ordering.order_bytes(site.args[0], words, site.context.dictionary)
