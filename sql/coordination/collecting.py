"""Garbage collection, which stops everybody: of few objects at a time, and between commits rather than within one."""

from __future__ import annotations

import gc
from typing import Final

THRESHOLDS: Final = (1_000, 3, 4_000)
"""Of automatic collections (objects, then collections). One of young objects takes a tenth of a millisecond or two, one
of those that have survived a few takes one; of all, with thousands of clients, some 200. With Python's defaults these
take half of the time of parsing and binding a long list of VALUES."""
YOUNG: Final = 300
"""So many young objects are collected when there is time for it. A commit leaves some hundred."""


def bound_collections() -> None:
    """Set the thresholds of the process."""
    gc.set_threshold(*THRESHOLDS)


def collect_young() -> None:
    """Collect what is young, where nobody waits. What commits leave lives until the store has it: without this it is
    collected twice in the middle of a commit."""
    if gc.isenabled() and gc.get_count()[0] >= YOUNG:
        gc.collect(1)
