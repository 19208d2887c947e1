"""The normal form of plans that mean the same, and the positions of a plan's columns in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import product
from math import prod
from typing import Final, assert_never

from ivm.words import Schema
from planner.expr.literal_rows import LiteralRows
from planner.expr.scalar import Column, Scalar
from planner.logical.fallibility import can_raise
from planner.logical.nodes import (
    AsOf,
    Distinct,
    Filter,
    Get,
    Join,
    LetRec,
    Locked,
    Project,
    Recursive,
    Reduce,
    Reference,
    Rel,
    SetOperation,
    TableFunction,
    TemporalFilter,
    TopK,
    Values,
    schema,
)  # fmt: skip
from planner.logical.traversal import children, conjunction, conjuncts, own_columns, renumber, scalars, settle
from planner.transform.normal.scalar import in_order, normal, order, orderless

Rank = tuple[int, str]
"""The least relation that a plan reads (so that normalized plans stay readable), and a digest of the whole plan."""
_NONE: frozenset[int] = frozenset()
MOST: Final = 120
"""The most ways to write one node that are tried."""


@dataclass(frozen=True, slots=True)
class Form:
    """A plan in normal form, with its columns in an order of their own: column i is at ``places[i]`` of ``rel``.

    ``others``: equivalent positions, which exist where ``rel`` joins the same input several times and the occurrences
    are interchangeable. A reader of the form is written in each of these ways, and the ``least`` is taken.

    Invariant: ``places`` sort before ``others``, which ascend.
    """

    rel: Rel
    places: tuple[int, ...]
    others: tuple[tuple[int, ...], ...] = ()

    @property
    def every(self) -> tuple[tuple[int, ...], ...]:
        """All equivalent positions."""
        return self.places, *self.others

    def each(self) -> tuple[Form, ...]:
        """A form for each of the equivalent positions alone."""
        return tuple(Form(self.rel, places) for places in self.every) if self.others else (self,)

    def through(self, change: Callable[[tuple[int, ...]], tuple[int, ...]], rel: Rel | None = None) -> Form:
        """The form with ``change`` applied to all its positions; ``rel``: over another plan."""
        return alike(self.rel if rel is None else rel, map(change, self.every))

    def scalar(self, expr: Scalar) -> Scalar:
        """An expression over the plan as an expression over the form, in normal form."""
        return normal(settle(renumber(expr, self.places.__getitem__), schema(self.rel)))


def alike(rel: Rel, every: Iterable[tuple[int, ...]]) -> Form:
    """The form of a plan with several equivalent positions of its columns."""
    first, *rest = sorted(set(every))
    return Form(rel, first, tuple(rest))


def whole(rel: Rel) -> Form:
    """The form of a plan whose columns keep their positions."""
    return Form(rel, tuple(range(len(schema(rel)))))


@dataclass(slots=True)
class Ranks:
    """Ranks of plans, and one representative for all plans of the same rank. ``labels`` number recursive bindings."""

    labels: dict[int, int] = field(default_factory=dict)
    _known: dict[int, tuple[Rel, Rank]] = field(default_factory=dict)
    _one: dict[tuple[Rank, frozenset[int]], Rel] = field(default_factory=dict)
    _open: dict[int, tuple[Rel, frozenset[int]]] = field(default_factory=dict)

    def one(self, rel: Rel) -> Rel:
        """The representative: the first plan asked for that is equal to this one."""
        return self._one.setdefault((self.of(rel), self._free(rel)), rel)

    def _free(self, rel: Rel) -> frozenset[int]:
        """The recursive bindings that a plan reads but does not define.

        Plans with equal labels may read different ones.
        """
        found = self._open.get(id(rel))
        if found is None:
            free = (
                frozenset((rel.binding,))
                if isinstance(rel, Reference)
                else _NONE.union(*map(self._free, children(rel)))
            )
            if isinstance(rel, Recursive):
                free -= {rel.binding}
            elif isinstance(rel, LetRec):
                free -= {binding for binding, _ in rel.bindings}
            found = self._open[id(rel)] = (rel, free)
        return found[1]

    def of(self, rel: Rel) -> Rank:
        """The rank. Two plans have the same one only if they are equal up to the nullability of their expressions."""
        found = self._known.get(id(rel))
        if found is None:
            found = self._known[id(rel)] = (rel, self._of(rel))
        return found[1]

    def least(self, forms: Sequence[Form]) -> Form:
        """The least of several ways to write one plan, with the positions of all ways that are equal to it."""
        if len(forms) == 1:
            return forms[0]
        keyed = [(([order(e) for e in scalars(form.rel)], self.of(form.rel)), form) for form in forms]
        first = min(key for key, _ in keyed)
        same = [form for key, form in keyed if key == first]
        return alike(same[0].rel, (places for form in same for places in form.every))

    def _of(self, rel: Rel) -> Rank:
        below = [self.of(c) for c in children(rel)]
        described = (type(rel).__name__, self._own(rel), [order(e) for e in scalars(rel)], below)
        first = min((f for f, _ in below), default=2**62)
        if isinstance(rel, Get):
            first = rel.relation
        return first, blake2b(repr(described).encode(), digest_size=16).hexdigest()

    def _own(self, rel: Rel) -> object:
        """The node's own attributes, without its inputs and expressions."""
        match rel:
            case Get():
                return rel.relation
            case Reference():
                return self.labels.get(rel.binding, -rel.binding)
            case Values(rows=LiteralRows() as rows):
                return rows, rel.schema
            case Values():
                return [len(row) for row in rel.rows], rel.schema
            case Filter() | TemporalFilter() | Distinct():
                return None
            case Project():
                return len(rel.exprs)
            case Join():
                return rel.kind, rel.lateral
            case AsOf():
                return rel.keys, rel.points, rel.later, rel.strict, rel.outer
            case Locked():
                return rel.keys, rel.outer, rel.name
            case Reduce():
                shapes = [(a.function, a.type, a.distinct, a.filter is None, len(a.args), _sorting(a.order))
                          for a in rel.aggregates]  # fmt: skip
                return len(rel.keys), shapes
            case TopK():
                bounds = rel.limit is None, rel.offset is None
                framed = [f.shape for f in rel.framed]
                return len(rel.keys), _sorting(rel.order), *bounds, rel.numbers, rel.limit_of, framed
            case SetOperation():
                return rel.kind, rel.all
            case TableFunction():
                return rel.function, rel.columns, rel.ordinality
            case Recursive():
                return rel.all, rel.schema
            case LetRec():
                priorities = [None if e is None else order(e) for e in rel.priorities]
                return rel.schemas, rel.limit, rel.return_at_limit, rel.names, priorities, rel.automatic
            case _:
                assert_never(rel)


