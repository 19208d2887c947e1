"""The first rows of a one-shot query whose LIMIT may stop a recursion or a series before its end.

A plan that grows (``planner.logical.growth``) is run with a bound on the rounds of its recursions and on the length of
its series, and again with higher bounds until there are enough rows. Then the least number of rounds that gives enough
is looked for, so that rows come in the order of their rounds, and a row that a later round could not compute is no
error: as in PostgreSQL, which computes one row after the other. A plan with LIMITs inside is run the same way until all
of them are reached. Cost: a small multiple of the rounds that are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ivm.rows import Words
from planner.aggregates.row_reducers import slice_bound
from planner.expr.context import Context, Cut
from planner.expr.row_errors import decode_error
from planner.physical.divergence import is_divergence
from planner.physical.nodes import Plan
from storage.dictionary import Dictionary

Counted = tuple[Words, Words]
"""Rows and the diff of each."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run of a plan gave: rows, the diff of each, error rows, and the number of rows at each of its limits."""

    rows: Words
    diffs: Words
    errors: Words | None
    limited: tuple[int, ...] = ()


Run = Callable[[Plan, Context], Ran]

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
    limited: tuple[int, ...]

    def has(self, wanted: Wanted) -> bool:
        """Whether there are enough rows."""
        there = wanted.rows is None or int(self.diffs.sum()) >= wanted.rows
        return there and all(n >= most for n, most in zip(self.limited, wanted.limits, strict=True))

    def answers(self, wanted: Wanted) -> bool:
        """Whether no further rounds are needed."""
        return self.whole or self.errors is not None or self.has(wanted)


@dataclass(frozen=True, slots=True)
class Wanted:
    """How many rows suffice: of a plan that grows (None for one that does not), and at each of its limits."""

    rows: int | None
    limits: tuple[int, ...]

    def taken(self, diffs: Words) -> Words:
        """No row more often than it is wanted."""
        return diffs if self.rows is None else np.minimum(diffs, max(self.rows, 1))


def first_rows(run: Run, plan: Plan, context: Context, rows: int | None) -> Ran:
    """At least so many ``rows`` of a plan that grows, or all of them; None: all rows of a plan with limits."""
    ends = [slice_bound(end.limit, "LIMIT", context) for end in plan.limits]
    wanted = Wanted(rows, tuple(end for end in ends if end is not None))
    if len(wanted.limits) < len(ends):
        return run(plan, context)  # LIMIT NULL: all rows are needed
    most, before = max(rows or 0, *wanted.limits, SERIES), 0
    limits = [s.limit or MOST for s in plan.scopes if s.stoppable]
    end = max(limits, default=MOST)
    rounds = min(ROUNDS, end)
    while not (found := _bounded(run, plan, context, rounds, most)).answers(wanted):
        if limits and rounds == end:
            return run(plan, context)  # fails, as it does without LIMIT
        before, rounds, most = rounds, min(4 * rounds, end), 8 * most
    plain = found.whole and found.errors is None
    if plain or not limits or rounds > SEARCHED:
        return Ran(found.rows, wanted.taken(found.diffs), found.errors)
    return _least(lambda n: _bounded(run, plan, context, n, most), (before, rounds), found, wanted)


def _least(bounded: Callable[[int], _Found], between: tuple[int, int], found: _Found, wanted: Wanted) -> Ran:
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
    if found.has(wanted) and not wanted.limits:  # above a limit inside, every row counts
        found = replace(found, errors=None)
    diffs = wanted.taken(found.diffs)
    if wanted.rows is None:
        return Ran(found.rows, diffs, found.errors)
    if few and before is None:
        before = bounded(few)
    if before is None or len(found.rows) > SEARCHED:
        return Ran(found.rows, diffs, found.errors)
    return Ran(*_in_order((before.rows, before.diffs), (found.rows, diffs)), found.errors)


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
    ran = run(replace(plan, scopes=scopes), replace(context, cut=cut))
    errors, stopped = _own_errors(ran.errors, context.dictionary)
    return _Found(ran.rows, ran.diffs, errors, not stopped and not cut.reached, ran.limited)


def _own_errors(errors: Words | None, dictionary: Dictionary) -> tuple[Words | None, bool]:
    """The errors of rows, and whether there are others: those of recursions that were stopped."""
    if errors is None or not len(errors):
        return None, False
    texts = dictionary.lookup(np.ascontiguousarray(errors[:, 0]))
    own = np.array([not is_divergence(decode_error(text)[0]) for text in texts], np.bool_)
    return (errors[own] if own.any() else None), not own.all()
