"""Filling the arrangements of new nodes beside a dataflow with contents computed elsewhere, instead of running them.

Between steps all state of operators is in arrangements. So nodes whose spines are given the contents that hydration
would produce continue as if they had been hydrated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ivm.graph import NodeId
from ivm.hydration.detached import Detached
from ivm.operators.arrange import OutputOperator
from ivm.operators.linear import ProjectOperator
from ivm.operators.trace_import import TraceImportOperator
from ivm.runtime.operator import Operator
from ivm.time import all_bits
from ivm.trace.batch import Block
from ivm.trace.spine import Spine

Contents = Callable[[], Iterable[Block]]
"""Sorted, consolidated blocks whose sum a spine is to hold; times are loop vectors, 0 outside of loops."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A running node's contents. ``contents`` yields read-only blocks of up to a given number of updates; all times are
    0, and only the sum is consolidated. ``diff_width``: the diff words of an update."""

    contents: Callable[[int], Iterable[Block]]
    diff_width: int = 1


def standing(flow: Detached, node: NodeId) -> Standing | None:
    """What a node of the running dataflow held when the work began, if an arrangement there has all of it. None: it is
    new, or made a second time. Callable from any thread, before ``fill``."""
    operator = flow.imported(node)
    if isinstance(operator, TraceImportOperator):
        return Standing(operator.timeless, operator.diff_width)
    if isinstance(operator, ProjectOperator) and isinstance(operator.source, TraceImportOperator):
        project, source = operator, operator.source
        return Standing(lambda most: map(project.moved, source.timeless(most)), project.diff_width)
    return None


def keeping(flow: Detached, node: NodeId) -> bool:
    """Whether ``fill`` needs a node's contents: it is new, and an arrangement that is kept."""
    operator = flow.made(node)
    return operator is not None and operator.spine is not None


def fill(flow: Detached, contents: Mapping[NodeId, Sequence[Contents]]) -> None:
    """Replaces the first ``run``: fills each spine of all new nodes that are ``keeping``; spines that are not given are
    empty. Raises 57014, 53200."""
    with flow.filling():
        for node, blocks in contents.items():
            operator = flow.made(node)
            assert operator is not None
            for spine, found in zip(operator.spines(), blocks, strict=False):  # a loop variable's may not be kept
                spine.fill(_timed(operator, spine, found()))


def _timed(operator: Operator, spine: Spine, blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks at the present time. Checks for memory and a cancel between them."""
    context = operator.context
    present = context.newest << all_bits(operator.scope.shape)
    for block in blocks:
        context.look()
        assert (block.width, block.diff_width) == (spine.width, spine.diff_width)
        rows, times, diffs = block.arrays()
        timed = Block.of(rows, times | present, diffs)
        yield timed
        if isinstance(operator, OutputOperator):
            operator.filled(timed)
