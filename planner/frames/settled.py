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
from planner.frames.plan import Edges, WindowPlan, is_sum, positions, sums_of
from planner.frames.region import Reach, constant_number
from planner.frames.searched import Searched
from planner.frames.sums import Sums
from planner.logical.frames import Exclusion, Framed, Pick, Picked

Pair = tuple[Searched, Searched]
"""The same row before and after the change."""
Cut = tuple[int, int]
Changed = tuple[Cut, Cut]
"""Where the updated rows begin, and where they end."""


def settled(
    plan: WindowPlan, frames: dict[int, Edges], reach: Reach, row: Pair, right: bool, changed: Changed, context: Context
) -> bool:  # fmt: skip
    """Whether rows beyond the given one keep their results: after it (``right``) or before it."""
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
            elif not _settled(framed, edges, evaluations, row, right, changed):
                return False
        if not _spans(edges, evaluations, right, changed[right]) and any(_reads_frame(plan.framed[i]) for i in of):
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
    framed: Framed, edges: Edges, evaluations: tuple[Evaluation, ...], row: Pair, right: bool, changed: Changed
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
    if function.pick is Pick.NTILE:
        return False
    if constant_number(function) is None:
        return _beyond(function, edges, row, right, changed)
    return _pick_settled(function, edges, evaluations, row, right, changed[right])


def _begins_after(edges: Edges) -> bool:
    return not edges.start.unbounded and edges.start.following


def _beyond(picked: Picked, edges: Edges, row: Pair, right: bool, changed: Changed) -> bool:
    """Whether the rows beyond take their values from rows on one side of all that has changed, as the least and the
    greatest of their offsets tell."""
    if picked.ignore_nulls:
        return False
    if picked.pick is Pick.NTH and (edges.exclusion is not Exclusion.NO_OTHERS or _begins_after(edges)):
        return False
    (number,) = positions(picked.args[1:2])
    for source, first, last in zip(row, *changed, strict=True):
        at, size = int(source.at[0]), source.of.rows.size
        ends = (at + 1, size) if right else (0, at)
        if ends[0] >= ends[1]:
            continue
        if picked.pick is Pick.NTH:
            greatest = source.of.least_of(number, True, *ends)
            # to the right frames begin with the partition; to the left no frame begins after its row
            begin = 0 if right else at - 1
            if greatest is not None and begin + greatest > first:
                return False
            continue
        # rows after the change must not look back as far, rows before it not as far ahead
        back = right == (picked.pick is Pick.LAG)
        offset = source.of.least_of(number, back, *ends)
        if offset is None:
            continue
        step = -offset if picked.pick is Pick.LAG else offset
        if (at + 1 + step < last) if right else (at - 1 + step >= first):
            return False
    return True


def _pick_settled(
    picked: Picked, edges: Edges, evaluations: tuple[Evaluation, ...], row: Pair, right: bool, changed: Cut
) -> bool:  # fmt: skip
    """Whether the row that the function takes its value from is certain to stay the same."""
    places: list[int] = []
    for evaluation in evaluations:
        whole = Evaluation(evaluation.source, evaluation.context, evaluation.whole, [evaluation.whole])
        place, found = whole.targets(picked)
        if not found[0]:
            return False
        places.append(int(place[0]))
    beyond = all(p >= c if right else p < c for p, c in zip(places, changed, strict=True))
    near, far = (Pick.LAST, Pick.FIRST) if right else (Pick.FIRST, Pick.LAST)
    # a frame without its row's peers may begin with them, and have its nth row later than the frame of the row here
    early = picked.pick is Pick.NTH and not right and edges.exclusion is Exclusion.NO_OTHERS
    if beyond and (early or picked.pick in (Pick.LAG, Pick.LEAD, near)):
        return True
    if picked.pick not in (near, far) and not (picked.pick is Pick.NTH and right):
        return False
    before, after = (side.of.rows.rows(p, p + 1)[0][:1] for side, p in zip(row, places, strict=True))
    return bool((before == after).all())


def _equal(a: Vector, b: Vector) -> bool:
    nulls = [np.zeros(len(v.words), np.bool_) if v.nulls is None else v.nulls for v in (a, b)]
    return bool(((a.words == b.words) & (nulls[0] == nulls[1])).all())
