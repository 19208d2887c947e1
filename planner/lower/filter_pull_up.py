"""One-shot joins with a stored relation: pulls its filter above the join, so that the join can look up its key.

A maintained view filters before it arranges. A query that runs once over a few rows and a large relation must not read
the relation to filter it: ``UPDATE big … FROM small WHERE big.id = small.id AND big.x > 3`` costs O(small).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.expr.scalar import Column, Scalar
from planner.logical.join_keys import KeyPair
from planner.logical.nodes import Filter, Get, Join, JoinKind, Project, Rel, schema
from planner.logical.traversal import conjunction, conjuncts, own_columns, renumber, substitute
from planner.lower.constant_keys import fixed_key
from planner.lower.state import Lowering


@dataclass(frozen=True, slots=True)
class Chain:
    """Filters and projections of plain columns over a stored relation: output column i is its ``columns[i]``."""

    get: Get
    columns: tuple[int, ...]
    predicates: tuple[Scalar, ...]


def chain_of(rel: Rel) -> Chain | None:
    """The chain that a plan is; None: it is none."""
    if not _reads_stored(rel):
        return None
    exprs: tuple[Scalar, ...] = own_columns(schema(rel))
    predicates: tuple[Scalar, ...] = ()
    while isinstance(rel, Filter | Project):
        if isinstance(rel, Filter):
            predicates = (*conjuncts(rel.predicate), *predicates)
        else:
            inner = rel.exprs
            exprs = tuple(substitute(e, inner) for e in exprs)
            predicates = tuple(substitute(p, inner) for p in predicates)
        rel = rel.input
    if not isinstance(rel, Get) or not all(isinstance(e, Column) for e in exprs):
        return None
    return Chain(rel, tuple(e.index for e in exprs if isinstance(e, Column)), predicates)


def _reads_stored(rel: Rel) -> bool:
    while isinstance(rel, Filter | Project):
        rel = rel.input
    return isinstance(rel, Get)


def pulled(low: Lowering, join: Join, keys: tuple[KeyPair, ...]) -> Rel | None:
    """The join, whose condition has these keys, with the filter of one looked-up side above it (or in its condition);
    None: there is no such filter."""
    if not low.indexes.one_shot or join.kind in (JoinKind.RIGHT, JoinKind.FULL):
        return None
    left, right = chain_of(join.left), chain_of(join.right)
    if not any(chain is not None and chain.predicates for chain in (left, right)):
        return None
    count = len(schema(join.left))
    left_fits = _fits(low, left, tuple(k.left for k in keys)) and join.kind in (JoinKind.INNER, JoinKind.SEMI)
    right_fits = _fits(low, right, tuple(k.right for k in keys))
    if left_fits and right_fits:
        assert left is not None
        assert right is not None
        left_fits = (low.indexes.size(left.get.relation) or 0) > (low.indexes.size(right.get.relation) or 0)
    if left_fits and left is not None and left.predicates:
        return _left(join, left, count)
    if right_fits and right is not None and right.predicates and not left_fits:
        return _right(join, right, count)
    return None


def _fits(low: Lowering, chain: Chain | None, keys: tuple[Scalar, ...]) -> bool:
    """Whether the relation has an arrangement by exactly these keys, and no constant fixes a key of it anyway."""
    if chain is None or not keys or not all(isinstance(k, Column) for k in keys):
        return False
    columns = {chain.columns[k.index] for k in keys if isinstance(k, Column)}
    known = any(set(key) == columns for key in low.indexes.keys(chain.get.relation))
    return known and fixed_key(low, chain.get, chain.predicates) is None


def _left(join: Join, chain: Chain, count: int) -> Rel:
    width = len(chain.get.schema)

    def place(i: int) -> int:
        return chain.columns[i] if i < count else i - count + width

    on = renumber(join.on, place)
    wide = replace(join, left=chain.get, on=on)
    kept = own_columns(schema(join))
    shown = tuple(replace(c, index=place(c.index)) for c in kept)
    return Project(Filter(wide, conjunction(chain.predicates)), shown)


def _right(join: Join, chain: Chain, count: int) -> Rel:
    def place(i: int) -> int:
        return i if i < count else count + chain.columns[i - count]

    on = renumber(join.on, place)
    predicates = tuple(renumber(p, lambda i: i + count) for p in chain.predicates)
    if join.kind is JoinKind.INNER:
        wide: Rel = Filter(replace(join, right=chain.get, on=on), conjunction(predicates))
    else:
        wide = replace(join, right=chain.get, on=conjunction((*conjuncts(on), *predicates)))
    kept = own_columns(schema(join))
    return Project(wide, tuple(replace(c, index=place(c.index)) for c in kept))
