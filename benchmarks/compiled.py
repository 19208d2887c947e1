"""The compiled differential-dataflow on the engine's workloads, on this machine, in the same run.

``FRESHET_DIFFERENTIAL`` names its driver's executable: a program that takes a workload, its nodes, its rows, the seed
of its data, the number of workers and the batches, and prints rates per CPU second and percentiles of a batch, of the
same data as ours. Where the variable is not set nothing is measured. Its W7 is not run: it fails in the revision that
was built.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from typing import Final

ARGUMENTS: Final = {
    "W1": ("w1", 1_000, 2_000, 1),
    "W2": ("w2", 1_000_000, 2_000_000, 1),
    "W3": ("w3", 200_000, 1_000_000, 2),
    "W3-1M": ("w3", 1_000_000, 2_000_000, 2),
    "W3-plain": ("w3plain", 200_000, 1_000_000, 2),
    "W4": ("w4", 1_000_000, 5_000_000, 3),
    "W5": ("w5", 100_000, 1_000_000, 40),
    "W8": ("w8", 100_000, 200_000, 8),
}
"""By our name: the driver's, nodes or keys, rows, the seed."""

_LOAD: Final = re.compile(r"\bload wall \S+ cpu (\S+)")
_BATCH: Final = re.compile(r"\bbatch (\d+) n \d+ rate_cpu (\S+) rate_wall \S+ cpu_us p50 \S+ p99 (\S+) max (\S+)")


@dataclass(frozen=True, slots=True)
class Theirs:
    """``load``: CPU seconds. By size of batch, ``rates``: updates per CPU second; ``p99s``, ``worst``: CPU seconds."""

    load: float
    rates: dict[int, float]
    p99s: dict[int, float]
    worst: dict[int, float]


def read(printed: str) -> Theirs:
    """What the driver has printed."""
    load = _LOAD.search(printed)
    assert load is not None, printed
    found = {int(size): tuple(map(float, figures)) for size, *figures in _BATCH.findall(printed)}
    return Theirs(
        float(load[1]),
        {size: figures[0] for size, figures in found.items()},
        {size: 1e-6 * figures[1] for size, figures in found.items()},
        {size: 1e-6 * figures[2] for size, figures in found.items()},
    )


def measure(name: str, counts: dict[int, int], shrink: int = 1) -> Theirs | None:
    """Measures a workload with so many updates by size of batch, nodes and rows divided by ``shrink``; None: not
    measured."""
    driver = os.environ.get("FRESHET_DIFFERENTIAL")
    if not driver or name not in ARGUMENTS:
        return None
    what, nodes, rows, seed = ARGUMENTS[name]
    plan = ",".join(f"{size}:{count}" for size, count in counts.items())
    command = [driver, what, str(nodes // shrink), str(rows // shrink), str(seed), "1", plan]
    return read(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
