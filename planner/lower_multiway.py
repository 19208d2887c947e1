"""Joins of three and more inputs without intermediate state: delta joins, and worst-case optimal ones.

Every input gets a path; the arrangements that paths look up in are those of the inputs alone. A delta join is chosen
outside of loops when it needs no more rows in new arrangements than a linear one, whose intermediate results count as
much as the largest input; a worst-case optimal one (paths with stages of several inputs) for cyclic conditions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ivm.graph import Gather, Lookup, Path
from planner import moves
from planner.join_keys import is_constant, operator, take_apart
from planner.layout import Layout, arranged, table_layout
from planner.logical import Filter, Get, Join, Project, Rel, schema
from planner.lower_state import Arranged, Lowering
from planner.moves import Cell
from planner.multiway import Attributes, Combination, Joins, Stages, Visit, attributes, combination, is_join, stages
from planner.physical import Flow, Many
from planner.scalar import Column, Scalar
from planner.traverse import conjuncts, own_columns

_UNKNOWN = 1
"""Rows of a relation of unknown size: then arrangements are counted."""


@dataclass(frozen=True, slots=True)
class Source:
    """An input, with its attributes among its columns, and about how many rows it has."""

    flow: Flow
    columns: int
    places: dict[int, int]
    size: int


@dataclass(frozen=True, slots=True)
class Sorted:
    """A layout of an input's rows, and the words in which rows with a NULL are lacking."""

    layout: Layout
    lacking: frozenset[int]

    def suits(self, source: Source, key: frozenset[int], extension: int | None) -> bool:
        """Whether it has all rows that the input needs, and they begin with the key's words, then the extension's.

        Inputs with the same rows may have other attributes: what one has no use for the other one may need.
        """
        at = self.layout.at
        if not self.lacking <= {at[place].word for place in source.places.values()}:
            return False
        if {at[c].word for c in key} != set(range(len(key))):
            return False
        return extension is None or at[extension].word == len(key)


@dataclass(slots=True)
class Wanted:
    """The arrangements that some paths need: one serves for every key that its rows begin with."""

    low: Lowering
    known: dict[Flow, list[Sorted]] = field(default_factory=dict)
    new: int = 0
    """Rows in arrangements that are not there yet."""

    def find(self, source: Source, key: frozenset[int], extension: int | None) -> Layout:
        """A layout whose rows begin with columns ``key`` in any order, then ``extension``."""
        known = self.known.setdefault(source.flow, [])
        for found in known:
            if found.suits(source, key, extension):
                return found.layout
        made = _stored(self.low, source, key, extension)
        if made is None:
            columns = (*sorted(key), *(() if extension is None else (extension,)))
            lacking = frozenset(k for k, c in enumerate(columns) if source.flow.schema[c].nullable)
            made = Sorted(arranged(source.flow.schema, columns), lacking)
            self.new += source.size
        known.append(made)
        return made.layout


def lower_multiway(low: Lowering, join: Join) -> Flow | None:
    """The join of all inputs at once; None where a linear one is better, or the only one."""
    mode = low.indexes.joins
    joined = None if mode is Joins.LINEAR else combination(join)
    if joined is None:
        return None
    found = attributes(joined)
    if not found.connected or (mode is Joins.AUTO and not _worth_a_look(low, joined, found)):
        return None
    sources = [_source(low, rel, own) for rel, own in zip(joined.inputs, found.of, strict=True)]
    meet = mode is Joins.WCO or (mode is Joins.AUTO and found.cyclic)
    plan = _Paths(low, sources, [stages(i, found.of, meet, _rank(sources)) for i in range(len(sources))])
    if (
        mode is Joins.AUTO
        and not found.cyclic
        and (_looped(low, sources) or plan.wanted.new > _linear(low, join, sources))
    ):
        return None
    return _shown(low, join, joined, found, plan.flow())


def _worth_a_look(low: Lowering, joined: Combination, found: Attributes) -> bool:
    """Whether AUTO may choose anything but a linear join: a query that runs once either looks up the few rows that
    constants point at or has no use for what it would arrange."""
    return not low.indexes.one_shot or (found.cyclic and not any(_is_pointed(rel) for rel in joined.inputs))


