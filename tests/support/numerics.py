"""Random numerics that do not fit in a word."""

from __future__ import annotations

from decimal import Decimal
from random import Random

from storage.types.numeric import WIDE


def some_long_numeric(random: Random) -> Decimal:
    """Of up to 200 digits, among them zeros, nines and what is halfway; about as many of them behind the point."""
    digits = random.choice((9, 18, 19, 27, 28, 60, 144, 145, 200))
    how = random.random()
    mantissa = 10**digits - random.choice((0, 1, 2)) if how < 0.3 else random.randint(10 ** (digits // 2), 10**digits)
    if how > 0.8:
        mantissa = mantissa * 10 + random.choice((0, 5))
    scale = random.choice((0, 9, 20, digits // 2, digits, digits + 7))
    return WIDE.scaleb(Decimal(random.choice((-1, 1)) * mantissa), -scale)
