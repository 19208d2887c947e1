"""What Spark is taken to have and to cost before it is asked: by this, ``auto`` chooses who loads and who hydrates."""

from __future__ import annotations

import os
import re
from typing import Final

CLUSTER_CORES: Final = 8
"""How many cores a cluster is taken to have: it is not asked before it is needed. A guess."""
START_SECONDS: Final = 10.0
"""Seconds until Spark has begun: its session, its workers, and a job that has next to nothing to do. A guess."""


def cores_of(master: str) -> int:
    """How many cores Spark has there, as far as its URL tells."""
    match = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\d+)?\])?", master)
    if match is None:
        return CLUSTER_CORES
    return (os.cpu_count() or 1) if match[1] == "*" else int(match[1] or 1)
