"""ts_rank and ts_rank_cd: how well a vector matches a query, with PostgreSQL's formulas in its single precision.

ts_rank weighs how often terms occur and how near to each other; ts_rank_cd weighs the covers, the shortest stretches of
the vector that match the query (Clarke, Cormack and Tudhope, "Relevance Ranking for One to Three Term Queries").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import numpy as np

from ivm.errors import SqlError
from ivm.words import FLOAT4, INT4, TSQUERY, TSVECTOR, Kind, SqlType
from planner.expr.functions.table import per_value
from planner.expr.functions.textsearch.matching import finder, has_weight, holds
from storage.types.textsearch.lexemes import MOST_POSITION
from storage.types.textsearch.nodes import Node, Operation, Query, Term
from storage.types.textsearch.vector import Vector, position

_FLOATS: Final = SqlType(Kind.ARRAY, element=FLOAT4)
_WEIGHTS: Final = (0.1, 0.2, 0.4, 1.0)
"""Of D, C, B and A."""
_LOG_LENGTH, _LENGTH, _EXTENTS, _UNIQUE, _LOG_UNIQUE, _FRACTION = (1 << bit for bit in range(6))
_SQUARES: Final = 1.64493406685
"""The sum of 1/i²."""
_FAR: Final = 100
_UNKNOWN: Final = (MOST_POSITION,)
"""The place of a lexeme without positions."""
_MOST_PAIRS: Final = 10_000_000
_MOST_STEPS: Final = 500_000
_MOST_KEPT: Final = 256
f4 = np.float32
Weights = Sequence[float]


def _weights(given: tuple[Any, ...] | None) -> list[np.float32]:
    """The weights of D, C, B and A; a negative one stands for its default. Raises 2202E, 22004, 22023."""
    if given is None:
        return [f4(w) for w in _WEIGHTS]
    if any(isinstance(item, tuple) for item in given):
        raise SqlError("2202E", "array of weight must be one-dimensional")
    if len(given) < len(_WEIGHTS):
        raise SqlError("2202E", "array of weight is too short")
    if None in given[:4] or None in given:
        raise SqlError("22004", "array of weight must not contain nulls")
    chosen = [f4(w if w >= 0 else usual) for w, usual in zip(given, _WEIGHTS, strict=False)]
    if any(w > 1 for w in chosen):
        raise SqlError("22023", "weight out of range")
    return chosen


def _too_complex() -> SqlError:
    return SqlError("54001", "the query and the vector are too large to be ranked")


def _length(vector: Vector) -> int:
    return sum(len(places) or 1 for _, places in vector)


def _terms(query: Query) -> list[Term]:
    """The query's terms, each text once, in the order of their texts."""
    found: dict[str, Term] = {}
    for node in query.items():
        if isinstance(node, Term):
            found.setdefault(node.lexeme, node)
    return [found[text] for text in sorted(found, key=str.encode)]


def _entries(vector: Vector, term: Term) -> list[tuple[int, ...]]:
    """The places of the lexemes that a term stands for, whatever their weights."""
    return list(finder(vector)(Term(term.lexeme, 0, term.prefix)))


def _by_occurrence(weights: Sequence[np.float32], vector: Vector, terms: Sequence[Term]) -> np.float32:
    """The terms' weights, the later occurrences counting less, as if there were no other term."""
    total = f4(0)
    for term in terms:
        for places in _entries(vector, term):
            sum_, best, at = f4(0), f4(-1), 0
            for j, place in enumerate(places or _UNKNOWN):
                weight = weights[place >> 14]
                sum_ = f4(sum_ + f4(weight / f4((j + 1) * (j + 1))))
                if weight > best:
                    best, at = weight, j
            rest = f4(f4(best + sum_) - f4(best / f4((at + 1) * (at + 1))))
            total = f4(float(total) + float(rest) / _SQUARES)
    return f4(total / f4(len(terms))) if terms else total


def _nearness(distance: int) -> np.float32:
    if distance > _FAR:
        return f4(1e-30)
    return f4(1.0 / (1.005 + 0.05 * math.exp(distance / 1.5 - 2)))


_NEARNESS: Final = np.array([_nearness(d) for d in range(_FAR + 2)], np.float32)


def _by_nearness(weights: Sequence[np.float32], vector: Vector, terms: Sequence[Term]) -> np.float32:
    """Each pair of occurrences of different terms, the nearer counting more; -1 without any."""
    if len(terms) < 2:
        return _by_occurrence(weights, vector, terms)
    of_weight = np.array(weights, np.float32)
    known: list[tuple[Words, Words, bool]] = []
    rank, pairs = f4(-1), 0
    for term in terms:
        last = None
        for places in _entries(vector, term):
            words = np.array(places or _UNKNOWN, np.int64)
            last = words & 0x3FFF, of_weight[words >> 14], not places
            for before in known:
                pairs += len(words) * len(before[0])
                if pairs > _MOST_PAIRS:
                    raise _too_complex()
                rank = _with_pairs(rank, last, before)
        if last is not None:
            known.append(last)
    return rank


Words = np.ndarray[Any, Any]
_Occurrences = tuple[Words, Words, bool]
"""Positions, weights, and whether the lexeme has no positions."""


def _with_pairs(rank: np.float32, one: _Occurrences, other: _Occurrences) -> np.float32:
    distances = np.abs(one[0][:, None] - other[0][None, :])
    unknown = one[2] or other[2]
    near = _NEARNESS[np.minimum(np.where(distances == 0, _FAR + 1, distances), _FAR + 1)]
    products = (one[1][:, None] * other[1][None, :]).astype(np.float32) * near
    found = np.sqrt(products.astype(np.float64)).astype(np.float32)
    for value in found[(distances > 0) | unknown].tolist():
        if rank == 1:
            break  # no further pair can raise it
        rank = f4(value) if rank < 0 else f4(1.0 - (1.0 - float(rank)) * (1.0 - value))
    return rank


