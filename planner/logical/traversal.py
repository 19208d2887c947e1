"""The one traversal of relational plans: inputs, expressions, and rebuilding nodes with new ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from operator import is_
from typing import assert_never

from ivm.words import BOOL, ColumnType, Schema
from planner.expr import scalar
from planner.expr.literal_rows import LiteralRows
from planner.expr.parts import COLUMNS, SUBQUERIES, kinds_of, rebuild, walk
from planner.expr.scalar import LEAVES, Column, Exists, Quantified, Scalar, ScalarSubquery
from planner.logical.aggregates import aggregate_scalars, with_aggregate_scalars
from planner.logical.nodes import (
    AsOf,
    Distinct,
    Filter,
    Get,
    Join,
    LetRec,
    Locked,
    Project,
    Recursive,
    Reduce,
    Reference,
    Rel,
    SetOperation,
    TableFunction,
    TemporalFilter,
    TopK,
    Values,
)  # fmt: skip
from planner.memo import by_identity


def children(rel: Rel) -> tuple[Rel, ...]:
    """The inputs of a relation, in the order that ``with_children`` takes, without subqueries in expressions."""
    match rel:
        case Get() | Reference() | Values():
            return ()
        case Filter() | TemporalFilter() | Project() | Reduce() | Distinct() | TopK() | TableFunction():
            return (rel.input,)
        case Join() | AsOf() | Locked() | SetOperation():
            return (rel.left, rel.right)
        case Recursive():
            return (rel.base, rel.step)
        case LetRec():
            return (*(value for _, value in rel.bindings), rel.body)
        case _:
            assert_never(rel)


def with_children(rel: Rel, new: tuple[Rel, ...]) -> Rel:
    """The same node with other inputs; the node itself if they are the same objects."""
    if all(map(is_, children(rel), new)):
        return rel
    match rel:
        case Get() | Reference() | Values():
            return rel
        case Filter() | TemporalFilter() | Project() | Reduce() | Distinct() | TopK() | TableFunction():
            return replace(rel, input=new[0])
        case Join() | AsOf() | Locked() | SetOperation():
            return replace(rel, left=new[0], right=new[1])
        case Recursive():
            return replace(rel, base=new[0], step=new[1])
        case LetRec():
            bindings = tuple((name, value) for (name, _), value in zip(rel.bindings, new[:-1], strict=True))
            return replace(rel, bindings=bindings, body=new[-1])
        case _:
            assert_never(rel)


def scalars(rel: Rel) -> tuple[Scalar, ...]:
    """The expressions of a node, in the order that ``with_scalars`` takes; not the constants of ``LiteralRows``."""
    match rel:
        case Project():
            return rel.exprs
        case Filter():
            return (rel.predicate,)
        case Join():
            return (rel.on,)
        case Get() | Reference() | AsOf() | Locked() | Distinct() | SetOperation() | Recursive() | LetRec():
            return ()
        case Values(rows=LiteralRows()) | Values(schema=()):
            return ()
        case Values():
            return tuple(e for row in rel.rows for e in row)
        case TemporalFilter():
            return rel.conditions
        case Reduce():
            return (*rel.keys, *(e for a in rel.aggregates for e in aggregate_scalars(a)))
        case TopK():
            extra = tuple(e for e in (rel.limit, rel.offset) if e is not None)
            return (*rel.keys, *(k.expr for k in rel.order), *extra, *(e for f in rel.framed for e in f.scalars))
        case TableFunction():
            return rel.args
        case _:
            assert_never(rel)


def with_scalars(rel: Rel, new: tuple[Scalar, ...]) -> Rel:
    """The same node with other expressions."""
    match rel:
        case Get() | Reference() | AsOf() | Locked() | Distinct() | SetOperation() | Recursive() | LetRec():
            return rel
        case Values(rows=LiteralRows()):
            return rel
        case Values():
            it = iter(new)
            return replace(rel, rows=tuple(tuple(next(it) for _ in row) for row in rel.rows))
        case Filter():
            return replace(rel, predicate=new[0])
        case TemporalFilter():
            return replace(rel, conditions=new)
        case Project():
            return replace(rel, exprs=new)
        case Join():
            return replace(rel, on=new[0])
        case Reduce():
            rest = iter(new[len(rel.keys) :])
            return replace(
                rel,
                keys=new[: len(rel.keys)],
                aggregates=tuple(
                    with_aggregate_scalars(a, tuple(next(rest) for _ in aggregate_scalars(a))) for a in rel.aggregates
                ),
            )
        case TopK():
            rest = iter(new)
            keys = tuple(next(rest) for _ in rel.keys)
            order = tuple(replace(k, expr=next(rest)) for k in rel.order)
            limit = None if rel.limit is None else next(rest)
            offset = None if rel.offset is None else next(rest)
            framed = tuple(f.with_scalars(tuple(next(rest) for _ in f.scalars)) for f in rel.framed)
            return replace(rel, keys=keys, order=order, limit=limit, offset=offset, framed=framed)
        case TableFunction():
            return replace(rel, args=new)
        case _:
            assert_never(rel)


def columns_of(expr: Scalar) -> frozenset[int]:
    """The columns that an expression reads."""
    return frozenset([e.index for e in walk(expr) if type(e) is Column])


def substitute(expr: Scalar, exprs: tuple[Scalar, ...]) -> Scalar:
    """The expression with each column i replaced by ``exprs[i]``: moves it below a projection.

    A column that is read under another type's name (bigint, to compare its words) keeps that type.
    """

    def change(part: Column) -> Scalar:
        found = exprs[part.index]
        if not isinstance(found, Column):
            return found
        if found.type != part.type:
            return replace(found, type=part.type)
        return part if found.index == part.index and found.nullable is part.nullable else found

    return rebuild(expr, COLUMNS, change)


def keeps_types(inner: tuple[Scalar, ...], outer: Iterable[Scalar]) -> bool:
    """Whether ``outer`` reads every computed (not plain) column of ``inner`` under its own type."""
    return all(
        isinstance(inner[part.index], Column) or inner[part.index].type.kind is part.type.kind
        for expr in outer
        for part in walk(expr)
        if isinstance(part, Column)
    )


def renumber(expr: Scalar, place: Callable[[int], int]) -> Scalar:
    """The expression with each column's position mapped by ``place``."""

    def change(part: Column) -> Scalar:
        index = place(part.index)
        return part if index == part.index else Column(index, part.type, part.nullable)

    return rebuild(expr, COLUMNS, change)


