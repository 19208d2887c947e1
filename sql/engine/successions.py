"""The tables that a transaction rewrites while what reads them stays (``planner.render.succession``).

That reads the new table's rows as long as the transaction has the dataflow to itself, and from its commit on; whenever
others go on, the old one's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ivm.graph import NodeId
from planner.render.succession import may_succeed
from sql.catalog.catalog import Relation
from sql.engine.engine import Engine


@dataclass(frozen=True, slots=True)
class Succession:
    """``columns``: the old table's columns, by position in the new one. Both have the same contents after the
    transaction's first ``updates`` changes."""

    old: int
    new: int
    columns: tuple[int, ...]
    updates: int


@dataclass(slots=True)
class Successions:
    """In the order in which they were made. ``_nodes``: of those that are in the dataflow, which are the first ones."""

    engine: Engine
    made: list[Succession] = field(default_factory=list)
    _nodes: list[NodeId] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.made)

    @property
    def next(self) -> Succession | None:
        """The first one that is not in the dataflow."""
        return self.made[len(self._nodes)] if len(self._nodes) < len(self.made) else None

    @property
    def last(self) -> Succession | None:
        """The last one that is in the dataflow."""
        return self.made[len(self._nodes) - 1] if self._nodes else None

    @property
    def standing(self) -> int:
        """How many are in the dataflow."""
        return len(self._nodes)

    def may_follow(self, tables: Iterable[int], views: Iterable[Relation]) -> bool:
        """Whether what reads these tables may stay while they are rewritten. ``views``: the materialized views among
        it; those that are down need only be told (``Failing.read_anew``)."""
        renderer, failures = self.engine.renderer, self.engine.failures
        found = all((v.id in renderer.stored or v.id in failures) and not v.locks for v in views)
        return found and all(may_succeed(renderer, table) for table in tables)

    def succeed(self, succession: Succession) -> None:
        """Put the next one into the dataflow. Both tables' changes up to it have been stepped."""
        self._nodes.append(self.engine.succeed(succession.old, succession.new, succession.columns))

    def give_back(self, succession: Succession) -> None:
        """Take the last one out of the dataflow. What came after it has been undone."""
        self.engine.give_back(succession.old, succession.new, self._nodes.pop())
