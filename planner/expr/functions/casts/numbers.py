"""Casts among bool, integers, floats, oid and numeric."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Final

import numpy as np

from ivm.errors import SqlError
from ivm.formula import Register
from ivm.rows import Mask, Words
from ivm.words import FLOAT4, NAMED_OIDS, NUMERIC, Kind, SqlType, Storage
from planner.expr.comparison import Comparison
from planner.expr.functions.casts.registry import cast_per_value, cast_vectorised
from planner.expr.functions.formula import BITS, Beyond, FormulaSite
from planner.expr.functions.numbers import float_columns
from planner.expr.functions.numbers.float import overflow, rounded, underflow
from planner.expr.functions.numbers.integer import fails_range, out_of_range
from planner.expr.functions.table import CallSite, Made, Raises
from storage.text_columns import TooLarge, of_ids, rounded_decimals
from storage.types.codec import float_to_word, word_to_float
from storage.types.float_columns import decimal_floats, floats_of
from storage.types.numeric import (
    DIRECT_NAN,
    INLINE_LIMIT,
    INLINE_SCALE,
    POWERS,
    WIDE,
    aligned,
    decode_direct,
    decode_numeric,
    encode_direct,
    encode_numeric,
    inline_parts,
    inline_words,
)  # fmt: skip
from storage.types.text_number import fit_numeric

INTEGERS: Final = (Kind.INT2, Kind.INT4, Kind.INT8)
FLOATS: Final = (Kind.FLOAT4, Kind.FLOAT8)
REGS: Final = (*NAMED_OIDS, Kind.REGCONFIG, Kind.REGDICTIONARY)
OIDS: Final = (Kind.OID, *REGS)
_LEAST8: Final = -(2**63)
_UNSIGNED: Final = np.int64(0xFFFFFFFF)
_FEW: Final = 32
"""Up to so many rows are rounded one by one."""


def _same(_f: FormulaSite, a: Register) -> Register:
    return a


def _fitted(f: FormulaSite, a: Register) -> Register:
    return f.fit(a)


def _not_zero(f: FormulaSite, a: Register) -> Register:
    return f.compare(Comparison.NOT_EQUAL, a, f.constant(0))


def _decimal(f: FormulaSite, a: Register) -> Register:
    """Casts an integer, or a numeric stored as a scaled integer, to numeric without typmod."""
    source = f.args[0]
    if f.result != NUMERIC or source.storage is not Storage.DIRECT:
        raise Beyond
    return f.to_decimal(a, (source.scale or 0) if source.kind is Kind.NUMERIC else 0)


def _whole(f: FormulaSite, a: Register) -> Register:
    if f.args[0].storage is not Storage.NUMERIC:
        raise Beyond
    return f.from_decimal(a)


@cast_vectorised((Kind.INT2,), (Kind.INT4, Kind.INT8), total=True, follows=(1,), formula=_same)
@cast_vectorised((Kind.INT4,), (Kind.INT8,), total=True, follows=(1,), formula=_same)
@cast_vectorised(OIDS, (Kind.INT8,), total=True)
def widen(_site: CallSite, words: Words) -> Words:
    return words


@cast_vectorised((Kind.INT8,), (Kind.INT2, Kind.INT4), follows=(1,), formula=_fitted)
@cast_vectorised((Kind.INT4,), (Kind.INT2,), follows=(1,), formula=_fitted)
def narrow(site: CallSite, words: Words) -> Words:
    site.fail_where(fails_range(words, site.result), out_of_range(site.result))
    return words


@cast_vectorised((Kind.INT2, Kind.INT4), OIDS, total=True)
def to_oid(_site: CallSite, words: Words) -> Words:
    return words & _UNSIGNED


@cast_vectorised((Kind.INT8,), OIDS)
def big_to_oid(site: CallSite, words: Words) -> Words:
    site.fail_where((words < 0) | (words > _UNSIGNED), SqlError("22003", "OID out of range"))
    return words


@cast_vectorised(OIDS, (Kind.INT4,), total=True)
def from_oid(_site: CallSite, words: Words) -> Words:
    return (words << np.int64(32)) >> np.int64(32)


@cast_vectorised((Kind.REGPROC,), (Kind.REGPROCEDURE,), total=True)
@cast_vectorised((Kind.REGPROCEDURE,), (Kind.REGPROC,), total=True)
@cast_vectorised((Kind.REGOPER,), (Kind.REGOPERATOR,), total=True)
@cast_vectorised((Kind.REGOPERATOR,), (Kind.REGOPER,), total=True)
@cast_vectorised((Kind.OID,), REGS, total=True)
@cast_vectorised(REGS, (Kind.OID,), total=True)
def same_oid(_site: CallSite, words: Words) -> Words:
    return words


@cast_vectorised((Kind.INT4,), (Kind.BOOL,), total=True, formula=_not_zero)
def to_bool(_site: CallSite, words: Words) -> Words:
    truth: Words = (words != 0).astype(np.int64)
    return truth


@cast_vectorised((Kind.BOOL,), (Kind.INT4,), total=True, formula=_same)
def from_bool(_site: CallSite, words: Words) -> Words:
    return words


@cast_vectorised(INTEGERS, FLOATS, total=True)
def integer_to_float(site: CallSite, words: Words) -> Words:
    if site.result.kind is Kind.FLOAT4:
        return float_to_word(words.astype(np.float32).astype(np.float64))
    return float_to_word(words.astype(np.float64))


@cast_vectorised(FLOATS, INTEGERS)
def float_to_integer(site: CallSite, words: Words) -> Words:
    """Rounds half to even, as rint does."""
    values = np.rint(word_to_float(words))
    limit = float(2 ** (BITS[site.result.kind] - 1))
    bad = ~((values >= -limit) & (values < limit))
    if np.count_nonzero(bad):
        site.fail_where(bad, out_of_range(site.result))
        values = np.where(bad, 0.0, values)
    return values.astype(np.int64)


@cast_vectorised((Kind.FLOAT4,), (Kind.FLOAT8,), total=True)
def real_to_double(_site: CallSite, words: Words) -> Words:
    return words


@cast_vectorised((Kind.FLOAT8,), (Kind.FLOAT4,))
def double_to_real(site: CallSite, words: Words) -> Words:
    values = word_to_float(words)
    with np.errstate(all="ignore"):
        result = rounded(values, FLOAT4)
    site.fail_where(np.isinf(result) & ~np.isinf(values), overflow())
    site.fail_where((result == 0) & (values != 0), underflow())
    return float_to_word(result)


def fit(site: CallSite, value: Decimal) -> int:
    """The word of a value in the result's numeric type and typmod. Raises 22003."""
    target = site.result
    value = fit_numeric(value, target.precision, target.scale)
    if target.storage is Storage.DIRECT:
        return encode_direct(value, target)
    return encode_numeric(value, site.context.dictionary)


