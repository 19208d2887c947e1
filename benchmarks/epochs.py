"""Many epochs in one step: the throughput gained over one commit a step, and that the changes are the same.

``python -m benchmarks.epochs [names]`` feeds the same single updates, each with an epoch of its own, in steps of 1, 10,
100 and 1,000 epochs. Every run's changes (row, epoch, diff) are compared with those of one epoch a step.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time

import numpy as np

from benchmarks.engine import Bench
from benchmarks.workloads import Words, workloads

EPOCHS = (1, 10, 100, 1_000)
COUNTS = {"W1": 20_000, "W2": 3_000, "W4": 30_000, "W5": 30_000}


def digest(changes: list[tuple[Words, Words, Words]]) -> str:
    """A hash of all changes, ordered by epoch, then row."""
    rows, times, diffs = (np.concatenate(part) for part in zip(*changes, strict=True))
    order = np.lexsort((*rows.T[::-1], times))
    return hashlib.sha256(np.column_stack([times, diffs, rows])[order].tobytes()).hexdigest()[:12]


def run(name: str, epochs: int) -> tuple[float, float, str, bool]:
    """(updates a CPU second, median milliseconds a step, the changes' digest, whether the output is right)."""
    bench = Bench(workloads()[name])
    bench.load()
    batches = [bench.changes(1) for _ in range(COUNTS[name])]
    changes = []
    spent = []
    for start in range(0, len(batches), epochs):
        begun = time.thread_time()
        for batch in batches[start : start + epochs]:
            bench.ordinal += 1
            for table, rows, diffs in batch:
                bench.feed(table, rows, diffs)
        bench.flow.step()
        found = bench.flow.changes(bench.output)
        bench.flow.publish()
        bench.flow.allow_compaction(bench.ordinal)
        spent.append(time.thread_time() - begun)
        changes.append((found.rows, found.times, found.diffs))
    return len(batches) / sum(spent), 1e3 * float(np.median(spent)), digest(changes), bench.right()


def main() -> None:
    """Print a line for each workload and number of epochs in a step."""
    for name in sys.argv[1:] or COUNTS:
        expected, first = "", 0.0
        for epochs in EPOCHS:
            rate, median, found, right = run(name, epochs)
            expected, first = expected or found, first or rate
            same = "identical" if found == expected else "DIFFERENT"
            print(
                f"{name}  {epochs:>5} epochs a step  {rate:>9,.0f} updates/s  {rate / first:5.2f}x  "
                f"{median:9.3f} ms a step  changes {found} {same}, {'right' if right else 'WRONG'}  "
                f"load {os.getloadavg()[0]:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