def _looped(low: Lowering, sources: list[Source]) -> bool:
    """Whether the join is in a loop: linear ones are compiled with it."""
    return any(low.loop_of(source.flow) is not None for source in sources)


def _is_pointed(rel: Rel) -> bool:
    while isinstance(rel, Filter | Project):
        if isinstance(rel, Filter) and any(_is_point(p) for p in conjuncts(rel.predicate)):
            return True
        rel = rel.input
    return False


def _is_point(predicate: Scalar) -> bool:
    return operator(predicate) == "=" and any(is_constant(a) for a in getattr(predicate, "args", ()))


def _source(low: Lowering, rel: Rel, own: dict[int, Scalar]) -> Source:
    flow = low.rel(rel)
    columns = len(flow.schema)
    flow, places = low.with_keys(flow, tuple(own.values()))
    return Source(flow, columns, dict(zip(own, places, strict=True)), _size(low, rel))


def _size(low: Lowering, rel: Rel) -> int:
    while isinstance(rel, Filter | Project):
        rel = rel.input
    return (low.indexes.size(rel.relation) if isinstance(rel, Get) else None) or _UNKNOWN


def _linear(low: Lowering, join: Join, sources: list[Source]) -> int:
    """Rows in arrangements that a linear join would make anew; an intermediate result's are guessed."""
    most = max(source.size for source in sources)
    made: set[tuple[Flow, frozenset[Scalar]]] = set()
    total = 0
    todo: list[Rel] = [join]
    while todo:
        rel = todo.pop()
        while isinstance(rel, Filter | Project):
            rel = rel.input
        assert isinstance(rel, Join)
        keys = take_apart(rel.on, len(schema(rel.left))).keys
        for side, own in ((rel.left, [k.left for k in keys]), (rel.right, [k.right for k in keys])):
            if is_join(side):
                total += most
                todo.append(side)
                continue
            flow, by = low.rel(side), frozenset(own)
            if (flow, by) not in made and not _has(low, flow, by):
                total += _size(low, side)
            made.add((flow, by))
    return total


def _has(low: Lowering, flow: Flow, keys: frozenset[Scalar]) -> bool:
    """Whether a flow is a stored relation that is arranged by these columns."""
    stored = low.table_of(flow)
    if stored is None or not all(isinstance(k, Column) for k in keys):
        return False
    columns = {stored[1][k.index] for k in keys if isinstance(k, Column)}
    return any(set(known) == columns for known in low.indexes.keys(stored[0].relation))


def _rank(sources: list[Source]) -> Callable[[int, frozenset[int]], int]:
    def rank(i: int, key: frozenset[int]) -> int:
        return sources[i].size

    return rank


@dataclass(slots=True)
class _Paths:
    """The paths of all inputs, and the arrangements that they share."""

    low: Lowering
    sources: list[Source]
    courses: list[Stages]
    wanted: Wanted = field(init=False)

    def __post_init__(self) -> None:
        self.wanted = Wanted(self.low)
        visits = [visit for course in self.courses for stage in course for visit in stage]
        # The longest first: they serve for shorter keys too.
        for visit in sorted(visits, key=lambda v: -len(v.key) - (v.extension is not None)):
            self.layout(visit)

    def layout(self, visit: Visit) -> Layout:
        source = self.sources[visit.input]
        extension = None if visit.extension is None else source.places[visit.extension]
        return self.wanted.find(source, frozenset(source.places[a] for a in visit.key), extension)

    def start(self, i: int) -> Layout:
        """One of the input's arrangements: sorted as the first stage seeks, if it can be."""
        source = self.sources[i]
        first = {a for visit in self.courses[i][0] for a in visit.key}
        columns = frozenset(source.places[a] for a in first if a in source.places)
        suiting = [k for k in self.wanted.known[source.flow] if k.suits(source, frozenset(), None)]
        return next((k for k in suiting if k.suits(source, columns, None)), suiting[0]).layout

    def flow(self) -> Flow:
        """The join, all columns of all inputs, in the inputs' order."""
        row = tuple(c for source in self.sources for c in source.flow.schema[: source.columns])
        paths = tuple(self.path(i) for i in range(len(self.sources)))
        return Flow(Many(paths, moves.width(row)), moves.identity(moves.width(row)), row)

    def path(self, i: int) -> Path:
        """The path from an input: its gather makes a row of all columns."""
        walk = _Walk(self.low, self.sources)
        first = walk.bind(i, self.start(i))
        found = []
        for stage in self.courses[i]:
            bound = dict(walk.attributes)
            lookups = []
            for visit in stage:
                layout = self.layout(visit)
                by_word = {layout.at[self.sources[visit.input].places[a]].word: a for a in visit.key}
                key = tuple(bound[by_word[k]] for k in range(len(visit.key)))
                lookups.append(Lookup(visit.input, walk.bind(visit.input, layout).node, key))
            found.append(tuple(lookups))
        return Path(first.node, tuple(found), walk.gather())


