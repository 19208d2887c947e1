"""Processing large blocks in parts, one per worker; each part is a call of the kernel that otherwise does the whole.

Cuts lie between keys and results are concatenated in key order, so the output equals one thread's bit for bit. Parts
write to blocks, counters and regions of their own; shared data is only read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Final, TypeVar

import numpy as np

from ivm.kernels.blocks import SAME, gather, transfer
from ivm.kernels.formula import map_block
from ivm.kernels.memory import (
    B_COUNT,
    B_DIFFS,
    B_ROWS,
    B_TIMES,
    HEAD,
    L_COUNT,
    L_DIFF_STRIDE,
    L_DIFFS,
    L_ROWS,
    L_TIME_STRIDE,
    L_TIMES,
    LAYER_WORDS,
    T_DIFF_WIDTH,
    T_ORDER,
    T_WIDTH,
)  # fmt: skip
from ivm.kernels.merge import M_LEFT, M_MIXED, M_RIGHT, MERGE_WORDS, merge
from ivm.kernels.shards import close_gaps, cut_merge, in_order, key_place, key_start
from ivm.kernels.sort import sort_block
from ivm.rows import Words
from ivm.trace.batch import Block
from ivm.workers import COPIED, CORRECTED, SEARCHED, SORTED, parts, run

T = TypeVar("T")

_NONE: Final = np.zeros(0, np.int64)


def piece(block: Block, low: int, high: int) -> Words:
    """The descriptor of the block's updates low … high − 1, in place, with no room for more."""
    d = block.d
    found = d.copy()
    found[:] = (
        high - low, d[1], d[B_ROWS] + 8 * block.width * low, d[B_TIMES] + 8 * low,
        d[B_DIFFS] + 8 * block.diff_width * low, high - low, d[6],
    )  # fmt: skip
    return found


