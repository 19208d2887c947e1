"""How many rows each stored relation has, kept beside the commits, so that count(*) needs no scan.

The engine adds what each published group changed; a reader asks for the count at its own published root, which may
be some groups older than the newest. Unknown counts are None: the reader counts for itself then.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.rows import RowSet, Vector, pack
from ivm.words import Schema
from planner.logical.nodes import Get, Project, Reduce, Rel
from storage.stored import History

KEPT: Final = 8
"""Groups that a reader may be behind the newest and still find its count."""

_Steps = tuple[tuple[int, int], ...]
"""(ordinal of a group's end, count from there on), newest last."""


class Counts:
    """Counts by relation. The engine thread writes, any thread reads: each relation's steps are replaced as a whole.

    Cost of a commit: the relations that it changed.
    """

    def __init__(self) -> None:
        self._steps: dict[int, _Steps] = {}

    def start(self, relation: int) -> None:
        """A relation that is empty, but for what ``add`` will tell."""
        self._steps[relation] = ((0, 0),)

    def forget(self, relation: int) -> None:
        """The count is not known any more."""
        self._steps.pop(relation, None)

    def add(self, changes: dict[int, History], ordinal: int) -> None:
        """What a group changed, before its root, which ends at ``ordinal``, is published."""
        for relation, history in changes.items():
            self.add_one(relation, int(history.diffs.sum()), ordinal)

    def add_one(self, relation: int, change: int, ordinal: int) -> None:
        """One relation's change."""
        steps = self._steps.get(relation)
        if steps is not None:
            self._steps[relation] = (*steps[1 - KEPT :], (ordinal, steps[-1][1] + change))

    def at(self, relation: int, ordinal: int) -> int | None:
        """The count at a published root's ordinal, None when it is not known."""
        for at, count in reversed(self._steps.get(relation, ())):
            if at <= ordinal:
                return count
        return None


def counted_relation(rel: Rel) -> int | None:
    """The stored relation whose rows an optimized query counts, if it does nothing else."""
    match rel:
        case Reduce(input=Get() as get, keys=()) | Reduce(input=Project(input=Get() as get, exprs=()), keys=()):
            alone = all(a.function == "count(*)" and a.filter is None and not a.distinct for a in rel.aggregates)
            return get.relation if alone and rel.aggregates else None
        case _:
            return None


def count_row(columns: Schema, count: int) -> RowSet:
    """The one row of a query that ``counted_relation`` knows."""
    return RowSet(pack([Vector(np.array([count], np.int64)) for _ in columns], columns, 1), columns)
