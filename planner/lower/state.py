"""The state of lowering, and the building blocks that the operators' lowerings share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from ivm.graph import Consolidate, Keep, Negate, NodeId, Threshold
from ivm.words import Schema
from planner import gathers
from planner.expr.functions.library import is_volatile
from planner.expr.parts import walk
from planner.expr.scalar import Column, Scalar
from planner.gathers import Cell
from planner.logical.nodes import Reference, Rel
from planner.logical.traversal import children, column_types, columns_of, own_columns, renumber
from planner.lower.pruning import Bound
from planner.options import DEFAULT, Planning
from planner.physical.key_checks import KeyCheck
from planner.physical.layouts import StoredKey, arranged, table_layout, whole_row
from planner.physical.nodes import Builder, Flow, Open, Table, innermost
from planner.physical.row_programs import MapFilter


class Indexes(Protocol):
    """What lowering needs to know of stored relations."""

    @property
    def one_shot(self) -> bool:
        """Whether the plan runs once over snapshots: existing arrangements are then looked up, not scanned."""
        ...

    @property
    def planning(self) -> Planning:
        """The session's planning settings."""
        ...

    def keys(self, relation: int) -> tuple[tuple[int, ...], ...]:
        """The columns of each arrangement of a relation, primary key first; the one by whole row is not listed."""
        ...

    def key_checks(self, relation: int) -> tuple[KeyCheck, ...]:
        """The other arrangements that one-shot plans may look up: by equality class, of expressions, of some rows."""
        ...

    def bound(self, relation: int) -> Bound | None:
        """What a partition's bounds say of its rows; None: it is no partition."""
        ...

    def index_name(self, relation: int, key: StoredKey) -> str | None:
        """The name of an index that this arrangement is for, for EXPLAIN."""
        ...

    def primary_key(self, relation: int) -> tuple[int, ...]:
        """The columns of a table's primary key, by which it is arranged; () if it has none."""
        ...

    def size(self, relation: int) -> int | None:
        """The approximate number of rows; None: unknown."""
        ...


@dataclass(frozen=True, slots=True)
class KnownIndexes:
    """``Indexes`` from plain data."""

    arrangements: tuple[tuple[int, tuple[tuple[int, ...], ...]], ...] = ()
    sizes: tuple[tuple[int, int], ...] = ()
    one_shot: bool = False
    planning: Planning = DEFAULT
    primary: tuple[tuple[int, tuple[int, ...]], ...] = ()
    checks: tuple[tuple[int, tuple[KeyCheck, ...]], ...] = ()
    bounds: tuple[tuple[int, Bound], ...] = ()

    def primary_key(self, relation: int) -> tuple[int, ...]:
        return dict(self.primary).get(relation, ())

    def key_checks(self, relation: int) -> tuple[KeyCheck, ...]:
        return dict(self.checks).get(relation, ())

    def bound(self, relation: int) -> Bound | None:
        return dict(self.bounds).get(relation)

    def index_name(self, relation: int, key: StoredKey) -> str | None:
        return None

    def keys(self, relation: int) -> tuple[tuple[int, ...], ...]:
        return dict(self.arrangements).get(relation, ())

    def size(self, relation: int) -> int | None:
        return dict(self.sizes).get(relation)


