"""Joins on inequalities: ranges of an ordered arrangement, and intervals found by what they contain or overlap.

Each side is arranged by (keys, start of its interval), the end behind it (``planner.logical.bands``). A change of one
side looks up the rows of the other of equal keys that start in a range; if these are intervals, it finds those among
them that end late enough by the peaks of ends (``ivm.kernels.spans``). With one inequality the side whose end counts
is arranged by its end. It is a delta join of two inputs (docs/decisions/0027-joins-on-inequalities.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ivm.graph import Bound, Gather, Lookup, Path, Span
from ivm.words import Schema
from planner import gathers
from planner.expr.scalar import Column, Scalar
from planner.gathers import Cell
from planner.logical.bands import band_in
from planner.logical.fallibility import can_raise
from planner.logical.join_keys import Band, Condition, Inequality, KeyPair, take_apart
from planner.logical.nodes import AsOf, Filter, Get, Join, JoinKind, Project, Rel, schema
from planner.logical.traversal import conjunction, own_columns
from planner.lower.sides import Sides
from planner.lower.state import Arranged, Lowering, arrange_flow
from planner.memo import by_identity
from planner.options import Joins
from planner.physical.layouts import Layout, arranged
from planner.physical.nodes import Flow, Many


def with_band(low: Lowering, join: Join, condition: Condition) -> Condition:
    """The condition of a join with a band taken out of its residual, where that pays."""
    if low.indexes.planning.joins is Joins.LINEAR or not condition.residual:
        return condition
    band = band_in(condition.residual, len(schema(join.left)))
    if band is None or not _pays(low, join, condition.keys, band):
        return condition
    residual = tuple(p for p in condition.residual if p not in band.parts)
    return replace(condition, residual=residual, band=band)


def _pays(low: Lowering, join: Join, keys: tuple[KeyPair, ...], band: Band) -> bool:
    """An arrangement by the keys that exists finds few rows, or is worth more than to skip half of each group."""
    if not keys:
        return True
    half = None in (band.up, band.down)
    sides = ((join.left, [k.left for k in keys]), (join.right, [k.right for k in keys]))
    return not any(_is_narrow(low, rel, exprs, half) for rel, exprs in sides)


def _is_narrow(low: Lowering, rel: Rel, keys: list[Scalar], any_key: bool) -> bool:
    """Whether the keys find one row by a primary key; with ``any_key``, and in a query that runs once, whether anything
    is arranged by them."""
    stored = [found for k in keys if isinstance(k, Column) and (found := _stored(rel, k.index)) is not None]
    if not stored:
        return False
    relation, by = stored[0][0], {column for _, column in stored}
    primary = low.indexes.primary_key(relation)
    if primary and set(primary) <= by:
        return True
    return (any_key or low.indexes.one_shot) and any(set(key) == by for key in low.indexes.keys(relation))


def _stored(rel: Rel, column: int) -> tuple[int, int] | None:
    """The stored relation and its column that a column is, under filters and projections."""
    while isinstance(rel, Filter | Project):
        if isinstance(rel, Project):
            expr = rel.exprs[column]
            if not isinstance(expr, Column):
                return None
            column = expr.index
        rel = rel.input
    return (rel.relation, column) if isinstance(rel, Get) else None


def joins_bands(low: Lowering, rel: Rel) -> bool:
    """Whether the tree of inner joins under a join has a band of two inequalities between its sides that pays."""
    return any(_pays(low, join, keys, band) for join, keys, band in _banded(rel))


@by_identity
def _banded(rel: Rel) -> tuple[tuple[Join, tuple[KeyPair, ...], Band], ...]:
    """The joins of a tree of inner joins that have such a band, each with its keys. Memoized, for each join of the tree
    asks."""
    while isinstance(rel, Filter | Project):
        rel = rel.input
    if not isinstance(rel, Join) or rel.kind is not JoinKind.INNER or rel.lateral:
        return ()
    condition = take_apart(rel.on, len(schema(rel.left)))
    band = band_in(condition.residual, len(schema(rel.left))) if condition.residual else None
    own = () if band is None or None in (band.up, band.down) else ((rel, condition.keys, band),)
    return (*own, *_banded(rel.left), *_banded(rel.right))


@dataclass(frozen=True, slots=True)
class _End:
    """A side: its arrangement by (keys, start), the width of the keys, and the words of its interval's ends."""

    arranged: Arranged
    keys: int
    low: int | None
    high: int | None

    def cells(self, count: int, base: int = 0) -> tuple[Cell, ...]:
        """Where the first columns are in rows that begin at word ``base``."""
        return tuple(gathers.moved(cell, base) for cell in self.arranged.at[:count])

    def looks_up(self, number: int, other: _End, span: Span) -> tuple[tuple[Lookup, ...], ...]:
        """The one stage of the path from here to the other side, which is input ``number``."""
        return ((Lookup(number, other.arranged.node, tuple(range(self.keys)), span),),)

    def span(self, other: _End, starts: Inequality | None, ends: Inequality | None) -> Span:
        """What a row of ``other`` looks up here. ``starts``: here before the other ends; ``ends``: the other before
        here ends."""
        upper = None if starts is None else _bound(other.high, starts)
        lower = None if ends is None else _bound(other.low, ends)
        both = upper is not None and lower is not None
        return Span(None, upper, lower) if both and self.low != self.high else Span(lower, upper)


