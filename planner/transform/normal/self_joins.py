"""Canonical orders of a region's inputs where it joins the same input several times.

Inputs are ordered by rank, then by the conditions on them and the columns shown of them, then by the same of the inputs
that they join with, and so on (colour refinement). If some are still alike, each of them comes first once, which
distinguishes the others: the search tree of canonical labelling (McKay, *Practical graph isomorphism*, 1981).

Invariant: regions that differ only in the order of their inputs have the same set of reordered ones. Cost: for n inputs
without symmetry at most n refinements; a symmetry visible in the columns is enumerated in full.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from planner.expr.scalar import Column
from planner.logical.traversal import columns_of, renumber
from planner.transform.normal.form import MOST, Ranks
from planner.transform.normal.region import Joined, classes
from planner.transform.normal.scalar import Order, normal, order

Colours = tuple[int, ...]
"""A number for each input; inputs that are not distinguished have the same one."""


def orders(found: Joined, ranks: Ranks) -> Iterator[tuple[int, ...]]:
    """The candidate orders, at most ``MOST``. Beyond that, equal regions may not be recognised as equal."""
    colours = _dense([ranks.of(rel) for rel in found.inputs])
    if len(set(colours)) == len(colours):
        return iter((_sequence(colours),))
    return islice(_Alike.of(found).orders(colours), MOST)


def _dense(keys: list[Order]) -> Colours:
    at = {key: i for i, key in enumerate(sorted(set(keys)))}
    return tuple(at[key] for key in keys)


def _sequence(colours: Colours) -> tuple[int, ...]:
    return tuple(sorted(range(len(colours)), key=colours.__getitem__))


@dataclass(frozen=True, slots=True)
class _Alike:
    """A region prepared for refinement.

    ``equal``: for each class of equal columns, its function and its members as (input, column of the input); ``found``
    has the other conditions. ``shown``: for each input, its columns that are shown.
    """

    found: Joined
    equal: tuple[tuple[str, tuple[tuple[int, int], ...]], ...]
    shown: tuple[tuple[int, ...], ...]
    owners: tuple[int, ...]
    starts: tuple[int, ...]

    @staticmethod
    def of(found: Joined) -> _Alike:
        owners, starts = found.owners, found.starts
        known, others = classes(found.predicates)

        def member(column: Column) -> tuple[int, int]:
            return owners[column.index], column.index - starts[owners[column.index]]

        shown: list[list[int]] = [[] for _ in found.inputs]
        for place in sorted(found.places):
            shown[owners[place]].append(place - starts[owners[place]])
        equal = tuple((c.function, tuple(map(member, c.members))) for c in known)
        return _Alike(replace(found, predicates=others), equal, tuple(map(tuple, shown)), tuple(owners), tuple(starts))

    def orders(self, colours: Colours) -> Iterator[tuple[int, ...]]:
        colours = self._refined(colours)
        alike = next((c for c, count in sorted(Counter(colours).items()) if count > 1), None)
        if alike is None:
            yield _sequence(colours)
            return
        gone: list[int] = []
        for i in (i for i, c in enumerate(colours) if c == alike):
            if not any(self._twins(i, j) for j in gone):
                gone.append(i)
                yield from self.orders(tuple(2 * c + (c == alike and i != j) for j, c in enumerate(colours)))

    def _refined(self, colours: Colours) -> Colours:
        while True:
            finer = _dense([(c, self._seen(i, colours)) for i, c in enumerate(colours)])
            if len(set(finer)) == len(set(colours)):
                return finer
            colours = finer

    def _seen(self, input_: int, colours: Colours) -> Order:
        """What distinguishes an input, given the colours of all inputs."""
        equal = [
            (function, *sorted((colours[i], column, i == input_) for i, column in members))
            for function, members in self.equal
            if any(i == input_ for i, _ in members)
        ]

        def place(c: int) -> int:
            i = self.owners[c]
            return ((c - self.starts[i]) * len(colours) + colours[i]) * 2 + (i == input_)

        others = [p for p in self.found.predicates if any(self.owners[c] == input_ for c in columns_of(p))]
        return self.shown[input_], tuple(sorted(equal)), *sorted(order(normal(renumber(p, place))) for p in others)

    def _twins(self, one: int, two: int) -> bool:
        """Whether swapping two inputs changes nothing, so that only one of them need come first."""
        if self.shown[one] or self.shown[two]:
            return False
        turned = {one: two, two: one}

        def place(c: int) -> int:
            i = self.owners[c]
            return self.starts[turned.get(i, i)] + c - self.starts[i]

        equal = Counter((f, frozenset(members)) for f, members in self.equal)
        swapped = Counter((f, frozenset((turned.get(i, i), c) for i, c in members)) for f, members in self.equal)
        others = Counter(order(normal(p)) for p in self.found.predicates)
        return equal == swapped and others == Counter(order(normal(renumber(p, place))) for p in self.found.predicates)