@dataclass(slots=True)
class _Walk:
    """What a path has bound so far: where each attribute's word and each input's columns are."""

    low: Lowering
    sources: list[Source]
    width: int = 0
    attributes: dict[int, int] = field(default_factory=dict)
    at: dict[int, tuple[Cell, ...]] = field(default_factory=dict)

    def bind(self, i: int, layout: Layout) -> Arranged:
        """One more input's row."""
        source = self.sources[i]
        found = _arrange(self.low, source, layout)
        by = self.width
        at = tuple(_moved(cell, by) for cell in found.at)
        for attribute, place in source.places.items():
            self.attributes.setdefault(attribute, at[place].word)
        self.at[i] = at
        self.width += found.width
        return found

    def gather(self) -> Gather:
        cells = []
        drops = []
        row = []
        for i, source in enumerate(self.sources):
            at = self.at[i]
            shown = source.flow.schema[: source.columns]
            row += list(shown)
            cells += [c if s.nullable else Cell(c.word) for c, s in zip(at, shown, strict=False)]
            for place in source.places.values():
                null = at[place].null
                if null is not None and source.flow.schema[place].nullable:
                    drops.append(null)
        return replace(moves.row_of(cells, tuple(row)), drop_if=tuple(dict.fromkeys(drops)))


def _moved(cell: Cell, by: int) -> Cell:
    return Cell(cell.word + by, None if cell.null is None else (cell.null[0] + by, cell.null[1]))


def _stored(low: Lowering, source: Source, key: frozenset[int], extension: int | None) -> Sorted | None:
    """The layout, by the flow's columns, of an arrangement that the stored relation has, if one fits."""
    stored = low.table_of(source.flow)
    if stored is None:
        return None
    table, columns = stored
    for known in low.indexes.keys(table.relation):
        layout = table_layout(table.schema, known)
        lacking = frozenset(k for k, c in enumerate(known) if table.schema[c].nullable)
        shown = Sorted(Layout(layout.gather, layout.key_width, tuple(layout.at[c] for c in columns)), lacking)
        if shown.suits(source, key, extension):
            return shown
    return None


def _arrange(low: Lowering, source: Source, layout: Layout) -> Arranged:
    """The arrangement of a layout that ``Wanted`` has found."""
    flow = source.flow
    stored = low.table_of(flow)
    if stored is not None:
        table, columns = stored
        for known in low.indexes.keys(table.relation):
            own = table_layout(table.schema, known)
            if own.gather == layout.gather and tuple(own.at[c] for c in columns) == layout.at:
                whole = low.builder.flow(low.builder.add(table, moves.width(table.schema)), table.schema)
                node = low.builder.arrange(whole, own.gather, own.key_width)
                return Arranged(node, own.key_width, own.width, layout.at)
    node = low.builder.arrange(flow, layout.gather, layout.key_width)
    return Arranged(node, layout.key_width, layout.width, layout.at)


def _shown(low: Lowering, join: Join, joined: Combination, found: Attributes, flow: Flow) -> Flow:
    """The columns that the join shows, of the rows that the other conditions let through."""
    own = own_columns(flow.schema)
    result = low.compute(flow, found.residual, tuple(own[c] for c in joined.columns))
    declared = schema(join)
    retyped = tuple(type(a)(d.type, a.nullable) for a, d in zip(result.schema, declared, strict=True))
    return Flow(result.source, result.gather, retyped)
