"""The row count of each stored relation, updated with each group of commits, so that count(*) needs no scan.

A reader asks for the count as of its own published root, which may be some groups older than the newest. An unknown
count is None: the reader must count by itself.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.rows import RowSet, Vector, pack
from ivm.words import Schema
from planner.logical.nodes import Get, Project, Reduce, Rel
from storage.stored import FEW, History

KEPT: Final = 8
"""The number of recent groups for which counts are kept."""

_Steps = tuple[tuple[int, int], ...]
"""(ordinal of a group's end, count from there on), newest last."""


class Counts:
    """Counts by relation. The engine thread writes, any thread reads: a relation's tuple of counts is replaced as a
    whole.

    Cost of a commit: the number of relations that it changed.
    """

    def __init__(self) -> None:
        self._steps: dict[int, _Steps] = {}

    def start(self, relation: int) -> None:
        """Begin counting a relation, which is empty; ``add`` counts its rows."""
        self._steps[relation] = ((0, 0),)

    def forget(self, relation: int) -> None:
        """Forget a relation's count."""
        self._steps.pop(relation, None)

    def add(self, changes: dict[int, History], ordinal: int) -> None:
        """Count the changes of a group that ends at ``ordinal``. Call it before the group's root is published."""
        for relation, history in changes.items():
            diffs = history.diffs  # the sum of a few is faster without numpy
            change = sum(diffs.tolist()) if len(diffs) <= FEW else int(np.add.reduce(diffs))
            self.add_one(relation, change, ordinal)

    def add_one(self, relation: int, change: int, ordinal: int) -> None:
        """Count one relation's change."""
        steps = self._steps.get(relation)
        if steps is not None:
            self._steps[relation] = (*steps[1 - KEPT :], (ordinal, steps[-1][1] + change))

    def at(self, relation: int, ordinal: int) -> int | None:
        """The count at a published root's ordinal; None if it is unknown."""
        for at, count in reversed(self._steps.get(relation, ())):
            if at <= ordinal:
                return count
        return None


def counted_relation(rel: Rel) -> int | None:
    """The stored relation whose rows an optimized query counts, if the query does nothing else."""
    match rel:
        case Reduce(input=Get() as get, keys=()) | Reduce(input=Project(input=Get() as get, exprs=()), keys=()):
            alone = all(a.function == "count(*)" and a.filter is None and not a.distinct for a in rel.aggregates)
            return get.relation if alone and rel.aggregates else None
        case _:
            return None


def count_row(columns: Schema, count: int) -> RowSet:
    """The one result row of a query that ``counted_relation`` recognizes."""
    return RowSet(pack([Vector(np.array([count], np.int64)) for _ in columns], columns, 1), columns)
