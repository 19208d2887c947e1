"""The expressions of an aggregate."""

from __future__ import annotations

from dataclasses import replace

from planner.expr.scalar import Aggregate, Scalar


def aggregate_scalars(aggregate: Aggregate) -> tuple[Scalar, ...]:
    """The expressions of an aggregate: arguments, ORDER BY, FILTER."""
    extra = () if aggregate.filter is None else (aggregate.filter,)
    return (*aggregate.args, *(k.expr for k in aggregate.order), *extra)


def with_aggregate_scalars(aggregate: Aggregate, new: tuple[Scalar, ...]) -> Aggregate:
    """The same aggregate with other expressions, in the order of ``aggregate_scalars``."""
    count = len(aggregate.args)
    order = tuple(replace(k, expr=e) for k, e in zip(aggregate.order, new[count:], strict=False))
    return replace(aggregate, args=new[:count], order=order, filter=None if aggregate.filter is None else new[-1])
