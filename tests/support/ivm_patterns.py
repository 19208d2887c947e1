"""Random delta joins of binary collections: patterns of attributes, and paths that visit them by lookups and
intersections in a random order."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from ivm.graph import Bound, DeltaJoin, Gather, Lookup, NodeId, Path, Span

Pattern = tuple[tuple[int, int], ...]
"""The attributes of each input's two words."""

PATTERNS: tuple[Pattern, ...] = (
    ((0, 1), (1, 2), (0, 2)),
    ((0, 1), (1, 2), (2, 0)),
    ((0, 1), (1, 2), (2, 3)),
    ((0, 1), (0, 2), (0, 3)),
    ((0, 1), (0, 1), (1, 2)),
    ((0, 1), (1, 2), (2, 3), (3, 0)),
    ((0, 1), (0, 2), (1, 3), (2, 3), (1, 2)),
    ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)),
    ((0, 1), (1, 0)),
)
SAME, SWAP = Gather((0, 1)), Gather((1, 0))


@dataclass
class Walk:
    """A path under construction: which attribute each bound word has, and where each input's words are."""

    rng: random.Random
    pattern: Pattern
    arrange: Callable[[int, bool], NodeId]
    """An arrangement of an input, with its words swapped or not, by some key."""

    def path(self, start: int, out: tuple[int, int], drop: tuple[int, int, int] | None) -> Path:
        """A path from an input; ``out``: the two output attributes; ``drop``: (input, word, bit) of the gather's
        ``drops``."""
        words: list[tuple[int, int]] = []
        stages = []
        swapped = self.rng.random() < 0.5
        first = self.arrange(start, swapped)
        self._bind(words, start, swapped)
        left = [i for i in range(len(self.pattern)) if i != start]
        while left:
            bound = {self.pattern[i][w] for i, w in words}
            stage = self._stage(left, bound)
            lookups = []
            known = list(words)
            for i, key in stage:
                swapped = self.pattern[i][1] in key if len(key) == 1 else self.rng.random() < 0.5
                order = self.pattern[i][::-1] if swapped else self.pattern[i]
                places = tuple(self._place(known, attribute) for attribute in order[: len(key)])
                lookups.append(Lookup(i, self.arrange(i, swapped), places))
                self._bind(words, i, swapped)
                left.remove(i)
            stages.append(tuple(lookups))
        drops = () if drop is None else ((words.index(drop[:2]), drop[2]),)
        return Path(first, tuple(stages), Gather(tuple(self._place(words, a) for a in out), (), drops))

    def _bind(self, words: list[tuple[int, int]], i: int, swapped: bool) -> None:
        words += [(i, 1), (i, 0)] if swapped else [(i, 0), (i, 1)]

    def _place(self, words: list[tuple[int, int]], attribute: int) -> int:
        places = [k for k, (i, w) in enumerate(words) if self.pattern[i][w] == attribute]
        return self.rng.choice(places)

    def _stage(self, left: list[int], bound: set[int]) -> list[tuple[int, set[int]]]:
        """Some inputs, each with the attributes by which it is looked up."""
        near = [(i, set(self.pattern[i]) & bound) for i in left]
        near = [(i, key) for i, key in near if key]
        i, key = self.rng.choice(near)
        if len(key) == 2 or self.rng.random() < 0.3:
            return [(i, key)]
        (new,) = set(self.pattern[i]) - key
        return [(j, k) for j, k in near if len(k) == 1 and new in self.pattern[j]]


def random_band(rng: random.Random, inputs: list[NodeId], arrange: Callable[[NodeId, bool, int], NodeId]) -> DeltaJoin:
    """A join of two of the collections by inequalities: intervals that overlap, intervals with the points in them, or
    an order of words under one key."""
    a, b = rng.choice(inputs), rng.choice(inputs)
    one, two = rng.random() < 0.5, rng.random() < 0.5
    shape = rng.randrange(3)
    width = 2 if shape == 2 else 1
    left, right = arrange(a, rng.random() < 0.5, width), arrange(b, rng.random() < 0.5, width)
    key: tuple[int, ...] = ()
    if shape == 0:
        into_right = Span(None, Bound(1, one), Bound(0, two))
        into_left = Span(None, Bound(1, two), Bound(0, one))
    elif shape == 1:
        into_right = Span(Bound(0, one), Bound(1, two))
        into_left = Span(None, Bound(0, one), Bound(0, two))
    else:
        key, into_right, into_left = (0,), Span(Bound(1, one)), Span(None, Bound(1, one))
    out = rng.sample(range(4), 2)
    there = Path(left, ((Lookup(1, right, key, into_right),),), Gather(tuple(out)))
    back = Path(right, ((Lookup(0, left, key, into_left),),), Gather(tuple((w + 2) % 4 for w in out)))
    return DeltaJoin((there, back))


def random_join(rng: random.Random, inputs: list[NodeId], arrange: Callable[[NodeId, bool, int], NodeId]) -> DeltaJoin:
    """A delta join of some of the inputs, which may repeat. ``arrange``: creates a node's arrangement, with a key of a
    given width."""
    pattern = rng.choice(PATTERNS)
    chosen = [rng.choice(inputs) for _ in pattern]
    attributes = sorted({a for pair in pattern for a in pair})
    out = (rng.choice(attributes), rng.choice(attributes))
    drop = (rng.randrange(len(pattern)), rng.randrange(2), 2) if rng.random() < 0.3 else None
    walk = Walk(rng, pattern, lambda i, swapped: arrange(chosen[i], swapped, rng.randrange(1, 3)))
    return DeltaJoin(tuple(walk.path(i, out, drop) for i in range(len(pattern))))
