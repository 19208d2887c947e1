"""Lowers WITH RECURSIVE and WITH MUTUALLY RECURSIVE as loops.

WITH RECURSIVE is defined by a working table: W0 = base, W(r+1) = step(Wr) [UNION: its new rows only]; the result is the
sum of all W. If the step distributes over sums of its reference (sets, for UNION), a cheap loop computes the same: R =
base + step(R), for UNION R = distinct(base + step(R)). The variable stands on the step's output, so that R's own
arrangement is what the step joins with. Otherwise the working table is built round by round, and the step's rows count
only while the working table is not empty, since that is when the standard stops.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ivm.graph import Consolidate, Gather, Keep, Leave, Negate, Threshold
from ivm.time import all_bits
from ivm.words import Schema
from planner import gathers
from planner.logical.join_keys import has_classes
from planner.logical.linearity import Use, empty_without, use
from planner.logical.nodes import (
    LetRec,
    Recursive,
    Rel,
)  # fmt: skip
from planner.logical.references import RecursiveBinding, free_references, needed, read_later
from planner.logical.traversal import children
from planner.lower.priorities import Priorities
from planner.lower.round_widths import chains, wanted, width
from planner.lower.sets import except_by_class, lower_distinct
from planner.lower.state import Lowering
from planner.physical.divergence import DEFAULT_LIMIT, note_divergence
from planner.physical.layouts import whole_row
from planner.physical.nodes import Flow, Group, LoopVariable, Open, Pair, innermost


class Loop:
    """One loop during lowering: its scope, its variables, and the errors noted inside."""

    def __init__(self, low: Lowering, reads: frozenset[int], want: int, inside: Iterable[Rel]) -> None:
        """Opens a loop inside the loops of the bindings that it ``reads``.

        It is invariant in all other loops. ``want``: the bits wanted for its round; ``inside``: plans that may contain
        loops.
        """
        self.low = low
        self.builder = low.builder
        parent = innermost((low.scope_of(binding) for binding in reads), self.builder.scopes)
        self.width = width(all_bits(self.builder.shape(parent)), want, chains(inside))
        self.scope = self.builder.open_scope(parent, self.width)
        self._outer_errors, self.builder.errors = self.builder.errors, []
        self._variables = 0

    def variable(self, row: Schema) -> Flow:
        """A new variable: empty at round 0, then what its body was one round before."""
        number, self._variables = self._variables, self._variables + 1
        node = self.builder.add(LoopVariable(self.scope, number, gathers.width(row)), gathers.width(row))
        return self.builder.flow(node, row)

    def connect(self, variable: Flow, body: Flow, consolidated: bool = False) -> None:
        """Sets a variable's body.

        ``consolidated``: the cycle contains a threshold or reduce. Otherwise the body is consolidated here, because
        updates that cancel would circulate forever.
        """
        assert not isinstance(variable.source, Open)
        node = self.builder.force(self.low.coerce(body, variable.schema))
        if not consolidated and not isinstance(self.builder.nodes[node], Threshold | Group):
            node = self.builder.add(Consolidate(node), self.builder.widths[node])
        self.builder.connections.append((variable.source, node))

    def leave(self, flow: Flow) -> Flow:
        """The flow outside of the loop."""
        node = self.builder.force(flow)
        if self.builder.scope_of[node] != self.scope:
            return flow
        return self.builder.flow(self.builder.add(Leave(node), self.builder.widths[node]), flow.schema)

    def limit(self, wanted: int | None, return_at: bool = False, stride: int = 0) -> int | None:
        """Sets the most rounds that the loop may run. All of its inner loops must exist.

        ``wanted``: the limit asked for. ``return_at``: the state after so many rounds is the result, if times can
        distinguish so many. Returns the limit at which the loop fails if it has not ended; None if it returns its state
        there, or if nothing was ``wanted`` and times can distinguish more rounds than the default limit.
        """
        max_rounds = self.builder.max_rounds(self.scope)
        if wanted is None and max_rounds > DEFAULT_LIMIT:
            return None
        limit = min(stride or max_rounds, wanted or DEFAULT_LIMIT)
        returns = return_at and limit == wanted
        scope = replace(self.builder.scopes[self.scope], limit=limit, return_at_limit=returns, stride=stride)
        self.builder.scopes[self.scope] = scope
        return None if returns else limit

    def close(self, keep: bool) -> None:
        """Ends the loop. Its errors leave it, distinct in each round; ``keep``: an error of any round persists."""
        inside, self.builder.errors = self.builder.errors, self._outer_errors
        own = [e for e in inside if self.builder.scope_of[e] == self.scope]
        for error in inside:
            if error not in own:
                self.builder.add_errors(error)
        if not own:
            return
        if keep:
            variable = self.builder.add(LoopVariable(self.scope, self._variables, 1), 1)
            self._variables += 1
            own.append(variable)
        gather = gathers.identity(1)
        flow = Flow(self.builder.concat(tuple(own)), gather, ())
        distinct = self.low.threshold(self.builder.arrange(flow, gather, 1), Keep.DISTINCT)
        if keep:
            self.builder.connections.append((variable, distinct))
        self.builder.add_errors(self.builder.add(Leave(distinct), 1))


def lower_recursive(low: Lowering, rel: Recursive) -> Flow:
    """Lowers WITH RECURSIVE."""
    base = low.coerce(low.rel(rel.base), rel.schema)
    loop = Loop(low, free_references(rel), wanted(rel), children(rel))
    linear = use(rel.step, rel.binding, not rel.all and not has_classes(rel.schema)) is Use.LINEAR
    total, stepped = (_cheap if linear else _working_table)(low, loop, rel, base)
    out = loop.leave(total)
    limit = loop.limit(low.indexes.planning.rounds or None if low.indexes.one_shot else None)
    low.builder.scopes[loop.scope] = replace(low.builder.scopes[loop.scope], stoppable=True)
    loop.close(keep=not linear)
    if limit is not None:
        note_divergence(low.builder, stepped, rel.name, limit, query=True)
    return out


def _cheap(low: Lowering, loop: Loop, rel: Recursive, base: Flow) -> tuple[Flow, Flow]:
    """(the total, the variable that is empty when the loop ends)."""
    stepped = loop.variable(rel.schema)
    both = low.builder.concat((low.builder.force(base), low.builder.force(stepped)))
    total = low.builder.flow(both, rel.schema)
    if not rel.all:
        total = lower_distinct(low, total)
    low.bind(rel.binding, total)
    loop.connect(stepped, low.rel(rel.step), consolidated=not rel.all)
    return total, stepped


def _working_table(low: Lowering, loop: Loop, rel: Recursive, base: Flow) -> tuple[Flow, Flow]:
    builder, row = low.builder, rel.schema
    later, stepped, before = loop.variable(row), loop.variable(row), loop.variable(row)
    first = builder.force(base)
    minus = builder.add(Negate(builder.force(later)), gathers.width(row))
    candidates = builder.flow(builder.concat((first, minus, builder.force(stepped))), row)
    work = candidates if rel.all else _new_rows(low, candidates, before)
    # the body must be inside the loop, so the base enters it here
    entered = builder.flow(builder.concat((first, builder.force(later), minus)), row)
    loop.connect(later, entered)
    total = builder.flow(builder.concat((builder.force(before), builder.force(work))), row)
    loop.connect(before, total)
    low.bind(rel.binding, work)
    step = low.coerce(low.rel(rel.step), row)
    if not empty_without(rel.step, rel.binding):
        step = _while(low, step, work)
    loop.connect(stepped, step)
    return total, stepped


def _new_rows(low: Lowering, candidates: Flow, before: Flow) -> Flow:
    """The candidates, each once, that no earlier round had."""
    if has_classes(candidates.schema):
        return except_by_class(low, lower_distinct(low, candidates), before)
    builder = low.builder
    once = low.distinct_rows(candidates)
    minus = builder.add(Negate(builder.force(before)), gathers.width(before.schema))
    gather = whole_row(candidates.schema).gather
    flow = builder.flow(builder.concat((builder.force(once), minus)), candidates.schema)
    return builder.flow(low.threshold(builder.arrange(flow, gather, len(gather.words)), Keep.POSITIVE), flow.schema)


def _while(low: Lowering, step: Flow, work: Flow) -> Flow:
    """The step's rows, in the rounds in which the working table has a row."""
    builder = low.builder
    some = low.threshold(builder.arrange(work, Gather((-1,)), 1), Keep.DISTINCT)
    width = gathers.width(step.schema)
    keyed = builder.arrange(step, Gather((-1, *range(width))), 1)
    return Flow(Pair(keyed, some, 1 + width), Gather(tuple(range(1, 1 + width))), step.schema)


