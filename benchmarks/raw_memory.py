"""The cost of a kernel call by how it is passed a trace's memory (docs/decisions/0012-raw-memory.md).

python -m benchmarks.raw_memory prints nanoseconds of CPU, the best of seven runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numba import njit
from numba.typed import List

from ivm.kernels.memory import HEAD, L_DIFFS, L_ROWS, L_TIMES, LAYER_WORDS, address, load
from ivm.rows import Words

LAYERS: Final = 6
ROWS: Final = 64
READS: Final = 100_000


def _by_descriptor(desc: Words) -> int:
    total = 0
    for k in range(LAYERS):
        at = HEAD + LAYER_WORDS * k
        total += load(desc[at + L_ROWS]) + load(desc[at + L_TIMES]) + load(desc[at + L_DIFFS])
    return total


def _by_sequences(rows: Any, times: Any, diffs: Any) -> int:
    total = 0
    for k in range(len(rows)):
        total += rows[k][0] + times[k][0] + diffs[k][0]
    return total


def _reads_by_descriptor(desc: Words, count: int) -> int:
    total = 0
    for i in range(count):
        total += load(desc[HEAD + LAYER_WORDS * (i % LAYERS) + L_ROWS] + 8 * (i & (ROWS - 1)))
    return total


def _reads_by_sequence(rows: Any, count: int) -> int:
    total = 0
    for i in range(count):
        total += rows[i % LAYERS][i & (ROWS - 1)]
    return total


def _by_arguments() -> Callable[..., int]:
    """A function of three arguments for each layer."""
    names = [f"a{k}" for k in range(3 * LAYERS)]
    found: dict[str, Any] = {}
    exec(f"def added({', '.join(names)}):\n    return {' + '.join(f'{n}[0]' for n in names)}", found)
    return found["added"]  # type: ignore[no-any-return]


def measure(call: Callable[[], object], count: int) -> float:
    """Nanoseconds of CPU for one call."""
    call()
    best = float("inf")
    for _ in range(7):
        start = time.process_time_ns()
        for _ in range(count):
            call()
        best = min(best, (time.process_time_ns() - start) / count)
    return best


def _typed(arrays: list[Words]) -> Any:
    made = List()
    for array in arrays:
        made.append(array)
    return made


def main() -> None:
    columns = [[np.arange(ROWS) + k for k in range(LAYERS)] for _ in range(3)]
    desc = np.zeros(HEAD + LAYERS * LAYER_WORDS, np.int64)
    for k in range(LAYERS):
        for word, column in zip((L_ROWS, L_TIMES, L_DIFFS), columns, strict=True):
            desc[HEAD + LAYER_WORDS * k + word] = address(column[k])
    tuples, lists = [tuple(column) for column in columns], [_typed(column) for column in columns]
    flat = [column[k] for k in range(LAYERS) for column in columns]
    calls: list[tuple[str, Any, tuple[Any, ...]]] = [
        ("a descriptor", njit(nogil=True)(_by_descriptor), (desc,)),
        ("an argument an array", njit(nogil=True)(_by_arguments()), tuple(flat)),
        ("three tuples", njit(nogil=True)(_by_sequences), tuple(tuples)),
        ("three typed lists", njit(nogil=True)(_by_sequences), tuple(lists)),
    ]
    for name, kernel, given in calls:
        start = time.process_time()
        kernel(*given)
        compiled = time.process_time() - start
        print(f"{name}: {measure(lambda k=kernel, g=given: k(*g), 20_000):.0f} ns a call, {compiled:.2f} s to compile")  # type: ignore[misc]
    print(f"to make three typed lists: {measure(lambda: [_typed(column) for column in columns], 50):.0f} ns")
    print(f"a view of a layer: {measure(lambda: columns[0][0][:60].reshape(30, 2), 20_000):.0f} ns")
    for name, kernel, held in (
        ("a descriptor", njit(nogil=True)(_reads_by_descriptor), desc),
        ("a tuple", njit(nogil=True)(_reads_by_sequence), tuples[0]),
        ("a typed list", njit(nogil=True)(_reads_by_sequence), lists[0]),
    ):
        print(f"a read by {name}: {measure(lambda k=kernel, h=held: k(h, READS), 20) / READS:.1f} ns")  # type: ignore[misc]


if __name__ == "__main__":
    main()
