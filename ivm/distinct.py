"""Distinct words and rows, by sorts that do not hold Python's lock.

``numpy.unique`` does: without further results it fills a hash table (for 600,000 words it takes 0.5 s of CPU, a sort
6 ms), and of rows it sorts objects of a structured type (1 s, this 0.2 s). Others wait meanwhile.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ivm.rows import Words


class DistinctRows(NamedTuple):
    """The m distinct ones of n rows, in ascending order."""

    rows: Words
    """int64[m, width]."""
    first: Words
    """Where each comes first, int64[m]."""
    place: Words
    """The number of each row among them, int64[n]."""
    counts: Words
    """How often each comes, int64[m]."""


def distinct(words: Words) -> Words:
    """The distinct ones of words int64[n], ascending. Cost: n log n."""
    ordered = np.sort(words)
    begins = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    return ordered[begins]


def distinct_rows(rows: Words) -> DistinctRows:
    """The distinct ones of rows int64[n, width]. Cost: width · n log n."""
    count, width = rows.shape
    order = np.lexsort(rows.T[::-1]) if width else np.arange(count)
    begins = np.zeros(count, np.bool_)
    begins[:1] = True
    for column in range(width):
        ordered = rows[order, column]
        begins[1:] |= ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(begins)
    place = np.empty(count, np.int64)
    place[order] = np.cumsum(begins) - 1
    first = order[starts]
    return DistinctRows(np.ascontiguousarray(rows[first]), first, place, np.diff(np.append(starts, count)))
