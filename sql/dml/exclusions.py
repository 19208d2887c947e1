"""EXCLUDE: which rows conflict. A check searches the constraint's arrangement, and reads what may conflict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ivm.distinct import distinct_rows
from ivm.rows import Mask, Vector, Words, unpack
from ivm.trace.trace import LATEST, Version
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import evaluated
from planner.expr.functions.internal.intervals import above
from sql.bind.exclusion import Exclusion
from sql.dml.key_index import Probed, first_of_each

_LEAST: Final = -(1 << 63)
_MOST: Final = (1 << 63) - 1
_SEEKS: Final = 16
"""A search of one key costs as much as reading this number of rows."""
_PAIRS: Final = 1 << 18
"""How many pairs of rows are compared at a time."""


@dataclass(frozen=True, slots=True)
class Conflicts:
    """``rows`` int64[n]: the positions of rows that conflict with stored ones, ascending; ``others``: int64[n, width],
    a stored row for each. ``later``, ``earlier`` int64[m]: positions of rows that conflict with each other."""

    rows: Words
    others: Words
    later: Words
    earlier: Words

    def first(self, given: Words) -> tuple[int, Words] | None:
        """The first of the ``given`` rows that conflicts with a stored or an earlier one, and that one."""
        found = [(int(self.rows[0]), self.others[0])] if len(self.rows) else []
        if len(self.later):
            k = int(np.argmin(self.later))
            found.append((int(self.later[k]), given[int(self.earlier[k])]))
        return min(found, key=lambda f: f[0], default=None)


def conflicts(exclusion: Exclusion, version: Version, removed: Words, rows: Words, context: Context) -> Conflicts:
    """The conflicts of new rows with what is stored and not ``removed``, and with each other."""
    own = stored_conflicts(exclusion, version, rows, context)
    gone = Counter(row.tobytes() for row in removed)
    kept = np.array([d > gone[o.tobytes()] for o, d in zip(own.others, own.counts, strict=True)], np.bool_)
    earlier, later = among(exclusion, rows, context)
    order = np.argsort(own.rows[kept], kind="stable")
    return Conflicts(own.rows[kept][order], own.others[kept][order], later, earlier)


@dataclass(frozen=True, slots=True)
class Stored:
    """Pairs of a row, by position, and a stored one in conflict with it; ``counts``: how often that one is stored."""

    rows: Words
    others: Words
    counts: Words


def stored_conflicts(exclusion: Exclusion, version: Version, rows: Words, context: Context) -> Stored:
    """All pairs of a row and a stored one that conflict, a row with itself included.

    Cost: O(rows · log state) and the stored rows whose intervals meet; for many rows a pass over what is stored.
    """
    keys, source = exclusion.key_check.keys(rows, context)
    places = np.arange(len(rows)) if source is None else source
    if not len(keys) or not version.count:
        return Stored(places[:0], rows[:0], places[:0])
    if len(keys) * _SEEKS > version.count:
        found, diffs = version.rows_at(LATEST)
        others = exclusion.key_check.restore(found)
        whole = np.concatenate([others, rows])
        one, other = among(exclusion, whole, context, len(others))
        one, other = one[one < len(others)], other[one < len(others)]
        return Stored(other - len(others), others[one], diffs[one])
    lows, highs, of = _ranges(exclusion, keys, rows[places], context)
    found, diffs, index = version.between(lows, highs, LATEST)
    mine, others = places[of[index]], exclusion.key_check.restore(found)
    hit = _conflicting(exclusion, rows, mine, others, context) & (diffs > 0)
    return Stored(mine[hit], others[hit], diffs[hit])


def is_kept(exclusion: Exclusion, old: Words, new: Words, context: Context) -> bool:
    """Whether each new row has all that its conflicts depend on from the old row at its position."""
    if len(old) != len(new):
        return False
    schema = exclusion.key_check.schema
    before, after = (evaluated(exclusion.read, unpack(r, schema), len(r), context) for r in (old, new))
    return all(_same(a, b) for a, b in zip(before, after, strict=True))


def _same(one: Vector, other: Vector) -> bool:
    nulls = [np.zeros(len(v.words), np.bool_) if v.nulls is None else v.nulls for v in (one, other)]
    return bool((nulls[0] == nulls[1]).all() and ((one.words == other.words) | nulls[0]).all())


def _ranges(exclusion: Exclusion, keys: Words, rows: Words, context: Context) -> tuple[Words, Words, Words]:
    """(least keys, greatest keys, the row of each): where rows may be stored that conflict with these."""
    count = np.arange(len(keys))
    if exclusion.bounds is not None:
        low, high = _ends(exclusion, rows, context)
        outside = np.concatenate([above(low), above(high)], axis=1)
        beyond = np.concatenate([above(low) < low[:, None], above(high) > high[:, None]], axis=1)
        of, _ = np.nonzero(beyond)
        nodes = outside[beyond]
        of = np.concatenate([of, count])
        lows, highs = np.concatenate([nodes, low]), np.concatenate([nodes, high])
        return _with_last(keys, of, lows), _with_last(keys, of, highs), of
    if not exclusion.differing:
        return keys, keys, count
    last = keys[:, -1]
    less, more = count[last > _LEAST], count[last < _MOST]
    of = np.concatenate([less, more])
    lows = np.concatenate([np.full(len(less), _LEAST), last[more] + 1])
    highs = np.concatenate([last[less] - 1, np.full(len(more), _MOST)])
    return _with_last(keys, of, lows), _with_last(keys, of, highs), of


def _with_last(keys: Words, of: Words, last: Words) -> Words:
    found = keys[of]
    found[:, -1] = last
    return np.ascontiguousarray(found)


def _ends(exclusion: Exclusion, rows: Words, context: Context) -> tuple[Words, Words]:
    assert exclusion.bounds is not None, "the exclusion has intervals"
    low, high = evaluated(exclusion.bounds, unpack(rows, exclusion.key_check.schema), len(rows), context)
    return low.words, high.words


def among(exclusion: Exclusion, rows: Words, context: Context, known: int = 0) -> tuple[Words, Words]:
    """The pairs of rows that conflict, as (positions, greater positions), ordered by the latter. The first ``known``
    rows are not compared with each other.

    Cost: a sort, and the pairs whose intervals meet.
    """
    keys, source = exclusion.key_check.keys(rows, context)
    places = np.arange(len(rows)) if source is None else source
    found: list[tuple[Words, Words]] = []
    for one, other in _meeting(exclusion, keys, rows[places], context):
        a, b = places[one], places[other]
        a, b = np.minimum(a, b), np.maximum(a, b)
        a, b = a[b >= known], b[b >= known]
        hit = _conflicting(exclusion, rows, b, rows[a], context)
        found.append((a[hit], b[hit]))
    first = np.concatenate([a for a, _ in found]) if found else places[:0]
    second = np.concatenate([b for _, b in found]) if found else places[:0]
    order = np.lexsort((first, second))
    return first[order], second[order]


def _meeting(exclusion: Exclusion, keys: Words, rows: Words, context: Context) -> Iterator[tuple[Words, Words]]:
    """The pairs of rows with equal keys whose intervals meet, each once, some at a time."""
    if len(keys) < 2:
        return
    plain = exclusion.bounds is None and not exclusion.differing
    group = _groups(keys if plain else keys[:, :-1])
    low, high = (keys[:, -1],) * 2 if exclusion.bounds is None else _ends(exclusion, rows, context)
    order = np.lexsort((low, group))
    group, low, high = group[order], low[order], high[order]
    ends = np.searchsorted(group, group, side="right")
    starts = np.arange(1, len(order) + 1)
    if exclusion.differing:
        run = np.flatnonzero(np.diff(group, prepend=-1) | np.diff(low, prepend=low[0]))
        starts = np.append(run, len(order))[np.searchsorted(run, np.arange(len(order)), side="right")]
    elif not plain:
        ends = _last_not_above(group, low, high, ends)
    sizes = np.maximum(ends - starts, 0)
    for part in _slices(sizes):
        of = np.repeat(np.arange(part.start, part.stop), sizes[part])
        behind = np.arange(len(of)) - np.repeat(np.cumsum(sizes[part]) - sizes[part], sizes[part])
        yield order[of], order[starts[of] + behind]


def _groups(keys: Words) -> Words:
    """The number of each row's key among the distinct ones."""
    return distinct_rows(keys).place


