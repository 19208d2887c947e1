"""Which rows TABLESAMPLE keeps: those the hash of whose number, or of whose block's number, is low enough."""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Vector, Words
from ivm.words import BOOL, FLOAT8, INT8
from planner.expr.functions.table import CallSite, vectorised
from storage.types.codec import word_to_float

SAMPLED: Final = "TABLESAMPLE_REPEATABLE"
SAMPLED_ANEW: Final = "TABLESAMPLE"
_NO_PERCENTAGE: Final = SqlError("2202H", "TABLESAMPLE parameter cannot be null")
_NO_SEED: Final = SqlError("2202G", "TABLESAMPLE REPEATABLE parameter cannot be null")
_RANGE: Final = SqlError("2202H", "sample percentage must be between 0 and 100")


@vectorised(SAMPLED, (INT8, FLOAT8, FLOAT8), BOOL, strict=False, volatility="volatile", key_is_name=True)
def sampled(site: CallSite, number: Vector, percentage: Vector, seed: Vector) -> Vector:
    """Whether a number is in a sample that a seed repeats."""
    if seed.nulls is not None:
        site.fail_where(seed.nulls, _NO_SEED)
    return _kept(site, number.words, percentage, seed.words)


@vectorised(SAMPLED_ANEW, (INT8, FLOAT8), BOOL, strict=False, volatility="volatile", key_is_name=True)
def sampled_anew(site: CallSite, number: Vector, percentage: Vector) -> Vector:
    """The same for a sample of one statement."""
    seed = np.full(len(number.words), site.context.statement_now, np.int64)
    return _kept(site, number.words, percentage, seed)


def _kept(site: CallSite, numbers: Words, percentage: Vector, seeds: Words) -> Vector:
    if percentage.nulls is not None:
        site.fail_where(percentage.nulls, _NO_PERCENTAGE)
    percent = word_to_float(np.ascontiguousarray(percentage.words))
    within = (percent >= 0) & (percent <= 100)
    site.fail_where(~within if percentage.nulls is None else ~within & ~percentage.nulls, _RANGE)
    cutoff = np.rint(np.where(within, percent, 0) / 100 * 2.0**32)
    hashes = _mixed(numbers.view(np.uint64) ^ _mixed(seeds.view(np.uint64))) >> np.uint64(32)
    return Vector((hashes < cutoff).astype(np.int64))


def _mixed(words: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """A hash of each word (the finalizer of SplitMix64; Steele, Lea and Flood, OOPSLA 2014)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
