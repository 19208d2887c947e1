"""The paths of a delta join: the arrangements that its inputs need, and the lookups of each input's updates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ivm.graph import Consolidate, Gather, Lookup, NodeId, Path
from ivm.words import Schema
from planner import gathers
from planner.expr.scalar import Scalar
from planner.gathers import Cell
from planner.lower.join_graph import Stages, Visit
from planner.lower.late_materialization import Wide
from planner.lower.state import Lowering
from planner.physical.layouts import Layout, arranged, table_layout
from planner.physical.nodes import Flow, Many


@dataclass(frozen=True, slots=True)
class JoinInput:
    """An input: the position of each attribute among its columns, and its approximate number of rows."""

    flow: Flow
    columns: int
    places: dict[int, int]
    size: int


def source(low: Lowering, flow: Flow, own: dict[int, Scalar], size: int) -> JoinInput:
    """The input with its attributes computed as columns."""
    columns = len(flow.schema)
    flow, places = low.with_keys(flow, tuple(own.values()))
    return JoinInput(flow, columns, dict(zip(own, places, strict=True)), size)


@dataclass(frozen=True, slots=True)
class SortedInput:
    """An arrangement layout of ``flow``, which is an input or holds an input's ids.

    ``at``: the cell of each of the input's columns; None: the column is only in the table, at the row whose id the
    words ``id`` hold. ``lacking``: words of the layout that are never NULL, because it drops rows in which they are.
    ``key``: the input's columns that the arrangement is created for; () if it exists anyway.
    """

    flow: Flow
    layout: Layout
    at: tuple[Cell | None, ...]
    lacking: frozenset[int]
    key: tuple[int, ...] = ()
    wide: Wide | None = None
    id: tuple[int, ...] = ()

    def suits(self, source: JoinInput, key: frozenset[int], extension: int | None) -> bool:
        """Whether it has all rows that the input needs, and its words begin with the key's, then the extension's.

        Inputs with equal rows may have different attributes, so one may need rows that the other can drop.
        """
        if not self.lacking <= {self._word(place) for place in source.places.values()}:
            return False
        if {self._word(c) for c in key} != set(range(len(key))):
            return False
        return extension is None or self._word(extension) == len(key)

    def _word(self, column: int) -> int | None:
        cell = self.at[column]
        return None if cell is None else cell.word

    @property
    def whole(self) -> bool:
        """Whether it has all of the input's columns."""
        return None not in self.at


@dataclass(slots=True)
class Arrangements:
    """The arrangements that some paths need; one serves every key that its rows begin with.

    ``late``: the inputs of which new arrangements hold only ids.
    """

    low: Lowering
    late: dict[Flow, Wide]
    known: dict[Flow, list[SortedInput]] = field(default_factory=dict)
    rows: int = 0
    words: int = 0
    """Rows and words in arrangements that do not exist yet."""

    def find(self, source: JoinInput, key: frozenset[int], extension: int | None) -> SortedInput:
        """A layout whose rows begin with columns ``key`` in any order, then ``extension``."""
        known = self.known.setdefault(source.flow, [])
        for found in known:
            if found.suits(source, key, extension):
                return found
        made = _stored(self.low, source, key, extension)
        if made is None:
            found_wide = self.late.get(source.flow)
            made = self._whole(source, key, extension) if found_wide is None else self._ids(found_wide, key, extension)
            self.rows += source.size
            self.words += source.size * made.layout.width
        known.append(made)
        return made

    def _whole(self, source: JoinInput, key: frozenset[int], extension: int | None) -> SortedInput:
        columns = (*sorted(key), *(() if extension is None else (extension,)))
        layout = arranged(source.flow.schema, columns)
        return SortedInput(source.flow, layout, layout.at, _lacking(source.flow, columns), columns)

    def _ids(self, found: Wide, key: frozenset[int], extension: int | None) -> SortedInput:
        columns = (*sorted(key, key=found.rank), *(() if extension is None else (extension,)))
        ids = found.ids(self.low, columns)
        own = tuple(ids.places[c] for c in columns)
        layout = _without_nulls(arranged(ids.flow.schema, own), ids.flow, own)
        at = tuple(layout.at[ids.places[c]] if c in ids.places else None for c in range(len(found.exprs)))
        return SortedInput(
            ids.flow, layout, at, _lacking(ids.flow, own), columns, found, tuple(layout.at[i].word for i in ids.id)
        )

    def made(self, flow: Flow) -> list[tuple[int, ...]]:
        """The keys of the new arrangements of an input."""
        return [found.key for found in self.known.get(flow, ()) if found.key]


