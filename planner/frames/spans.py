"""Each row's frame as ranges of places."""

from __future__ import annotations

import numpy as np

from ivm.rows import Words
from planner.frames.plan import Edge, Edges
from planner.frames.source import Source
from planner.logical.frames import Exclusion, FrameMode

Span = tuple[Words, Words]
"""Ranges of places, one for each row: where they begin and end."""


def frame(source: Source, edges: Edges) -> Span:
    """Each row's frame, without regard to what it excludes."""
    low = _edge(source, edges.mode, edges.start, False)
    high = _edge(source, edges.mode, edges.end, True)
    low, high = np.clip(low, source.first, source.stop), np.clip(high, source.first, source.stop)
    return low, np.maximum(low, high)


def _edge(source: Source, mode: FrameMode, edge: Edge, end: bool) -> Words:
    """Where a frame begins, or ends."""
    if edge.unbounded:
        return source.stop if edge.following else source.first
    if edge.range is not None:
        return source.reach(edge.range, edge.following, end)
    if mode is FrameMode.ROWS:
        far = int(source.stop.max(initial=0)) + 1
        return source.at + max(-far, min(edge.distance, far)) + end
    if edge.distance == 0:
        return source.peers()[end]
    return source.group(edge.distance + end)


def pieces(source: Source, span: Span, exclusion: Exclusion) -> list[Span]:
    """The frame without what it excludes, in order."""
    low, high = span
    match exclusion:
        case Exclusion.NO_OTHERS:
            return [span]
        case Exclusion.CURRENT_ROW:
            first, last = source.at, source.at + 1
        case _:
            first, last = source.peers()
    before, behind = _range(low, np.minimum(high, first)), _range(np.maximum(low, last), high)
    if exclusion is not Exclusion.TIES:
        return [before, behind]
    return [before, _range(np.maximum(low, source.at), np.minimum(high, source.at + 1)), behind]


def _range(low: Words, high: Words) -> Span:
    return low, np.maximum(low, high)
