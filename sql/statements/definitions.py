"""Bound definitions: statements that create, alter and drop relations, sequences, schemas and functions."""

from __future__ import annotations

from dataclasses import dataclass

from ivm.words import SqlType
from planner.distributed.hydration_choice import Hydrate
from planner.expr.scalar import Scalar
from sql.catalog.catalog import OnCommit, Relation, RelationKind, TableColumn
from sql.catalog.keys import Check, Index
from sql.catalog.partitioning import Partitioning, WrittenBound
from sql.catalog.references import RelationReference
from sql.catalog.sequence_options import SequenceOptions
from sql.statements.comments import Comment
from sql.statements.connections import ConnectionStatement
from sql.statements.databases import DatabaseStatement
from sql.statements.partitions import Attachment
from sql.statements.policies import PolicyStatement
from sql.statements.queries import Query
from sql.statements.rename import Renaming
from sql.statements.role_spec import RoleSpec
from sql.statements.roles import RoleStatement
from sql.statements.routines import RoutineStatement
from sql.statements.sinks import SinkStatement
from sql.statements.triggers import TriggerStatement
from sql.statements.types import TypeStatement


@dataclass(frozen=True, slots=True)
class ColumnSequence:
    """A sequence to create for a column of a new table: its options as written, and ``kind`` as in ``Generated``."""

    column: int
    kind: str
    options: SequenceOptions


@dataclass(frozen=True, slots=True)
class NewForeignKey:
    """FOREIGN KEY, by names. ``parent`` None: the table itself; ``keys`` empty: the parent's primary key."""

    name: str | None
    columns: tuple[str, ...]
    parent: Relation | None
    keys: tuple[str, ...]
    on_delete: str
    on_update: str
    changed: tuple[str, ...]
    valid: bool = True
    deferrable: bool = False
    deferred: bool = False
    full: bool = False
    inherited: bool = False
    """It is the copy, for a partition, of the one that was added to the partition's table last."""


