"""The syntax tree of expressions, queries, INSERT, UPDATE, DELETE and MERGE, before names and types are resolved.

``at`` is the 0-based character offset in the statement's text that an error about the node points to. These classes
refer to each other (an expression may hold a query), so they share a module."""

from __future__ import annotations

from dataclasses import dataclass

from sql.syntax.nodes.alike import Alike, Given, Mixed
from sql.syntax.nodes.constant_items import ConstantItems, ConstantRows
from sql.syntax.nodes.constants import Bits, Boolean, Default, Null, Number, Param, String, TypeName
from sql.syntax.nodes.frames import FrameBound, FrameClause
from sql.syntax.nodes.json_calls import JsonCall, JsonTable
from sql.syntax.nodes.search import CycleClause, SearchClause

__all__ = [
    "Alike", "Bits", "Boolean", "Default", "FrameBound", "FrameClause", "Given", "JsonCall", "JsonTable", "Mixed",
    "Null", "Number", "Param", "String", "TypeName",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Name:
    """A possibly qualified column (or whole-row) reference."""

    parts: tuple[str, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Star:
    """``*`` or ``t.*``."""

    qualifier: tuple[str, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Operator:
    """A prefix (one argument) or infix operator. ``schema``: as in ``OPERATOR(schema.+)``."""

    symbol: str
    args: tuple[Expr, ...]
    at: int
    schema: str | None = None


@dataclass(frozen=True, slots=True)
class Over:
    """A window: OVER's or one of WINDOW. ``name``: the window that it refers to; ``bare``: OVER name, without
    parentheses."""

    partition: tuple[Expr, ...]
    order: tuple[OrderItem, ...]
    at: int
    name: str | None = None
    bare: bool = False
    frame: FrameClause | None = None


@dataclass(frozen=True, slots=True)
class Apply:
    """A function call, with the clauses of an aggregate. ``within``: ``order`` belongs to WITHIN GROUP. ``keywords``:
    it is written in SQL's own way, as EXTRACT(… FROM …) and OVERLAPS are."""

    name: tuple[str, ...]
    args: tuple[Expr, ...]
    at: int
    star: bool = False
    distinct: bool = False
    variadic: bool = False
    order: tuple[OrderItem, ...] = ()
    filter: Expr | None = None
    over: Over | None = None
    ignore_nulls: bool = False
    within: bool = False
    names: tuple[str | None, ...] = ()
    """One for each argument, None for a positional one; () if no argument is named."""
    label: str | None = None
    """The result column's name if it differs from the function's (``date_part`` written as EXTRACT)."""
    keywords: bool = False


@dataclass(frozen=True, slots=True)
class Cast:
    """CAST, ``::`` or ``type 'string'``; ``attempt``: TRY_CAST."""

    expr: Expr
    type: TypeName
    at: int
    attempt: bool = False


@dataclass(frozen=True, slots=True)
class AndExpr:
    args: tuple[Expr, ...]
    at: int


@dataclass(frozen=True, slots=True)
class OrExpr:
    args: tuple[Expr, ...]
    at: int


@dataclass(frozen=True, slots=True)
class NotExpr:
    arg: Expr
    at: int


@dataclass(frozen=True, slots=True)
class IsTest:
    """``expr IS [NOT] what``: null, true, false or unknown."""

    expr: Expr
    what: str
    negated: bool
    at: int


@dataclass(frozen=True, slots=True)
class DistinctTest:
    """``left IS [NOT] DISTINCT FROM right``."""

    left: Expr
    right: Expr
    negated: bool
    at: int


@dataclass(frozen=True, slots=True)
class InList:
    expr: Expr
    listed: tuple[Expr, ...] | ConstantItems
    negated: bool
    at: int

    @property
    def items(self) -> tuple[Expr, ...]:
        found = self.listed if self.alike is None else self.alike.operands()
        return found if isinstance(found, tuple) else found.expressions()

    @property
    def alike(self) -> Alike | None:
        """The items, if all have one form."""
        found = self.listed[0] if isinstance(self.listed, tuple) else None
        return found if isinstance(found, Alike) and found.symbol == "," else None


@dataclass(frozen=True, slots=True)
class InQuery:
    expr: Expr
    query: Query
    negated: bool
    at: int


@dataclass(frozen=True, slots=True)
class Between:
    expr: Expr
    low: Expr
    high: Expr
    negated: bool
    symmetric: bool
    at: int


@dataclass(frozen=True, slots=True)
class Quantifier:
    """``expr symbol ANY|ALL (operand)``; the operand is a query or an array."""

    expr: Expr
    symbol: str
    every: bool
    operand: Expr | Query
    at: int
    schema: str | None = None


@dataclass(frozen=True, slots=True)
class Subquery:
    query: Query
    at: int


@dataclass(frozen=True, slots=True)
class ExistsExpr:
    query: Query
    at: int


@dataclass(frozen=True, slots=True)
class ArrayQuery:
    query: Query
    at: int


@dataclass(frozen=True, slots=True)
class ArrayExpr:
    items: tuple[Expr, ...]
    at: int


@dataclass(frozen=True, slots=True)
class RowExpr:
    items: tuple[Expr, ...]
    at: int


@dataclass(frozen=True, slots=True)
class CaseExpr:
    operand: Expr | None
    arms: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None
    at: int


@dataclass(frozen=True, slots=True)
class Subscript:
    """``expr[low]`` or, with ``slice``, ``expr[low:high]``. ``chained``: it follows another subscript directly, as in
    ``a[1:2][3]``, which takes one slice of two dimensions, unlike ``(a[1:2])[3]``."""

    expr: Expr
    low: Expr | None
    high: Expr | None
    slice: bool
    at: int
    chained: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """``(expr).name``."""

    expr: Expr
    name: str
    at: int


@dataclass(frozen=True, slots=True)
class AllFields:
    """``(expr).*``."""

    expr: Expr
    at: int


@dataclass(frozen=True, slots=True)
class Collate:
    expr: Expr
    collation: tuple[str, ...]
    at: int


Expr = (
    Name | Star | Number | String | Bits | Null | Boolean | Param | Operator | Apply | Cast | AndExpr | OrExpr | NotExpr
    | IsTest | DistinctTest | InList | InQuery | Between | Quantifier | Subquery | ExistsExpr | ArrayQuery | ArrayExpr
    | RowExpr | CaseExpr | Subscript | Field | AllFields | Collate | Default | JsonCall | Alike | Mixed | Given
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class OrderItem:
    expr: Expr
    descending: bool
    nulls_first: bool | None
    at: int
    using: tuple[str, int] | None = None  # USING's operator and position, unless it is < or >


@dataclass(frozen=True, slots=True)
class Target:
    expr: Expr
    alias: str | None
    at: int


@dataclass(frozen=True, slots=True)
class Sample:
    """``TABLESAMPLE method (args) [REPEATABLE (seed)]``."""

    method: tuple[str, ...]
    args: tuple[Expr, ...]
    seed: Expr | None
    at: int


@dataclass(frozen=True, slots=True)
class TableName:
    """A relation in FROM, or the target of DML. ``only``: without the tables that inherit from it."""

    schema_name: str | None
    name: str
    at: int
    alias: str | None = None
    columns: tuple[str, ...] = ()
    only: bool = False
    sample: Sample | None = None


@dataclass(frozen=True, slots=True)
class DerivedTable:
    query: Query
    at: int
    alias: str | None = None
    columns: tuple[str, ...] = ()
    lateral: bool = False


Definitions = tuple[tuple[str, TypeName, int], ...]
"""Columns with their types, and where each stands."""


@dataclass(frozen=True, slots=True)
class FunctionTable:
    """Functions in FROM. ``listed``: written as ROWS FROM, where there may be several. ``definitions``: for each
    function the columns with types (``AS t(a int)``), () if none has any."""

    functions: tuple[Expr, ...]
    at: int
    alias: str | None = None
    columns: tuple[str, ...] = ()
    ordinality: bool = False
    lateral: bool = False
    definitions: tuple[Definitions, ...] = ()
    listed: bool = False


@dataclass(frozen=True, slots=True)
class JoinedTable:
    """``kind``: [asof|proctime] inner or left, right, full or cross. Not cross: one of ``on``, ``using``, ``natural``.

    ``using_alias`` names the merged columns of USING as a table of their own.
    """

    kind: str
    left: TableRef
    right: TableRef
    on: Expr | None
    using: tuple[str, ...]
    natural: bool
    at: int
    alias: str | None = None
    columns: tuple[str, ...] = ()
    using_alias: str | None = None


TableRef = TableName | DerivedTable | FunctionTable | JoinedTable | JsonTable


@dataclass(frozen=True, slots=True)
class GroupingSets:
    """An item of GROUP BY that is no expression. ``kind``: rollup, cube, sets, or list for items in parentheses."""

    kind: str
    items: tuple[GroupItem, ...]
    at: int


GroupItem = Expr | GroupingSets


@dataclass(frozen=True, slots=True)
class Select:
    """``distinct``: None, () for DISTINCT, or the expressions of DISTINCT ON. ``group_distinct``: GROUP BY DISTINCT."""

    targets: tuple[Target, ...]
    from_: tuple[TableRef, ...]
    where: Expr | None
    group: tuple[GroupItem, ...] | None
    having: Expr | None
    distinct: tuple[Expr, ...] | None
    at: int
    windows: tuple[tuple[str, Over], ...] = ()
    """WINDOW: windows by name."""
    group_distinct: bool = False


@dataclass(frozen=True, slots=True)
class ValuesList:
    rows: tuple[tuple[Expr, ...], ...] | ConstantRows
    at: int


@dataclass(frozen=True, slots=True)
class SetQuery:
    """``kind``: union, intersect or except."""

    kind: str
    all: bool
    left: QueryBody
    right: QueryBody
    at: int


@dataclass(frozen=True, slots=True)
class Locking:
    """``FOR strength [OF table, …] [NOWAIT | SKIP LOCKED]``. ``tables``: with where each stands; ``wait``: "", "nowait"
    or "skip locked"."""

    strength: str
    tables: tuple[tuple[str, int], ...]
    wait: str
    at: int

    @property
    def clause(self) -> str:
        """How messages name it."""
        return f"FOR {self.strength.upper()}"


@dataclass(frozen=True, slots=True)
class Query:
    """A query's body with its WITH, ORDER BY, LIMIT, OFFSET, AS OF and FOR UPDATE.

    ``locking``: FOR UPDATE, SHARE and their like. ``ties``: FETCH FIRST … WITH TIES.
    """

    body: QueryBody
    at: int
    with_: With | None = None
    order: tuple[OrderItem, ...] = ()
    limit: Expr | None = None
    offset: Expr | None = None
    as_of: Expr | None = None
    as_of_at_least: bool = False
    locking: tuple[Locking, ...] = ()
    ties: bool = False


QueryBody = Select | ValuesList | SetQuery | Query


@dataclass(frozen=True, slots=True)
class Cte:
    """``types``: the declared column types of a binding of WITH MUTUALLY RECURSIVE. ``marks``: the values of CYCLE's
    mark, for a cycle and for none; None: TRUE and FALSE. ``materialized``: as written, which is only shown again."""

    name: str
    columns: tuple[str, ...]
    query: Preparable
    at: int
    types: tuple[TypeName, ...] = ()
    search: SearchClause | None = None
    cycle: CycleClause | None = None
    marks: tuple[Expr, Expr] | None = None
    materialized: bool | None = None


@dataclass(frozen=True, slots=True)
class With:
    recursive: bool
    ctes: tuple[Cte, ...]
    at: int
    mutually: bool = False
    limit: int | None = None
    return_at_limit: bool = False
    priority: Expr | None = None
    no_priority: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """``[low]`` or, with ``slice``, ``[low:high]`` of an assigned column."""

    low: Expr | None
    high: Expr | None
    slice: bool
    at: int


@dataclass(frozen=True, slots=True)
class FieldPart:
    """``.name`` of an assigned column."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class PartValues:
    """New values of parts of one column, in order."""

    items: tuple[tuple[Parts, Expr], ...]
    at: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """``(columns) = source``; one column unless written in parentheses."""

    columns: tuple[tuple[str, int], ...]
    source: Expr | PartValues
    multiple: bool


@dataclass(frozen=True, slots=True)
class ConflictClause:
    """ON CONFLICT. ``columns`` or ``constraint``: its target, if it has one; ``assignments`` None: DO NOTHING.
    ``expressions`` and ``predicate`` belong to the target too."""

    columns: tuple[tuple[str, int], ...]
    constraint: tuple[str, int] | None
    assignments: tuple[Assignment, ...] | None
    where: Expr | None
    at: int
    expressions: tuple[Expr, ...] = ()
    predicate: Expr | None = None

    @property
    def inferred(self) -> bool:
        """Whether the target lists what an index is over."""
        return bool(self.columns or self.expressions)


@dataclass(frozen=True, slots=True)
class InsertStatement:
    """``source`` None: DEFAULT VALUES. ``overriding``: SYSTEM or USER. ``parts``: of each column; () if whole."""

    table: TableName
    columns: tuple[tuple[str, int], ...]
    source: Query | None
    returning: tuple[Target, ...] | None
    conflict: ConflictClause | None
    at: int
    with_: With | None = None
    overriding: str | None = None
    parts: tuple[Parts, ...] = ()


@dataclass(frozen=True, slots=True)
class UpdateStatement:
    table: TableName
    assignments: tuple[Assignment, ...]
    from_: tuple[TableRef, ...]
    where: Expr | None
    returning: tuple[Target, ...] | None
    at: int
    with_: With | None = None


@dataclass(frozen=True, slots=True)
class DeleteStatement:
    table: TableName
    using: tuple[TableRef, ...]
    where: Expr | None
    returning: tuple[Target, ...] | None
    at: int
    with_: With | None = None


@dataclass(frozen=True, slots=True)
class MergeInsert:
    """``values`` None: DEFAULT VALUES."""

    columns: tuple[tuple[str, int], ...]
    values: tuple[Expr, ...] | None
    overriding: str | None
    at: int


@dataclass(frozen=True, slots=True)
class MergeUpdate:
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class MergeDelete:
    pass


@dataclass(frozen=True, slots=True)
class MergeWhen:
    """``WHEN … [AND condition] THEN action``; None: DO NOTHING. ``match``: both (MATCHED), source (a row of the source
    without one of the target: NOT MATCHED), or target (NOT MATCHED BY SOURCE)."""

    match: str
    condition: Expr | None
    action: MergeInsert | MergeUpdate | MergeDelete | None
    at: int


@dataclass(frozen=True, slots=True)
class MergeStatement:
    table: TableName
    source: TableRef
    on: Expr
    whens: tuple[MergeWhen, ...]
    returning: tuple[Target, ...] | None
    at: int
    with_: With | None = None


Parts = tuple[Part | FieldPart, ...]
Change = InsertStatement | UpdateStatement | DeleteStatement | MergeStatement
"""A statement that changes rows."""
Preparable = Query | InsertStatement | UpdateStatement | DeleteStatement | MergeStatement
"""What a CTE or COPY may hold (gram.y's PreparableStmt)."""
