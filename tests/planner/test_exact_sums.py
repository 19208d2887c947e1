"""The limbs of numerics by columns against those of single values, on extremes."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from random import Random

import numpy as np
import pytest

from ivm.rows import Words
from planner.aggregates import exact_sums
from planner.aggregates.exact_sums import numeric_parts
from storage.dictionary import Dictionary
from storage.types.numeric import encode_numeric
from tests.support.profiles import scaled

_EXTREMES = (
    "NaN", "Infinity", "-Infinity", "0", "0.000", "1", "-1", "4294967295", "4294967296", "-4294967296", "1e40", "1e400",
    "1e-40", "1e-400", "144115188075855871", "-144115188075855872", "144115188075855872", "18446744073709551616",
    "-18446744073709551615.99999999999999999999", "999999999999999999999999999999999999999999999999",
    "-0.00000000000000000000000000000000000000000000001", "999999999", "1000000000", "0.999999999", "-0.0000000001",
)  # fmt: skip


def _value(random: Random) -> Decimal:
    digits = "".join(random.choice("0123456789") for _ in range(random.randint(1, 52)))
    digits = random.choice(("", "9" * random.randint(1, 40), "0" * random.randint(1, 30))) + digits
    digits = digits[: random.randint(1, len(digits))]
    point = random.randint(0, len(digits))
    return Decimal(f"{random.choice(('', '-'))}{digits[:point]}.{digits[point:]}")


@pytest.mark.parametrize("squared", [False, True])
def test_columns_against_single_values(monkeypatch: pytest.MonkeyPatch, *, squared: bool) -> None:
    random, dictionary = Random(3), Dictionary(bytes(16))
    values = [Decimal(text) for text in _EXTREMES] + [_value(random) for _ in range(scaled(3000))]
    random.shuffle(values)
    words = np.array([encode_numeric(value, dictionary) for value in values], np.int64)
    rows = np.arange(len(words)) * 3
    found = _parts(words, rows, dictionary, squared)
    monkeypatch.setattr(exact_sums, "FEW", len(words))
    assert found == _parts(words, rows, dictionary, squared)


def _parts(words: Words, rows: Words, dictionary: Dictionary, squared: bool) -> Counter[tuple[int, ...]]:
    """How often each part is there that adds something."""
    columns = (part.tolist() for part in numeric_parts(words, rows, dictionary, squared))
    return Counter(part for part in zip(*columns, strict=True) if part[2])