@dataclass(frozen=True, slots=True)
class CreateTable:
    """``source``: the query of CREATE TABLE AS.

    ``indexes`` and ``checks`` have no ids yet, and names only if given. ``on_commit``: what a commit does
    with a temporary table (drop) or its rows (delete).
    """

    schema_name: str
    name: str
    columns: tuple[TableColumn, ...]
    primary_key: tuple[int, ...] = ()
    retain: int | None = None
    if_not_exists: bool = False
    source: Query | None = None
    key_name: str | None = None
    indexes: tuple[Index, ...] = ()
    checks: tuple[Check, ...] = ()
    foreign_keys: tuple[NewForeignKey, ...] = ()
    sequences: tuple[ColumnSequence, ...] = ()
    on_commit: OnCommit = "preserve"
    parents: tuple[Relation, ...] = ()
    notices: tuple[str, ...] = ()
    partitioning: Partitioning | None = None
    bound: WrittenBound | None = None


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """``index`` has no id yet, and no name unless given."""

    table: Relation
    index: Index
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropIndex:
    names: tuple[tuple[str | None, str], ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateSequence:
    """Options are checked and names looked up at execution."""

    schema_name: str | None
    name: str
    options: SequenceOptions
    if_not_exists: bool = False
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class AlterSequence:
    schema_name: str | None
    name: str
    options: SequenceOptions
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateView:
    """A view (``materialized`` or not). ``definition``: the SELECT's own text; ``references``: the relations it names.

    ``follows``: the view is temporary because a relation it reads is. ``hydrate``: who computes its first contents, if
    given. ``parts``, ``viewer``: as in a relation.
    """

    schema_name: str
    name: str
    query: Query
    definition: str
    materialized: bool
    replace: bool = False
    if_not_exists: bool = False
    retain: int | None = None
    references: tuple[RelationReference, ...] = ()
    follows: bool = False
    hydrate: Hydrate | None = None
    parts: int = 0
    options: tuple[str, ...] = ()
    viewer: int = 0


@dataclass(frozen=True, slots=True)
class SchemaElement:
    """A statement inside of CREATE SCHEMA: its text, that text's offset, its place in the order in which they run, and
    the schema that it names."""

    text: str
    at: int
    order: int
    schema_name: str | None


@dataclass(frozen=True, slots=True)
class CreateSchema:
    """``name`` None: the role's name. ``owner`` None: the current role. ``elements``: in the order in which they
    run."""

    name: str | None
    owner: RoleSpec | None = None
    if_not_exists: bool = False
    elements: tuple[SchemaElement, ...] = ()


@dataclass(frozen=True, slots=True)
class AlterSchema:
    """RENAME TO ``new``, or OWNER TO ``owner``."""

    name: str
    new: str | None = None
    owner: RoleSpec | None = None


@dataclass(frozen=True, slots=True)
class DropSchema:
    names: tuple[str, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class Drop:
    kind: RelationKind
    names: tuple[tuple[str | None, str], ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class AddUnique:
    """Columns by name; ``name`` None: Postgres's default name."""

    columns: tuple[str, ...]
    name: str | None
    nulls_distinct: bool = True
    included: tuple[str, ...] = ()
    deferrable: bool = False
    deferred: bool = False


@dataclass(frozen=True, slots=True)
class AddCheck:
    """``text``: the condition as written; it is bound when the table's columns are known."""

    text: str
    name: str | None
    no_inherit: bool = False
    valid: bool = True
    local: bool = True


@dataclass(frozen=True, slots=True)
class Validate:
    """VALIDATE CONSTRAINT: check the rows that were there before it."""

    name: str


@dataclass(frozen=True, slots=True)
class AlterConstraint:
    """ALTER CONSTRAINT of a foreign key: when it is checked."""

    name: str
    deferrable: bool
    deferred: bool


@dataclass(frozen=True, slots=True)
class SetLocal:
    """A column or a CHECK that a parent has no more becomes the table's own."""

    name: str


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A change that is accepted without effect (storage, statistics). ``column``: one that has to exist."""

    column: str | None = None


@dataclass(frozen=True, slots=True)
class SetIdentity:
    """ADD GENERATED … AS IDENTITY (``adds``), or SET GENERATED, SET of options and RESTART. ``kind`` None: as it is."""

    column: str
    kind: str | None
    options: SequenceOptions
    adds: bool


@dataclass(frozen=True, slots=True)
class DropIdentity:
    column: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropConstraint:
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AddPrimaryKey:
    """``columns``: names. ``constraint``: the key's name; None for Postgres's default."""

    columns: tuple[str, ...]
    constraint: str | None = None


@dataclass(frozen=True, slots=True)
class AddColumn:
    """``value``: the column's value in existing rows, an expression without columns. ``sequence``: of a serial or
    identity column, which ``value`` then does not tell: its kind and options."""

    column: TableColumn
    value: Scalar
    if_not_exists: bool = False
    key: bool = False
    sequence: tuple[str, SequenceOptions] | None = None


@dataclass(frozen=True, slots=True)
class DropColumn:
    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class SetDefault:
    """``default`` None: DROP DEFAULT, unless it is the next number of a sequence, given by its id."""

    column: str
    default: str | None
    sequence: int | None = None


@dataclass(frozen=True, slots=True)
class DropExpression:
    """DROP EXPRESSION: the column keeps its values and is generated no more."""

    column: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetNotNull:
    column: str
    not_null: bool


@dataclass(frozen=True, slots=True)
class SetType:
    """``value``: the column's new value, over the table's columns as of binding. ``domain``: what the values belong
    to, if the type was given as a domain."""

    column: str
    type: SqlType
    value: Scalar
    default: str | None
    domain: Relation | None = None


@dataclass(frozen=True, slots=True)
class AddExclusion:
    """An EXCLUDE constraint. ``elements``: a column's name or None, an expression's text or None, and the operator;
    ``included``: columns by name; ``where``: the predicate's text; ``name`` None: Postgres's default name."""

    name: str | None
    method: str
    elements: tuple[tuple[str | None, str | None, str], ...]
    included: tuple[str, ...] = ()
    where: str | None = None
    deferrable: bool = False
    deferred: bool = False


AddedConstraint = AddUnique | AddExclusion | AddCheck | NewForeignKey

Change = (
    AddPrimaryKey
    | AddUnique
    | AddExclusion
    | AddCheck
    | NewForeignKey
    | DropConstraint
    | AddColumn
    | DropColumn
    | SetDefault
    | DropExpression
    | SetIdentity
    | DropIdentity
    | SetLocal
    | Validate
    | AlterConstraint
    | Unchanged
    | SetNotNull
    | SetType
)


@dataclass(frozen=True, slots=True)
class AlterTable:
    """``table`` None: no table of that ``name`` exists, and IF EXISTS accepts that."""

    table: Relation | None
    name: str
    changes: tuple[Change, ...]
    only: bool = False


@dataclass(frozen=True, slots=True)
class AlterView:
    """A view's options, or its columns' defaults. ``view`` None: there is none, and IF EXISTS accepts that. ``options``
    and ``defaults``: what the view has afterwards."""

    view: Relation | None
    name: str
    options: tuple[str, ...] = ()
    defaults: tuple[str | None, ...] = ()


RelationStatement = (
    AlterSchema | AlterView | Comment | CreateTable | CreateView | CreateIndex | CreateSequence | CreateSchema
    | AlterTable | AlterSequence | Drop | DropIndex | DropSchema | Attachment | ConnectionStatement
)  # fmt: skip
Definition = (
    RelationStatement
    | RoutineStatement
    | Renaming
    | TypeStatement
    | SinkStatement
    | TriggerStatement
    | PolicyStatement
    | RoleStatement
    | DatabaseStatement
)
"""A statement that changes the catalog."""
