"""The speed of this machine relative to the one that the rivals' figures come from; above 1 is faster.

Two kernels: one waits for memory (random reads over 160 MB), one streams through it (radix sort of 4M words). The
factor is the geometric mean of reference time / time here. A measured rate is divided by it before it is compared.
It uses thread CPU time, as the rates do: on a busy machine wall time would understate its speed and flatter the rates.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

RANDOM_READ_NS, RADIX_NS = 8.2, 15.0


@numba.njit
def _read(values: Any, index: Any) -> int:
    total = 0
    for i in index:
        total += values[i]
    return total


@numba.njit
def _radix(source: Any, target: Any) -> None:
    for shift in range(0, 64, 8):
        place = np.zeros(257, np.int64)
        for x in source:
            place[((x >> shift) & 255) + 1] += 1
        for k in range(256):
            place[k + 1] += place[k]
        for x in source:
            digit = (x >> shift) & 255
            target[place[digit]] = x
            place[digit] += 1
        source, target = target, source


def _best(function: Callable[..., Any], *args: Any, runs: int = 5) -> float:
    function(*args)
    times = []
    for _ in range(runs):
        started = time.thread_time()
        function(*args)
        times.append(time.thread_time() - started)
    return min(times)


def factor() -> float:
    """This machine's speed against the reference's."""
    rng = np.random.default_rng(1)
    read = _best(_read, rng.integers(0, 100, 20_000_000), rng.integers(0, 20_000_000, 5_000_000)) / 5e6 * 1e9
    sort = _best(_radix, rng.integers(0, 1 << 62, 4_000_000), np.empty(4_000_000, np.int64)) / 4e6 * 1e9
    return float(np.sqrt(RANDOM_READ_NS / read * RADIX_NS / sort))


if __name__ == "__main__":
    print(f"factor: {factor():.2f}")
