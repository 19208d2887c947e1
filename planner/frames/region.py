"""Which rows a change may concern: those whose frames hold the changed row, or would.

A row's frame begins and ends with bounds relative to it, so the rows whose frames reach a row lie between the same
bounds, mirrored, around that row. The result may include rows that do not change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ivm.words import Kind
from planner.expr.scalar import Aggregate, Literal
from planner.frames.distance import Distance
from planner.frames.plan import Edge, Edges, WindowPlan
from planner.frames.searched import Searched
from planner.frames.spans import frame
from planner.logical.frames import Exclusion, Framed, FrameMode, Pick, Picked

_BEFORE = Edge(True)
_BEHIND = Edge(True, following=True)
_HERE = Edge(False)
ALL = Edges(FrameMode.ROWS, _BEFORE, _BEHIND, Exclusion.NO_OTHERS)
_ROUNDED = (Kind.FLOAT4, Kind.FLOAT8)
_CALENDAR = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
_SLACK = 4
"""Days by which months differ, and a change of the clocks."""


@dataclass(frozen=True, slots=True)
class Reach:
    """``edges``: the rows that each function's result depends on, as a frame, apart from the ends of ntile's
    ``buckets``; ``by_peers``: whether a row's peers matter."""

    edges: tuple[Edges, ...]
    by_peers: bool
    buckets: tuple[int, ...] = ()

    @property
    def open_right(self) -> bool:
        """Whether a change may concern all later rows."""
        return any(e.start.unbounded for e in self.edges)

    @property
    def open_left(self) -> bool:
        """Whether a change may concern all earlier rows."""
        return any(e.end.unbounded for e in self.edges)


def reach(plan: WindowPlan, frames: dict[int, Edges], buckets: tuple[int, ...] | None = None) -> Reach:
    """What the functions of a plan depend on. ``buckets``: ntile's, if they are known."""
    edges = {i: frames[of[0]] for of in plan.frames.values() for i in of}
    found = tuple(_read(f, edges[i], buckets is not None) for i, f in enumerate(plan.framed))
    return Reach(found, any(_by_peers(f, edges[i]) for i, f in enumerate(plan.framed)), buckets or ())


def _by_peers(framed: Framed, edges: Edges) -> bool:
    function = framed.function
    if isinstance(function, Picked) and not function.pick.is_framed:
        return function.pick is Pick.RANK
    current = any(not e.unbounded for e in (edges.start, edges.end))
    grouped = edges.mode is not FrameMode.ROWS and current
    return grouped or edges.exclusion in (Exclusion.GROUP, Exclusion.TIES)


def constant_number(picked: Picked) -> int | None:
    """The offset or n, if it is a literal; 1 if there is none."""
    if len(picked.args) < 2:
        return 1
    number = picked.args[1]
    return number.value if isinstance(number, Literal) and isinstance(number.value, int) else None


def _read(framed: Framed, edges: Edges, bucketed: bool) -> Edges:
    """The rows that a function reads."""
    function = framed.function
    if isinstance(function, Aggregate):
        return edges
    number = constant_number(function)
    rows = Edges(FrameMode.ROWS, _HERE, _HERE, Exclusion.NO_OTHERS)
    match function.pick:
        case Pick.NTILE:
            return rows if bucketed else ALL
        case Pick.ROW_NUMBER | Pick.RANK:
            return Edges(FrameMode.RANGE, _BEFORE, _HERE, Exclusion.NO_OTHERS)
        case Pick.LAG | Pick.LEAD if number is None:
            return ALL
        case Pick.LAG | Pick.LEAD:
            assert number is not None
            step = -number if function.pick is Pick.LAG else number
            if not function.ignore_nulls:
                return replace(rows, start=Edge(False, step), end=Edge(False, step))
            return replace(rows, start=_BEFORE) if step < 0 else replace(rows, end=_BEHIND)
        case _:
            return _picked(function.pick, number, function.ignore_nulls, edges)


def _picked(pick: Pick, number: int | None, ignore_nulls: bool, edges: Edges) -> Edges:
    """The rows of a frame that first_value, last_value and nth_value read."""
    by_place = edges.mode is not FrameMode.RANGE and edges.exclusion is Exclusion.NO_OTHERS and not ignore_nulls
    if not by_place:
        return edges
    if pick is Pick.LAST and not edges.end.unbounded:
        return replace(edges, start=edges.end)
    if pick is Pick.FIRST and not edges.start.unbounded:
        return replace(edges, end=edges.start)
    if pick is Pick.NTH and number is not None and edges.mode is FrameMode.ROWS and not edges.start.unbounded:
        return replace(edges, end=Edge(False, edges.start.distance + max(number, 1) - 1))
    return edges


def around(source: Searched, edges: Edges, slack: int) -> tuple[int, int]:
    """The ranks of the rows whose frames may hold one of the source's rows. ``slack``: by how many rows or groups it is
    widened, since the others change places."""
    slack = 0 if edges.mode is FrameMode.RANGE else slack
    low, high = frame(source, Edges(
        edges.mode, _mirrored(edges.end, -slack, False), _mirrored(edges.start, slack, True), Exclusion.NO_OTHERS
    ))  # fmt: skip
    first, last = int(low.min()), int(high.max())
    if any(e.range is not None and e.range.type.kind in _ROUNDED for e in (edges.start, edges.end)):
        first, last = _wider(source, first, last)
    return first, last


def _mirrored(edge: Edge, slack: int, end: bool) -> Edge:
    if edge.unbounded:
        return Edge(True, following=not edge.following)
    if edge.range is not None:
        return Edge(False, 0, _loose(edge.range, end != edge.following), not edge.following)
    return Edge(False, slack - edge.distance, None, end)


def _loose(distance: Distance, longer: bool) -> Distance:
    """The distance, at least (``longer``) or at most as long as it is anywhere in the calendar."""
    if distance.type.kind not in _CALENDAR:
        return distance
    months, days, micros = distance.datum
    if not months and (not days or distance.type.kind is not Kind.TIMESTAMPTZ):
        return distance
    if longer:
        return Distance(distance.type, (months, days + _SLACK, micros))
    if months * 28 + days <= _SLACK:
        return Distance(distance.type, (0, 0, 0))
    return Distance(distance.type, (months, days - _SLACK, micros))


def _wider(source: Searched, first: int, last: int) -> tuple[int, int]:
    """Two more groups of peers on either side: sums of floats are rounded."""
    for _ in range(2):
        first = source.edge(first - 1, False) if first > 0 else 0
        last = source.edge(last, True) if last < source.of.rows.size else last
    return first, last


def own(source: Searched) -> tuple[int, int]:
    """The ranks of the source's rows with their peers."""
    low, high = source.peers()
    return int(low.min()), int(np.max(high))