def _rank(given: tuple[Any, ...] | None, vector: Vector, query: Query, method: int) -> float:
    weights = _weights(given)
    if query.root is None or not len(vector):
        return 0.0
    terms = _terms(query)
    joined = isinstance(query.root, Operation) and query.root.operator in ("&", "<->")
    rank = (_by_nearness if joined else _by_occurrence)(weights, vector, terms)
    if rank < 0:
        rank = f4(1e-20)
    length, unique = _length(vector), len(vector)
    if method & _LOG_LENGTH:
        rank = f4(float(rank) / (math.log(length + 1) / math.log(2.0)))
    if method & _LENGTH:
        rank = f4(rank / f4(length))
    if method & _UNIQUE:
        rank = f4(rank / f4(unique))
    if method & _LOG_UNIQUE:
        rank = f4(float(rank) / (math.log(unique + 1) / math.log(2.0)))
    if method & _FRACTION:
        rank = f4(rank / f4(rank + f4(1)))
    return float(rank)


@dataclass(frozen=True, slots=True)
class _Occurrence:
    """A place of the vector, and the query's terms that are there."""

    place: int
    terms: tuple[Term, ...]


def _document(vector: Vector, query: Query) -> list[_Occurrence]:
    """The places of the query's terms, in order; lexemes without positions are left out."""
    found: list[tuple[int, int, str, int, Term]] = []
    for number, term in enumerate({id(n): n for n in query.items() if isinstance(n, Term)}.values()):
        for lexeme, places in vector:
            if lexeme == term.lexeme or (term.prefix and lexeme.startswith(term.lexeme)):
                kept = (place for place in places if has_weight(term, place))
                found.extend((position(place), place >> 14, lexeme, number, term) for place in kept)
    found.sort(key=lambda item: (item[0], item[1], item[2].encode(), item[3]))
    grouped = groupby(found, key=lambda item: item[:3])
    return [_Occurrence(at | weight << 14, tuple(item[4] for item in items)) for (at, weight, _), items in grouped]


class _Stretch:
    """The terms of a stretch of the document, which grows at one end."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self.places: dict[int, list[int]] = {}

    def add(self, occurrence: _Occurrence) -> bool:
        """Adds a place; whether the stretch now matches the query."""
        at = position(occurrence.place)
        for term in occurrence.terms:
            known = self.places.setdefault(id(term), [])
            if not known or known[-1] != at:
                known.append(at)
                del known[:-_MOST_KEPT]
        return holds(self.root, self._found)

    def _found(self, term: Term) -> Sequence[tuple[int, ...]]:
        known = self.places.get(id(term))
        return () if known is None else (tuple(known),)


def _covers(document: Sequence[_Occurrence], root: Node) -> Iterator[tuple[int, int]]:
    """The first and last places of the shortest stretches that match. Raises 54001."""
    start, steps = 0, 0
    while start < len(document):
        forward = _Stretch(root)
        end = next((i for i in range(start, len(document)) if forward.add(document[i])), None)
        if end is None:
            return
        steps += end - start + 1
        if steps > _MOST_STEPS:
            raise _too_complex()
        backward = _Stretch(root)
        first = next((i for i in range(end, start - 1, -1) if backward.add(document[i])), None)
        if first is None:
            start += 1
            continue
        yield first, end
        start = first + 1


def _rank_covers(given: tuple[Any, ...] | None, vector: Vector, query: Query, method: int) -> float:
    inverse = [1.0 / float(w) if w else math.inf for w in _weights(given)]
    if query.root is None or not len(vector):
        return 0.0
    document = _document(vector, query)
    rank, distances, extents, last = 0.0, 0.0, 0, 0.0
    for first, end in _covers(document, query.root):
        places = document[first : end + 1]
        density = len(places) / sum(inverse[o.place >> 14] for o in places)
        begins, ends = position(places[0].place), position(places[-1].place)
        noise = (ends - begins) - (end - first)
        rank += density / (1 + (noise if noise >= 0 else (end - first) // 2))
        middle = (begins + ends) / 2.0
        if extents and middle > last:
            distances += 1.0 / (middle - last)
        last = middle
        extents += 1
    length, unique = _length(vector), len(vector)
    if method & _LOG_LENGTH:
        rank /= math.log(length + 1)
    if method & _LENGTH:
        rank /= length
    if method & _EXTENTS and extents and distances > 0:
        rank /= extents / distances
    if method & _UNIQUE:
        rank /= unique
    if method & _LOG_UNIQUE:
        rank /= math.log(unique + 1) / math.log(2.0)
    if method & _FRACTION:
        rank /= rank + 1
    return float(f4(rank))


def _register(name: str, rank: Callable[[tuple[Any, ...] | None, Vector, Query, int], float]) -> None:
    add: Final = (TSVECTOR, TSQUERY)
    per_value(name, add, FLOAT4, makes_null=False)(lambda vector, query: rank(None, vector, query, 0))
    per_value(name, (*add, INT4), FLOAT4, makes_null=False)(lambda v, query, method: rank(None, v, query, method))
    per_value(name, (_FLOATS, *add), FLOAT4, makes_null=False)(lambda w, v, query: rank(w, v, query, 0))
    per_value(name, (_FLOATS, *add, INT4), FLOAT4, makes_null=False)(rank)


_register("ts_rank", _rank)
_register("ts_rank_cd", _rank_covers)
