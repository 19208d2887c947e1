"""Ranges, networks and points as closed intervals of int64, and where an interval is registered to be found.

The search is that of the relational interval tree (Kriegel, Pötke, Seidl: Managing Intervals Efficiently in
Object-Relational Databases, VLDB 2000). An interval is registered at the topmost node of the virtual binary tree over
all int64 that is within it. Those that meet a given interval are registered in it, or at one of the at most 128 nodes
above its two ends.

Invariant: where ``&&``, ``-|-`` or ``~=`` is true of two values, their intervals meet. The converse does not hold.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.rows import Words
from ivm.words import FLOAT8, INT8, Kind
from planner.expr.functions.ranges import hull
from planner.expr.functions.table import ANY, CallSite, Raises, per_value
from storage.types.network import address
from storage.types.order import order_parts
from storage.types.point import coordinates
from storage.types.range_values import subtype_of

LOW: Final = "interval low"
HIGH: Final = "interval high"
NODE: Final = "interval node"
_LEAST: Final = -(1 << 63)
_MOST: Final = (1 << 63) - 1
_NEAR: Final = 2e-6
"""More than the distance at which ``~=`` takes two coordinates for equal."""
_BITS: Final = np.arange(64, dtype=np.uint64)


@per_value(LOW, (ANY,), INT8, needs_site=True, key_is_name=True, raises=Raises.NEVER, internal=True)
def low(site: CallSite, value: object) -> int | None:
    """The interval's least number; NULL for an empty range."""
    found = _interval(site, value)
    return None if found is None else found[0]


@per_value(HIGH, (ANY,), INT8, needs_site=True, key_is_name=True, raises=Raises.NEVER, internal=True)
def high(site: CallSite, value: object) -> int | None:
    """The interval's greatest number; NULL for an empty range."""
    found = _interval(site, value)
    return None if found is None else found[1]


@per_value(NODE, (ANY,), INT8, needs_site=True, key_is_name=True, raises=Raises.NEVER, internal=True)
def node(site: CallSite, value: object) -> int | None:
    """The node at which the interval is registered; NULL for an empty range."""
    found = _interval(site, value)
    return None if found is None else node_of(*found)


def node_of(least: int, most: int) -> int:
    """The topmost node between two numbers: the one with the most zeros at its end."""
    one, two = least - _LEAST, most - _LEAST
    level = (one ^ two).bit_length()
    if one >> level << level == one:
        return least
    return (two >> level - 1 << level - 1) + _LEAST


def above(ends: Words) -> Words:
    """The nodes above each of some numbers, int64[n, 64]."""
    unsigned = ends.view(np.uint64)[:, None] ^ np.uint64(1 << 63)
    found = ((unsigned >> _BITS) | np.uint64(1)) << _BITS
    return np.asarray((found ^ np.uint64(1 << 63)).view(np.int64))


def _interval(site: CallSite, value: object) -> tuple[int, int] | None:
    """The interval without the least int64, which would be a node above all others."""
    found = _ends(site, value)
    return None if found is None else (max(found[0], _LEAST + 1), max(found[1], _LEAST + 1))


def _ends(site: CallSite, value: object) -> tuple[int, int] | None:
    """The interval; None for an empty range, and for a type whose values are no intervals."""
    match site.args[0].kind:
        case Kind.POINT:
            assert isinstance(value, bytes)
            x, _ = coordinates(value)
            return order_parts(FLOAT8, x - _NEAR)[0], order_parts(FLOAT8, x + _NEAR)[0]
        case Kind.INET | Kind.CIDR:
            assert isinstance(value, bytes)
            return _network(value)
        case Kind.RANGE | Kind.MULTIRANGE:
            return _hull(site, value)
        case _:
            return None


def _network(datum: bytes) -> tuple[int, int]:
    known = address(datum)
    ends = (known.number & ~known.host_mask, known.number | known.host_mask)
    first, last = ((_LEAST + n if known.size == 4 else n >> 66) for n in ends)
    return first, last


def _hull(site: CallSite, value: object) -> tuple[int, int] | None:
    whole = hull(value)  # type: ignore[arg-type]
    if whole.empty:
        return None
    bound = subtype_of(site.args[0])
    first = _LEAST if whole.lower is None else order_parts(bound, whole.lower)[0]
    last = _MOST if whole.upper is None else order_parts(bound, whole.upper)[0]
    return first, last
