"""How many bits of a time each loop's round gets.

The rounds of loops inside one another share ``ROUND_BITS``. A loop with a limit needs no more than tell its rounds
apart; what is left the others share alike. A block inside another is counted as a loop in its loop, though it may turn
out to read nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ivm.time import NARROWEST, ROUND_BITS, WIDEST, too_deep
from planner.logical.nodes import LetRec, Recursive, Rel
from planner.logical.traversal import children

Chain = tuple[int, ...]
"""The bits that loops inside one another want, outermost first."""


def wanted(rel: Recursive | LetRec) -> int:
    """The bits that a loop wants."""
    if isinstance(rel, Recursive) or rel.limit is None or rel.priorities:
        return WIDEST
    return min(max(rel.limit.bit_length(), NARROWEST), WIDEST)


def chains(rels: Iterable[Rel]) -> frozenset[Chain]:
    """What the loops in some plans want, the way to each innermost one; the empty chain where there are none."""
    found: dict[int, frozenset[Chain]] = {}
    kept: list[Rel] = []

    def inside(rel: Rel) -> frozenset[Chain]:
        known = found.get(id(rel))
        if known is None:
            below = frozenset().union(*(inside(c) for c in children(rel))) or frozenset([()])
            if isinstance(rel, Recursive | LetRec):
                below = frozenset((wanted(rel), *chain) for chain in below)
            known = found[id(rel)] = below
            kept.append(rel)
        return known

    return frozenset().union(*(inside(rel) for rel in rels)) or frozenset([()])


def width(taken: int, want: int, inside: frozenset[Chain]) -> int:
    """The bits of a loop that wants so many, where those around it have ``taken`` some. Raises 0A000 without room."""
    return min(_shared(ROUND_BITS - taken, (want, *chain)) for chain in inside)


def _shared(room: int, chain: Chain) -> int:
    """What the first of a chain gets of the room: those that want little get it, the others get alike."""
    least, rest = chain[0], sorted(chain)
    for k, want in enumerate(rest):
        fair = room // (len(rest) - k)
        if fair < NARROWEST:
            raise too_deep()
        if want > fair:
            return min(least, fair)
        room -= want
    return least
