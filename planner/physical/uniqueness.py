"""Which words identify the rows of a physical plan's node, so that a lookup by them finds at most one row."""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from ivm.graph import Arrange, Concat, Gather, Keep, NodeId, Project, Threshold, Unchanged
from ivm.specs import inputs
from planner.aggregates.aggregate_reducers import (
    AccumulateFold,
    BasicFold,
    CountFold,
    ModeFold,
    OrderedFold,
    PercentileFold,
)
from planner.aggregates.row_reducers import FirstRow
from planner.physical.nodes import Group, Map, Plan, arranged_by
from planner.physical.row_programs import MapFilter

_ONE_ROW: Final = (AccumulateFold, BasicFold, CountFold, FirstRow, ModeFold, OrderedFold, PercentileFold)
"""Folds that make at most one row of a group."""


Bits = Set[tuple[int, int]]
"""(word, bit)."""


def tells_apart(plan: Plan, number: NodeId, words: Set[int], clear: Bits = frozenset()) -> bool:
    """Whether ``words`` are a key of a node's rows at every time, as far as the plan implies it.

    Declared keys of tables are not considered. ``clear``: only rows without these bits count, such as those whose key
    is not NULL.
    """
    node = plan.nodes[number]
    match node:
        case Arrange() | Project():
            clear = _cleared(node.gather, clear)
            return tells_apart(plan, node.input, _gathered(node.gather, words), clear)
        case Concat():
            return False
        case Map(program=MapFilter(exprs=None)) | Unchanged():
            return tells_apart(plan, inputs(node)[0], words, clear)
        case Threshold():
            whole = node.keep is Keep.DISTINCT and words >= set(range(plan.widths[number]))
            return whole or tells_apart(plan, node.input, words, clear)
        case Group():
            by = arranged_by(plan, number)
            count = by.key_width if isinstance(node.fold, _ONE_ROW) else plan.widths[number]
            return words | _empty(by, clear) >= set(range(count))
    return False


def _gathered(gather: Gather, words: Set[int]) -> set[int]:
    """The source words that ``words`` are copies of, except those in which bits are set."""
    marked = {word for _, _, word, _ in gather.bits}
    return {gather.words[k] for k in words if k not in marked} - {-1}


def _cleared(gather: Gather, clear: Bits) -> Bits:
    """The bits that a source row lacks if the gathered row lacks ``clear``."""
    copied = {(gather.words[word], bit) for word, bit in clear}
    return {*gather.drop_if, *copied, *((word, bit) for word, bit, *to in gather.bits if tuple(to) in clear)}


def _empty(by: Arrange, clear: Bits) -> set[int]:
    """The words of a key that consist only of bits in ``clear``."""
    left = {word for _, _, word, bit in by.gather.bits if (word, bit) not in clear}
    return {k for k in range(by.key_width) if by.gather.words[k] < 0 and k not in left}
