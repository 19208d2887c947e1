"""The catalog: names → objects. The dataclasses are what the binder sees; ``Catalog`` (below) keeps them;
``stored_form`` persists them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType
from typing import Final, Literal, Protocol

from ivm.words import BOOL, INT8, ColumnType, Schema, SqlType
from planner.memo import by_identity
from planner.options import DEFAULT, Planning
from sql.catalog.access import Access
from sql.catalog.composite import defined_type, mentions, parts, retyped, with_element_domains, with_field_domains
from sql.catalog.connection import Connection
from sql.catalog.enumeration import Enumeration
from sql.catalog.keys import INDEX_BASE, Check, ForeignKey, Index, object_name
from sql.catalog.operators import Operator
from sql.catalog.partitioning import PartitionBound, Partitioning
from sql.catalog.policies import NO_SECURITY, RowSecurity
from sql.catalog.references import RelationReference
from sql.catalog.routine import Routine
from sql.catalog.triggers import Trigger
from storage.types.range_values import multirange_of
from storage.types.type_names import type_oid


class RelationKind(Enum):
    TABLE = "r"
    VIEW = "v"
    MATERIALIZED_VIEW = "m"
    SEQUENCE = "S"
    TYPE = "t"
    """A user's type. The columns are those of a composite type."""
    FUNCTION = "f"
    """A user's function: a relation with the columns that it returns, named by its signature."""
    OPERATOR = "p"
    """A user's operator, a relation without columns, named by its symbol and types."""
    SOURCE = "o"
    """A source, which fills a table from outside. Its rows record its progress."""
    SINK = "k"
    """A sink, which sends a relation's changes out. It has no rows: its folder and ``freshet.sinks`` show its
    progress."""
    SYSTEM = "s"
    """A relation of pg_catalog or information_schema, shown to clients as a table or view of that schema."""


LABELS: Final = {
    RelationKind.TABLE: "table",
    RelationKind.VIEW: "view",
    RelationKind.MATERIALIZED_VIEW: "materialized view",
    RelationKind.SYSTEM: "view",
    RelationKind.SEQUENCE: "sequence",
    RelationKind.FUNCTION: "function",
    RelationKind.OPERATOR: "operator",
    RelationKind.TYPE: "type",
    RelationKind.SOURCE: "source",
    RelationKind.SINK: "sink",
}
FED: Final = (RelationKind.TABLE, RelationKind.SOURCE)
"""The kinds whose rows are inputs of the dataflow."""
STORED: Final = (*FED, RelationKind.MATERIALIZED_VIEW)
"""The kinds that have rows of their own."""
ROWED: Final = (RelationKind.TABLE, RelationKind.VIEW, RelationKind.MATERIALIZED_VIEW)
"""The kinds whose rows have a type."""


@dataclass(frozen=True, slots=True)
class Generated:
    """A column whose numbers come from a sequence, given by its id. ``kind``: default (``DEFAULT nextval(…)``, as made
    by SERIAL), or identity ``always`` or ``by default``."""

    sequence: int
    kind: str = "default"

    @property
    def identity(self) -> bool:
        return self.kind != "default"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a stored relation. ``default``: the DEFAULT expression's SQL text, which ``generated`` replaces.
    ``expression``: that of a generated column, as SQL text. ``local``: it is the table's own, and not only
    inherited. ``domain``: the domain that its values belong to, whose base type is ``type``."""

    name: str
    type: SqlType
    nullable: bool = True
    default: str | None = None
    generated: Generated | None = None
    expression: str | None = None
    local: bool = True
    domain: Relation | None = None

    def own_type(self, base: SqlType) -> SqlType:
        """The type of its values, whose base type is ``base``."""
        return base if self.domain is None else replace(base, domain=self.domain)

    @property
    def defaulted(self) -> bool:
        """Whether an INSERT that leaves the column out computes its value."""
        return self.own_default is not None or self.generated is not None

    @property
    def own_default(self) -> str | None:
        """The DEFAULT expression's SQL text: the column's, or else its domain's."""
        if self.default is None and self.domain is not None:
            return self.domain.columns[0].default
        return self.default


