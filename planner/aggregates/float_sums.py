"""Exact sums of doubles of many groups at once, rounded once each."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ivm.rows import Words
from planner.aggregates.exact_sums import FLOAT_BIAS, NAN

ROWS: Final = 1 << 14
"""Groups that are rounded together."""
_DIGIT: Final = np.int64(0xFFFFFFFF)


def rounded(codes: Words, amounts: Words) -> NDArray[np.float64] | None:
    """The sums of ``amounts`` int64[n, k] limbs with ``codes`` int64[k], which ascend; infinite beyond the largest
    double. None if a value is not finite. Cost: n for each limb from the first to the last."""
    special = codes >= NAN
    if amounts[:, special].any():
        return None
    codes, amounts = codes[~special], amounts[:, ~special]
    if not len(codes):
        return np.zeros(len(amounts))
    parts = [_rounded(codes, amounts[i : i + ROWS]) for i in range(0, len(amounts), ROWS)]
    return np.concatenate([np.zeros(0), *parts])


def _rounded(codes: Words, amounts: Words) -> NDArray[np.float64]:
    least = int(codes[0])
    # two limbs below for the third digit of small sums, two above for carries
    digits = np.zeros((len(amounts), int(codes[-1]) - least + 5), np.int64)
    digits[:, codes - least + 2] = amounts
    negative = _carried(digits.copy())[:, -1] < 0
    digits[negative] *= -1
    _carried(digits)
    there = digits != 0
    top = digits.shape[1] - 1 - np.argmax(there[:, ::-1], axis=1)
    top = np.where(there.any(axis=1), np.maximum(top, 2), 2)
    row = np.arange(len(digits))
    high, middle, low = (digits[row, top - i].astype(np.uint64) for i in range(3))
    below = np.concatenate([np.zeros((len(digits), 1), np.bool_), np.logical_or.accumulate(there, axis=1)], axis=1)
    # high < 2**32 has ``length`` bits: the 64 bits from its first one on, the last of them set if any bit below is
    length = np.frexp(high.astype(np.float64))[1].astype(np.uint64)
    width = np.uint64(32)
    whole = (high << (width - length) << width) | (middle << (width - length)) | (low >> length)
    rest = (low & ((np.uint64(1) << length) - np.uint64(1))) != 0
    whole |= (rest | below[row, top - 2]).astype(np.uint64)
    exponent = 32 * (top - 2 - 2 + least) - FLOAT_BIAS + length.astype(np.int64)
    with np.errstate(over="ignore"):
        found: NDArray[np.float64] = np.ldexp(whole.astype(np.float64), exponent)
    found[negative] *= -1
    return found


def _carried(digits: Words) -> Words:
    """The same numbers with digits of 32 bits, apart from the last, which has the sign."""
    for i in range(digits.shape[1] - 1):
        digits[:, i + 1] += digits[:, i] >> 32
        digits[:, i] &= _DIGIT
    return digits
