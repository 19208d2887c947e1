"""Other systems' figures on the same workloads, measured on a quiet 2-core machine, and Freshet's aims.

Figures are as measured there; ``report.py`` corrects them by ``calibrate.factor()``.
"""

from __future__ import annotations

from typing import Final

COMPILED: Final = "differential-dataflow"
"""The compiled system (Rust, release build, one worker) that W1 to W8 are compared with."""

INTERNING_LOAD: Final = 4.86
"""Seconds of W6's load."""
INTERNING_RATES: Final = {1: 29.1e3, 1_000: 228e3}
INTERNING_MB: Final = 1_402

RATIOS: Final[dict[str, dict[int, float]]] = {
    "W1": {1: 3.3, 10: 2.0, 100: 1.2},
    "W2": {1: 2.5, 10: 2.2, 100: 1.3},
    "W3": {0: 1.0, 1: 1.5, 100: 1.0},
    "W3-1M": {0: 1.0, 1: 1.5, 100: 1.0},
    "W4": {0: 1.0, 1: 1.2, 1_000: 1.0, 100_000: 1.0},
    "W5": {0: 1.0, 1: 1.2, 1_000: 1.0, 100_000: 1.0},
    "W7": {0: 1.5, 1: 1.5, 100: 1.5},
    "W8": {0: 1.5, 1: 2.0},
}
"""Aims: how many times the compiled system's updates per CPU second, by batch size; 0 is the load."""

P99_RATIOS: Final = {"W1": 0.6, "W2": 0.6, "W4": 2.0, "W5": 2.0}
"""Aims: at most so many times the compiled system's p99 at batch 1."""
W2_P99, W2_MOST, STEP_CPU = 1e-3, 20e-3, 5e-3
"""Seconds at batch 1: W2's p99 and longest step; CPU time of the longest step on W1, W4 and W5."""
INTERNING_MEMORY: Final = 0.5
"""Of the compiled system's peak."""

Cells = dict[str, dict[int, float]]
"""Median milliseconds of a batch, by workload and size of batch."""

PATHWAY: Final[Cells] = {
    "A_S": {1: 0.64, 100: 17, 10_000: 338},
    "A_L": {1: 1.8, 100: 124, 10_000: 645},
    "B": {1: 0.54, 100: 34, 10_000: 517},
    "C_1k": {1: 5.2, 10: 23},
    "C_100k": {1: 11.3, 100: 381},
    "D_100k": {1: 7.0, 100: 409},
    "E3": {1: 0.29, 600: 21},
    "E5": {1: 0.38, 600: 16},
    "E18": {1: 0.40, 600: 24},
}
PG_IVM: Final[Cells] = {
    "A_S": {1: 1.5, 100: 8.7, 10_000: 278},
    "A_L": {1: 1.75, 100: 11.5, 10_000: 278},
    "E3": {1: 2.2, 600: 16},
    "E5": {1: 2.9, 600: 15},
}
REFRESH: Final[Cells] = {
    "A_S": {1: 142, 100: 145, 10_000: 239},
    "B": {1: 46, 100: 110, 10_000: 298},
    "C_1k": {1: 10, 10: 12},
    "C_100k": {1: 2_938, 100: 2_559},
    "E3": {1: 40, 600: 52},
    "E5": {1: 30, 600: 43},
    "E18": {1: 211, 600: 235},
}
DUCKDB: Final[Cells] = {
    "A_S": {1: 16, 100: 24, 10_000: 40},
    "A_L": {1: 156, 100: 169, 10_000: 220},
    "B": {1: 45, 100: 49, 10_000: 56},
    "C_1k": {1: 3.5, 10: 5.2},
    "C_100k": {1: 127, 100: 138},
    "D_100k": {1: 292, 100: 283},
    "E3": {1: 10.6, 600: 15.5},
    "E5": {1: 10.0, 600: 15.3},
    "E18": {1: 13.7, 600: 19},
}
DB_IVM: Final[Cells] = {
    "A_S": {1: 0.53, 100: 46, 10_000: 299},
    "B": {1: 0.40, 100: 36, 10_000: 425},
    "E3": {1: 0.015, 600: 6.7},
    "E5": {1: 0.023, 600: 15},
    "E18": {1: 0.020, 600: 5.1},
}
DURABLE: Final = {"pg_ivm": PG_IVM, "PostgreSQL REFRESH": REFRESH}
LIBRARIES: Final = {"pathway": PATHWAY, "db-ivm": DB_IVM}
RECOMPUTE: Final = "DuckDB recompute"

RECOMPUTE_RATIOS: Final = {"A_L": 1.0, "A_S": 3.0, "B": 3.0}
"""Aims over the wire at 10,000 rows a batch: at most so many times the time of DuckDB's recompute."""
