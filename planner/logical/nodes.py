"""Relational algebra with positional columns: what a query means, before any decision on how to run it.

Every node is a multiset of rows; ``schema`` gives its columns. Only the binder knows names.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from ivm.words import INT8, ColumnType, Schema
from planner.expr.literal_rows import LiteralRows
from planner.expr.scalar import Aggregate, Column, Scalar, SortKey
from planner.logical.frames import Framed
from planner.memo import by_identity


@dataclass(frozen=True, slots=True)
class Get:
    """A stored relation (table, materialized view or system relation), by its catalog id."""

    relation: int
    schema: Schema


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to a recursive binding, by the id that its ``Recursive`` or ``LetRec`` gives it."""

    binding: int
    schema: Schema


@dataclass(frozen=True, slots=True)
class Values:
    """Constant rows: expressions without columns. A SELECT without FROM has one row of no columns."""

    rows: tuple[tuple[Scalar, ...], ...] | LiteralRows
    schema: Schema


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows for which the predicate is true (not false, not NULL)."""

    input: Rel
    predicate: Scalar


@dataclass(frozen=True, slots=True)
class TemporalFilter:
    """The rows for which every condition is true at the present moment (``planner.logical.temporal``), maintained as
    time passes. The last rewrite of a view's plan makes it."""

    input: Rel
    conditions: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Project:
    """One computed column for each expression."""

    input: Rel
    exprs: tuple[Scalar, ...]


class JoinKind(Enum):
    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"


@dataclass(frozen=True, slots=True)
class Join:
    """The left columns, then the right ones (SEMI and ANTI: the left ones only). ``on`` sees both, left first.

    ``lateral``: the right side may have ``OuterColumn`` of level 1, which refer to the left side's columns.
    """

    kind: JoinKind
    left: Rel
    right: Rel
    on: Scalar
    lateral: bool = False


@dataclass(frozen=True, slots=True)
class AsOf:
    """As-of join: each left row with the one right row of equal keys at the last point not after its own.

    Columns: left's, then right's. ``later``: the first point not before the left row's. ``strict``: an equal point does
    not match.

    ``keys``: (left column, right column, whether NULL = NULL), compared as words. ``points``: a left and a right column
    encoded alike. A NULL point has no match. Among right rows at one point, the match is the row whose other columns
    sort first, left to right, NULLs last. ``outer``: left rows without a match stay, with NULLs for right's columns.
    """

    left: Rel
    right: Rel
    keys: tuple[tuple[int, int, bool], ...]
    points: tuple[int, int]
    later: bool
    strict: bool
    outer: bool


@dataclass(frozen=True, slots=True)
class Locked:
    """Locked join: each left row with the right rows of equal keys as they were when the left row was committed.

    Columns: left's, then right's. ``keys`` and ``outer`` as in ``AsOf``. ``name``: the name under which a view keeps
    the matches; 0: not kept. ``found``: the relation to read the matches from instead of looking them up
    (``planner.logical.locked_joins.kept_schema``); 0: none.
    """

    left: Rel
    right: Rel
    keys: tuple[tuple[int, int, bool], ...]
    outer: bool
    name: int = 0
    found: int = 0


@dataclass(frozen=True, slots=True)
class Reduce:
    """GROUP BY: the key columns, then the aggregates. Without keys there is exactly one row, even for empty input."""

    input: Rel
    keys: tuple[Scalar, ...]
    aggregates: tuple[Aggregate, ...]


@dataclass(frozen=True, slots=True)
class Distinct:
    """Each row once."""

    input: Rel


class Numbering(Enum):
    """What a window function counts in a group's order: rows, rows before a row's peers, or groups of peers."""

    ROW_NUMBER = "row_number"
    RANK = "rank"
    DENSE_RANK = "dense_rank"


@dataclass(frozen=True, slots=True)
class TopK:
    """For each value of ``keys``, the rows from ``offset`` on, at most ``limit`` (None: all), in ``order``.

    Also implements DISTINCT ON (limit 1). Limit and offset are INT8 expressions without columns. Ties break by value.
    ``numbers``: window functions over (keys, order), each appended as a column. With ``numbers`` there is no offset,
    and the limit is a literal that bounds the number ``limit_of``. ``framed``: window functions over (keys, order) and
    frames, each appended as a column; there are no ``numbers`` and no bounds then.
    """

    input: Rel
    keys: tuple[Scalar, ...]
    order: tuple[SortKey, ...]
    limit: Scalar | None
    offset: Scalar | None
    numbers: tuple[Numbering, ...] = ()
    limit_of: Numbering | None = None
    framed: tuple[Framed, ...] = ()


class SetKind(Enum):
    UNION = "union"
    INTERSECT = "intersect"
    EXCEPT = "except"


@dataclass(frozen=True, slots=True)
class SetOperation:
    """UNION, INTERSECT or EXCEPT of two inputs with equal types, ALL or distinct."""

    kind: SetKind
    all: bool
    left: Rel
    right: Rel


