"""Whether latency stays flat (McSherry, Differential dataflow roadmap, 2016): CPU time of a step as updates go by.

``python -m benchmarks.flat [names]``: one update a step, a million of them for W1 (1,000 nodes, 2,000 edges); the
percentiles of each decade of updates, and the most rows that merges have read in one step.
"""

from __future__ import annotations

import os
import sys
import time

import numpy as np

from benchmarks.engine import Bench
from benchmarks.workloads import workloads

COUNTS = {"W1": 1_000_000, "W4": 300_000, "W5": 300_000}
QUANTILES = (50, 90, 99, 99.9, 100)


def run(name: str, count: int) -> None:
    """Prints a line for each decade of updates."""
    bench = Bench(workloads()[name])
    bench.load()
    spent = np.empty(count)
    most = 0
    for i in range(count):
        batch = bench.changes(1)
        merged = bench.flow.counters.merged if i % 10 == 0 else -1
        begun = time.thread_time_ns()
        bench.commit(batch)
        spent[i] = 1e-3 * (time.thread_time_ns() - begun)
        if merged >= 0:
            most = max(most, bench.flow.counters.merged - merged)
    start = 0
    for stop in [s for s in (100, 1_000, 10_000, 100_000, 1_000_000) if s < count] + [count]:
        found = np.percentile(spent[start:stop], QUANTILES)
        figures = "  ".join(f"p{q:g} {v:8.1f}" for q, v in zip(QUANTILES, found, strict=True))
        print(f"{name}  updates {start + 1:>9,} to {stop:>9,}  {figures} µs  load {os.getloadavg()[0]:.1f}", flush=True)
        start = stop
    state = "right" if bench.right() else "WRONG"
    print(f"{name}  most rows merged in a step (every tenth looked at) {most:,}, {state}", flush=True)


def main() -> None:
    """The named workloads, or all."""
    for name in sys.argv[1:] or COUNTS:
        run(name, COUNTS[name])


if __name__ == "__main__":
    main()
