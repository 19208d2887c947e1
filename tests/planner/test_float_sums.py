"""Sums of doubles of many groups at once are those of one group at a time."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.aggregates.exact_sums import FLOAT_BIAS, float_parts, float_total
from planner.aggregates.float_sums import rounded
from planner.aggregates.moments import float_sum

DOUBLES = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    [0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1.7976931348623157e308, 1e16, 1.0]
)
GROUPS = st.lists(st.lists(DOUBLES, max_size=6), min_size=1, max_size=6)


@given(GROUPS)
def test_many_groups_are_rounded_as_one_is(groups: list[list[float]]) -> None:
    owner = np.repeat(np.arange(len(groups)), [len(g) for g in groups])
    values = np.array([v for g in groups for v in g], np.float64)
    row, code, amount = float_parts(values, owner)
    codes = np.unique(code)
    amounts = np.zeros((len(groups), len(codes)), np.int64)
    np.add.at(amounts, (row, np.searchsorted(codes, code)), amount)
    found = rounded(codes, amounts)
    assert found is not None
    for i in range(len(groups)):
        limbs = {int(c): int(a) for c, a in zip(codes, amounts[i], strict=True) if a}
        try:
            expected = float_sum(float_total(limbs, FLOAT_BIAS))
        except OverflowError:
            expected = np.inf * np.sign(float_total(limbs, FLOAT_BIAS).mantissa)
        assert found[i] == expected


def test_a_value_that_is_not_finite_is_left_to_the_slow_way() -> None:
    row, code, amount = float_parts(np.array([1.0, np.nan]), np.arange(2))
    codes = np.unique(code)
    amounts = np.zeros((2, len(codes)), np.int64)
    np.add.at(amounts, (row, np.searchsorted(codes, code)), amount)
    assert rounded(codes, amounts) is None
