"""Operations on a whole dataflow: reading all words that it holds (for a sweep), and disposing of it."""

from __future__ import annotations

from typing import Final

from ivm.dataflow import Dataflow
from ivm.rows import Words
from ivm.system_memory import give_back
from ivm.trace.spine import Spine

_LARGE: Final = 64 << 20
"""From this many bytes on, freed memory is returned to the system soon."""


def words(flow: Dataflow) -> list[Words]:
    """Every row of every spine and block, as int64 arrays that no longer change; they may contain other words too.

    Call it between steps, on the dataflow's thread. Cost: a small copy for each spine; batches are immutable.
    """
    return [found for operator in flow.all_operators() for found in operator.words()]


def spines(flow: Dataflow) -> list[Spine]:
    """All of its spines, for ``Spine.compact`` between steps."""
    return [spine for operator in flow.all_operators() for spine in operator.spines() if not spine.READ_ONLY]


def dispose(flow: Dataflow) -> None:
    """Ends a dataflow: frees at once what it held, and gives a large amount of memory back to the system."""
    size = flow.size_counted
    flow.forget()
    if size >= _LARGE:
        give_back()
