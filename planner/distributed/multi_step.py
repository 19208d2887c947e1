"""Several steps of a plan with loops in one job: each task finds out by itself what its step is to take.

A job costs much more than a stage of it, and a round may have little to do. What is due next depends on all that waits
anywhere. So every task says to all parts what it has left waiting, in *notes*, records that go the way of the others;
from what waited as the job began and from the notes of the stages before, all tasks of a stage find the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from planner.distributed.rounds import Due, Rounds

Note = tuple[int, Due]
"""The stage of a job after which something waits, and what it waits for."""


@dataclass(frozen=True, slots=True)
class Turns:
    """``here``: what waits as the job begins, in its frames; ``elsewhere``: in others. ``stage``: counted from 0;
    ``last``: nobody reads notes any more."""

    rounds: Rounds
    here: frozenset[Due]
    elsewhere: frozenset[Due]
    stage: int
    last: bool

    def due(self, notes: Collection[Note]) -> list[Due]:
        """What this stage takes; nothing where nothing waits, or something in other frames would come before."""
        waiting = set(self.here)
        for stage in range(self.stage + 1):
            taken = self._taken(waiting)
            if stage == self.stage:
                return taken
            waiting.difference_update(taken)
            waiting.update(due for at, due in notes if at == stage)
        return []

    def _taken(self, waiting: set[Due]) -> list[Due]:
        if not waiting:
            return []
        found = self.rounds.next(waiting | self.elsewhere)
        return [] if self.elsewhere.intersection(found) else found


def ahead(rounds: Rounds, waiting: Iterable[Due], stages: int) -> list[Due]:
    """What so many stages take of what waits now, if nothing is added."""
    left, found = set(waiting), list[Due]()
    for _ in range(stages):
        if left:
            found += rounds.next(left)
            left.difference_update(found)
    return found
