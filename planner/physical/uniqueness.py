"""Which words tell the rows of a physical plan's node apart: a lookup by them finds one row at most."""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from ivm.graph import Arrange, Consolidate, Delay, Gather, Keep, Leave, NodeId, Project, Threshold
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
"""Folds that make one row of a group at most."""


Bits = Set[tuple[int, int]]
"""(word, bit)."""


def tells_apart(plan: Plan, number: NodeId, words: Set[int], clear: Bits = frozenset()) -> bool:
    """Whether no two rows of a node, as it is at any time, agree in ``words``, as far as the plan says so. What tables
    declare it does not say. ``clear``: only rows without these bits are meant, as those whose key is not NULL."""
    node = plan.nodes[number]
    match node:
        case Arrange() | Project():
            clear = _cleared(node.gather, clear)
            return tells_apart(plan, node.input, _gathered(node.gather, words), clear)
        case Map(program=MapFilter(exprs=None)) | Consolidate() | Delay() | Leave():
            return tells_apart(plan, node.input, words, clear)
        case Threshold():
            whole = node.keep is Keep.DISTINCT and words >= set(range(plan.widths[number]))
            return whole or tells_apart(plan, node.input, words, clear)
        case Group():
            by = arranged_by(plan, number)
            count = by.key_width if isinstance(node.fold, _ONE_ROW) else plan.widths[number]
            return words | _empty(by, clear) >= set(range(count))
    return False


def _gathered(gather: Gather, words: Set[int]) -> set[int]:
    """The words that given words are copies of, those that have bits set in them left out."""
    marked = {word for _, _, word, _ in gather.bits}
    return {gather.words[k] for k in words if k not in marked} - {-1}


def _cleared(gather: Gather, clear: Bits) -> Bits:
    """The bits that a row does not have from which one without ``clear`` is gathered."""
    copied = {(gather.words[word], bit) for word, bit in clear}
    return {*gather.drop_if, *copied, *((word, bit) for word, bit, *to in gather.bits if tuple(to) in clear)}


def _empty(by: Arrange, clear: Bits) -> set[int]:
    """The words of a key that have nothing but bits, all of them ``clear``."""
    left = {word for _, _, word, bit in by.gather.bits if (word, bit) not in clear}
    return {k for k in range(by.key_width) if by.gather.words[k] < 0 and k not in left}
