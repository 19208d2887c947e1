"""Whether a query holds for the places where its terms are: ``@@``, and the covers of rankings and headlines.

A phrase is looked for by positions: each part of it gives those at which it ends, or (``negate``) those at which it
does not. A lexeme without positions leaves a phrase undecided, which is no match.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from storage.types.textsearch.nodes import Node, Query, Term
from storage.types.textsearch.vector import Vector, position

Found = Callable[[Term], Sequence[tuple[int, ...]]]
"""The places of each lexeme that a term stands for; () for a lexeme without positions."""


@dataclass(frozen=True, slots=True)
class _Places:
    """Where a part of a phrase ends. ``width``: how far before that it begins."""

    at: frozenset[int]
    negate: bool = False
    width: int = 0

    @property
    def matches(self) -> bool:
        return self.negate or bool(self.at)


_NOWHERE: Final = _Places(frozenset())


def matches(vector: Vector, query: Query) -> bool:
    """``vector @@ query``; an empty query matches nothing."""
    return query.root is not None and holds(query.root, finder(vector))


def finder(vector: Vector) -> Found:
    """Where a term is in a vector, at places of its weights. A lexeme without positions has every weight."""
    entries = dict(vector)

    def found(term: Term) -> list[tuple[int, ...]]:
        if term.prefix:
            named = [places for lexeme, places in entries.items() if lexeme.startswith(term.lexeme)]
        else:
            named = [entries[term.lexeme]] if term.lexeme in entries else []
        if not term.weights:
            return named
        weighed = ((places, tuple(p for p in places if has_weight(term, p))) for places in named)
        return [kept for places, kept in weighed if kept or not places]

    return found


def has_weight(term: Term, place: int) -> bool:
    """Whether a place has one of the term's weights."""
    return not term.weights or bool(term.weights >> (place >> 14) & 1)


def holds(node: Node, found: Found) -> bool:
    """Whether it matches."""
    if isinstance(node, Term):
        return bool(found(node))
    match node.operator:
        case "!":
            return not holds(node.right, found)
        case "&" | "|":
            assert node.left is not None
            test = all if node.operator == "&" else any
            return test(holds(part, found) for part in (node.left, node.right))
        case "<->":
            places = _places(node, found)
            return places is not None and places.matches
        case _:
            assert_never(node.operator)


def _places(node: Node, found: Found) -> _Places | None:
    """Where a part of a phrase is; None: not known."""
    if isinstance(node, Term):
        known = found(node)
        if any(not places for places in known):
            return None
        return _Places(frozenset(position(p) for places in known for p in places))
    right = _places(node.right, found)
    if node.left is None:
        return None if right is None else _Places(right.at, not right.negate, right.width)
    left = _places(node.left, found)
    if node.operator == "|":
        return None if left is None or right is None else _either(left, right)
    if (left is not None and not left.matches) or (right is not None and not right.matches):
        return _NOWHERE
    if left is None or right is None:
        return None
    if node.operator == "&":
        width = max(left.width, right.width)
        return _all(left, right, width - left.width, width - right.width, width)
    return _all(left, right, node.distance + right.width, 0, node.distance + left.width + right.width)


def _shifted(places: _Places, by: int) -> frozenset[int]:
    return frozenset(p + by for p in places.at)


def _all(left: _Places, right: _Places, left_by: int, right_by: int, width: int) -> _Places:
    """Where both are."""
    a, b = _shifted(left, left_by), _shifted(right, right_by)
    if left.negate and right.negate:
        return _Places(a | b, True, width)
    return _Places(b - a if left.negate else a - b if right.negate else a & b, False, width)


def _either(left: _Places, right: _Places) -> _Places:
    """Where one of them is."""
    if not left.matches and not right.matches:
        return _NOWHERE
    left_width, right_width = left.width if left.matches else 0, right.width if right.matches else 0
    width = max(left_width, right_width)
    a, b = _shifted(left, width - left_width), _shifted(right, width - right_width)
    if left.negate and right.negate:
        return _Places(a & b, True, width)
    if left.negate or right.negate:
        return _Places(a - b if left.negate else b - a, True, width)
    return _Places(a | b, False, width)
