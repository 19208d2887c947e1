"""Comparing rows: word by word as integers, or by a spine's order, in which some words are ids of bytes.

An *order* is the address of [address of the cell (arena descriptor's address, its length), code of word 0, …], or 0
for all words as integers. Codes are those of ``ivm.graph.Order``.
"""

from __future__ import annotations

from ivm.kernels.arena import compare_ids
from ivm.kernels.cache import kernel
from ivm.kernels.memory import load, words_at


@kernel
def _compare_ordered(a: int, b: int, start: int, stop: int, order: int) -> int:
    cell = load(order)
    descriptor = words_at(load(cell), load(cell + 8))
    for i in range(start, stop):
        x = load(a + 8 * i)
        y = load(b + 8 * i)
        if x == y:
            continue
        code = load(order + 8 * (1 + i))
        if code == 0:
            return -1 if x < y else 1
        c = compare_ids(descriptor, x, y)
        if c != 0:
            return c if code == 1 else -c
    return 0


@kernel
def compare(a: int, b: int, start: int, stop: int, order: int) -> int:
    """-1, 0 or 1: words start … stop-1 of the rows at addresses a and b."""
    if order != 0:
        return _compare_ordered(a, b, start, stop, order)
    for i in range(start, stop):
        x = load(a + 8 * i)
        y = load(b + 8 * i)
        if x != y:
            return -1 if x < y else 1
    return 0
