"""Reverses a closure that is demanded by its far end: B·E*, restricted to ends in O, is B·(E*·O).

Rule: the step copies some columns K of the reference, and replaces the others, F, by columns of its other inputs, which
join with the reference on F only. Those inputs form a relation E of pairs (old F, new F), and the recursion is base ⋈
E*. Demanded for constants of all of F, Z = {(o, o)} ∪ {(e.old, z.end) : e.new = z.start} is E* restricted to the
demanded ends; the rows are those of the base joined with Z on F, with K from the base and F from Z's ends.

Side conditions: UNION only, since the result is equal as a set; with UNION ALL a cycle in Z that no row of the base
reaches would never end. No condition of the step can raise, because the conditions see other rows here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product as combinations

from ivm.words import ColumnType
from planner.expr.scalar import Column
from planner.logical.fallibility import can_raise
from planner.logical.join_keys import has_classes
from planner.logical.nodes import Distinct, Filter, Join, JoinKind, Project, Recursive, Reference, Rel, Values, schema
from planner.logical.traversal import columns_of, conjunction, exchange, own_columns, renumber
from planner.transform.demand.arm import MOST, Arm, Wanted, arm_of, equality, product, says_nothing
from planner.transform.pushdown import push_down


@dataclass(frozen=True, slots=True)
class Pairs:
    """E: the arm's other inputs joined, with their columns for the old and the new F, in F's order."""

    rel: Rel
    old: tuple[Column, ...]
    new: tuple[Column, ...]


def turned(rel: Recursive, wanted: Wanted, fresh: Callable[[], int]) -> Rel | None:
    """The recursion's rows that have the demanded constants, from the far end; None: the rule does not apply."""
    arm, far = _far(rel)
    if arm is None or not far or not set(far) <= set(wanted):
        return None
    pairs = _pairs(arm, far)
    rows = tuple(combinations(*(wanted[i] for i in far)))
    if pairs is None or len(rows) > MOST:
        return None
    ends = tuple(ColumnType(rel.schema[i].type, any(r[k].nullable for r in rows)) for k, i in enumerate(far))
    first = Values(tuple((*r, *r) for r in rows), (*ends, *ends))
    return _from_base(rel, far, _closure(pairs, first, fresh()))


def turned_from(rel: Recursive, asked: Callable[[tuple[int, ...]], Rel | None], fresh: Callable[[], int]) -> Rel | None:
    """The rows of the recursion whose far end is in ``asked(far columns)``.

    None: the rule does not apply, or ``asked`` returns None.
    """
    arm, far = _far(rel)
    source = asked(far) if far else None
    pairs = None if source is None or arm is None else _pairs(arm, far)
    if source is None or pairs is None:
        return None
    own = own_columns(schema(source))
    return _from_base(rel, far, _closure(pairs, Project(source, (*own, *own)), fresh()))


def _far(rel: Recursive) -> tuple[Arm | None, tuple[int, ...]]:
    """The step, and the columns that it does not copy."""
    arm = None if rel.all or has_classes(rel.schema) else arm_of(rel)
    return arm, () if arm is None else tuple(i for i, e in enumerate(arm.exprs) if arm.own(e) != i)


def _pairs(arm: Arm, far: tuple[int, ...]) -> Pairs | None:
    equal = arm.equal_to()
    new = tuple(c for i in far if (c := arm.other(arm.exprs[i])) is not None)
    old = tuple(equal[i] for i in far if i in equal)
    if len(new) < len(far) or len(old) < len(far) or any(map(can_raise, arm.predicates)):
        return None
    replaced = {arm.start + i: equal[i] for i in far}
    conditions = tuple(q for p in arm.predicates if not says_nothing(q := exchange(p, replaced)))
    if any(arm.is_own(i) for p in conditions for i in columns_of(p)):
        return None
    others = tuple(part for i, part in enumerate(arm.inputs) if i != arm.place)
    width = arm.end - arm.start

    def place(index: int) -> int:
        return index if index < arm.start else index - width

    moved = tuple(renumber(p, place) for p in conditions)
    joined = product(others)
    whole = Filter(joined, conjunction(moved)) if moved else joined
    return Pairs(whole, _moved(old, place), _moved(new, place))


def _moved(columns: tuple[Column, ...], place: Callable[[int], int]) -> tuple[Column, ...]:
    return tuple(Column(place(c.index), c.type, c.nullable) for c in columns)


def _closure(pairs: Pairs, first: Rel, binding: int) -> Recursive:
    """Z: (start, end) for each F from which an end is reached. ``first`` has the ends themselves, as (end, end)."""
    row = schema(first)
    n = len(row) // 2
    ends = row[n:]
    starts = tuple(ColumnType(e.type, e.nullable or c.nullable) for e, c in zip(ends, pairs.old, strict=True))
    width = len(schema(pairs.rel))
    z = tuple(Column(width + i, c.type, c.nullable) for i, c in enumerate((*starts, *ends)))
    on = conjunction(tuple(equality(new, start) for new, start in zip(pairs.new, z[:n], strict=True)))
    step = Project(Join(JoinKind.INNER, pairs.rel, Reference(binding, (*starts, *ends)), on), (*pairs.old, *z[n:]))
    return Recursive(binding, first, push_down(step), False, (*starts, *ends))


def _from_base(rel: Recursive, far: tuple[int, ...], closure: Recursive) -> Rel:
    row, width = schema(rel.base), len(rel.schema)
    own = tuple(Column(i, c.type, c.nullable) for i, c in enumerate(rel.schema))
    z = tuple(Column(width + i, c.type, c.nullable) for i, c in enumerate(closure.schema))
    assert len(row) == width
    on = conjunction(tuple(equality(own[i], z[k]) for k, i in enumerate(far)))
    ends = dict(zip(far, z[len(far) :], strict=True))
    exprs = tuple(ends.get(i, c) for i, c in enumerate(own))
    return Distinct(push_down(Project(Join(JoinKind.INNER, rel.base, closure, on), exprs)))
