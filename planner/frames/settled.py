"""Whether a change has no effect beyond a row, as far as frames that are open on one side go.

The content of a frame without regard to exclusions: if it is the same before and after at a row whose frame holds all
that has changed, the frames of the rows beyond differ from it by the same rows, before and after.
"""

from __future__ import annotations

import numpy as np

from ivm.rows import Vector
from planner.aggregates.function import AggregateKind
from planner.aggregates.table import AGGREGATES
from planner.expr.context import Context
from planner.expr.scalar import Aggregate
from planner.frames.functions import Evaluation
from planner.frames.plan import Edges, WindowPlan, is_sum, sums_of
from planner.frames.region import Reach, constant_number
from planner.frames.searched import Searched
from planner.frames.sums import Sums
from planner.logical.frames import Framed, Pick, Picked

Pair = tuple[Searched, Searched]
"""The same row before and after the change."""
Cut = tuple[int, int]


def settled(
    plan: WindowPlan, frames: dict[int, Edges], reach: Reach, row: Pair, right: bool, changed: Cut, context: Context
) -> bool:  # fmt: skip
    """Whether rows beyond the given one keep their results: after it (``right``) or before it. ``changed``: the end of
    the updated rows on that side."""
    for of in plan.frames.values():
        edges = frames[of[0]]
        evaluations = tuple(Evaluation.of(side, edges, context) for side in row)
        sums = []
        for i in of:
            framed, read = plan.framed[i], reach.edges[i]
            if not (read.start.unbounded if right else read.end.unbounded):
                continue  # its rows are all within the extent
            if isinstance(framed.function, Aggregate) and is_sum(framed.function):
                sums.append(framed)
            elif not _settled(framed, evaluations, row, right, changed):
                return False
        if not _spans(edges, evaluations, right, changed) and any(_reads_frame(plan.framed[i]) for i in of):
            return False
        layout = sums_of(sums)
        if layout is not None:
            before, after = (e.totals(Sums(layout, context.dictionary), [e.whole]) for e in evaluations)
            if not before.same(after).all():
                return False
    return True


def _reads_frame(framed: Framed) -> bool:
    return isinstance(framed.function, Aggregate) or framed.function.pick.is_framed


def _spans(edges: Edges, evaluations: tuple[Evaluation, ...], right: bool, changed: Cut) -> bool:
    """Whether the row's frame holds everything that has changed, on both sides."""
    for evaluation, place in zip(evaluations, changed, strict=True):
        low, high = evaluation.whole
        if not (edges.start.unbounded if right else edges.end.unbounded):
            continue
        if (high[0] < place) if right else (low[0] > place):
            return False
    return True


def _settled(
    framed: Framed, evaluations: tuple[Evaluation, ...], row: Pair, right: bool, changed: Cut
) -> bool:  # fmt: skip
    function = framed.function
    if isinstance(function, Aggregate):
        if AGGREGATES[function.function].kind is not AggregateKind.ORDERED:
            return False
        before, after = (e.extreme(function, [e.whole]) for e in evaluations)
        return _equal(before, after)
    if function.pick in (Pick.ROW_NUMBER, Pick.RANK):
        (before, _), (after, _) = (e.picked(function) for e in evaluations)
        return bool((before.words == after.words).all())
    return _pick_settled(function, evaluations, row, right, changed)


def _pick_settled(
    picked: Picked, evaluations: tuple[Evaluation, ...], row: Pair, right: bool, changed: Cut
) -> bool:  # fmt: skip
    """Whether the row that the function takes its value from is certain to stay the same."""
    if picked.pick is Pick.NTILE or constant_number(picked) is None:
        return False
    places: list[int] = []
    for evaluation in evaluations:
        whole = Evaluation(evaluation.source, evaluation.context, evaluation.whole, [evaluation.whole])
        place, found = whole.targets(picked)
        if not found[0]:
            return False
        places.append(int(place[0]))
    beyond = all(p >= c if right else p < c for p, c in zip(places, changed, strict=True))
    near, far = (Pick.LAST, Pick.FIRST) if right else (Pick.FIRST, Pick.LAST)
    if beyond and (picked.pick in (Pick.LAG, Pick.LEAD, near) or (picked.pick is Pick.NTH and not right)):
        return True
    if picked.pick not in (near, far) and not (picked.pick is Pick.NTH and right):
        return False
    before, after = (side.of.rows.rows(p, p + 1)[0][:1] for side, p in zip(row, places, strict=True))
    return bool((before == after).all())


def _equal(a: Vector, b: Vector) -> bool:
    nulls = [np.zeros(len(v.words), np.bool_) if v.nulls is None else v.nulls for v in (a, b)]
    return bool(((a.words == b.words) & (nulls[0] == nulls[1])).all())