def _sorting(keys: tuple[object, ...]) -> list[tuple[bool, bool]]:
    return [(getattr(k, "descending", False), getattr(k, "nulls_first", False)) for k in keys]


def filtered(rel: Rel, predicates: tuple[Scalar, ...]) -> Rel:
    """The rows that meet predicates over ``rel``, merged with a filter below."""
    if isinstance(rel, Filter):
        return filtered(rel.input, (*conjuncts(rel.predicate), *predicates))
    own = in_order(tuple(c for p in predicates for c in conjuncts(p)))
    return Filter(rel, conjunction(own)) if own else rel


def together(forms: Sequence[Form]) -> Iterator[tuple[Form, ...]]:
    """All combinations of positions of a node's inputs; only the first one if there are more than ``MOST``."""
    if prod(len(form.every) for form in forms) > MOST:
        return iter((tuple(form.each()[0] for form in forms),))
    return product(*(form.each() for form in forms))


def projected(form: Form, exprs: tuple[Scalar, ...], ranks: Ranks) -> Form:
    """A projection, with each expression once, in normal order. Plain columns need no projection."""
    row = schema(form.rel)
    if all(isinstance(e, Column) and e.type == row[form.places[e.index]].type for e in exprs):
        columns = tuple(e.index for e in exprs if isinstance(e, Column))
        return form.through(lambda places: tuple(places[c] for c in columns))

    def one(way: Form) -> Form:
        new = tuple(map(way.scalar, exprs))
        own = columns_in_order(new)
        return Form(Project(form.rel, own), tuple(own.index(e) for e in new))

    return ranks.least([one(way) for way in form.each()])


def closed(form: Form) -> Form:
    """The form without columns that the plan lacks, for readers of whole rows."""
    read = [(tuple(sorted(set(places))), places) for places in form.every]
    used = min(columns for columns, _ in read)
    same = alike(form.rel, (places for columns, places in read if columns == used))
    own = own_columns(schema(form.rel))
    if len(used) == len(own):
        return same
    at = {c: i for i, c in enumerate(used)}
    rel = Project(form.rel, tuple(own[c] for c in used))
    return same.through(lambda places: tuple(at[c] for c in places), rel)


def exact(form: Form, row: Schema) -> Rel:
    """The plan's columns in its own order, with the types of ``row``."""
    below = schema(form.rel)
    if form.places == tuple(range(len(below))):
        return form.rel
    exprs = tuple(Column(p, c.type, below[p].nullable) for p, c in zip(form.places, row, strict=True))
    return Project(form.rel, exprs)


def columns_in_order(exprs: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    """Distinct expressions in normal order.

    Those that can raise different errors keep their order, after the others.
    """
    once = tuple(dict.fromkeys(exprs))
    if orderless(once):
        return tuple(sorted(once, key=order))
    return (*sorted((e for e in once if not can_raise(e)), key=order), *(e for e in once if can_raise(e)))