def _bound(word: int | None, inequality: Inequality) -> Bound:
    assert word is not None
    return Bound(word, inequality.strict)


def band_pairs(low: Lowering, sides: Sides, band: Band) -> Flow:
    """Pairs of rows with equal keys that fulfil the band: left's columns, then right's."""
    one = _arranged(low, sides.left, sides.left_keys, sides.null_safe, band.left)
    two = _arranged(low, sides.right, sides.right_keys, sides.null_safe, band.right)
    assert one.keys == two.keys
    left, right = sides.left.schema[: sides.left_columns], sides.right.schema[: sides.right_columns]
    row = (*left, *right)
    into_right, into_left = two.span(one, band.down, band.up), one.span(two, band.up, band.down)
    there = (*one.cells(len(left)), *two.cells(len(right), one.arranged.width))
    back = (*one.cells(len(left), two.arranged.width), *two.cells(len(right)))
    paths = (
        Path(one.arranged.node, one.looks_up(1, two, into_right), gathers.trusted_row(there, row)),
        Path(two.arranged.node, two.looks_up(0, one, into_left), gathers.trusted_row(back, row)),
    )
    return Flow(Many(paths, gathers.width(row)), gathers.identity(gathers.width(row)), row)


def _arranged(
    low: Lowering, flow: Flow, keys: tuple[int, ...], safe: tuple[bool, ...], ends: tuple[Scalar | None, Scalar | None]
) -> _End:
    """The side by (keys, start), or by (keys, end) if only its end counts; the end of an interval behind its start."""
    flow, places = low.with_keys(flow, tuple(e for e in ends if e is not None))
    start, *behind = dict.fromkeys(places)
    if behind or any(safe):
        layout, count = _by_ends(flow.schema, keys, safe, (start, *behind))
        node = low.builder.arrange(flow, layout.gather, count + 1)
        made = Arranged(node, count + 1, layout.width, layout.at)
    else:
        made = arrange_flow(low, flow, (*keys, start), (*safe, False))
        count = made.key_width - 1
    at = iter(range(count, count + 1 + len(behind)))
    words = {place: next(at) for place in (start, *behind)}
    found = iter(places)
    first, last = (None if e is None else words[next(found)] for e in ends)
    return _End(made, count, first, last)


def _by_ends(row: Schema, keys: tuple[int, ...], safe: tuple[bool, ...], ends: tuple[int, ...]) -> tuple[Layout, int]:
    """The layout [keys | ends | rest], without rows in which an end is NULL, and the width of the keys.

    The ends are copies where the keys have them already.
    """
    if not keys:
        return arranged(row, ends), 0
    base = arranged(row, keys, safe)
    count = base.key_width
    front = [base.at[e].word for e in ends]
    order = [*range(count), *front, *(w for w in range(count, base.width) if w not in front)]
    place = {word: position for position, word in reversed(list(enumerate(order)))}
    nulls = [null for e in ends if (null := gathers.cells(row)[e].null) is not None]
    gather = Gather(
        tuple(base.gather.words[w] for w in order),
        tuple((word, bit, place[to], at) for word, bit, to, at in base.gather.bits),
        tuple(dict.fromkeys((*base.gather.drop_if, *nulls))),
    )
    at = tuple(Cell(place[c.word], None if c.null is None else (place[c.null[0]], c.null[1])) for c in base.at)
    return Layout(gather, count, at), count


def with_match(low: Lowering, join: Join, condition: Condition) -> Flow | None:
    """The left rows that have a match, by an as-of join, if the condition is keys and one inequality: a row has a match
    if the nearest of its keys is one. A change of the nearest touches the rows between the old one and the new, not all
    that are on one side of it. None: the condition is another, or an as-of join is not possible."""
    width = len(schema(join.left))
    band = band_in(condition.residual, width) if len(condition.residual) == 1 else None
    if band is None or None not in (band.up, band.down) or any(map(can_raise, (*condition.left, *condition.right))):
        return None
    inequality = band.up or band.down
    assert inequality is not None
    if not inequality.exact:
        return None
    later = band.up is not None
    ends = (inequality.low, inequality.high) if later else (inequality.high, inequality.low)
    left, right = _filtered(join.left, condition.left), _filtered(join.right, condition.right)
    if any(low.loop_of(low.rel(side)) is not None for side in (left, right)):
        return None
    one, at = _with_columns(left, (*(k.left for k in condition.keys), ends[0]))
    two = Project(right, (*(k.right for k in condition.keys), ends[1]))
    count = len(condition.keys)
    keys = tuple((at[i], i, k.null_safe) for i, k in enumerate(condition.keys))
    found = low.rel(AsOf(one, two, keys, (at[-1], count), later, inequality.strict, outer=False))
    return low.builder.move(found, tuple(range(width)), schema(join.left))


def _with_columns(rel: Rel, exprs: tuple[Scalar, ...]) -> tuple[Rel, tuple[int, ...]]:
    """The relation with the expressions as columns, and where they are."""
    own = own_columns(schema(rel))
    more = tuple(dict.fromkeys(e for e in exprs if not isinstance(e, Column)))
    at = tuple(e.index if isinstance(e, Column) else len(own) + more.index(e) for e in exprs)
    return (Project(rel, (*own, *more)) if more else rel), at


def _filtered(rel: Rel, predicates: tuple[Scalar, ...]) -> Rel:
    return Filter(rel, conjunction(predicates)) if predicates else rel
