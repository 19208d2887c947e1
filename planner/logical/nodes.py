"""Relational algebra with positional columns: what a query means, before any decision on how.

Every node is a multiset of rows; ``schema`` gives the columns. Names live in the binder only.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from ivm.words import INT8, ColumnType, Schema
from planner.expr.scalar import Aggregate, Scalar, SortKey
from planner.memo import by_identity


@dataclass(frozen=True, slots=True)
class Get:
    """A stored relation (table, materialized view or system relation) by its catalog id."""

    relation: int
    schema: Schema


@dataclass(frozen=True, slots=True)
class Reference:
    """A recursive binding, by the id that its ``LetRec`` gives it."""

    binding: int
    schema: Schema


@dataclass(frozen=True, slots=True)
class Values:
    """Constant rows of expressions without columns; no columns and one row for a SELECT without FROM."""

    rows: tuple[tuple[Scalar, ...], ...]
    schema: Schema


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows for which the predicate is true (not false, not NULL)."""

    input: Rel
    predicate: Scalar


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
    """Left's columns then right's (SEMI and ANTI: left's only); ``on`` sees both, left's first.

    ``lateral``: the right side may have ``OuterColumn`` of level 1, which are the left side's columns.
    """

    kind: JoinKind
    left: Rel
    right: Rel
    on: Scalar
    lateral: bool = False


@dataclass(frozen=True, slots=True)
class AsOf:
    """Left's columns then right's: each left row with the one right row of equal keys whose point is last among those
    not after its own (``later``: first among those not before it; ``strict``: nor equal to it).

    ``keys``: (left column, right column, whether NULL = NULL), compared by their words; ``points``: a left and a right
    column in one representation. A NULL point has no match. Of right rows at one point the one whose other columns sort
    first, left to right with NULLs last. ``outer``: left rows without a match stay, right's columns NULL.
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
    """Left's columns then right's: each left row with the right rows of equal keys as they were when it came.

    ``keys`` and ``outer`` as in ``AsOf``. ``name``: under which a view keeps what its rows found; 0: nothing does.
    ``found``: the relation that has it, where it is not looked up but read
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
    """GROUP BY: the keys' columns, then the aggregates'. Without keys: exactly one row, also for no input."""

    input: Rel
    keys: tuple[Scalar, ...]
    aggregates: tuple[Aggregate, ...]


@dataclass(frozen=True, slots=True)
class Distinct:
    """Each row once."""

    input: Rel


class Numbering(Enum):
    """What numbers the rows of a group in an order: each one, by how many stand before its peers, its peers."""

    ROW_NUMBER = "row_number"
    RANK = "rank"
    DENSE_RANK = "dense_rank"


@dataclass(frozen=True, slots=True)
class TopK:
    """For each value of ``keys`` the rows from ``offset`` on, ``limit`` at most (None: all), in ``order``.

    Also DISTINCT ON (limit 1). Limit and offset are INT8 expressions without columns. Ties break by value.
    ``numbers``: window functions over (keys, order), each a further column; then there is no offset, and the limit (a
    literal) is of what ``limit_of`` counts.
    """

    input: Rel
    keys: tuple[Scalar, ...]
    order: tuple[SortKey, ...]
    limit: Scalar | None
    offset: Scalar | None
    numbers: tuple[Numbering, ...] = ()
    limit_of: Numbering | None = None


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
    """For each row of ``input``: its columns, then the columns of each row that the function returns.

    ``function`` is a key in ``planner.expr.functions.table_functions.TABLE_FUNCTIONS`` (generate_series, unnest, …);
    ``ordinality`` appends a bigint count from 1.
    """

    input: Rel
    function: str
    args: tuple[Scalar, ...]
    columns: Schema
    ordinality: bool = False


@dataclass(frozen=True, slots=True)
class Recursive:
    """WITH RECURSIVE: ``base UNION [ALL] step``, where the step's ``Reference(binding)`` is the working table.

    The node itself is the whole result, used by every reference outside the step. ``demanded``: conditions that have
    entered it (``planner.transform.demand.recursion``): it holds the asked rows, and maybe others that these depend on.
    ``met``: the columns by which another relation asks.
    """

    binding: int
    base: Rel
    step: Rel
    all: bool
    schema: Schema
    demanded: tuple[Scalar, ...] = ()
    met: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LetRec:
    """WITH MUTUALLY RECURSIVE: bindings (id, value) in textual order, then ``body``, which may refer to them.

    Bindings start empty; in each round they get their values in order, later ones from the new values of earlier
    ones, until nothing changes. After ``limit`` rounds (None: the default) the state that stands is the result, with
    an error unless ``return_at_limit``. ``names``: what the bindings are called in it.

    ``priorities``: for each binding a bigint over its columns, or None; () for none at all. A row is not seen before
    the rows of lesser priorities have come to rest. ``automatic``: whether the planner may give some by itself.
    ``demanded``: for some bindings the conditions that have entered them.
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
    Get | Reference | Values | Filter | Project | Join | AsOf | Locked | Reduce | Distinct | TopK | SetOperation
    | TableFunction | Recursive | LetRec
)  # fmt: skip


@by_identity
def schema(rel: Rel) -> Schema:
    """The columns of a relation."""
    match rel:
        case Get() | Reference() | Values() | Recursive():
            return rel.schema
        case Filter() | Distinct():
            return schema(rel.input)
        case TopK():
            return (*schema(rel.input), *(ColumnType(INT8, False) for _ in rel.numbers))
        case Project():
            return tuple(ColumnType(e.type, e.nullable) for e in rel.exprs)
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
    """What is done to the rows of a one-shot query after the maintained part: order and slice them.

    ``order`` refers to the relation's columns; only the first ``width`` columns are shown (ORDER BY may need more), or
    ``project`` over all of them: what calls volatile functions, computed once for each row, in order.
    """

    order: tuple[SortKey, ...] = ()
    limit: Scalar | None = None
    offset: Scalar | None = None
    width: int | None = None
    project: tuple[Scalar, ...] | None = None
