"""Several steps of a plan with loops in one Spark job: each task works out by itself what its step must take.

A job costs much more than a stage, and a round may have little to do. What is due next depends on all that waits
anywhere. So every task tells all tasks what it leaves waiting, in *notes*: records that travel with the others. From
what waited when the job began and from the notes of earlier stages, all tasks of a stage reach the same conclusion.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from planner.distributed.rounds import Due, Rounds

Note = tuple[int, Due]
"""The stage of a job after which something waits, and what it waits for."""


@dataclass(frozen=True, slots=True)
class StageAgenda:
    """What a stage of a job knows of the agenda.

    ``here``: what waits in the job's frames when it begins; ``elsewhere``: in other frames. ``stage``: counted from 0;
    ``last``: no later stage reads notes.
    """

    rounds: Rounds
    here: frozenset[Due]
    elsewhere: frozenset[Due]
    stage: int
    last: bool

    def due(self, notes: Collection[Note]) -> list[Due]:
        """What this stage takes; [] if nothing waits, or something in other frames comes first."""
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
    """What the next ``stages`` stages take of what waits now, if nothing is added."""
    left, found = set(waiting), list[Due]()
    for _ in range(stages):
        if left:
            found += rounds.next(left)
            left.difference_update(found)
    return found
