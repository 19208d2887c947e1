"""Lowering: logical → physical. One match over the relational nodes; all decisions are made in this folder."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from ivm.words import Schema
from planner.expr.parts import walk
from planner.expr.scalar import Column, Literal, Scalar
from planner.gathers import width
from planner.logical.drivers import drivers
from planner.logical.fallibility import can_raise
from planner.logical.growth import grows, limits, stops
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
    schema,
)  # fmt: skip
from planner.logical.traversal import conjuncts, keeps_types, scalars, substitute
from planner.lower.asof import lower_asof
from planner.lower.join import lower_join
from planner.lower.lock import lower_locked
from planner.lower.lookup import lookup
from planner.lower.monotone_labels import labelled
from planner.lower.monotone_loop import lower_labelled
from planner.lower.pruning import pruned
from planner.lower.recursion import lower_letrec, lower_recursive
from planner.lower.reduce import lower_reduce
from planner.lower.sets import lower_distinct, lower_set_operation
from planner.lower.state import Indexes, Lowering
from planner.lower.temporal import lower_temporal
from planner.lower.topk import lower_table_function, lower_topk
from planner.physical.nodes import Constants, Flow, Limited, Plan, Table, TableErrors


def lower(rel: Rel, indexes: Indexes, row: Schema | None = None) -> Plan:
    """The physical plan of a relation that has been through ``planner.transform.pipeline.optimize``. ``row``: its
    columns, some nullable although they are never NULL; None: as they are."""
    if indexes.one_shot:
        rel = pruned(rel, indexes.bound)
    low = Lowering(indexes, lambda _: _impossible())
    low.rel = lambda r: lower_rel(low, r)
    try:
        flow = low.coerce(_shown(low, rel), schema(rel) if row is None else row)
        if not indexes.one_shot:
            return low.builder.finish(flow)
        if not stops(rel):
            return replace(low.builder.finish(flow), drivers=drivers(rel))
        ends = tuple(Limited(low.builder.force(low.rel(end)), end.limit) for end in limits(rel))
        return replace(low.builder.finish(flow, ends), grows=grows(rel))
    finally:
        low.rel = lambda _: _impossible()  # breaks a reference cycle: indexes hold a whole state of the engine


def _shown(low: Lowering, rel: Rel) -> Flow:
    """The plan's rows. A final projection stays a separate node, so that views can share what is below it."""
    if low.indexes.one_shot or not isinstance(rel, Project) or not all(isinstance(e, Column) for e in rel.exprs):
        return low.rel(rel)
    return low.moved(low.rel(rel.input), rel.exprs)


def _impossible() -> Flow:
    raise AssertionError


def lower_rel(low: Lowering, rel: Rel) -> Flow:
    """A relation's flow; one object is lowered once."""
    found = low.memo.get(low.remembered(rel))
    if found is not None:
        return found[1]
    flow = _lower(low, rel)
    low.memo[low.remembered(rel)] = (rel, flow)
    return flow


def _lower(low: Lowering, rel: Rel) -> Flow:
    match rel:
        case Get():
            return _get(low, rel)
        case Reference():
            return low.coerce(low.bindings[rel.binding], rel.schema)
        case Values():
            return _values(low, rel)
        case Filter() | Project():
            return _chain(low, rel)
        case TemporalFilter():
            return lower_temporal(low, rel)
        case Join():
            return lower_join(low, rel)
        case AsOf():
            return lower_asof(low, rel)
        case Locked():
            return lower_locked(low, rel)
        case Reduce():
            return lower_reduce(low, rel)
        case Distinct():
            return lower_distinct(low, low.rel(rel.input))
        case TopK():
            return lower_topk(low, rel)
        case SetOperation():
            return lower_set_operation(low, rel)
        case TableFunction():
            return lower_table_function(low, rel)
        case Recursive():
            return lower_recursive(low, rel)
        case LetRec():
            found = labelled(rel)
            return lower_letrec(low, rel) if found is None else lower_labelled(low, rel, found)
        case _:
            assert_never(rel)


def _get(low: Lowering, rel: Get) -> Flow:
    low.builder.add_errors(low.builder.add(TableErrors(rel.relation), 1))
    return low.builder.flow(low.builder.add(Table(rel.relation, rel.schema), width(rel.schema)), rel.schema)


def _values(low: Lowering, rel: Values) -> Flow:
    node = low.builder.add(Constants(rel.rows, rel.schema), width(rel.schema))
    if any(map(can_raise, scalars(rel))):
        low.builder.fails(node)
    return low.builder.flow(node, rel.schema)


def _chain(low: Lowering, rel: Filter | Project) -> Flow:
    """Fuses adjacent filters and projections into one program, as long as nothing is computed twice."""
    exprs: tuple[Scalar, ...] | None = None
    predicates: tuple[Scalar, ...] = ()
    node: Rel = rel
    while isinstance(node, Filter | Project):
        if isinstance(node, Filter):
            predicates = (*conjuncts(node.predicate), *predicates)
        elif not _may_merge(node.exprs, (*predicates, *(exprs or ()))) or (predicates and _raises(node.exprs)):
            break
        else:
            predicates = tuple(substitute(p, node.exprs) for p in predicates)
            exprs = node.exprs if exprs is None else tuple(substitute(e, node.exprs) for e in exprs)
        node = node.input
    found = lookup(low, node, predicates) if isinstance(node, Get) and predicates else None
    if found is not None:
        flow, predicates = found
    else:
        flow = low.rel(node)
    if exprs is None and predicates:
        return low.compute(flow, predicates, None)
    return low.retyped(low.compute(flow, predicates, exprs), schema(rel))


def _raises(exprs: tuple[Scalar, ...]) -> bool:
    return any(can_raise(e) for e in exprs)


def _may_merge(inner: tuple[Scalar, ...], outer: tuple[Scalar, ...]) -> bool:
    """Whether substituting ``inner`` into ``outer`` computes nothing twice and drops nothing that can raise."""
    if not keeps_types(inner, outer):
        return False
    uses: dict[int, int] = {}
    for expr in outer:
        for part in walk(expr):
            if isinstance(part, Column):
                uses[part.index] = uses.get(part.index, 0) + 1
    return all(isinstance(e, Column | Literal) or uses.get(i, 0) <= 1 for i, e in enumerate(inner)) or not outer
