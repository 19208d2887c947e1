"""How many bits of a time each loop's round gets.

Nested loops share ``ROUND_BITS``. A loop with a limit needs only enough bits to count its rounds; the others share the
rest equally. A block inside another counts as a nested loop, even if it turns out to read nothing of the outer one.
"""

from __future__ import annotations

from collections.abc import Iterable

from ivm.time import NARROWEST, ROUND_BITS, WIDEST, too_deep
from planner.logical.nodes import LetRec, Recursive, Rel
from planner.logical.traversal import children

LoopChain = tuple[int, ...]
"""The bits that nested loops want, outermost first."""


def wanted(rel: Recursive | LetRec) -> int:
    """The bits that a loop wants."""
    if isinstance(rel, Recursive) or rel.limit is None or rel.priorities:
        return WIDEST
    return min(max(rel.limit.bit_length(), NARROWEST), WIDEST)


def chains(rels: Iterable[Rel]) -> frozenset[LoopChain]:
    """The chains of loops in some plans, one for each innermost loop; {()} if there are none."""
    found: dict[int, tuple[Rel, frozenset[LoopChain]]] = {}
    return frozenset().union(*(_inside(rel, found) for rel in rels)) or frozenset([()])


def _inside(rel: Rel, found: dict[int, tuple[Rel, frozenset[LoopChain]]]) -> frozenset[LoopChain]:
    """The chains in one plan. ``found``: those of others, by the plan's id, which stays the plan's."""
    known = found.get(id(rel))
    if known is not None:
        return known[1]
    below = frozenset().union(*(_inside(c, found) for c in children(rel))) or frozenset([()])
    if isinstance(rel, Recursive | LetRec):
        below = frozenset((wanted(rel), *chain) for chain in below)
    found[id(rel)] = rel, below
    return below


def width(taken: int, want: int, inside: frozenset[LoopChain]) -> int:
    """The bits for a loop that wants ``want``; enclosing loops have ``taken`` some. 0A000: too deeply nested."""
    return min(_shared(ROUND_BITS - taken, (want, *chain)) for chain in inside)


def _shared(bits: int, chain: LoopChain) -> int:
    """The bits of a chain's first loop: those that want little get it, the others share the rest equally."""
    least, rest = chain[0], sorted(chain)
    for k, want in enumerate(rest):
        fair = bits // (len(rest) - k)
        if fair < NARROWEST:
            raise too_deep()
        if want > fair:
            return min(least, fair)
        bits -= want
    return least
