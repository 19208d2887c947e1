"""Vector forms of functions of arrays, which read the few bytes that they need (layout: ``storage.types.arrays``)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ivm.rows import Bytes, Words
from ivm.words import Kind, SqlType, Storage
from planner.expr.functions.table import CallSite, Made
from planner.expr.functions.text.columns import constant
from storage.text_columns import interned, of_ids, of_parts, packed

_MOST_PLACE = 64
_THEMSELVES = (Kind.TEXT, Kind.VARCHAR, Kind.BYTEA, Kind.UUID, Kind.JSONB)


def _numbers(data: Bytes, starts: Words, size: int) -> Words:
    """The big-endian integers of ``size`` bytes from ``starts`` on: unsigned of 4, signed of 8."""
    taken: NDArray[np.uint8] = data[starts[:, None] + np.arange(size)]
    numbers: Words = taken.view(">u4" if size == 4 else ">i8").reshape(-1).astype(np.int64)
    return numbers


def _arrays(site: CallSite, ids: Words) -> tuple[Bytes, Words, Words, Words]:
    """The arrays' bytes, with room to read behind them, where each begins and ends, and its first byte."""
    data, offsets = packed(of_ids(ids, site.context.dictionary))
    data = np.concatenate([data, np.zeros(32, np.uint8)])
    return data, offsets[:-1], offsets[1:], data[offsets[:-1]].astype(np.int64)


def _dimensions(firsts: Words) -> Words:
    """The numbers of dimensions without the mark of lower bounds."""
    return firsts & 0x7F


def length(site: CallSite, ids: Words, dimensions: Words) -> Made:
    data, starts, _, firsts = _arrays(site, ids)
    depths = _dimensions(firsts)
    there = (dimensions >= 1) & (dimensions <= depths)
    lengths = _numbers(data, starts + np.where(there, 4 * dimensions - 3, 0), 4)
    return Made(np.where(there, lengths, 0), ~there)


def cardinality(site: CallSite, ids: Words) -> Made:
    data, starts, _, firsts = _arrays(site, ids)
    depths = _dimensions(firsts)
    count = np.where(depths == 0, 0, 1)
    for dimension in range(1, int(depths.max()) + 1):
        there = depths >= dimension
        count *= np.where(there, _numbers(data, starts + np.where(there, 4 * dimension - 3, 0), 4), 1)
    return Made(count)


def subscript(site: CallSite, ids: Words, *places: Words) -> Made | None:
    """An element of arrays of one dimension that starts at 1, by a constant."""
    if site.args[0].zero_based or len(places) != 1 or not constant(places[0]) or not _readable(site.result):
        return None
    place = int(places[0][0])
    if not 1 <= place <= _MOST_PLACE:
        return None
    data, starts, ends, depths = _arrays(site, ids)
    rest = depths > 1
    at = np.where(depths == 1, starts + 5, ends)
    for _ in range(place - 1):
        at = _next(data, at, ends)
    there = at < ends
    sizes = np.where(there, _numbers(data, np.where(there, at, 0), 4), 0)
    nulls = ~there | (sizes == 0)
    rows = np.flatnonzero(~nulls & ~rest)
    words = np.zeros(len(ids), np.int64)
    if site.result.storage is Storage.DIRECT:
        words[rows] = _numbers(data, at[rows] + 4, 8)
    else:
        words[rows] = interned(site.context.dictionary, of_parts(data, at[rows] + 4, sizes[rows] - 1))
    return Made(words, nulls, rest)


def _readable(element: SqlType) -> bool:
    """Whether an element's bytes are those of its word, or the bytes that an id names."""
    return element.kind in _THEMSELVES or (element.storage is Storage.DIRECT and element.kind is not Kind.NUMERIC)


def _next(data: Bytes, at: Words, ends: Words) -> Words:
    """Where the elements after these begin; the end where there is none."""
    there = at < ends
    sizes = _numbers(data, np.where(there, at, 0), 4)
    following: Words = np.where(there, at + 4 + np.maximum(sizes - 1, 0), at)
    return following
