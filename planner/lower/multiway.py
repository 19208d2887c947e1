"""Joins without intermediate state: delta joins of three and more inputs, and worst-case optimal ones; of two where the
rows of one are fetched late.

Every input gets a path; the arrangements that paths look up in are those of the inputs alone. A delta join is chosen
outside of loops when it needs no more rows in new arrangements than a linear one, whose intermediate results count as
much as the largest input; a worst-case optimal one (paths with stages of several inputs) for cyclic conditions.
"""

from __future__ import annotations

from dataclasses import dataclass

from ivm.words import Schema
from planner import gathers
from planner.expr.functions.library import is_equality
from planner.expr.scalar import Column, Scalar
from planner.logical.join_keys import is_constant, take_apart
from planner.logical.nodes import Filter, Get, Join, Project, Rel, schema
from planner.logical.traversal import conjuncts, own_columns
from planner.lower.delta_paths import Paths, Source, by_size, source
from planner.lower.join_graph import Attributes, Combination, attributes, combination, is_join, stages
from planner.lower.late_materialization import pays, wide
from planner.lower.state import Lowering
from planner.options import Joins, Late
from planner.physical.nodes import Flow

_UNKNOWN = 1
"""Rows of a relation of unknown size: then arrangements are counted."""


def lower_multiway(low: Lowering, join: Join) -> Flow | None:
    """The join of all inputs at once; None where a linear one is better, or the only one."""
    mode = low.indexes.planning.joins
    joined = None if mode is Joins.LINEAR else combination(join)
    if joined is None:
        return None
    found = attributes(joined)
    if not found.connected or (mode is Joins.AUTO and not _worth_a_look(low, joined, found)):
        return None
    sources = [
        source(low, low.rel(rel), own, _size(low, rel)) for rel, own in zip(joined.inputs, found.of, strict=True)
    ]
    meet = mode is Joins.WCO or (mode is Joins.AUTO and found.cyclic)
    whole = Paths(low, sources, [stages(i, found.of, meet, by_size(sources)) for i in range(len(sources))])
    plan = _late(low, whole)
    if mode is Joins.AUTO and not found.cyclic:
        if _looped(low, sources):
            return None
        linear = _linear(low, join, sources)
        if whole.wanted.rows > linear.rows and (plan is whole or plan.wanted.words > linear.words):
            return None
    return _shown(low, join, joined, found, plan.flow())


@dataclass(frozen=True, slots=True)
class End:
    """A side of a join of two: its keys among its columns, of which the first ``columns`` are shown."""

    flow: Flow
    keys: tuple[int, ...]
    columns: int


def lower_late_pair(low: Lowering, left: End, right: End) -> Flow | None:
    """A join of two by keys of which none is NULL, left's columns, then right's; None where nothing is fetched late,
    and a linear join does."""
    twice = any(len(set(end.keys)) < len(end.keys) for end in (left, right))  # one column, compared with two
    if not left.keys or twice or (wide(low, left.flow) is None and wide(low, right.flow) is None):
        return None
    sources = [Source(end.flow, end.columns, dict(enumerate(end.keys)), _UNKNOWN) for end in (left, right)]
    whole = Paths(low, sources, [stages(i, [s.places for s in sources], False, by_size(sources)) for i in (0, 1)])
    plan = _late(low, whole)
    return None if plan is whole else plan.flow()


def _late(low: Lowering, whole: Paths) -> Paths:
    """The paths over ids of the inputs for which that pays; the same ones where there are none."""
    if low.indexes.planning.late is Late.AUTO and _looped(low, whole.sources):
        return whole
    late = {}
    for flow in dict.fromkeys(s.flow for s in whole.sources):
        keys = whole.wanted.made(flow)
        found = wide(low, flow) if keys else None
        if found is not None and pays(low, found, flow, keys):
            late[flow] = found
    return Paths(low, whole.sources, whole.courses, late) if late else whole


def _worth_a_look(low: Lowering, joined: Combination, found: Attributes) -> bool:
    """Whether AUTO may choose anything but a linear join: a query that runs once either looks up the few rows that
    constants point at or has no use for what it would arrange."""
    return not low.indexes.one_shot or (found.cyclic and not any(_is_pointed(rel) for rel in joined.inputs))


def _looped(low: Lowering, sources: list[Source]) -> bool:
    """Whether the join is in a loop: linear ones are compiled with it."""
    return any(low.loop_of(source.flow) is not None for source in sources)


def _is_pointed(rel: Rel) -> bool:
    while isinstance(rel, Filter | Project):
        if isinstance(rel, Filter) and any(_is_point(p) for p in conjuncts(rel.predicate)):
            return True
        rel = rel.input
    return False


def _is_point(predicate: Scalar) -> bool:
    return is_equality(predicate) and any(is_constant(a) for a in predicate.args)


def _size(low: Lowering, rel: Rel) -> int:
    while isinstance(rel, Filter | Project):
        rel = rel.input
    return (low.indexes.size(rel.relation) if isinstance(rel, Get) else None) or _UNKNOWN


@dataclass(slots=True)
class _Made:
    """Rows and words in arrangements that are to be made."""

    rows: int = 0
    words: int = 0

    def add(self, rows: int, row: Schema) -> None:
        self.rows += rows
        self.words += rows * gathers.width(row)


def _linear(low: Lowering, join: Join, sources: list[Source]) -> _Made:
    """What a linear join would make anew; how many rows an intermediate result has is guessed."""
    most = max(source.size for source in sources)
    made: set[tuple[Flow, frozenset[Scalar]]] = set()
    total = _Made()
    todo: list[Rel] = [join]
    while todo:
        rel = todo.pop()
        while isinstance(rel, Filter | Project):
            rel = rel.input
        assert isinstance(rel, Join)
        keys = take_apart(rel.on, len(schema(rel.left))).keys
        for side, own in ((rel.left, [k.left for k in keys]), (rel.right, [k.right for k in keys])):
            if is_join(side):
                total.add(most, schema(side))
                todo.append(side)
                continue
            flow, by = low.rel(side), frozenset(own)
            if (flow, by) not in made and not _has(low, flow, by):
                total.add(_size(low, side), flow.schema)
            made.add((flow, by))
    return total


def _has(low: Lowering, flow: Flow, keys: frozenset[Scalar]) -> bool:
    """Whether a flow is a stored relation that is arranged by these columns."""
    stored = low.table_of(flow)
    if stored is None or not all(isinstance(k, Column) for k in keys):
        return False
    columns = {stored[1][k.index] for k in keys if isinstance(k, Column)}
    return any(set(known) == columns for known in low.indexes.keys(stored[0].relation))


def _shown(low: Lowering, join: Join, joined: Combination, found: Attributes, flow: Flow) -> Flow:
    """The columns that the join shows, of the rows that the other conditions let through."""
    own = own_columns(flow.schema)
    result = low.compute(flow, found.residual, tuple(own[c] for c in joined.columns))
    declared = schema(join)
    retyped = tuple(type(a)(d.type, a.nullable) for a, d in zip(result.schema, declared, strict=True))
    return Flow(result.source, result.gather, retyped)
