"""What binding finds out about the nodes of a syntax tree, for those that show the tree again (``sql.deparse``).

Nodes are told apart by identity, and by their offsets where those are unique in a statement: names, stars, and the
items of FROM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ivm.words import SqlType
from planner.expr.scalar import Column, OuterColumn, Scalar
from sql.bind.namespace import Namespace, Range, at_level
from sql.bind.scope import NameScope, find_range
from sql.catalog.catalog import Relation
from sql.syntax.nodes import queries as nodes

TABLE_OID = -1
"""``Place.column`` of a tableoid."""


@dataclass(frozen=True, slots=True)
class Place:
    """A column of an item of FROM. ``at``: the item's offset. ``column``: its place in the item's ``Range``; None for
    the whole row."""

    at: int
    column: int | None


@dataclass(slots=True)
class Notes:
    """``values``: what expressions became. ``places``: the columns that names mean, and ``stars``: those that stars
    stand for, each with its name; by offset. ``ranges``: the items of FROM, by offset. ``merged``: the columns of USING
    or NATURAL, with their places in both sides, by the join's offset; ``swapped``: for the left side's place of such a
    column that has another type, the place of the merged one, None if that is a column of its own. ``outputs``: which
    column of the select list an item of GROUP BY, ORDER BY or DISTINCT ON is. ``columns``: the types of the columns of
    queries and their bodies. ``routines``: the routines called, with the types that their arguments are cast to;
    ``operators``: the users' operators by offset and symbol, with the same. ``instead``: what a node was taken for.
    ``titles``: the names of a select list's columns, by offset. ``domains``: the types of casts to
    domains and arrays of them."""

    values: dict[int, tuple[nodes.Expr, Scalar]] = field(default_factory=dict)
    places: dict[int, Place] = field(default_factory=dict)
    stars: dict[int, tuple[tuple[str, Place | None], ...]] = field(default_factory=dict)
    ranges: dict[int, Range] = field(default_factory=dict)
    merged: dict[int, tuple[tuple[str, Place | None, Place | None], ...]] = field(default_factory=dict)
    outputs: dict[int, tuple[nodes.Expr, int]] = field(default_factory=dict)
    columns: dict[int, tuple[object, tuple[SqlType, ...]]] = field(default_factory=dict)
    routines: dict[int, tuple[nodes.Expr, Relation, tuple[SqlType, ...]]] = field(default_factory=dict)
    instead: dict[int, tuple[nodes.Expr, nodes.Expr]] = field(default_factory=dict)
    swapped: dict[Place, Place | None] = field(default_factory=dict)
    operators: dict[tuple[int, str], tuple[Relation, tuple[SqlType, ...]]] = field(default_factory=dict)
    titles: dict[int, str] = field(default_factory=dict)
    domains: dict[int, tuple[nodes.Expr, SqlType]] = field(default_factory=dict)

    def name(self, scope: NameScope, node: nodes.Name, expr: Scalar) -> None:
        """Notes the column that a name means."""
        place = place_of(scope, expr)
        if place is not None:
            self.places[node.at] = place

    def row(self, scope: NameScope, qualifier: tuple[str, ...], at: int) -> None:
        """Notes the item of FROM whose whole row a name means."""
        here: NameScope | None = scope
        while here is not None:
            found = find_range(here.namespace, qualifier, at)
            if found is not None:
                self.places[at] = Place(found.at, None)
                return
            here = here.parent

    def star(self, scope: NameScope, at: int, columns: Sequence[tuple[str, Scalar]]) -> None:
        """Notes what a star stands for."""
        self.stars[at] = tuple((name, place_of(scope, expr)) for name, expr in columns)

    def item(self, at: int, namespace: Namespace) -> None:
        """Notes an item of FROM."""
        if len(namespace.ranges) == 1:
            self.ranges[at] = namespace.ranges[0]

    def join(
        self, at: int, using: Sequence[str], left: Namespace, right: Namespace, sides: Mapping[str, str]
    ) -> None:  # fmt: skip
        """Notes the columns that a join merges. ``sides``: for some, which side's column the merged one is."""
        known = [{v.name: place_in(side, v.expr) for v in side.visible} for side in (left, right)]
        self.merged[at] = tuple((name, known[0].get(name), known[1].get(name)) for name in using)
        for name, place, other in self.merged[at]:
            if name in sides and place is not None and sides[name] != "left":
                self.swapped[place] = other if sides[name] == "right" else None

    def output(self, node: nodes.Expr, index: int) -> None:
        """Notes which column of the select list an item is."""
        self.outputs[id(node)] = node, index

    def query(self, node: object, types: Sequence[SqlType]) -> None:
        """Notes the types of a query's columns."""
        self.columns[id(node)] = node, tuple(types)

    def type_of(self, node: nodes.Expr) -> SqlType | None:
        """The type of a bound expression; None if it was not bound by itself."""
        found = self.values.get(id(node))
        return None if found is None else found[1].type


def place_of(scope: NameScope, expr: Scalar) -> Place | None:
    """The item of FROM, of this level or an enclosing one, that has a column; None if it is of several."""
    level, here = 0, scope
    while True:
        found = place_in(here.namespace, expr, level)
        if found is not None or here.parent is None:
            return found
        here, level = here.parent, level + 1


def place_in(namespace: Namespace, expr: Scalar, level: int = 0) -> Place | None:
    """The same for one level."""
    for range_ in namespace.ranges:
        if range_.at < 0:
            continue
        for i, visible in enumerate(range_.columns):
            if _same(at_level(visible.expr, level), expr):
                return Place(range_.at, i)
        if range_.oid is not None and _same(at_level(range_.oid.expr, level), expr):
            return Place(range_.at, TABLE_OID)
    return None


def _same(a: Scalar, b: Scalar) -> bool:
    match a, b:
        case Column(), Column():
            return a.index == b.index
        case OuterColumn(), OuterColumn():
            return (a.level, a.index) == (b.level, b.index)
        case _:
            return a == b
