"""Magic sets: a demand relation D, itself a recursion, and the recursion restricted to D.

D holds values of some columns A: the demanded ones and, with each value of a row of the step, the value of the
reference's row that the row is derived from. D is closed under this, so the step derives its rows in D from the working
table's rows in D. By induction the restricted working table is the working table restricted to D, with the same
multiplicities. D may be larger than necessary: it ignores conditions that can raise or that read columns it lacks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product as combinations

from ivm.words import ColumnType, Schema
from planner.expr.functions.library import is_equality
from planner.expr.scalar import Column
from planner.logical.fallibility import can_raise
from planner.logical.linearity import empty_without
from planner.logical.nodes import Filter, Join, JoinKind, Project, Recursive, Reference, Rel, Values, schema
from planner.logical.traversal import columns_of, conjunction, exchange, renumber
from planner.transform.demand.arm import MOST, Arm, Predicates, Wanted, arm_of, equality, product, says_nothing
from planner.transform.pushdown import push_down


def by_demand(rel: Recursive, wanted: Wanted, asked: Predicates, fresh: Callable[[], int]) -> Recursive | None:
    """The recursion restricted to the demanded rows and few others; None: the rule does not apply."""
    arm = arm_of(rel) if empty_without(rel.step, rel.binding) else None
    if arm is None:
        return None
    for columns in dict.fromkeys((tuple(sorted(wanted)), *((i,) for i in sorted(wanted)))):
        rows = tuple(combinations(*(wanted[i] for i in columns)))
        rule = _Rule.of(arm, columns) if len(rows) <= MOST else None
        if rule is not None:
            row = tuple(ColumnType(rel.schema[i].type, any(r[k].nullable for r in rows)) for k, i in enumerate(columns))
            demanded = rule.closure(Values(rows, row), fresh())
            return _restricted(rel, columns, demanded, asked)
    return None


def _restricted(rel: Recursive, columns: tuple[int, ...], demanded: Recursive, asked: Predicates) -> Recursive:
    width = len(rel.schema)

    def met(part: Rel) -> Rel:
        row = schema(part)
        pairs = tuple(
            equality(Column(i, row[i].type, row[i].nullable), Column(width + k, d.type, d.nullable))
            for k, (i, d) in enumerate(zip(columns, demanded.schema, strict=True))
        )
        return push_down(Join(JoinKind.SEMI, part, demanded, conjunction(pairs)))

    return replace(rel, base=met(rel.base), step=met(rel.step), demanded=asked)


@dataclass(frozen=True, slots=True)
class _Rule:
    """The rule D(out) ← D(given) and the arm's other inputs. Columns: those of the arm's inputs, then D's."""

    arm: Arm
    conditions: Predicates
    out: tuple[Column, ...]
    total: int

    @staticmethod
    def of(arm: Arm, columns: tuple[int, ...]) -> _Rule | None:
        """None: the demanded row does not determine the reference's row."""
        total = sum(len(schema(part)) for part in arm.inputs)
        given = {i: Column(total + k, arm.exprs[i].type) for k, i in enumerate(columns)}
        known = {arm.start + i: c for i, c in arm.equal_to().items()}
        known |= {arm.start + own: given[i] for i in columns if (own := arm.own(arm.exprs[i])) is not None}
        if any(arm.start + i not in known for i in columns):
            return None
        links = tuple(equality(given[i], c) for i in columns if (c := arm.other(arm.exprs[i])) is not None)
        safe = tuple(q for p in arm.predicates if not can_raise(p) and not says_nothing(q := exchange(p, known)))
        conditions = (*links, *(p for p in safe if columns_of(p) and not any(map(arm.is_own, columns_of(p)))))
        rule = _Rule(arm, conditions, tuple(known[arm.start + i] for i in columns), total)
        return rule if {rule.owner(c.index) for c in rule.out} <= rule.connected() else None

    def owner(self, column: int) -> int:
        """The input that a column belongs to; D counts as the one after the last."""
        end = 0
        for i, part in enumerate(self.arm.inputs):
            end += len(schema(part))
            if column < end:
                return i
        return len(self.arm.inputs)

    def connected(self) -> set[int]:
        """D, and the inputs that equalities connect with it."""
        found = {len(self.arm.inputs)}
        grew = True
        while grew:
            grew = False
            for condition in self.conditions:
                owners = {self.owner(i) for i in columns_of(condition)}
                if is_equality(condition) and owners & found and not owners <= found:
                    found |= owners
                    grew = True
        return found

    def closure(self, first: Values, binding: int) -> Recursive:
        """D as a recursion that starts from its first rows."""
        n = len(first.schema)
        loose = any(c.nullable for c in first.schema) or any(c.nullable for c in self.out if c.index < self.total)
        row: Schema = tuple(ColumnType(c.type, loose) for c in first.schema)
        kept = sorted(self.connected() - {len(self.arm.inputs)})
        place = {self.total + k: k for k in range(n)}
        start = 0
        for i, part in enumerate(self.arm.inputs):
            for k in range(len(schema(part))):
                if i in kept:
                    place[start + k] = len(place)
            start += len(schema(part))
        met = tuple(renumber(c, place.__getitem__) for c in self.conditions if columns_of(c) <= set(place))
        joined = product((Reference(binding, row), *(self.arm.inputs[i] for i in kept)))
        out = tuple(Column(place[c.index], c.type, c.nullable) for c in self.out)
        step = Project(Filter(joined, conjunction(met)) if met else joined, out)
        return Recursive(binding, first, push_down(step), False, row)