def _lacking(flow: Flow, key: tuple[int, ...]) -> frozenset[int]:
    return frozenset(k for k, c in enumerate(key) if flow.schema[c].nullable)


def _without_nulls(layout: Layout, flow: Flow, key: tuple[int, ...]) -> Layout:
    """The layout without null words, if no column can be NULL once rows with NULL keys are dropped."""
    count = len(flow.schema)
    if any(c.nullable for i, c in enumerate(flow.schema) if i not in key):
        return layout
    gather = Gather(layout.gather.words[:count], (), layout.gather.drop_if)
    return Layout(gather, layout.key_width, tuple(Cell(c.word) for c in layout.at))


def _stored(low: Lowering, source: JoinInput, key: frozenset[int], extension: int | None) -> SortedInput | None:
    """An arrangement of the stored relation that fits, if the input is one."""
    stored = low.table_of(source.flow)
    if stored is None:
        return None
    table, columns = stored
    for known in low.indexes.keys(table.relation):
        layout = table_layout(table.schema, known)
        rows = low.builder.flow(low.builder.add(table, gathers.width(table.schema)), table.schema)
        shown = SortedInput(rows, layout, tuple(layout.at[c] for c in columns), _lacking(rows, known))
        if shown.suits(source, key, extension):
            return shown
    return None


@dataclass(slots=True)
class Paths:
    """The paths of all inputs, and the arrangements that they share."""

    low: Lowering
    sources: list[JoinInput]
    courses: list[Stages]
    late: dict[Flow, Wide] = field(default_factory=dict)
    wanted: Arrangements = field(init=False)

    def __post_init__(self) -> None:
        self.wanted = Arrangements(self.low, self.late)
        visits = [visit for course in self.courses for stage in course for visit in stage]
        # Longest first, because they serve shorter keys too.
        for visit in sorted(visits, key=lambda v: -len(v.key) - (v.extension is not None)):
            self.sorted(visit)

    def sorted(self, visit: Visit) -> SortedInput:
        """The layout in which a visit looks up."""
        source = self.sources[visit.input]
        extension = None if visit.extension is None else source.places[visit.extension]
        return self.wanted.find(source, frozenset(source.places[a] for a in visit.key), extension)

    def flow(self) -> Flow:
        """The join: all columns of all inputs, in the inputs' order."""
        row = tuple(c for source in self.sources for c in source.flow.schema[: source.columns])
        paths = tuple(self.path(i) for i in range(len(self.sources)))
        return Flow(Many(paths, gathers.width(row)), gathers.identity(gathers.width(row)), row)

    def path(self, i: int) -> Path:
        """The path of an input's updates; its gather makes a row of all columns."""
        walk = _Walk(self.low, self.sources)
        start = walk.start(i, self._start(i))
        found: list[tuple[Lookup, ...]] = []
        for stage in self.courses[i]:
            found += [(walk.fetch(late),) for late in walk.without({a for visit in stage for a in visit.key})]
            bound = dict(walk.attributes)
            lookups = []
            for visit in stage:
                by = self.sorted(visit)
                places = self.sources[visit.input].places
                at = {cell.word: a for a in visit.key if (cell := by.at[places[a]]) is not None}
                key = tuple(bound[at[k]] for k in range(len(visit.key)))
                lookups.append(Lookup(visit.input, walk.look_up(visit.input, by), key))
            found.append(tuple(lookups))
        found += [(walk.fetch(late),) for late in tuple(walk.pending)]
        return Path(start, tuple(found), walk.gather())

    def _start(self, i: int) -> SortedInput | None:
        """An arrangement of the whole input, preferably sorted by the first stage's key; None: there are only ids."""
        source = self.sources[i]
        first = {a for visit in self.courses[i][0] for a in visit.key}
        columns = frozenset(source.places[a] for a in first if a in source.places)
        suiting = [k for k in self.wanted.known[source.flow] if k.whole and k.suits(source, frozenset(), None)]
        return next((k for k in suiting if k.suits(source, columns, None)), suiting[0] if suiting else None)