@dataclass(frozen=True, slots=True)
class Sequence:
    """A sequence's definition. ``sequences.py`` keeps its position by ``storage``, a number that is never reused.

    ``initial`` and ``called``: its initial position. A change that can be rolled back (ALTER, RESTART) gives it a new
    storage, as in Postgres. ``owner``: a table's oid and a column's name. ``internal``: it belongs to an identity
    column.
    """

    storage: int
    type: SqlType
    start: int
    increment: int
    minimum: int
    maximum: int
    cache: int
    cycle: bool
    initial: int
    called: bool = False
    owner: tuple[int, str] | None = None
    internal: bool = False


SEQUENCE_COLUMNS: Final = (
    TableColumn("last_value", INT8, False), TableColumn("log_cnt", INT8, False), TableColumn("is_called", BOOL, False)
)  # fmt: skip


OnCommit = Literal["preserve", "drop", "delete"]
"""What a commit does with the rows of a temporary table, or with the table."""


@by_identity
def _schema(columns: tuple[TableColumn, ...]) -> Schema:
    return tuple([ColumnType(c.type, c.nullable) for c in columns])


@dataclass(frozen=True, slots=True)
class Relation:
    """A table, view or other object, with an ``id`` from 16384 up (system relations have Postgres's oids).

    A change of the rows' layout (ALTER TABLE) replaces the relation by a new one, as Postgres assigns a new
    relfilenode. ``first_id`` is then the id at creation, otherwise 0, so that ``oid`` stays the same.

    ``primary_key``: positions of the key's columns, empty without one. ``definition``: a view's SELECT text, bound anew
    whenever the view is used, with names resolved by ``references``. ``retain``: microseconds of history kept.
    ``created``: the epoch of the creating commit. ``dependencies``: ids of the relations named by a view's definition,
    including those of views inside it. ``key_name``: the primary key's name, if given. ``indexes``: all but the primary
    key's, by id. ``parents``: the oids of the tables that it inherits from. ``children``: the ids of those that inherit
    from it, maintained by the catalog and not persisted. ``partitioning``: of a partitioned table, which has no rows of
    its own. ``bound``: of a partition, which has one parent. ``locks``: the ids under which the store keeps what a
    view's joins with PROCTIME() have found. ``planning``: the settings by which a materialized view is always planned.
    ``connection``: of a source or sink, whose only dependency is the relation that it fills or reads. ``parts``: the
    number of parts into which Spark divides the state of a materialized view that it maintains; 0 if the engine
    maintains it. ``options``: of a plain view, as ``name=value`` each. ``multirange``: of a range type, the name of its
    multirange type. ``domain``: it is a domain, whose values are its one column, ``value``, with ``checks``.
    ``empties``: of a temporary table, whose rows every commit deletes. ``viewer``: of a materialized view, the role
    whose row-level policies are a part of it; 0 if none restricted its owner when it was created.
    """

    id: int
    schema_name: str
    name: str
    kind: RelationKind
    columns: tuple[TableColumn, ...]
    primary_key: tuple[int, ...] = ()
    definition: str | None = None
    retain: int = 0
    created: int = 0
    dependencies: tuple[int, ...] = ()
    key_name: str | None = None
    indexes: tuple[Index, ...] = ()
    references: tuple[RelationReference, ...] = ()
    first_id: int = 0
    sequence: Sequence | None = None
    checks: tuple[Check, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    routine: Routine | None = None
    parents: tuple[int, ...] = ()
    children: tuple[int, ...] = ()
    partitioning: Partitioning | None = None
    bound: PartitionBound | None = None
    enum: Enumeration | None = None
    locks: tuple[int, ...] = ()
    planning: Planning = DEFAULT
    connection: Connection | None = None
    parts: int = 0
    options: tuple[str, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    multirange: str | None = None
    domain: bool = False
    empties: bool = False
    operator: Operator | None = None
    security: RowSecurity = NO_SECURITY
    viewer: int = 0

    @property
    def signed(self) -> bool:
        """Whether its name is a signature: a function or an operator."""
        return self.routine is not None or self.operator is not None

    @property
    def own_type(self) -> SqlType:
        """The type that it defines: a type itself, or that of its rows."""
        return defined_type(self)

    def type_named(self, name: str) -> SqlType:
        """The type of this name that it defines: a range type defines its multirange type too."""
        own = self.own_type
        return multirange_of(own) if self.multirange is not None and name != self.name else own

    @property
    def composite(self) -> bool:
        """Whether it is a composite type, a type whose columns are its values' fields."""
        return self.kind is RelationKind.TYPE and self.enum is None and self.multirange is None and not self.domain

    @property
    def oid(self) -> int:
        """The oid seen by clients: pg_class.oid. Oids ascend in order of creation."""
        return self.first_id or self.id

    @property
    def temporary(self) -> bool:
        """Whether it is dropped with the session that created it."""
        return is_temporary(self.schema_name)

    @property
    def schema(self) -> Schema:
        """The columns as the planner sees them."""
        return _schema(self.columns)

    @property
    def row_schema(self) -> Schema:
        """The schema of rows inserted into the table: a partitioned table leaves NOT NULL to its partitions."""
        if self.partitioning is None:
            return self.schema
        return tuple(ColumnType(c.type, True) for c in self.columns)

    @property
    def all_indexes(self) -> tuple[Index, ...]:
        """All indexes, the primary key's first."""
        return _all_indexes(self) if self.primary_key else self.indexes

    def option(self, name: str) -> str | None:
        """A view's option; None if it is not set."""
        return next((o.partition("=")[2] for o in reversed(self.options) if o.startswith(f"{name}=")), None)

    @property
    def keys(self) -> tuple[Index, ...]:
        """The unique indexes over all rows by columns."""
        return tuple(i for i in self.all_indexes if i.unique and not i.computed)

    @property
    def unique(self) -> tuple[Index, ...]:
        """All unique indexes."""
        return tuple(i for i in self.all_indexes if i.unique)

    @property
    def exclusions(self) -> tuple[Index, ...]:
        """The indexes of EXCLUDE constraints."""
        return tuple(i for i in self.indexes if i.operators)


@by_identity
def _all_indexes(relation: Relation) -> tuple[Index, ...]:
    name = relation.key_name or object_name(relation.name, "", "pkey")
    key = Index(INDEX_BASE + relation.oid, name, relation.primary_key, unique=True, primary=True, constraint=True)
    return (key, *relation.indexes)


Operators = tuple[tuple[Relation, ...], tuple[Relation, ...]]
"""Users' operators in the order of the search path: those in schemas before pg_catalog, and those in others."""
NO_OPERATORS: Final[Operators] = ((), ())


class CatalogReader(Protocol):
    """The interface through which the binder reads the catalog."""

    def resolve(self, schema_name: str | None, name: str) -> Relation | None:
        """The relation with that name, in the schema or along the search path."""
        ...

    def by_id(self, relation: int) -> Relation | None: ...
    def below(self, relation: Relation) -> tuple[Relation, ...]:
        """The tables that inherit from a relation, directly or indirectly, each once and after its parents."""
        ...

    def routines(self, schema_name: str | None, name: str) -> tuple[Relation, ...]:
        """The users' functions with that name, in the schema or along the search path."""
        ...

    def operators(self, schema_name: str | None, symbol: str) -> Operators:
        """The users' operators with that symbol, in the schema or along the search path."""
        ...

    def type(self, schema_name: str | None, name: str) -> Relation | None:
        """The user's type with that name, in the schema or along the search path. A relation is the type of its
        rows."""
        ...

    def home(self, schema_name: str | None, temporary: bool) -> str:
        """The schema in which CREATE with such a name creates its object. Raises 3F000, 42P16, 42501."""
        ...


FIRST_USER_ID: Final = 16384
PUBLIC: Final = "public"
PUBLIC_ID: Final = 2200
INTERNAL_SCHEMAS: Final = MappingProxyType(
    {"pg_catalog": 11, "pg_toast": 99, "information_schema": 13207, "freshet": 13999}
)
"""The schemas that clients can neither create nor drop, by oid."""


def is_temporary(schema_name: str) -> bool:
    """Whether a schema is a session's own, for its temporary relations."""
    return schema_name.startswith("pg_temp_")


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Catalog:
    """The user's schemas (by name, with their oids) and relations. Immutable: a change makes a new catalog, so that
    readers keep the one they started with.

    ``system`` holds the relations of the internal schemas, which are the same in every catalog and not persisted.

    Invariant: ``version`` differs between any two catalogs that a server has ever published.
    """

    relations: Mapping[int, Relation] = field(default_factory=dict)
    names: Mapping[tuple[str, str], Relation] = field(default_factory=dict)
    next_id: int = FIRST_USER_ID
    version: int = 0
    routines: Mapping[str, tuple[Relation, ...]] = field(default_factory=dict)
    operators: Mapping[str, tuple[Relation, ...]] = field(default_factory=dict)
    types: Mapping[tuple[str, str], Relation] = field(default_factory=dict)
    system: Mapping[tuple[str, str], Relation] = field(default_factory=dict)
    system_ids: Mapping[int, Relation] = field(default_factory=dict)
    schemas: Mapping[str, int] = field(default_factory=lambda: {PUBLIC: PUBLIC_ID})
    comments: Mapping[tuple[int, int, int], str] = field(default_factory=dict)
    """By the object's system catalog, its oid, and a column's number or 0; some on objects that are gone."""
    access: Access = field(default_factory=Access)

    def find(self, schema_name: str, name: str) -> Relation | None:
        """The relation with that name in that schema."""
        return self.names.get((schema_name, name)) or self.system.get((schema_name, name))

    def type(self, schema_name: str, name: str) -> Relation | None:
        """The type with that name in that schema, which may be that of a relation's rows."""
        relation = self.types.get((schema_name, name)) or self.names.get((schema_name, name))
        return relation if relation is not None and relation.kind in (RelationKind.TYPE, *ROWED) else None

    def has_schema(self, name: str) -> bool:
        return name in self.schemas or name in INTERNAL_SCHEMAS

    def by_id(self, relation: int) -> Relation | None:
        return self.relations.get(relation) or self.system_ids.get(relation)

    def lacks(self, ids: Iterable[int]) -> bool:
        """Whether any of the relations has been dropped. Negative ids belong to a single statement and are ignored."""
        return any(i >= 0 and self.by_id(i) is None for i in ids)

    def below(self, relation: Relation) -> tuple[Relation, ...]:
        """The tables that inherit from a relation, directly or indirectly, each once and after its parents."""
        found: dict[int, Relation] = {}
        for child in (self.relations[i] for i in relation.children):
            found.update({r.id: r for r in (child, *self.below(child)) if r.id not in found})
        return tuple(found.values())

    def above(self, relation: Relation) -> tuple[Relation, ...]:
        """The tables that a relation inherits from, directly or indirectly, each once."""
        if not relation.parents:
            return ()
        found: dict[int, Relation] = {}
        for parent in (r for r in self.relations.values() if r.oid in relation.parents):
            found.update({r.id: r for r in (parent, *self.above(parent))})
        return tuple(found.values())

    def with_system(self, relations: Iterable[Relation]) -> Catalog:
        """The same catalog with these internal relations."""
        known = tuple(relations)
        return replace(
            self,
            system={(r.schema_name, r.name): r for r in known},
            system_ids={r.id: r for r in known},
        )

    def with_relation(self, relation: Relation, version: int) -> Catalog:
        """The catalog with a relation added, or replaced if its id is known."""
        relations = {**self.relations, relation.id: relation}
        objects = [i.id for i in relation.indexes] + [c.id for c in relation.checks]
        if relation.enum is not None:
            objects += [relation.enum.type.array_oid, *(label.oid for label in relation.enum.labels)]
        newest = max((relation.id, *objects, *(k.id for k in relation.foreign_keys)))
        relations = retyped(relations, self.relations.get(relation.id), relation)
        return self.with_relations(relations, max(self.next_id, newest + 1), version)

    def without(self, ids: Iterable[int], version: int) -> Catalog:
        """The catalog without these relations, and without foreign keys to them."""
        gone = frozenset(ids)
        parents = {self.relations[i].oid for i in gone if i in self.relations}
        relations = {i: _unlinked(r, parents) for i, r in self.relations.items() if i not in gone}
        return self.with_relations(relations, self.next_id, version)

    def with_schema(self, name: str, oid: int, version: int) -> Catalog:
        """The catalog with a new, empty schema."""
        return replace(self, schemas={**self.schemas, name: oid}, next_id=max(self.next_id, oid + 1), version=version)

    def without_schemas(self, names: Iterable[str], version: int) -> Catalog:
        """The catalog without these schemas, which must be empty."""
        gone = frozenset(names)
        assert not any(r.schema_name in gone for r in self.relations.values()), "the schemas are empty"
        return replace(self, schemas={n: i for n, i in self.schemas.items() if n not in gone}, version=version)

    def inside(self, schemas: Iterable[str]) -> list[Relation]:
        """The relations of these schemas, in order of creation."""
        wanted = frozenset(schemas)
        return sorted((r for r in self.relations.values() if r.schema_name in wanted), key=lambda r: r.oid)

    def exchanged(self, old: int, new: Relation, version: int) -> Catalog:
        """The catalog with ``old`` replaced by a relation with another id; its dependents then refer to the new one."""
        relations = {i: _redirected(r, old, new.id) for i, r in self.relations.items() if i != old}
        relations = retyped({**relations, new.id: new}, self.relations.get(old), new)
        before = self.relations[old]
        access = self.access.with_columns(before.oid, [c.name for c in before.columns], [c.name for c in new.columns])
        kept = replace(self, comments=_with_columns(self.comments, before, new), access=access)
        return kept.with_relations(relations, max(self.next_id, new.id + 1), version)

    def dependents(self, ids: Iterable[int]) -> list[Relation]:
        """All relations outside ``ids`` that depend on one of them, transitively, each after those that it depends on:
        views over them, and tables that inherit from them."""
        given = set(ids)
        needed = given | {r.id for i in given if i in self.relations for r in self.below(self.relations[i])}
        found = []
        for relation in self.in_order():
            if relation.id not in given and (relation.id in needed or needed.intersection(relation.dependencies)):
                needed.add(relation.id)
                found.append(relation)
        return found

    def owned(self, ids: Iterable[int]) -> list[Relation]:
        """The sequences owned by these tables, which are dropped with them."""
        tables = {self.relations[i].oid for i in ids if i in self.relations}
        found = ((r, r.sequence.owner) for r in self.relations.values() if r.sequence is not None)
        return [r for r, owner in found if owner is not None and owner[0] in tables]

    def stored(self) -> list[Relation]:
        """The relations whose rows the engine keeps, ordered so that each comes after those that its rows depend on.

        Views come last: a table may be newer than a view over the table that it inherits from.
        """
        kept = (r for r in self.in_order() if r.kind in STORED and not r.parts)
        return sorted(kept, key=lambda r: STORED.index(r.kind))

    def in_order(self) -> list[Relation]:
        """All relations in order of creation, but each after those that it depends on: CREATE OR REPLACE may let an
        older one depend on a newer one."""
        found: dict[int, Relation] = {}
        begun: set[int] = set()
        todo = sorted(self.relations.values(), key=lambda r: -r.oid)
        while todo:
            relation = todo[-1]
            if relation.id in begun:
                found.setdefault(relation.id, relation)
                todo.pop()
                continue
            begun.add(relation.id)
            below = (self.relations[i] for i in relation.dependencies if i in self.relations and i not in begun)
            todo.extend(sorted(below, key=lambda r: -r.oid))
        return list(found.values())

    def scattered(self) -> list[Relation]:
        """The materialized views that Spark maintains."""
        return [r for r in self.relations.values() if r.parts]

    def using(self, type_: Relation, *, directly: bool = False) -> list[tuple[Relation, TableColumn]]:
        """The tables' columns, and the attributes of composite types, of this type or with it inside. ``directly``: not
        inside of another type that a user made."""
        kinds = (RelationKind.TABLE, RelationKind.TYPE)
        users = sorted((r for r in self.relations.values() if r.kind in kinds), key=lambda r: r.oid)
        if type_.domain:
            return [(t, c) for t in users for c in t.columns if _is_of(c, type_)]
        oid = type_oid(type_.own_type)
        return [(t, c) for t in users if t.id != type_.id for c in t.columns if mentions(c.type, oid, directly)]

    def with_relations(self, relations: dict[int, Relation], next_id: int, version: int) -> Catalog:
        """The catalog with these relations instead of its own."""
        relations = with_field_domains(with_element_domains(_with_domains(_with_children(relations))))
        names = {(r.schema_name, r.name): r for r in relations.values() if r.kind is not RelationKind.TYPE}
        types = {(r.schema_name, r.name): r for r in relations.values() if r.kind is RelationKind.TYPE}
        types.update({(r.schema_name, r.multirange): r for r in types.values() if r.multirange is not None})
        routines: dict[str, tuple[Relation, ...]] = {}
        operators: dict[str, tuple[Relation, ...]] = {}
        for relation in relations.values():
            if relation.routine is not None:
                routines[relation.routine.name] = (*routines.get(relation.routine.name, ()), relation)
            if relation.operator is not None:
                operators[relation.operator.symbol] = (*operators.get(relation.operator.symbol, ()), relation)
        return replace(
            self, relations=relations, names=names, types=types, routines=routines, operators=operators,
            next_id=next_id, version=version,
        )  # fmt: skip


def _is_of(column: TableColumn, domain: Relation) -> bool:
    """Whether a column, or the elements of its arrays, are of a domain."""
    of = [column.domain, *(part.domain for part in parts(column.type, True))]
    return any(each is not None and each.id == domain.id for each in of)


def _with_children(relations: dict[int, Relation]) -> dict[int, Relation]:
    """The relations, each with the ids of those that inherit from it."""
    children: dict[int, list[int]] = {}
    for relation in relations.values():
        for parent in relation.parents:
            children.setdefault(parent, []).append(relation.id)
    changed = {}
    for relation in relations.values():
        found = tuple(sorted(children.get(relation.oid, ()), key=lambda i: relations[i].oid)) if children else ()
        if found != relation.children:
            changed[relation.id] = replace(relation, children=found)
    return {**relations, **changed} if changed else relations


def _with_domains(relations: dict[int, Relation]) -> dict[int, Relation]:
    """The relations, with the domains of columns as they are now: a domain is older than those over it."""
    found = dict(relations)
    for domain in sorted((r for r in relations.values() if r.domain), key=lambda r: r.id):
        for relation in found.values():
            if any(c.domain is not None and c.domain.id == domain.id for c in relation.columns):
                now = found[domain.id]
                columns = (
                    replace(c, domain=now) if c.domain is not None and c.domain.id == now.id else c
                    for c in relation.columns
                )
                changed = replace(relation, columns=tuple(columns))
                found[relation.id] = relation if changed == relation else changed
    return found


def _with_columns(
    comments: Mapping[tuple[int, int, int], str], old: Relation, new: Relation
) -> Mapping[tuple[int, int, int], str]:
    """The comments, with those on a relation's columns at the columns' new places."""
    places = {0: 0} | {i + 1: n + 1 for i, c in enumerate(old.columns) for n, d in enumerate(new.columns)
                       if c.name == d.name}  # fmt: skip
    if not comments:
        return comments
    moved = ((k if k[1] != old.oid else (k[0], k[1], places.get(k[2], -1)), text) for k, text in comments.items())
    return {key: text for key, text in moved if key[2] >= 0}


def _unlinked(relation: Relation, parents: set[int]) -> Relation:
    """The relation without its foreign keys to these tables, which are being dropped."""
    kept = tuple(k for k in relation.foreign_keys if k.parent not in parents)
    return relation if len(kept) == len(relation.foreign_keys) else replace(relation, foreign_keys=kept)


def _redirected(relation: Relation, old: int, new: int) -> Relation:
    if old not in relation.dependencies:
        return relation
    references = tuple(replace(r, relation=new) if r.relation == old else r for r in relation.references)
    dependencies = tuple(sorted(new if i == old else i for i in relation.dependencies))
    return replace(relation, dependencies=dependencies, references=references)
