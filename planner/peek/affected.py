"""Whether a query that has run would have read some other rows of a relation: what a transaction checks at its end.

A relation is read through filters, which the rows pass or not, or by keys that the query itself gives. In every other
case all of it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ivm.graph import Arrange, Join, Mapped, NodeId, Threshold
from ivm.rows import Words
from planner import gathers
from planner.expr.context import Context
from planner.physical.nodes import Constants, Map, Node, Plan, Table
from planner.physical.uses import uses
from planner.render.dataflow import constant_rows

_FEW = 16
"""Rows of which numpy takes longer than Python."""
Sought = dict[NodeId, frozenset[bytes] | None]
"""The keys that a query looks up in an arrangement, by the node that does; None: they are not known."""


@dataclass(frozen=True, slots=True)
class AskedKey:
    """A read of the row of a relation with a key of one word. ``place``: of the key's column."""

    place: int
    word: int

    def may_read(self, relation: int, rows: Words) -> bool:
        """As of ``Asked``."""
        words = rows[:, self.place]
        return self.word in words.tolist() if len(words) <= _FEW else bool((words == self.word).any())


@dataclass(frozen=True, slots=True)
class Asked:
    """A query that has run. ``context`` makes one with its parameters; ``sought``: what is known of its keys, which
    stay the same."""

    plan: Plan
    context: Callable[[], Context]
    sought: Sought = field(default_factory=dict)

    def may_read(self, relation: int, rows: Words) -> bool:
        """Whether the plan, run once, may read one of these rows of a relation. Cost: in the rows, and once in the
        plan's keys.

        ``rows`` in the relation's layout, with no values that the context does not know.
        """
        above = uses(self.plan)
        return any(
            self._reads(use, number, rows)
            for number, node in enumerate(self.plan.nodes)
            if isinstance(node, Table) and node.relation == relation
            for use in above.get(NodeId(number), ())
        )

    def _reads(self, use: NodeId, number: int, rows: Words) -> bool:
        node = self.plan.nodes[use]
        match node:
            case Map() if node.program.diff_width == 1 and use != number:
                made = node.program.run(rows, self.context())
                return bool(len(made.rows)) or _failed(made)
            case Arrange() if self.plan.stored[use] is not None and use != number:
                moved = gathers.apply(node.gather, rows)[0]
                above = uses(self.plan).get(use, ())
                return any(self._looks_up(reader, use, node.key_width, moved) for reader in above)
            case _:
                return True

    def _looks_up(self, use: NodeId, fixed: NodeId, width: int, rows: Words) -> bool:
        """Whether a node above an arrangement may read one of these rows of it."""
        if use not in self.sought:
            self.sought[use] = _sought(self.plan, use, fixed, width, self.context)
        keys = self.sought[use]
        return keys is None or any(row[:width].tobytes() in keys for row in rows)


def _sought(
    plan: Plan, use: NodeId, fixed: NodeId, width: int, context: Callable[[], Context]
) -> frozenset[bytes] | None:
    join = plan.nodes[use]
    if not isinstance(join, Join) or join.left == join.right:
        return None
    keys = _given(plan, join.right if join.left == fixed else join.left, context())
    return None if keys is None else frozenset(key[:width].tobytes() for key in keys)


def _given(plan: Plan, number: NodeId, context: Context) -> Words | None:
    """The rows of a node that reads no relation; None if it does, or is not simple."""
    node: Node = plan.nodes[number]
    match node:
        case Constants():
            rows, errors = constant_rows(node.rows, node.schema, context)
            return None if len(errors) else rows
        case Map() if node.program.diff_width == 1:
            below = _given(plan, node.input, context)
            if below is None:
                return None
            made = node.program.run(below, context)
            return None if _failed(made) else made.rows
        case Arrange() if not node.order:
            below = _given(plan, node.input, context)
            return None if below is None else gathers.apply(node.gather, below)[0]
        case Threshold():
            return _given(plan, node.input, context)
        case _:
            return None


def _failed(made: Mapped) -> bool:
    return made.errors is not None and len(made.errors) > 0