def _fit_rows(site: CallSite, rows: Words, result: Words, values: list[Decimal]) -> None:
    for row, value in zip(rows.tolist(), values, strict=True):
        try:
            result[row] = fit(site, value)
        except SqlError as error:
            site.fail(np.array([row]), error.with_traceback(None))


def _rescaled(mantissa: Words, places: Words | int) -> tuple[Words, Mask | bool]:
    """Mantissas with ``places`` more decimal digits (if negative, fewer: rounded half away from zero), and the rows
    where the result may be wrong because it could exceed 18 digits."""
    if not isinstance(places, int):
        first = int(places[0]) if len(places) else 0
        if np.count_nonzero(places != first):
            return _rescaled_each(mantissa, places)
        places = first
    if places == 0:
        return mantissa, False
    if places > 18:
        return mantissa, True
    if places > 0:
        return mantissa * POWERS[places], np.abs(mantissa) > 10 ** (18 - places)
    size = (np.abs(mantissa) // np.int64(10 ** min(-places, 18) // 2) + 1) // 2  # no sum that might overflow
    return np.where(mantissa < 0, -size, size), places < -18


def _rescaled_each(mantissa: Words, places: Words) -> tuple[Words, Mask]:
    up, down = np.clip(places, 0, 18), np.clip(-places, 0, 18)
    lost = (np.abs(places) > 18) | (np.abs(mantissa) > POWERS[18] // POWERS[up])
    size = np.abs(mantissa * POWERS[up])
    size = (size + POWERS[down] // 2) // POWERS[down]
    return np.where(mantissa < 0, -size, size), lost


@cast_vectorised(INTEGERS, (Kind.NUMERIC,), raises=Raises.TYPMOD, follows=(1,), formula=_decimal)
def integer_to_numeric(site: CallSite, words: Words) -> Words:
    return _to_numeric(site, words, 0, words == _LEAST8, words, None)


@cast_vectorised((Kind.NUMERIC,), (Kind.NUMERIC,), raises=Raises.TYPMOD, formula=_decimal)
def numeric_to_numeric(site: CallSite, words: Words) -> Words:
    """Casts a numeric to another typmod: rounds half away from zero; 22003 if it has too many digits."""
    source = site.args[0]
    if source.storage is Storage.DIRECT:
        return _to_numeric(site, words, source.scale or 0, words == DIRECT_NAN, words, source)
    if site.result.precision is None:
        return words
    mantissa, scales = inline_parts(words)
    return _to_numeric(site, mantissa, scales, (words & 1) != 0, words, source)


def _to_numeric(
    site: CallSite, mantissa: Words, scale: Words | int, special: Mask, words: Words, source: SqlType | None
) -> Words:
    """``special``: the rows whose mantissa is meaningless; ``source`` None: the argument is an integer."""
    target = site.result
    # an integer or a DIRECT numeric keeps its digits where the target has no typmod
    places = scale if target.precision is None else (target.scale or 0)
    assert isinstance(places, int)
    moved, lost = _rescaled(mantissa, places - scale)
    limit = 10**target.precision if target.precision is not None and target.precision <= 18 else 10**18
    if target.storage is not Storage.DIRECT:
        limit = min(limit, INLINE_LIMIT)
    slow = special | lost | (np.abs(moved) >= limit)
    if target.storage is Storage.DIRECT:
        result = moved
    elif places < 0:
        moved, far = aligned(moved, -places)
        slow |= far
        result = inline_words(moved, 0)
    elif places <= INLINE_SCALE:
        result = inline_words(moved, places)
    else:
        slow, result = np.ones(len(words), np.bool_), moved
    if np.count_nonzero(slow):
        rows = np.flatnonzero(slow)
        result = result.copy()  # it may be the argument itself
        if len(rows) > _FEW and source is not None and source.storage is Storage.NUMERIC and 0 <= places <= 17:
            rows = _from_texts(site, words, rows, places, limit, result)
        _fit_rows(site, rows, result, _datums(site, words[rows], source))
    return result


def _from_texts(site: CallSite, words: Words, rows: Words, places: int, limit: int, result: Words) -> Words:
    """Rounds those of the rows whose numerics are texts. Returns the rows that are left."""
    texts = rows[(words[rows] & 1) != 0]
    try:
        mantissas, rest = rounded_decimals(of_ids(words[texts], site.context.dictionary), places)
    except TooLarge:
        return rows
    rest |= np.abs(mantissas) >= limit
    done = texts[~rest]
    direct = site.result.storage is Storage.DIRECT
    result[done] = mantissas[~rest] if direct else inline_words(mantissas[~rest], places)
    return np.setdiff1d(rows, done, assume_unique=True)


def _datums(site: CallSite, words: Words, source: SqlType | None) -> list[Decimal]:
    if source is None:
        return [Decimal(w) for w in words.tolist()]
    if source.storage is Storage.DIRECT:
        return [decode_direct(w, source) for w in words.tolist()]
    return [decode_numeric(w, site.context.dictionary) for w in words.tolist()]


@cast_per_value((Kind.FLOAT4, Kind.FLOAT8), (Kind.NUMERIC,), needs_site=True, vector=float_columns.to_numeric)
def float_to_numeric(site: CallSite, value: float) -> Decimal:
    """Keeps the significant digits that the type guarantees (15 and 6), as Postgres does."""
    if not math.isfinite(value):
        return fit_numeric(Decimal(value), site.result.precision, site.result.scale)
    digits = 6 if site.args[0].kind is Kind.FLOAT4 else 15
    exact = Decimal(f"{value:.{digits}g}")
    if exact.as_tuple().exponent > 0:  # type: ignore[operator]
        exact = WIDE.quantize(exact, Decimal(1))
    return fit_numeric(exact.copy_abs() if exact.is_zero() else exact, site.result.precision, site.result.scale)


def _to_floats(site: CallSite, words: Words) -> Made:
    """NaN, infinities, and what is out of range are left."""
    source = site.args[0]
    if source.storage is Storage.DIRECT:
        mantissas, scales, texts = words, np.full(len(words), source.scale or 0), np.zeros(len(words), np.bool_)
    else:
        (mantissas, scales), texts = inline_parts(words), (words & 1) != 0
    values, rest = decimal_floats(mantissas, scales)
    rows = np.flatnonzero(texts)
    if len(rows):
        read = floats_of(of_ids(words[rows], site.context.dictionary))
        values[rows], rest[rows] = read, ~np.isfinite(read) | (read == 0)
    if site.result.kind is Kind.FLOAT4:
        with np.errstate(all="ignore"):
            real = values.astype(np.float32).astype(np.float64)
        rest |= np.isinf(real) | ((real == 0) & (values != 0))
        values = real
    return Made(float_to_word(np.where(rest, 0.0, values)), None, rest)


@cast_per_value((Kind.NUMERIC,), FLOATS, needs_site=True, vector=_to_floats)
def numeric_to_float(site: CallSite, value: Decimal) -> float:
    """The nearest double or real; 22003 if out of range."""
    real = site.result.kind is Kind.FLOAT4
    result = float(value)
    if real:
        with np.errstate(all="ignore"):
            result = float(np.float32(result))
    if value.is_finite() and (math.isinf(result) or (result == 0 and not value.is_zero())):
        name = "real" if real else "double precision"
        raise SqlError("22003", f'"{value:f}" is out of range for type {name}')
    return result + 0.0


@cast_vectorised((Kind.NUMERIC,), INTEGERS, formula=_whole)
def numeric_to_integer(site: CallSite, words: Words) -> Words:
    """Rounds half away from zero."""
    source = site.args[0]
    if source.storage is Storage.DIRECT:
        (result, lost), special = _rescaled(words, -(source.scale or 0)), words == DIRECT_NAN
    else:
        mantissa, scale = inline_parts(words)
        (result, lost), special = _rescaled(mantissa, -scale), (words & 1) != 0
    slow = special | lost
    if np.count_nonzero(slow):
        rows = np.flatnonzero(slow)
        result = result.copy()  # it may be the argument itself
        for row, value in zip(rows.tolist(), _datums(site, words[rows], source), strict=True):
            _round_row(site, row, value, result)
    if site.result.kind is not Kind.INT8:
        site.fail_where(fails_range(result, site.result), out_of_range(site.result))
    return result


def _round_row(site: CallSite, row: int, value: Decimal, result: Words) -> None:
    result[row] = 0
    names = {Kind.INT2: "smallint", Kind.INT4: "integer", Kind.INT8: "bigint"}
    if not value.is_finite():
        what = "NaN" if value.is_nan() else "infinity"
        site.fail(np.array([row]), SqlError("0A000", f"cannot convert {what} to {names[site.result.kind]}"))
        return
    whole = int(WIDE.quantize(value, Decimal(1)))
    if -(2**63) <= whole < 2**63:
        result[row] = whole
    else:
        site.fail(np.array([row]), out_of_range(site.result))
