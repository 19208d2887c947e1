"""The first rows of a one-shot query whose LIMIT may stop a recursion or a series before its end.

A plan that grows (``planner.logical.growth``) is run with a bound on the rounds of its recursions and on the length of
its series, and again with higher bounds until there are enough rows. Then the least number of rounds that gives enough
is looked for, so that rows come in the order of their rounds, and a row that a later round could not compute is no
error: as in PostgreSQL, which computes one row after the other. Cost: a small multiple of the rounds that are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ivm.rows import Words
from planner.expr.context import Context, Cut
from planner.expr.row_errors import decode_error
from planner.physical.divergence import is_divergence
from planner.physical.nodes import Plan
from storage.dictionary import Dictionary

Counted = tuple[Words, Words]
"""Rows and the diff of each."""
Run = Callable[[Plan, Context], tuple[Words, Words, Words | None]]
"""Runs a plan: (rows, diffs, error rows)."""

ROUNDS: Final = 4
SERIES: Final = 1024
"""The first bounds."""
MOST: Final = 1 << 40
"""More rounds than any time can count."""
SEARCHED: Final = 4096
"""The most rounds among which the least number is looked for, and the most rows that are put in order."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What a bounded run gave. ``errors``: those of rows; ``whole``: nothing was stopped, so these are all rows."""

    rows: Words
    diffs: Words
    errors: Words | None
    whole: bool

    def answers(self, wanted: int) -> bool:
        """Whether no further rounds are needed."""
        return self.whole or self.errors is not None or int(self.diffs.sum()) >= wanted


def first_rows(run: Run, plan: Plan, context: Context, wanted: int) -> tuple[Words, Words, Words | None]:
    """At least ``wanted`` rows of a plan that grows, or all of them: (rows, diffs, error rows)."""
    most, before = max(wanted, SERIES), 0
    limits = [s.limit or MOST for s in plan.scopes if s.stoppable]
    end = max(limits, default=MOST)
    rounds = min(ROUNDS, end)
    while not (found := _bounded(run, plan, context, rounds, most)).answers(wanted):
        if limits and rounds == end:
            return run(plan, context)  # fails, as it does without LIMIT
        before, rounds, most = rounds, min(4 * rounds, end), 8 * most
    plain = found.whole and found.errors is None
    if plain or not limits or rounds > SEARCHED:
        return found.rows, np.minimum(found.diffs, max(wanted, 1)), found.errors
    return _least(lambda n: _bounded(run, plan, context, n, most), (before, rounds), found, wanted)


def _least(
    bounded: Callable[[int], _Found], between: tuple[int, int], found: _Found, wanted: int
) -> tuple[Words, Words, Words | None]:
    """The rows after the least number of rounds that is enough: more than the first, at most the second."""
    few, enough = between
    before: _Found | None = None
    while enough - few > 1:
        middle = (few + enough) // 2
        tried = bounded(middle)
        if tried.answers(wanted):
            enough, found = middle, tried
        else:
            few, before = middle, tried
    if int(found.diffs.sum()) >= wanted:
        found = replace(found, errors=None)
    if few and before is None:
        before = bounded(few)
    diffs = np.minimum(found.diffs, max(wanted, 1))
    if before is None or len(found.rows) > SEARCHED:
        return found.rows, diffs, found.errors
    return *_in_order((before.rows, before.diffs), (found.rows, diffs)), found.errors


def _in_order(before: Counted, now: Counted) -> Counted:
    """The rows, those of the rounds before the last one first."""
    counts = dict(zip(map(bytes, before[0]), before[1].tolist(), strict=True))
    known = np.array([counts.get(bytes(row), 0) for row in now[0]], np.int64)
    first = np.minimum(known, now[1])
    rows, diffs = np.concatenate([now[0], now[0]]), np.concatenate([first, now[1] - first])
    return rows[diffs > 0], diffs[diffs > 0]


def _bounded(run: Run, plan: Plan, context: Context, rounds: int, most: int) -> _Found:
    """A run whose recursions stop after some rounds, and whose series have at most some rows."""
    scopes = tuple(replace(s, limit=min(rounds, s.limit or rounds)) if s.stoppable else s for s in plan.scopes)
    cut = Cut(most)
    rows, diffs, errors = run(replace(plan, scopes=scopes), replace(context, cut=cut))
    errors, stopped = _own_errors(errors, context.dictionary)
    return _Found(rows, diffs, errors, not stopped and not cut.reached)


def _own_errors(errors: Words | None, dictionary: Dictionary) -> tuple[Words | None, bool]:
    """The errors of rows, and whether there are others: those of recursions that were stopped."""
    if errors is None or not len(errors):
        return None, False
    texts = dictionary.lookup(np.ascontiguousarray(errors[:, 0]))
    own = np.array([not is_divergence(decode_error(text)[0]) for text in texts], np.bool_)
    return (errors[own] if own.any() else None), not own.all()
