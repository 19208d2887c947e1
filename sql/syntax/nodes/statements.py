"""The syntax tree of all other statements, and the union of all statements."""

from __future__ import annotations

from dataclasses import dataclass

from sql.catalog.catalog import OnCommit
from sql.catalog.partitioning import Partitioning, WrittenBound
from sql.statements.statements import ExplainOptions
from sql.syntax.nodes.alter import AlterTableStatement
from sql.syntax.nodes.columns import ColumnDefinition
from sql.syntax.nodes.constraints import Constraint, CreateIndexStatement
from sql.syntax.nodes.domains import AlterDomainStatement, CreateDomainStatement
from sql.syntax.nodes.grants import GrantStatement
from sql.syntax.nodes.operators import AlterOperatorStatement, CreateOperatorStatement, DropOperatorStatement
from sql.syntax.nodes.policies import AlterPolicyStatement, CreatePolicyStatement
from sql.syntax.nodes.queries import (
    Change,
    DeleteStatement,
    Expr,
    InsertStatement,
    MergeStatement,
    Query,
    TableName,
    TypeName,
    UpdateStatement,
)  # fmt: skip
from sql.syntax.nodes.routines import (
    AlterRoutineStatement,
    CallStatement,
    CommentStatement,
    CreateAggregateStatement,
    CreateFunctionStatement,
    DropFunctionStatement,
)
from sql.syntax.nodes.triggers import CreateTriggerStatement
from sql.syntax.nodes.types import AlterCompositeStatement, CreateCompositeStatement, CreateRangeStatement


@dataclass(frozen=True, slots=True)
class LikeClause:
    """``LIKE table [INCLUDING option …]``. ``options``: what is included; ``place``: the number of columns before
    it."""

    table: TableName
    options: frozenset[str]
    place: int


@dataclass(frozen=True, slots=True)
class CreateTableStatement:
    table: TableName
    columns: tuple[ColumnDefinition, ...]
    constraints: tuple[Constraint, ...]
    """All constraints in the order of the text, those of columns included."""
    if_not_exists: bool
    retain: str | None
    source: Query | None
    with_no_data: bool
    at: int
    temporary: bool = False
    on_commit: OnCommit = "preserve"
    inherits: tuple[TableName, ...] = ()
    bound: WrittenBound | None = None
    """Set for a partition, which then ``inherits`` from one table."""
    partitioning: Partitioning | None = None
    likes: tuple[LikeClause, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateViewStatement:
    """``text``: the query's text, which starts at offset ``text_at``."""

    table: TableName
    query: Query
    text: str
    text_at: int
    materialized: bool
    replace: bool
    if_not_exists: bool
    retain: str | None
    at: int
    temporary: bool = False
    hydrate: str | None = None
    parts: int = 0
    options: tuple[str, ...] = ()
    """Of a plain view, as ``name=value``."""


@dataclass(frozen=True, slots=True)
class DropStatement:
    """``kind``: table, view, materialized view, index, sequence, source or sink."""

    kind: str
    names: tuple[TableName, ...]
    if_exists: bool
    cascade: bool


@dataclass(frozen=True, slots=True)
class TruncateStatement:
    names: tuple[TableName, ...]
    restart: bool = False
    cascade: bool = False


OptionValue = str | bool | tuple[str, ...] | tuple[tuple[str, str], ...]
"""The value of MAPPING is (name in the file, column) pairs."""


@dataclass(frozen=True, slots=True)
class CopyStatement:
    """``source``: a relation, a query or a subscription; ``path`` None is STDIN or STDOUT; ``where``: of FROM."""

    source: TableName | Query | SubscribeStatement | Change
    columns: tuple[tuple[str, int], ...]
    to: bool
    path: str | None
    options: tuple[tuple[str, OptionValue, int], ...]
    at: int
    where: Expr | None = None


@dataclass(frozen=True, slots=True)
class CreateFromStatement:
    """CREATE TABLE … FROM files. The columns come from the files."""

    table: TableName
    temporary: bool
    if_not_exists: bool
    path: str
    options: tuple[tuple[str, OptionValue, int], ...]
    with_no_data: bool
    at: int


@dataclass(frozen=True, slots=True)
class SubscribeStatement:
    source: TableName | Query
    snapshot: bool
    progress: bool
    as_of: Expr | None
    up_to: Expr | None
    at: int


@dataclass(frozen=True, slots=True)
class ExplainStatement:
    statement: Statement
    stage: str
    options: ExplainOptions


@dataclass(frozen=True, slots=True)
class VerifyStatement:
    table: TableName


@dataclass(frozen=True, slots=True)
class LockStatement:
    """``mode``: in lower case, as in LOCK TABLE … IN mode MODE."""

    names: tuple[TableName, ...]
    mode: str
    nowait: bool = False


@dataclass(frozen=True, slots=True)
class RefreshStatement:
    table: TableName


@dataclass(frozen=True, slots=True)
class PrepareStatement:
    name: str
    types: tuple[TypeName, ...]
    text: str


@dataclass(frozen=True, slots=True)
class ExecuteStatement:
    name: str
    arguments: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class DeclareStatement:
    name: str
    statement: Query | SubscribeStatement
    hold: bool
    scroll: bool | None
    binary: bool


@dataclass(frozen=True, slots=True)
class Utility:
    """A statement without anything to bind: already a bound statement (``sql.statements``)."""

    statement: object


Statement = (
    Query | InsertStatement | UpdateStatement | DeleteStatement | MergeStatement | CreateTableStatement
    | CreateViewStatement | CreateIndexStatement | DropStatement | TruncateStatement | CopyStatement
    | SubscribeStatement | ExplainStatement | VerifyStatement | RefreshStatement | LockStatement | PrepareStatement
    | ExecuteStatement
    | DeclareStatement | AlterTableStatement | CallStatement | CommentStatement | CreateAggregateStatement
    | CreateFunctionStatement | DropFunctionStatement | CreateFromStatement | CreateCompositeStatement
    | CreateDomainStatement | AlterDomainStatement | GrantStatement
    | AlterCompositeStatement | AlterRoutineStatement | CreateRangeStatement | CreateTriggerStatement
    | CreatePolicyStatement | AlterPolicyStatement
    | CreateOperatorStatement | AlterOperatorStatement | DropOperatorStatement | Utility
)  # fmt: skip
