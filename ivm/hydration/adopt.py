"""New nodes beside a dataflow, brought to the present by contents that were computed elsewhere, without being run.

An operator knows nothing between steps but what arrangements hold: so nodes whose spines have the contents that
hydrating would give go on as if they had been hydrated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ivm.graph import NodeId
from ivm.hydration.detached import Detached
from ivm.hydration.replay import replay_into
from ivm.operators.arrange import OutputOperator
from ivm.operators.linear import ProjectOperator
from ivm.operators.trace_import import StandInOperator
from ivm.runtime.scheduler import Operator
from ivm.time import all_bits
from ivm.trace.batch import Block
from ivm.trace.spine import Spine

Contents = Callable[[], Iterable[Block]]
"""Sorted, consolidated blocks whose sum is what a spine is to hold; times are loop vectors, 0 outside of loops."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What is there already. ``contents``: in blocks of up to so many updates, which are not to be written to; all
    times are 0, and only the sum is consolidated. ``diff_width``: how many diffs an update has."""

    contents: Callable[[int], Iterable[Block]]
    diff_width: int = 1


def standing(flow: Detached, node: NodeId) -> Standing | None:
    """What a node of the running dataflow held when the work began, if it stands there as a whole: for any thread, and
    before ``fill``. None: it is new, or made a second time."""
    operator = flow._imports.get(node)
    if isinstance(operator, StandInOperator):
        return Standing(operator.timeless, operator.diff_width)
    if isinstance(operator, ProjectOperator) and isinstance(operator.source, StandInOperator):
        project, source = operator, operator.source
        return Standing(lambda most: map(project.moved, source.timeless(most)), project.diff_width)
    return None


def keeping(flow: Detached, node: NodeId) -> bool:
    """Whether ``fill`` wants a node's contents: it is new, and an arrangement that is kept."""
    operator = _new(flow, node)
    return operator is not None and operator.spine is not None


def _new(flow: Detached, node: NodeId) -> Operator | None:
    return flow._operators.get(node) or flow._seconds.get(node)


def fill(flow: Detached, contents: Mapping[NodeId, Sequence[Contents]]) -> None:
    """In the place of the first ``run``: the contents of all new nodes that are ``keeping``, of each of their spines
    (none: they are empty). 57014, 53200."""
    core = flow._core
    flow._begun = flow._running = True
    flow._fresh = flow._dormant
    flow._fed = core.newest
    core.begin()
    core.hydrating = True
    try:
        fresh = flow._ranked()
        replay_into(core, fresh)
        for operator in fresh:
            operator.resume()
        for node, blocks in contents.items():
            filled = _new(flow, node)
            assert filled is not None
            for spine, found in zip(filled.spines(), blocks, strict=False):  # a loop variable's may not be kept
                spine.fill(_timed(filled, spine, found()))
        core.stepped_word[0] = core.newest
        for operator in fresh:
            flow._watch(operator)
    except BaseException:
        flow._dispose()
        raise
    finally:
        core.hydrating = flow._running = False


def _timed(operator: Operator, spine: Spine, blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks at the time of what is held now; memory and a cancel are looked at between them."""
    core = operator.core
    present = core.newest << all_bits(operator.scope.shape)
    for block in blocks:
        core.look()
        assert (block.width, block.diff_width) == (spine.width, spine.diff_width)
        rows, times, diffs = block.arrays()
        timed = Block.of(rows, times | present, diffs)
        yield timed
        if isinstance(operator, OutputOperator):
            operator.filled(timed)