@dataclass(slots=True)
class Lowering:
    """The state of one lowering. ``rel`` lowers a relation; ``bindings`` are the recursions' collections."""

    indexes: Indexes
    rel: Callable[[Rel], Flow]
    builder: Builder = field(default_factory=Builder)
    bindings: dict[int, Flow] = field(default_factory=dict)
    memo: dict[tuple[int, int], tuple[Rel, Flow]] = field(default_factory=dict)
    generation: int = 0
    """Incremented when a binding gets another collection: relations lowered with references before are stale."""
    open_rels: dict[int, tuple[Rel, bool]] = field(default_factory=dict)

    def bind(self, binding: int, flow: Flow) -> None:
        """Sets the collection that a binding's references read from here on."""
        self.bindings[binding] = flow
        self.generation += 1

    def scope_of(self, binding: int) -> int | None:
        """The loop that a binding's collection is in; None: none."""
        return self.loop_of(self.bindings[binding])

    def loop_of(self, flow: Flow) -> int | None:
        """The loop that a collection is in; None: none."""
        return innermost((self.builder.scope_of[n] for n in flow.nodes), self.builder.scopes)

    def remembered(self, rel: Rel) -> tuple[int, int]:
        """The key of a relation in ``memo``."""
        return id(rel), self.generation if self.generation and self._has_reference(rel) else 0

    def _has_reference(self, rel: Rel) -> bool:
        found = self.open_rels.get(id(rel))
        if found is None:
            has = isinstance(rel, Reference) or any(self._has_reference(c) for c in children(rel))
            self.open_rels[id(rel)] = found = (rel, has)
        return found[1]

    def compute(self, flow: Flow, predicates: tuple[Scalar, ...], exprs: tuple[Scalar, ...] | None) -> Flow:
        """Filters, then computes ``exprs`` (None: the columns as they are); a gather alone if that suffices."""
        if exprs is not None and not predicates and all(isinstance(e, Column) for e in exprs):
            return self.moved(flow, exprs)
        if exprs is None and not predicates:
            return flow
        if exprs is None and isinstance(flow.source, Open):
            exprs = own_columns(flow.schema)
        if exprs is not None:
            if isinstance(flow.source, Open):
                flow, place = self.narrow(flow, frozenset().union(*(columns_of(e) for e in (*predicates, *exprs))))
                predicates = tuple(renumber(p, place.__getitem__) for p in predicates)
                exprs = tuple(renumber(e, place.__getitem__) for e in exprs)
            if exprs == own_columns(flow.schema):
                exprs = None
        program = MapFilter(flow.schema, predicates, exprs)
        if any(is_volatile(part) for e in (*predicates, *(exprs or ())) for part in walk(e)):
            # updates that cancel would get different values
            once = self.builder.add(Consolidate(self.builder.force(flow)), gathers.width(flow.schema))
            flow = self.builder.flow(once, flow.schema)
        return self.builder.flow(self.builder.map(flow, program), program.output)

    def moved(self, flow: Flow, exprs: tuple[Scalar, ...]) -> Flow:
        """A projection of plain columns, whose types may be other names for the same words."""
        indexes = tuple(e.index for e in exprs if isinstance(e, Column))
        return self.retyped(self.builder.move(flow, indexes), column_types(exprs))

    def retyped(self, flow: Flow, declared: Schema) -> Flow:
        """The flow with the types that the plan declares for its columns (other names for the same words)."""
        if all(a.type is d.type for a, d in zip(flow.schema, declared, strict=True)):
            return flow
        row = tuple(type(a)(d.type, a.nullable) for a, d in zip(flow.schema, declared, strict=True))
        return Flow(flow.source, flow.gather, row)

    def narrow(self, flow: Flow, used: frozenset[int]) -> tuple[Flow, dict[int, int]]:
        """The used columns of a flow whose join is not built yet, and their new positions; any other flow as it is."""
        if not isinstance(flow.source, Open) or len(used) == len(flow.schema):
            return flow, {i: i for i in range(len(flow.schema))}
        kept = tuple(sorted(used))
        return self.builder.move(flow, kept), {old: new for new, old in enumerate(kept)}

    def coerce(self, flow: Flow, schema: Schema) -> Flow:
        """The flow as rows of a schema with the same types and other nullability."""
        if flow.schema == schema:
            return flow
        return self.builder.move(flow, tuple(range(len(schema))), schema)

    def with_keys(self, flow: Flow, keys: tuple[Scalar, ...]) -> tuple[Flow, tuple[int, ...]]:
        """The flow with computed keys appended as columns, and each key's position."""
        count = len(flow.schema)
        extra = tuple(dict.fromkeys(k for k in keys if not isinstance(k, Column)))
        if extra:
            flow = self.compute(flow, (), (*own_columns(flow.schema), *extra))
        places = tuple(k.index if isinstance(k, Column) else count + extra.index(k) for k in keys)
        return flow, places

    def distinct_rows(self, flow: Flow) -> Flow:
        """Each row once, by its words."""
        gather = whole_row(flow.schema).gather
        arrangement = self.builder.arrange(flow, gather, len(gather.words))
        node = self.threshold(arrangement, Keep.DISTINCT)
        return self.builder.flow(node, flow.schema)

    def difference(self, left: Flow, right: Flow) -> Flow:
        """The left flow's rows with the right one's counts subtracted."""
        negated = self.builder.add(Negate(self.builder.force(right)), gathers.width(right.schema))
        return self.builder.flow(self.builder.concat((self.builder.force(left), negated)), left.schema)

    def threshold(self, arrangement: NodeId, keep: Keep) -> NodeId:
        """A threshold of an arrangement by whole rows; the arrangement itself if it has that effect already."""
        below = self.builder.nodes[arrangement]
        if isinstance(below, Threshold) and (below.keep is keep or below.keep is Keep.DISTINCT):
            return arrangement
        return self.builder.add(Threshold(arrangement, keep), self.builder.widths[arrangement])

    def table_of(self, flow: Flow) -> tuple[Table, tuple[int, ...]] | None:
        """(table, column of each) if the flow's columns are those of a stored relation; else None."""
        if isinstance(flow.source, Open) or flow.gather.drop_if:
            return None
        table = self.builder.nodes[flow.source]
        if not isinstance(table, Table):
            return None
        columns = flow.gather.words[: len(flow.schema)]
        if any(not 0 <= c < len(table.schema) for c in columns):
            return None
        return table, columns


@dataclass(frozen=True, slots=True)
class Arranged:
    """A flow's arrangement: the node, the words of its key and row, and the flow's columns in [key | val]."""

    node: NodeId
    key_width: int
    width: int
    at: tuple[Cell, ...]


def arrange_flow(low: Lowering, flow: Flow, keys: tuple[int, ...], null_safe: tuple[bool, ...]) -> Arranged:
    """An arrangement of the flow by columns ``keys``: the stored relation's own if it exists, else one of the flow."""
    stored = low.table_of(flow)
    if stored is not None and keys and not any(null_safe):
        table, columns = stored
        if tuple(columns[k] for k in keys) in low.indexes.keys(table.relation):
            layout = table_layout(table.schema, tuple(columns[k] for k in keys))
            whole = low.builder.flow(low.builder.add(table, gathers.width(table.schema)), table.schema)
            node = low.builder.arrange(whole, layout.gather, layout.key_width)
            return Arranged(node, layout.key_width, layout.width, tuple(layout.at[c] for c in columns))
    layout = arranged(flow.schema, keys, null_safe)
    node = low.builder.arrange(flow, layout.gather, layout.key_width)
    return Arranged(node, layout.key_width, layout.width, layout.at)
