"""Late materialization for top-k: ranks ids with the ranking columns, and fetches the first rows by id.

A top-k keeps every row, in order, and shows a few. Ties break by the row's columns from left to right, so the columns
up to the last one of the primary key decide all ties, and no later column decides any.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.expr.scalar import Column, Scalar
from planner.logical.nodes import Join, JoinKind, Project, Rel, TopK, schema
from planner.logical.traversal import columns_of, conjunction, own_columns, renumber
from planner.lower.filter_pull_up import Chain, chain_of
from planner.lower.state import Lowering
from planner.options import Late
from planner.transform.demand.arm import equality


@dataclass(frozen=True, slots=True)
class LateTopK:
    """The top-k of ids, and its rows joined with the table, which equal the whole top-k."""

    first: TopK
    rows: Rel


def late_topk(low: Lowering, rel: TopK) -> LateTopK | None:
    """The top-k by ids; None if it can only rank whole rows."""
    if low.indexes.one_shot or low.indexes.planning.late is Late.OFF or rel.limit is None:
        return None
    chain = chain_of(rel.input)
    key = () if chain is None else low.indexes.primary_key(chain.get.relation)
    if chain is None or not key or not set(key) <= set(chain.columns):
        return None
    if any(chain.get.schema[k].type.has_equality_class for k in key):
        return None
    kept = _ranking(rel, chain, key)
    return _joined(rel, chain, key, kept) if len(kept) < len(chain.columns) else None


def _ranking(rel: TopK, chain: Chain, key: tuple[int, ...]) -> tuple[int, ...]:
    """The columns that decide which rows come first, and the primary key."""
    exprs = (*rel.keys, *(k.expr for k in rel.order))
    used = {i for e in exprs for i in columns_of(e)}  # bounds that are not constants are over the keys
    decided = {chain.columns[e.index] for e in exprs if isinstance(e, Column)}
    for i, column in enumerate(chain.columns):
        if decided >= set(key):
            break
        used.add(i)
        decided.add(column)
    used |= {chain.columns.index(k) for k in key}
    return tuple(sorted(used))


def _joined(rel: TopK, chain: Chain, key: tuple[int, ...], kept: tuple[int, ...]) -> LateTopK:
    row, place = schema(rel.input), {old: new for new, old in enumerate(kept)}

    def moved(expr: Scalar) -> Scalar:
        return renumber(expr, place.__getitem__)

    ids = Project(rel.input, tuple(own_columns(row)[i] for i in kept))
    order = tuple(replace(k, expr=moved(k.expr)) for k in rel.order)
    first = replace(rel, input=ids, keys=tuple(map(moved, rel.keys)), order=order)
    left = own_columns(schema(first))
    table = own_columns(chain.get.schema, len(left))
    on = (equality(replace(left[place[chain.columns.index(k)]], type=table[k].type), table[k]) for k in key)
    numbers = left[len(kept) :]
    shown = tuple(replace(table[c], type=row[i].type) for i, c in enumerate(chain.columns))
    joined = Join(JoinKind.INNER, first, chain.get, conjunction(tuple(on)))
    return LateTopK(first, Project(joined, (*shown, *numbers)))