@dataclass(slots=True)
class _Walk:
    """What a path has bound so far: the word of each attribute and the cells of each input's columns.

    ``pending``: for each input of which more must be fetched, its table and the words that hold the id.
    """

    low: Lowering
    sources: list[JoinInput]
    width: int = 0
    attributes: dict[int, int] = field(default_factory=dict)
    at: dict[int, tuple[Cell | None, ...]] = field(default_factory=dict)
    pending: dict[int, tuple[Wide, tuple[int, ...]]] = field(default_factory=dict)

    def start(self, i: int, found: SortedInput | None) -> NodeId:
        """The node whose updates start the path: an arrangement of the input, or the consolidated input itself."""
        if found is not None:
            return self.look_up(i, found)
        flow = self.sources[i].flow
        # Changes in columns that the input drops cancel out here.
        node = self.low.builder.add(Consolidate(self.low.builder.force(flow)), gathers.width(flow.schema))
        self._bind(i, gathers.cells(flow.schema), gathers.width(flow.schema))
        return node

    def look_up(self, i: int, found: SortedInput) -> NodeId:
        """Binds one more input's row, or its id; returns the arrangement to look up in."""
        if not found.whole:
            assert found.wide is not None
            self.pending[i] = (found.wide, tuple(self.width + word for word in found.id))
        self._bind(i, found.at, found.layout.width)
        return self.low.builder.arrange(found.flow, found.layout.gather, found.layout.key_width)

    def without(self, attributes: set[int]) -> list[int]:
        """The pending inputs that must be fetched because they alone have one of the attributes."""
        lacking = attributes - set(self.attributes)
        return [i for i in self.pending if lacking & set(self.sources[i].places)]

    def fetch(self, i: int) -> Lookup:
        """Binds the rest of a pending input's row: a lookup in the table by id."""
        found, key = self.pending.pop(i)
        before, layout = self.at[i], found.layout
        self._bind(
            i, [None if (c := found.column(k)) is None else layout.at[c] for k in range(len(before))], layout.width
        )
        self.at[i] = tuple(new if old is None else old for old, new in zip(before, self.at[i], strict=True))
        return Lookup(i, found.arrangement(self.low), key)

    def _bind(self, i: int, at: tuple[Cell | None, ...] | list[Cell | None], width: int) -> None:
        by = self.width
        self.at[i] = tuple(None if cell is None else gathers.moved(cell, by) for cell in at)
        for attribute, place in self.sources[i].places.items():
            cell = self.at[i][place]
            if cell is not None:
                self.attributes.setdefault(attribute, cell.word)
        self.width += width

    def gather(self) -> Gather:
        cells = []
        drops = []
        row: Schema = ()
        for i, source in enumerate(self.sources):
            at = [cell for cell in self.at[i] if cell is not None]
            assert len(at) == len(self.at[i]), "all columns are bound"
            row += source.flow.schema[: source.columns]
            cells += at[: source.columns]
            for place in source.places.values():
                null = at[place].null
                if null is not None and source.flow.schema[place].nullable:
                    drops.append(null)
        return replace(gathers.trusted_row(cells, row), drop_if=tuple(dict.fromkeys(drops)))


def by_size(sources: list[JoinInput]) -> Callable[[int, frozenset[int]], int]:
    """The cost of a lookup, for ``planner.lower.join_graph.stages``: the size of the input."""
    return lambda i, _: sources[i].size
