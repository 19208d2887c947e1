"""What a dataflow is made of as a whole: what it holds at one moment, for a sweep to look through; and its end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ivm.budget import give_back
from ivm.operators.arrange import StaticOperator
from ivm.operators.linear import SourceOperator
from ivm.runtime.context import nothing_held, nothing_new
from ivm.runtime.scheduler import Operator, Scope
from ivm.trace.batch import Block, Words
from ivm.trace.spine import Spine

if TYPE_CHECKING:
    from ivm.dataflow import Dataflow

_LARGE: Final = 64 << 20
"""Bytes from which on freed memory goes back to the system at once."""


def words(flow: Dataflow) -> list[Words]:
    """Every row of every spine and block, as int64 arrays that nobody changes any more; other words may be among them.

    To be called between steps, on the dataflow's thread. Cost: a small copy for each spine; batches are immutable.
    """
    found: list[Words] = []
    for operator in operators(flow._root):
        for spine in operator.spines():
            found += _of_spine(spine)
        for block in _blocks(operator):
            if block.sync():  # kernels have emptied it, or filled it
                found.append(block.rows[: block.n].copy())
        if isinstance(operator, SourceOperator):
            found.append(operator.block().rows)
    return found


def spines(flow: Dataflow) -> list[Spine]:
    """What it keeps, for ``Spine.compact`` between steps."""
    return [s for o in operators(flow._root) if not isinstance(o, StaticOperator) for s in o.spines()]


def dispose(flow: Dataflow) -> None:
    """Ends a dataflow: what it held is freed at once, without waiting for a collection of garbage."""
    size = flow._core.share.size
    for operator in [*operators(flow._root), *flow._dormant]:
        operator.forget()
    for scope in (flow._root, *flow._scopes.values()):
        scope.members.clear()
        scope.stale.clear()
        scope.flow = scope.loop = None
    for mapping in (flow._operators, flow._specs, flow._enters):
        mapping.clear()
    flow._dormant.clear()
    flow._core.changed.clear()
    flow._core.refresh, flow._core.held, flow._core.values = nothing_new, nothing_held, nothing_held
    flow._core.share.release()
    flow._arena = None
    if size >= _LARGE:
        give_back()


def operators(scope: Scope) -> Iterator[Operator]:
    """All operators of a scope and the loops in it."""
    for member in scope.members.values():
        if isinstance(member, Scope):
            yield from operators(member)
        else:
            yield member


def _blocks(operator: Operator) -> list[Block]:
    blocks = operator.blocks()
    if operator.later is not None:
        blocks.append(operator.later.block)
    return blocks


def _of_spine(spine: Spine) -> list[Words]:
    held, batches = spine.frozen()
    return [held, *(batch.rows for batch in batches)]
