"""One half of a join: a delta against the other side's trace."""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.kernels.blocks import P_KEY, gather_row
from ivm.kernels.cache import kernel
from ivm.kernels.memory import (
    B_COUNT,
    B_DIFFS,
    B_ROOM,
    B_ROWS,
    B_TIMES,
    B_WIDTH,
    L_COUNT,
    L_DIFF_STRIDE,
    L_DIFFS,
    L_FENCE,
    L_ROWS,
    L_SIGN,
    L_TIME_STRIDE,
    L_TIMES,
    LAYER_WORDS,
    T_ORDER,
    T_WIDTH,
    load,
    store,
)
from ivm.kernels.order import compare
from ivm.kernels.seek import AHEAD, absent, aim, hints, layers, seek
from ivm.kernels.times import last_mask, lub, rounds, wrap
from ivm.rows import Words

J_DELTA: Final = 0
J_LAYER: Final = 1
J_POSITION: Final = 2
J_RAN: Final = 3
JOIN_WORDS: Final = 4

# The kernels' counters, for tests that assert how work grows.
S_MATCHES: Final = 0
S_SEEKS: Final = 1
S_HISTORY: Final = 2
S_SEGMENTS: Final = 3
# The number of products of multiplicities that were too large; the output may then be wrong.
S_OVERFLOWS: Final = 4
STATS: Final = 5

OUT_FULL: Final = -1
LATER_FULL: Final = -2


@kernel
def too_many(a: int, b: int) -> bool:
    """Whether the product of two multiplicities exceeds 2^60; sums of smaller ones still fit 64 bits."""
    if -(1 << 30) < a < 1 << 30 and -(1 << 30) < b < 1 << 30:
        return False
    return abs(float(a) * float(b)) > float(1 << 60)


@kernel
def _match(
    delta: Words, i: int, row: int, other_diff: int, time: int, target: Words, program: Words, delta_is_left: bool
) -> None:  # fmt: skip
    """Appends one match, gathered, unless the gather drops it."""
    n = target[B_COUNT]
    key = delta[B_ROWS] + 8 * delta[B_WIDTH] * i
    left = key if delta_is_left else row
    right = row if delta_is_left else key
    if gather_row(left, right, program, target[B_ROWS] + 8 * target[B_WIDTH] * n):
        store(target[B_TIMES] + 8 * n, time)
        store(target[B_DIFFS] + 8 * n, load(delta[B_DIFFS] + 8 * i) * other_diff)
        target[B_COUNT] = n + 1


@kernel
def join(
    delta: Words, trace: Words, minus: Words, minus_too: Words, out: Words, later: Words, program: Words, state: Words,
    stats: Words, delta_is_left: bool, trace_shape: int, shape: int, delay: int, vector: int, last: int,
) -> int:  # fmt: skip
    """Appends the matches of ``delta`` with ``trace`` minus two blocks, gathered, at the join of both times.

    Matches at the loop vector ``vector`` go to ``out``, others to ``later``. The trace's times are of ``trace_shape``;
    they are wrapped to ``shape``, then moved ``delay`` rounds later, except that with a delay those of ``minus`` are
    already final. Matches past the round ``last`` of a delayed trace do not exist. Returns both blocks' counts, the
    second shifted by 32 bits, or OUT_FULL or LATER_FULL, with ``state`` saying where to continue once the caller has
    made room. Cost: seeks of the delta's keys, the matches.
    """
    key_width = program[P_KEY]
    width = trace[T_WIDTH]
    table, count = layers(trace, minus, minus_too)
    cursors = np.zeros(count, np.int64)
    shifted = -1
    if delay != 0 and minus[B_COUNT] != 0:
        shifted = count - 2 if minus_too[B_COUNT] != 0 else count - 1
    mask = last_mask(shape)
    first_layer = state[J_LAYER]
    position = state[J_POSITION]
    previous = 0
    ahead = hints(table, count, delta[B_COUNT], trace[T_ORDER])
    window = -AHEAD
    for i in range(state[J_DELTA], delta[B_COUNT]):
        key = delta[B_ROWS] + 8 * delta[B_WIDTH] * i
        fresh = True
        if previous != 0:
            c = compare(previous, key, 0, key_width, trace[T_ORDER])
            if c > 0:
                cursors[:] = 0
            fresh = c != 0
        if fresh and len(ahead) != 0:
            window = aim(table, count, width, delta, i, key_width, ahead, window, cursors)
        # A resumed row has not searched the layers before its first one, so its key is searched again.
        previous = key if position < 0 else 0
        time = load(delta[B_TIMES] + 8 * i)
        for k in range(first_layer, count):
            at = k * LAYER_WORDS
            if absent(table, at, key, key_width):
                continue
            rows = table[at + L_ROWS]
            total = table[at + L_COUNT]
            if fresh or position >= 0:
                fence = table[at + L_FENCE]
                cursors[k] = seek(rows, total, width, fence, cursors[k], key, key_width, trace[T_ORDER])
                stats[S_SEEKS] += 1
            p = cursors[k] if position < 0 else position
            position = -1
            while p < total:
                row = rows + 8 * width * p
                if compare(row, key, 0, key_width, 0) != 0:
                    break
                other = load(table[at + L_TIMES] + table[at + L_TIME_STRIDE] * p)
                at_time = lub(time, wrap(other, trace_shape, shape) + (0 if k == shifted else delay), shape)
                p += 1
                if delay != 0 and (at_time & mask) > last:
                    continue
                now = shape == 0 or rounds(at_time, shape) == vector
                target = out if now else later
                if target[B_COUNT] >= target[B_ROOM]:
                    state[J_DELTA] = i
                    state[J_LAYER] = k
                    state[J_POSITION] = p - 1
                    return OUT_FULL if now else LATER_FULL
                other_diff = load(table[at + L_DIFFS] + table[at + L_DIFF_STRIDE] * (p - 1)) * table[at + L_SIGN]
                if too_many(load(delta[B_DIFFS] + 8 * i), other_diff):
                    stats[S_OVERFLOWS] += 1
                _match(delta, i, row, other_diff, at_time, target, program, delta_is_left)
                stats[S_MATCHES] += 1
        first_layer = 0
    state[J_DELTA] = 0
    state[J_LAYER] = 0
    state[J_POSITION] = -1
    return int(out[B_COUNT] | later[B_COUNT] << 32)
