"""Which words of its nodes' rows a plan reads, so that rows sent between machines can omit the others.

Demand is passed from the roots down. A word that nothing reads may be 0 wherever it stands: linear nodes and joins then
give the same rows in all required words, with the same diffs after consolidation.
"""

from __future__ import annotations

from collections.abc import Collection, Set
from typing import Final

from ivm.graph import Arrange, Errors, Gather, Join, NodeId, Project, Unchanged
from ivm.specs import inputs, parameters
from ivm.words import Schema
from planner.expr.scalar import Column
from planner.physical.arrangement_programs import Keyed, Weigh
from planner.physical.nodes import Map, Plan, RowProgram, arranged_by
from planner.physical.row_programs import SHOWN_COLUMNS, MapFilter

_NOTHING: Final[frozenset[int]] = frozenset()


def required_words(plan: Plan, kept: Collection[NodeId]) -> list[set[int]]:
    """For each node, the words of its rows that the plan reads. ``kept``: nodes whose rows are needed whole."""
    roots = {plan.rows, plan.errors, *kept, *(i for connection in plan.connections for i in connection)}
    found: list[set[int]] = [set(range(width)) if NodeId(i) in roots else set() for i, width in enumerate(plan.widths)]
    for number in reversed(range(len(plan.nodes))):
        for given in inputs(plan.nodes[number]):
            found[given] |= _read(plan, NodeId(number), given, found[number])
    return found


def _read(plan: Plan, number: NodeId, given: NodeId, wanted: Set[int]) -> Set[int]:
    """The words that a node reads of one of its inputs to compute its own wanted words."""
    node, width = plan.nodes[number], plan.widths[given]
    match node:
        case Arrange(order=()):
            return _gathered(node.gather, wanted | set(range(node.key_width)))
        case Project():
            return _gathered(node.gather, wanted)
        case Map():
            return _by_program(node.program, width, wanted)
        case Unchanged() if not parameters(node):
            return wanted
        case Errors():
            return _NOTHING
        case Join():
            return _joined(plan, node, given, wanted)
    return set(range(width))


def _gathered(gather: Gather, wanted: Set[int]) -> set[int]:
    words = {gather.words[k] for k in wanted} - {-1}
    bits = {source for source, _, word, _ in gather.bits if word in wanted}
    return words | bits | {word for word, _ in gather.drop_if}


def _joined(plan: Plan, join: Join, given: NodeId, wanted: Set[int]) -> set[int]:
    left, key_width = plan.widths[join.left], arranged_by(plan, join.left).key_width
    read = _gathered(join.gather, wanted)
    found = set(range(key_width))
    if given == join.left:
        found |= {word for word in read if word < left}
    if given == join.right:
        found |= {word - left + key_width for word in read if word >= left}
    return found


def _by_program(program: RowProgram, width: int, wanted: Set[int]) -> Set[int]:
    match program:
        case MapFilter(exprs=None):
            tested = frozenset[int]().union(*(test.used for test in program.tests))
            return wanted | _with_nulls(program.schema, tested, program.can_fail, width)
        case MapFilter(exprs=tuple(exprs)):
            passed = (e.index for e in exprs if isinstance(e, Column))
            used = program.computed.used.union(*(test.used for test in program.tests), passed)
            return _with_nulls(program.schema, used, program.can_fail, width)
        case Keyed(rows=False) | Weigh():
            return _with_nulls(program.schema, program.computed.used, program.can_fail, width)
    return set(range(width))


def _with_nulls(schema: Schema, used: frozenset[int], can_fail: bool, width: int) -> set[int]:
    """Adds the null words and, if the program can fail, the columns that its error message shows."""
    shown = range(min(SHOWN_COLUMNS, len(schema)) if can_fail else 0)
    return {*used, *shown, *range(len(schema), width)}
