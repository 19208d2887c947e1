"""Lowers a recursion of least labels as a loop in which rows are introduced in order of their labels.

The variable stands on the proposed labels, so that the reduce's own output is what the step joins with. Proposals wait
for their priority before the reduce sees them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ivm.graph import Delay
from ivm.time import PRIORITIES, WIDEST, priority_stride
from planner import gathers
from planner.logical.nodes import LetRec, Project, Reduce, Reference, Rel, schema
from planner.logical.references import free_references
from planner.logical.traversal import column_types, own_columns
from planner.lower.monotone_labels import Labelled, recursive_bindings, without_nulls
from planner.lower.recursion import Loop
from planner.lower.state import Lowering
from planner.physical.divergence import DEFAULT_LIMIT, note_divergence
from planner.physical.nodes import Flow


def lower_labelled(low: Lowering, rel: LetRec, found: Labelled) -> Flow:
    """Lowers the block.

    Its other bindings are not recursive and stay outside of the loop, after those that they read.
    """
    assert recursive_bindings(rel) == {found.binding}
    values = dict(rel.bindings)
    rows = {binding: row for (binding, _), row in zip(rel.bindings, rel.schemas, strict=True)}
    names = dict(zip(values, rel.names or map(str, values), strict=True))
    for binding in _in_order(values):
        flow = _loop(low, found, names[binding]) if binding == found.binding else low.rel(values[binding])
        low.bind(binding, low.coerce(flow, rows[binding]))
    return low.rel(rel.body)


def _in_order(values: Mapping[int, Rel]) -> list[int]:
    """The bindings, each after those that it reads."""
    order: dict[int, None] = {}
    todo = [*values][::-1]
    begun: set[int] = set()
    while todo:
        binding = todo[-1]
        if binding in begun:
            order[todo.pop()] = None
            continue
        begun.add(binding)
        others = sorted(free_references(values[binding]) & values.keys(), reverse=True)
        todo += [other for other in others if other not in begun]
    return list(order)


def _loop(low: Lowering, found: Labelled, name: str) -> Flow:
    found = without_nulls(found)
    builder = low.builder
    loop = Loop(low, free_references(found.input) - {found.binding}, WIDEST, (found.input,))
    argument = found.label.args[0]
    row = column_types((*found.keys, argument))
    proposed = loop.variable(row)
    proposals = builder.force(proposed)
    stride = priority_stride(loop.width)
    delayed = proposals
    if stride:
        delayed = builder.add(Delay(proposals, len(found.keys), found.priority, stride), gathers.width(row))
    stand_in = -found.binding
    low.bind(stand_in, builder.flow(delayed, row))
    *keys, column = own_columns(row)
    label = replace(found.label, args=(column,), distinct=False)
    value: Rel = Project(Reduce(Reference(stand_in, row), tuple(keys), (label,)), found.above)
    flow = low.coerce(low.rel(value), schema(value))
    low.bind(found.binding, flow)
    step = low.coerce(low.rel(Project(found.input, (*found.keys, argument))), row)
    loop.connect(proposed, step, consolidated=True)
    out = loop.leave(flow)
    limit = loop.limit(DEFAULT_LIMIT + PRIORITIES * stride)
    loop.close(keep=False)
    if limit is not None:
        note_divergence(builder, proposed, name, limit)
    return out