def _last_not_above(group: Words, low: Words, high: Words, ends: Words) -> Words:
    """For each row, where those of its group end whose ``low`` is at most its ``high``; sorted by group and low."""
    first = np.searchsorted(group, group, side="left")
    result = np.array(ends)
    bottom, top = first, np.array(ends)
    while (open_ := bottom < top).any():
        middle = (bottom + top) >> 1
        at_most = low[np.minimum(middle, len(low) - 1)] <= high
        bottom = np.where(open_ & at_most, middle + 1, bottom)
        top = np.where(open_ & ~at_most, middle, top)
    return np.minimum(result, bottom)


def _slices(sizes: Words) -> Iterator[slice]:
    """Slices of rows with about ``_PAIRS`` pairs each."""
    total = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        before = total[start - 1] if start else 0
        stop = max(int(np.searchsorted(total, before + _PAIRS, side="right")), start + 1)
        yield slice(start, stop)
        start = stop


def _conflicting(exclusion: Exclusion, rows: Words, places: Words, others: Words, context: Context) -> Mask:
    """Whether each row, by position, meets all conditions with the other row beside it."""
    schema = exclusion.key_check.schema
    columns = [*unpack(rows[places], schema), *unpack(others, schema)]
    result = np.ones(len(places), np.bool_)
    for vector in evaluated(exclusion.conflict, columns, len(places), context) if len(places) else ():
        result &= vector.words != 0
        if vector.nulls is not None:
            result &= ~vector.nulls
    return result


def chosen(probed: Sequence[Probed], count: int, excluding: Sequence[Conflicts] = ()) -> Mask:
    """Which of ``count`` rows ON CONFLICT DO NOTHING adds, each checked against those added before it."""
    if len(probed) == 1 and not excluding:
        return probed[0].free(count)
    free = np.ones(count, np.bool_)
    clear = True
    for p in probed:
        free &= p.spread(p.held <= 0, count, True)
        clear = clear and bool(first_of_each(p.keys).all())
    earlier: dict[int, list[int]] = {}
    for found in excluding:
        free[found.rows] = False
        for one, other in zip(found.earlier.tolist(), found.later.tolist(), strict=True):
            earlier.setdefault(other, []).append(one)
    if clear and not earlier:
        return free
    names = [_names(p, count) for p in probed]
    seen: list[set[bytes]] = [set() for _ in probed]
    for i in np.flatnonzero(free).tolist():
        taken = any(name[i] in known for name, known in zip(names, seen, strict=True))
        if taken or any(free[other] for other in earlier.get(i, ())):
            free[i] = False
            continue
        for name, known in zip(names, seen, strict=True):
            if (own := name[i]) is not None:
                known.add(own)
    return free


def _names(probed: Probed, count: int) -> list[bytes | None]:
    found: list[bytes | None] = [None] * count
    places = range(count) if probed.source is None else probed.source.tolist()
    for place, row in zip(places, probed.keys, strict=True):
        found[place] = row.tobytes()
    return found
