"""The numbers of random(): PostgreSQL's generator, so that setseed gives its sequences.

The generator is xoroshiro128** (Blackman and Vigna), whose two words splitmix64 makes from a seed; both are in the
public domain.
"""

from __future__ import annotations

import math
import random
from typing import Final

_MASK: Final = 2**64 - 1
_SEEDS: Final = 2**52 - 1


class RandomNumbers:
    """One session's random numbers: unpredictable until ``seed`` is called."""

    def __init__(self) -> None:
        self._words: tuple[int, int] | None = None

    def seed(self, value: float) -> None:
        """Begin the sequence of a seed between -1 and 1."""
        state = int(_SEEDS * value) & _MASK
        words = []
        for _ in range(2):
            state = (state + 0x9E3779B97F4A7C15) & _MASK
            mixed = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
            mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & _MASK
            words.append(mixed ^ (mixed >> 31))
        self._words = words[0], words[1]

    def bits(self) -> int:
        """The next 64 bits."""
        if self._words is None:
            return random.getrandbits(64)
        first, second = self._words
        mixed = first ^ second
        self._words = _turned(first, 24) ^ mixed ^ (mixed << 16 & _MASK), _turned(mixed, 37)
        return _turned(first * 5 & _MASK, 7) * 9 & _MASK

    def fraction(self) -> float:
        """A number from 0 to 1, 1 excluded."""
        return random.random() if self._words is None else math.ldexp(self.bits() >> 12, -52)

    def normal(self) -> float:
        """A number of the standard normal distribution (Box and Muller)."""
        first, second = 1.0 - self.fraction(), 1.0 - self.fraction()
        return math.sqrt(-2.0 * math.log(first)) * math.sin(2.0 * math.pi * second)

    def whole(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``, both included, each as likely."""
        span = high - low
        if not span:
            return low
        width = span.bit_length()
        words = -(-width // 64)
        drop = 64 * words - width
        while (found := self._words_of(words) >> drop) > span:
            pass
        return low + found

    def _words_of(self, count: int) -> int:
        """The next ``count`` times 64 bits."""
        found = 0
        for _ in range(count):
            found = found << 64 | self.bits()
        return found


def _turned(word: int, by: int) -> int:
    return (word << by | word >> (64 - by)) & _MASK