def lower_letrec(low: Lowering, rel: LetRec) -> Flow:
    """WITH MUTUALLY RECURSIVE. A reference to an earlier binding sees this round's value, any other the last round's.

    Bindings that the body does not need are not computed. Only bindings that are read a round later become variables;
    without any there is no loop.
    """
    parts = needed(rel)
    again = read_later(parts)
    own = {part.binding for part in parts}
    reads = frozenset(b for part in parts for b in part.reads if b not in own)
    loop = Loop(low, reads, wanted(rel), [part.value for part in parts]) if again else None
    variables: dict[int, Flow] = {}
    priorities = Priorities.of(rel, loop.scope, loop.width) if loop is not None and rel.priorities else None
    for part in parts:
        if loop is not None and part.binding in again:
            variables[part.binding] = loop.variable(part.row)
            low.bind(part.binding, variables[part.binding])
    for part in parts:
        flow = low.coerce(low.rel(part.value), part.row)
        flow = low.builder.flow(low.builder.force(flow), part.row)
        if priorities is not None:
            flow = priorities.delay(low, part.binding, flow)
        low.bind(part.binding, flow)
        if loop is not None and part.binding in again:
            loop.connect(variables[part.binding], flow)
    if loop is not None:
        _end(low, loop, rel, parts, variables, 0 if priorities is None else priorities.stride)
    return low.rel(rel.body)


def _end(
    low: Lowering, loop: Loop, rel: LetRec, parts: tuple[RecursiveBinding, ...], variables: dict[int, Flow], stride: int
) -> None:
    """Binds the bindings' values outside of the loop, and notes an error for those that reach no fixpoint."""
    for part in parts:
        out = loop.leave(low.bindings[part.binding])
        low.bind(part.binding, low.builder.flow(low.builder.force(out), part.row))
    limit = loop.limit(rel.limit or DEFAULT_LIMIT, rel.return_at_limit, stride)
    loop.close(keep=False)
    for part in parts:
        if limit is not None and part.binding in variables:
            note_divergence(low.builder, variables[part.binding], part.name, limit)
