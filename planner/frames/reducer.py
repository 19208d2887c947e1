"""Window functions over frames as a reducer: each row of a group with its results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ivm.distinct import distinct_rows
from ivm.errors import SqlError
from ivm.graph import Changes, Picks, Reduced, Seen, Window
from ivm.rows import Mask, Words, pack
from ivm.trace.ordered import Ordered
from planner.expr.context import Context
from planner.expr.row_errors import error_words
from planner.frames.changes import Walk, changes
from planner.frames.fold import out_width
from planner.frames.functions import Results, evaluate
from planner.frames.held import Held
from planner.frames.layers import Layers
from planner.frames.plan import Edges, WindowPlan
from planner.frames.searched import Group, Searched


@dataclass(frozen=True, eq=False)
class FramedRows:
    """The rows of each group with the results of window functions: [how often | row | results]. ``edges``: the frames
    by the first function that has them."""

    plan: WindowPlan
    context: Context
    edges: dict[int, Edges]
    limit: ClassVar[int | None] = None
    picks: ClassVar[Picks] = Picks((Window(),))
    least: ClassVar[int] = 1024

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FramedRows) and self.plan == other.plan and self.context is other.context

    def __hash__(self) -> int:
        return hash(self.plan)

    @property
    def out_width(self) -> int:
        return out_width(self.plan)

    def __call__(self, keys: Words, offsets: Words, vals: Words, diffs: Words, /) -> Reduced:
        counts = np.maximum(diffs[:, 0], 0)
        if (counts == 0).any():
            kept = counts > 0
            offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])[offsets]
            vals, counts = vals[kept], counts[kept]
        source = Held(self.plan.layout, self.context, vals, counts, offsets)
        results = evaluate(self.plan, self.edges, source, self.context)
        segment = source.partition[source.row]
        good, errors, failed = self.outcome(results, len(segment))
        rows = self.shown(source.vals, results)
        if errors is None:
            segment, rows = collapsed(segment, rows, bool((counts > 1).any()))
            return Reduced(segment, rows)
        segment_good, rows = collapsed(segment[good], rows[good], bool((counts > 1).any()))
        return Reduced(segment_good, rows, errors, segment[failed])

    def changes(self, before: Ordered, after: Ordered, updates: Words, diffs: Words, seen: Seen) -> Changes:
        """See ``ivm.graph.OrderedReducer``."""
        layout, context = self.plan.layout, self.context
        old, new = (Group(o, Layers(o, layout, context, seen), layout, context) for o in (before, after))
        walk = Walk(self.plan, self.edges, (old, new), updates, int(np.abs(diffs).sum()), context)
        gone, came, errors_gone, errors_came = changes(walk, self._outcome_of)
        return Changes(
            _piled(gone, self.out_width), _piled(came, self.out_width), _piled(errors_gone, 1), _piled(errors_came, 1)
        )

    def _outcome_of(self, source: Searched) -> tuple[Words, Words]:
        results = evaluate(self.plan, self.edges, source, self.context)
        good, errors, _ = self.outcome(results, len(source.at))
        rows = self.shown(source.vals, results)[good]
        _, rows = collapsed(np.zeros(len(rows), np.int64), rows, True)
        return rows, np.zeros((0, 1), np.int64) if errors is None else errors

    def shown(self, vals: Words, results: Sequence[Results]) -> Words:
        """Rows with their results, each once."""
        ones = np.ones((len(vals), 1), np.int64)
        made = pack([vector for vector, _ in results], self.plan.columns, len(vals))
        return np.concatenate([ones, vals[:, self.plan.layout.skip :], made], axis=1)

    def outcome(self, results: Sequence[Results], count: int) -> tuple[Mask, Words | None, Words]:
        """(the rows without an error, the errors' rows or None, the rows that have them)."""
        failures: dict[int, SqlError] = {}
        for _, failed in results:
            for row, error in failed:
                failures.setdefault(row, error)
        good = np.ones(count, np.bool_)
        rows = np.array(sorted(failures), np.int64)
        good[rows] = False
        if not failures:
            return good, None, rows
        errors = error_words([failures[r] for r in rows.tolist()], [None] * len(rows), self.context.dictionary)
        return good, errors, rows


def collapsed(segment: Words, rows: Words, repeated: bool) -> tuple[Words, Words]:
    """Equal rows of a segment as one, which counts them."""
    if not repeated or not len(rows):
        return segment, rows
    both = np.column_stack([segment, rows])
    found = distinct_rows(both)
    out = found.rows[:, 1:].copy()
    out[:, 0] = found.counts
    return found.rows[:, 0].copy(), out


def _piled(parts: list[Words], width: int) -> Words:
    return np.concatenate([np.zeros((0, width), np.int64), *parts])
