"""The order of numerics by columns against that of single values, on extremes."""

from __future__ import annotations

from decimal import Context, Decimal
from itertools import pairwise
from random import Random

import numpy as np

from ivm.words import NUMERIC
from planner.expr.ordering import order_bytes, order_prefix
from storage.dictionary import Dictionary
from storage.types.numeric import encode_numeric
from storage.types.order import order_parts
from tests.support.profiles import scaled

_EXACT = Context(prec=200)
_EXTREMES = (
    "NaN", "Infinity", "-Infinity", "0", "0.00", "1", "-1", "1e400", "-1e400", "1e-400", "-1e-400", "1e308", "1.8e308",
    "1e-330", "4.9e-324", "144115188075855871", "-144115188075855872", "144115188075855872", "9007199254740993",
    "9007199254740992", "999999999999999", "1000000000000000", "0.1000000000000000055511151231257827",
    "0.1000000000000000055511151231257828", "0.1", "0.10", "1e16", "1e22", "1e23", "12345678901234567890123456789",
)  # fmt: skip


def _value(random: Random) -> Decimal:
    digits = "".join(random.choice("0123456789") for _ in range(random.randint(1, 45)))
    match random.randint(0, 5):
        case 0:
            digits = digits.rstrip("0") + "0" * random.randint(1, 20)
        case 1:
            digits = "0" * random.randint(0, 20) + random.choice("123") + "0" * random.randint(0, 25)
        case 2:  # very near to a float's shortest text
            near = Decimal(repr(random.random() * 10.0 ** random.randint(-12, 20)))
            return _EXACT.add(near, random.choice((0, 1, -1)) * Decimal(10) ** -random.randint(15, 40))
        case 3:  # and to the bounds between two floats
            near = Decimal(float(random.randint(0, 2**53)) * 2.0 ** random.randint(-60, 60))
            return _EXACT.plus(near).quantize(Decimal(1).scaleb(-random.randint(0, 40)), context=_EXACT)
        case _:
            pass
    point = random.randint(0, len(digits))
    return Decimal(f"{random.choice(('', '-'))}{digits[:point]}.{digits[point:]}")


def test_columns_against_single_values() -> None:
    random, dictionary = Random(7), Dictionary(bytes(16))
    values = [Decimal(text) for text in _EXTREMES] + [_value(random) for _ in range(scaled(4000))]
    random.shuffle(values)
    words = np.array([encode_numeric(value, dictionary) for value in values], np.int64)
    prefixes = order_prefix(NUMERIC, words, dictionary).tolist()
    keys = [bytes(key) for key in dictionary.lookup(order_bytes(NUMERIC, words, dictionary))]
    for value, prefix, key in zip(values, prefixes, keys, strict=True):
        assert (prefix, key) == order_parts(NUMERIC, value), value
    by_keys = sorted(zip(prefixes, keys, values, strict=True), key=lambda each: each[:2])
    numbers = [value for _, _, value in by_keys if not value.is_nan()]
    assert all(a <= b for a, b in pairwise(numbers))
    assert by_keys[-1][2].is_nan()