def even(count: int, number: int) -> list[int]:
    """Where to cut ``count`` updates into parts of equal size: number + 1 indexes."""
    return [count * k // number for k in range(number + 1)]


def cuts(block: Block, key_width: int, number: int) -> list[int]:
    """Where to cut a sorted block between keys into parts of about equal size: number + 1 indexes, some may be
    equal."""
    places = even(block.n, number)
    for k in range(1, number):
        places[k] = int(key_start(block.d, key_width, max(places[k], places[k - 1])))
    return places


def ranges_of(block: Block, key_width: int, number: int) -> list[tuple[int, int]]:
    """The parts (start, end) of a sorted block, cut between keys; none is empty."""
    return [(low, high) for low, high in pairwise(cuts(block, key_width, number)) if low < high]


def cuts_of_both(a: Block, b: Block, key_width: int, order: int, number: int) -> tuple[list[int], list[int]]:
    """Where to cut two blocks of one layout, sorted in one order, between the same keys."""
    if a.n < b.n:
        of_b, of_a = cuts_of_both(b, a, key_width, order, number)
        return of_a, of_b
    of_a = cuts(a, key_width, number)
    rows = int(a.d[B_ROWS])
    inner = [
        int(key_place(b.d, rows + 8 * a.width * at, key_width, order)) if at < a.n else b.n for at in of_a[1:-1]
    ]  # fmt: skip
    return of_a, [0, *inner, b.n]


def in_parts(delta: Block, key_width: int, work: Callable[[Words, Words], T], stats: Words) -> list[T]:
    """The results of ``work`` on each part of a sorted delta, cut between keys. It gets the part's descriptor and its
    own counters, which are added to ``stats``. There are several parts (``ivm.workers.parts``); none is empty."""
    ranges = ranges_of(delta, key_width, parts(delta.n, SEARCHED))
    counted = np.zeros((len(ranges), len(stats)), np.int64)
    made = run([partial(work, piece(delta, *ends), counted[k]) for k, ends in enumerate(ranges)])
    stats += counted.sum(axis=0)
    return made


def in_parts_of_both(
    a: Block, b: Block, key_width: int, order: int, work: Callable[[Words, Words, Words], T], stats: Words
) -> list[T]:
    """``in_parts`` of two blocks of one layout, sorted in one order: ``work`` gets a part of each, either may be
    empty."""
    of_a, of_b = cuts_of_both(a, b, key_width, order, parts(a.n + b.n, CORRECTED))
    ranges = [(x, y) for x, y in zip(pairwise(of_a), pairwise(of_b), strict=True) if x[0] < x[1] or y[0] < y[1]]
    counted = np.zeros((len(ranges), len(stats)), np.int64)
    made = run([partial(work, piece(a, *x), piece(b, *y), counted[k]) for k, (x, y) in enumerate(ranges)])
    stats += counted.sum(axis=0)
    return made


def put_together(made: Sequence[Block], target: Block) -> None:
    """Appends blocks to the target, each block on its own thread."""
    ends = [target.n]
    for block in made:
        ends.append(ends[-1] + block.n)
    target.reserve(ends[-1])
    regions = [piece(target, low, high) for low, high in pairwise(ends)]
    for region in regions:
        region[B_COUNT] = 0
    if parts(ends[-1], COPIED) > 1:
        run([partial(transfer, a.d, b, 1, SAME, 0, 0) for a, b in zip(made, regions, strict=True)])
    else:
        for block, region in zip(made, regions, strict=True):
            transfer(block.d, region, 1, SAME, 0, 0)
    target.n = ends[-1]
    target.d[B_COUNT] = target.n


def copied(source: Block, target: Block, sign: int, change: int, shape: int, to_shape: int) -> int:
    """Appends a block to the target, which has room, by ``transfer``. Returns the target's count."""
    number = parts(source.n, COPIED)
    if number == 1:
        return int(transfer(source.d, target.d, sign, change, shape, to_shape))
    places = even(source.n, number)
    ranges = list(pairwise(places))
    regions = [piece(target, target.n + low, target.n + high) for low, high in ranges]
    for region in regions:
        region[B_COUNT] = 0
    run([
        partial(transfer, piece(source, low, high), region, sign, change, shape, to_shape)
        for (low, high), region in zip(ranges, regions, strict=True)
    ])  # fmt: skip
    target.d[B_COUNT] = target.n + source.n
    return target.n + source.n


def gathered(source: Block, target: Block, program: Words) -> int:
    """Appends a block to the target, which has room, by ``gather``. Returns the target's count."""
    return _appended(source, target, gather, program)


def mapped(source: Block, target: Block, formula: Words) -> int:
    """Appends a block to the target, which has room, by ``map_block``. Returns the target's count, -1 if a row
    fails."""
    return _appended(source, target, map_block, formula)


def _appended(source: Block, target: Block, kernel: Callable[[Words, Words, Words], int], how: Words) -> int:
    """Runs an appending kernel on each part of the source. It appends at most as many updates as the part has, or
    returns -1 if it fails."""
    number = parts(source.n, COPIED)
    if number == 1:
        return int(kernel(source.d, target.d, how))
    places = even(source.n, number)
    starts = np.array(places[:-1], np.int64) + target.n
    ranges = list(pairwise(places))
    regions = [piece(target, target.n + low, target.n + high) for low, high in ranges]
    for region in regions:
        region[B_COUNT] = 0
    counts = run([
        partial(kernel, piece(source, low, high), region, how)
        for (low, high), region in zip(ranges, regions, strict=True)
    ])  # fmt: skip
    if min(counts) < 0:
        return -1
    target.d[B_COUNT] = close_gaps(target.d, starts, np.array(counts, np.int64))
    return int(target.d[B_COUNT])


def sort_into(source: Block, target: Block, order: int) -> int:
    """``sort_block`` in parts: sorts and consolidates the source's updates into the target, which has room. Returns how
    many."""
    number = parts(source.n, SORTED)
    if number == 1 or in_order(source.d, order):
        return int(sort_block(source.d, target.d, order))
    runs = run([partial(_run_of, source, order, *ends) for ends in pairwise(even(source.n, number))])
    while len(runs) > 2:
        a, b, *rest = runs
        both = Block(source.width, source.diff_width, a.n + b.n)
        both.n = _merged(a, b, both, order, number)
        runs = [*rest, both]
    return _merged(runs[0], runs[1], target, order, number)


def _run_of(source: Block, order: int, low: int, high: int) -> Block:
    """Updates low … high − 1, sorted and consolidated."""
    out = Block(source.width, source.diff_width, high - low)
    out.n = int(sort_block(piece(source, low, high), out.d, order))
    return out


def _merged(a: Block, b: Block, target: Block, order: int, number: int) -> int:
    """Merges two sorted blocks into the target, consolidated. Returns how many updates it has."""
    trace = np.zeros(HEAD + 2 * LAYER_WORDS, np.int64)
    trace[T_WIDTH], trace[T_DIFF_WIDTH], trace[T_ORDER] = a.width, a.diff_width, order
    for k, block in enumerate((a, b)):
        at = HEAD + k * LAYER_WORDS
        trace[at + L_COUNT], trace[at + L_ROWS] = block.n, block.d[B_ROWS]
        trace[at + L_TIMES], trace[at + L_TIME_STRIDE] = block.d[B_TIMES], 8
        trace[at + L_DIFFS], trace[at + L_DIFF_STRIDE] = block.d[B_DIFFS], 8 * block.diff_width
    lefts, rights = np.zeros((2, number + 1), np.int64)
    cut_merge(trace, HEAD, HEAD + LAYER_WORDS, 0, 0, a.n + b.n, lefts, rights)
    merge_parts(trace, lefts, rights, target, 0, -(1 << 62))
    return int(target.d[B_COUNT])


def merge_parts(
    trace: Words, lefts: Words, rights: Words, target: Block, at: int, since: int
) -> bool:  # fmt: skip
    """Merges the trace's two layers, in the parts made by ``cut_merge``, into the target from index ``at`` on. Returns
    whether the merged updates have several times or a diff other than 1, judging by these parts."""
    reads = np.diff(lefts) + np.diff(rights)
    starts = at + np.cumsum(reads) - reads
    calls, regions, states = [], [], []
    for k, (start, size) in enumerate(zip(starts.tolist(), reads.tolist(), strict=True)):
        own = trace.copy()
        own[HEAD + L_COUNT], own[HEAD + LAYER_WORDS + L_COUNT] = lefts[k + 1], rights[k + 1]
        state = np.zeros(MERGE_WORDS, np.int64)
        state[M_LEFT], state[M_RIGHT] = lefts[k], rights[k]
        region = piece(target, start, start + size)
        region[B_COUNT] = 0
        calls.append(
            partial(merge, own, HEAD, HEAD + LAYER_WORDS, region, state, size + 1, since, _NONE, _NONE)
        )  # fmt: skip
        regions.append(region)
        states.append(state)
    run(calls)
    counts = np.array([region[B_COUNT] for region in regions], np.int64)
    filled = starts[counts > 0]
    mixed = any(state[M_MIXED] for state in states)
    times = target.times
    if len(filled) and not mixed:
        mixed = bool((times[filled] != times[0 if at else filled[0]]).any())
    target.d[B_COUNT] = close_gaps(target.d, starts, counts)
    return mixed


def sorted_block(block: Block, order: int = 0) -> Block:
    """The block's updates sorted by (row, time) and consolidated; ``order`` as in ``ivm.kernels.order``."""
    out = Block(block.width, block.diff_width, max(block.n, 1))
    out.n = sort_into(block, out, order)
    return out