def exchange(expr: Scalar, by: Mapping[int, Column]) -> Scalar:
    """The expression with some columns, given by position, replaced by others."""
    return rebuild(expr, COLUMNS, lambda e: by.get(e.index, e))


def settle(expr: Scalar, row: Schema) -> Scalar:
    """The expression with the nullability of its columns taken from ``row``, which a rewrite may have refined."""

    def change(part: Column) -> Scalar:
        nullable = row[part.index].nullable
        return part if nullable is part.nullable else Column(part.index, part.type, nullable)

    return rebuild(expr, COLUMNS, change)


def shift(expr: Scalar, by: int) -> Scalar:
    """The expression over rows with ``by`` more columns in front."""
    return expr if by == 0 else renumber(expr, lambda i: i + by)


def own_columns(row: Schema, base: int = 0) -> tuple[Column, ...]:
    """The columns of a row as expressions, from position ``base`` on."""
    return _own_columns(row) if base == 0 else tuple([Column(base + i, c.type, c.nullable) for i, c in enumerate(row)])


@by_identity
def _own_columns(row: Schema) -> tuple[Column, ...]:
    """The same objects for one row's schema: that they are equal is then found without looking into them."""
    return tuple([Column(i, c.type, c.nullable) for i, c in enumerate(row)])


def column_types(exprs: tuple[Scalar, ...]) -> Schema:
    """The schema of rows of these expressions."""
    return tuple(ColumnType(e.type, e.nullable) for e in exprs)


def has_subquery(expr: Scalar) -> bool:
    """Whether the expression contains a subquery."""
    return type(expr) not in LEAVES and not SUBQUERIES.isdisjoint(kinds_of(expr))


def subqueries(expr: Scalar) -> list[ScalarSubquery | Exists | Quantified]:
    """The outermost subqueries of an expression."""
    if not has_subquery(expr):
        return []
    return [e for e in walk(expr) if isinstance(e, ScalarSubquery | Exists | Quantified)]


Changed = dict[int, tuple[Rel, Rel]]
"""What has become of nodes, by id: each with the node, which must live as long as its id is known."""


def bottom_up(rel: Rel, change: Callable[[Rel], Rel], memo: Changed | None = None) -> Rel:
    """Applies ``change`` to each node, inputs first. A shared object is changed once and stays shared."""
    memo = {} if memo is None else memo
    found = memo.get(id(rel))
    if found is not None:
        return found[1]
    new = change(with_children(rel, tuple([bottom_up(c, change, memo) for c in children(rel)])))
    memo[id(rel)] = (rel, new)
    return new


def conjuncts(expr: Scalar) -> tuple[Scalar, ...]:
    """The arguments of nested ANDs; () for the literal true."""
    if isinstance(expr, scalar.And):
        return tuple(c for a in expr.args for c in conjuncts(a))
    if isinstance(expr, scalar.Literal) and expr.value is True:
        return ()
    return (expr,)


def conjunction(parts: tuple[Scalar, ...]) -> Scalar:
    """The AND of predicates; true if there are none."""
    if not parts:
        return TRUE
    return parts[0] if len(parts) == 1 else scalar.And(parts)


TRUE = scalar.Literal(True, BOOL)


def nodes(rel: Rel, below: Callable[[Rel], Iterable[Rel]] = children) -> Iterator[Rel]:
    """A plan's nodes, each object once and after one that reads it. ``below``: the inputs that are followed."""
    todo = [rel]
    seen: set[int] = set()
    while todo:
        node = todo.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            todo += below(node)


def all_inputs(rel: Rel) -> tuple[Rel, ...]:
    """The inputs of a relation, then the plans of the subqueries in its expressions."""
    found = children(rel)
    for expr in scalars(rel):
        if type(expr) not in LEAVES and not SUBQUERIES.isdisjoint(kinds_of(expr)):
            found = (*found, *[s.rel for s in subqueries(expr)])
    return found


def gets(rel: Rel) -> set[int]:
    """The ids of the stored and system relations that a plan reads, including those in subqueries."""
    return {node.relation for node in nodes(rel, all_inputs) if isinstance(node, Get)}


def bindings(rel: Rel) -> set[int]:
    """The ids of the recursive bindings that a plan defines."""
    found: set[int] = set()
    for node in nodes(rel):
        if isinstance(node, Recursive):
            found.add(node.binding)
        elif isinstance(node, LetRec):
            found |= {binding for binding, _ in node.bindings}
    return found
