"""Joins without intermediate state: delta joins and worst-case optimal joins of three or more inputs.

Also joins of two inputs where one is materialized late. Every input gets a path, and paths look up only arrangements of
the inputs. A delta join is chosen outside of loops if its new arrangements need no more rows than a linear join's,
whose intermediate results are assumed to be as large as the largest input. A worst-case optimal join (paths with stages
of several inputs) is chosen for cyclic conditions.
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
from planner.lower.delta_paths import JoinInput, Paths, by_size, source
from planner.lower.join_graph import Attributes, Combination, attributes, combination, is_join, may_be_cyclic, stages
from planner.lower.late_materialization import pays, wide
from planner.lower.state import Lowering
from planner.options import Joins, Late
from planner.physical.nodes import Flow

_UNKNOWN = 1
"""The assumed rows of a relation of unknown size: then arrangements are counted."""


def lower_multiway(low: Lowering, join: Join) -> Flow | None:
    """The join of all inputs at once; None: a linear join is better, or the only one possible."""
    mode = low.indexes.planning.joins
    if mode is Joins.LINEAR or (mode is Joins.AUTO and low.indexes.one_shot and not may_be_cyclic(join)):
        return None
    joined = combination(join)
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
    """Left's columns, then right's, joined by keys that are never NULL; one side or both are materialized late.

    None: nothing is materialized late, so a linear join does.
    """
    twice = any(len(set(end.keys)) < len(end.keys) for end in (left, right))  # one column, compared with two
    if not left.keys or twice or (wide(low, left.flow) is None and wide(low, right.flow) is None):
        return None
    sources = [JoinInput(end.flow, end.columns, dict(enumerate(end.keys)), _UNKNOWN) for end in (left, right)]
    whole = Paths(low, sources, [stages(i, [s.places for s in sources], False, by_size(sources)) for i in (0, 1)])
    plan = _late(low, whole)
    return None if plan is whole else plan.flow()


def _late(low: Lowering, whole: Paths) -> Paths:
    """The paths with ids for the inputs where that pays; ``whole`` itself if there are none."""
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
    """Whether AUTO considers anything but a linear join.

    A query that runs once either looks up the few rows that constants fix or would use its arrangements only once.
    """
    return not low.indexes.one_shot or (found.cyclic and not any(_is_pointed(rel) for rel in joined.inputs))


def _looped(low: Lowering, sources: list[JoinInput]) -> bool:
    """Whether the join is in a loop: linear joins are compiled with the loop."""
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
    """Rows and words in arrangements that a plan would create."""

    rows: int = 0
    words: int = 0

    def add(self, rows: int, row: Schema) -> None:
        self.rows += rows
        self.words += rows * gathers.width(row)


def _linear(low: Lowering, join: Join, sources: list[JoinInput]) -> _Made:
    """What a linear join would create; the size of its intermediate results is a guess."""
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
    """The columns that the join shows, of the rows that pass the residual conditions."""
    own = own_columns(flow.schema)
    result = low.compute(flow, found.residual, tuple(own[c] for c in joined.columns))
    declared = schema(join)
    retyped = tuple(type(a)(d.type, a.nullable) for a, d in zip(result.schema, declared, strict=True))
    return Flow(result.source, result.gather, retyped)