@dataclass(frozen=True, slots=True)
class TableFunction:
    """For each row of ``input``: its columns, then those of each row that the function returns.

    ``function`` is a key of ``planner.expr.functions.table_functions.TABLE_FUNCTIONS`` (generate_series, unnest, …), or
    of several functions side by side (``planner.expr.functions.lockstep``).
    ``ordinality`` appends a bigint that counts from 1.
    """

    input: Rel
    function: str
    args: tuple[Scalar, ...]
    columns: Schema
    ordinality: bool = False


@dataclass(frozen=True, slots=True)
class Recursive:
    """WITH RECURSIVE: ``base UNION [ALL] step``, where the step's ``Reference(binding)`` is the working table.

    The node itself is the whole result; every reference outside the step uses the node. ``demanded``: conditions that
    have been pushed into it (``planner.transform.demand.recursion``): it then has the rows that meet them, and possibly
    rows that these depend on. ``met``: the columns on which another relation restricts it. ``name``: the query's.
    """

    binding: int
    base: Rel
    step: Rel
    all: bool
    schema: Schema
    demanded: tuple[Scalar, ...] = ()
    met: tuple[int, ...] = ()
    name: str = "the recursive query"


@dataclass(frozen=True, slots=True)
class LetRec:
    """WITH MUTUALLY RECURSIVE: bindings (id, value) in textual order, then ``body``, which may refer to them.

    Bindings start empty. Each round assigns them in order, later ones from the new values of earlier ones, until
    nothing changes. After ``limit`` rounds (None: the default) the current state is the result, with an error unless
    ``return_at_limit``. ``names``: the names of the bindings in the query.

    ``priorities``: for each binding a bigint expression over its columns, or None; () if there are none. A row becomes
    visible only when the rows of lower priorities have reached a fixpoint. ``automatic``: whether the planner may add
    priorities itself. ``demanded``: the conditions that have been pushed into some bindings.
    """

    bindings: tuple[tuple[int, Rel], ...]
    schemas: tuple[Schema, ...]
    body: Rel
    limit: int | None = None
    return_at_limit: bool = False
    names: tuple[str, ...] = ()
    priorities: tuple[Scalar | None, ...] = ()
    automatic: bool = True
    demanded: tuple[tuple[int, tuple[Scalar, ...]], ...] = ()


Rel = (
    Get | Reference | Values | Filter | TemporalFilter | Project | Join | AsOf | Locked | Reduce | Distinct | TopK
    | SetOperation | TableFunction | Recursive | LetRec
)  # fmt: skip


@by_identity
def schema(rel: Rel) -> Schema:
    """The columns of a relation."""
    match rel:
        case Get() | Reference() | Values() | Recursive():
            return rel.schema
        case Filter() | TemporalFilter() | Distinct():
            return schema(rel.input)
        case TopK():
            numbers = (ColumnType(INT8, False) for _ in rel.numbers)
            return (*schema(rel.input), *numbers, *(f.column for f in rel.framed))
        case Project():
            return _project_schema(rel)
        case Join():
            return _join_schema(rel)
        case AsOf() | Locked():
            right = schema(rel.right)
            return (*schema(rel.left), *(tuple(ColumnType(c.type, True) for c in right) if rel.outer else right))
        case Reduce():
            return tuple(ColumnType(e.type, e.nullable) for e in (*rel.keys, *rel.aggregates))
        case SetOperation():
            left, right = schema(rel.left), schema(rel.right)
            keep_left = rel.kind is SetKind.EXCEPT
            return tuple(
                ColumnType(a.type, a.nullable or (b.nullable and not keep_left))
                for a, b in zip(left, right, strict=True)
            )
        case TableFunction():
            extra = (ColumnType(INT8, False),) if rel.ordinality else ()
            return (*schema(rel.input), *rel.columns, *extra)
        case LetRec():
            return schema(rel.body)
        case _:
            assert_never(rel)


def _project_schema(rel: Project) -> Schema:
    """If the input's columns pass, its schema itself."""
    below, exprs = schema(rel.input), rel.exprs
    if len(below) == len(exprs) and all(
        type(e) is Column and e.index == i and e.type is c.type and e.nullable is c.nullable
        for i, (e, c) in enumerate(zip(exprs, below, strict=True))
    ):
        return below
    return tuple([ColumnType(e.type, e.nullable) for e in exprs])


def _join_schema(join: Join) -> Schema:
    left = schema(join.left)
    if join.kind in (JoinKind.SEMI, JoinKind.ANTI):
        return left
    right = schema(join.right)
    if join.kind in (JoinKind.RIGHT, JoinKind.FULL):
        left = tuple(ColumnType(c.type, True) for c in left)
    if join.kind in (JoinKind.LEFT, JoinKind.FULL):
        right = tuple(ColumnType(c.type, True) for c in right)
    return (*left, *right)


@dataclass(frozen=True, slots=True)
class Finishing:
    """How the rows of a one-shot query are ordered, sliced and projected, after everything that could be maintained.

    ``order`` refers to the relation's columns. Only the first ``width`` columns are returned (ORDER BY may need more),
    or ``project`` over all of them: expressions that call volatile functions, evaluated once for each row, in order.
    """

    order: tuple[SortKey, ...] = ()
    limit: Scalar | None = None
    offset: Scalar | None = None
    width: int | None = None
    project: tuple[Scalar, ...] | None = None
