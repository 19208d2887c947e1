"""Assumptions about Spark's size and cost before it is started. ``auto`` uses them to choose who loads and hydrates."""

from __future__ import annotations

import os
import re
from typing import Final

CLUSTER_CORES: Final = 8
"""The assumed number of cores of a cluster, which is not asked before it is needed. A guess."""
START_SECONDS: Final = 10.0
"""Seconds to start Spark: its session, its workers, and a trivial job. A guess."""


def cores_of(master: str) -> int:
    """The number of cores, as far as the master's URL tells."""
    match = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\d+)?\])?", master)
    if match is None:
        return CLUSTER_CORES
    return (os.cpu_count() or 1) if match[1] == "*" else int(match[1] or 1)
