"""Maintained magic sets: a recursion that is joined with another relation computes only what the join demands.

``r ⋈ w`` on columns of r, and ``r ⋉ w`` (IN, EXISTS), show only rows of r whose columns are in w. If the step copies
these columns (rule 1 of ``planner.transform.demand.recursion``, with "is in w" as the condition), r may start from base
⋉ w. If the columns are the far end of a closure (``planner.transform.demand.reversal``), the closure is followed
backwards from w's values.

Side condition: w contains no recursion, so that nothing is computed twice, and does not change in an enclosing loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ivm.words import BOOL, Schema
from planner.expr.functions.library import is_equality
from planner.expr.scalar import Call, Column, Parameter, Scalar
from planner.logical.nodes import Join, JoinKind, LetRec, Project, Recursive, Reference, Rel, schema
from planner.logical.traversal import children, conjunction, conjuncts, own_columns
from planner.memo import by_identity
from planner.transform.demand.arm import equality
from planner.transform.demand.reversal import turned_from
from planner.transform.join_order import column_equality
from planner.transform.pushdown import push_down

_MARK = 1 << 30
"""Greater than the number of any parameter."""

Entered = Callable[[Recursive, tuple[Scalar, ...]], Recursive | None]


@dataclass(frozen=True, slots=True)
class Meeting:
    """What a join demands of a recursion: its columns, ascending, and a relation that has the demanded values of each.

    ``whole``: the join demands nothing else and shows only the recursion's columns.
    """

    columns: tuple[int, ...]
    source: Rel
    whole: bool

    def of(self, columns: tuple[int, ...]) -> Meeting:
        """The demand on some of the columns."""
        own = own_columns(schema(self.source))
        source = Project(self.source, tuple(own[self.columns.index(c)] for c in columns))
        return Meeting(columns, source, self.whole and columns == self.columns)


def meeting(join: Rel, side: int) -> Meeting | None:
    """The demand of a join on the recursion at ``side`` (0 left, 1 right); None: none that can be used."""
    if not isinstance(join, Join) or join.lateral:
        return None
    if join.kind is not JoinKind.INNER and not (join.kind is JoinKind.SEMI and side == 0):
        return None
    other = children(join)[1 - side]
    if _recurs(other):
        return None
    count = len(schema(join.left))
    found: dict[int, Column] = {}
    parts = conjuncts(join.on)
    for part in parts:
        pair = column_equality(part)
        if pair is None:
            continue
        own, met = sorted(pair, key=lambda c: (c.index < count) != (side == 0))
        if (own.index < count) == (side == 0) and (met.index < count) == (side == 1):
            found.setdefault(own.index - count * side, replace(met, index=met.index - count * (1 - side)))
    if not found:
        return None
    columns = tuple(sorted(found))
    source = Project(other, tuple(found[c] for c in columns))
    return Meeting(columns, source, join.kind is JoinKind.SEMI and len(found) == len(parts))


@by_identity
def _recurs(rel: Rel) -> bool:
    return isinstance(rel, Recursive | LetRec | Reference) or any(map(_recurs, children(rel)))


def joined_demand(rel: Recursive, asked: Meeting, entered: Entered, fresh: Callable[[], int]) -> Rel | None:
    """The recursion restricted to what is demanded, possibly with other rows; None: no rule applies."""
    row = schema(rel)
    own = tuple(Column(c, row[c].type, row[c].nullable) for c in asked.columns)
    marks = {c.index: _mark(c) for c in own}
    copied = tuple(c for c, mark in marks.items() if mark is not None and entered(rel, (mark,)) is not None)
    if copied:  # each passes alone, so all do; marks are only tried on the step, which stays as it is
        return replace(rel, base=_met(rel.base, asked.of(copied)), met=copied)
    return turned_from(rel, lambda far: asked.of(far).source if set(far) <= set(asked.columns) else None, fresh)


def _mark(column: Column) -> Scalar | None:
    """A placeholder condition for "this column is in the demanded set"; None: the type has no equality operator."""
    found = equality(column, column)
    if not is_equality(found):
        return None
    return Call(found.function, (column, Parameter(_MARK + column.index, column.type)), BOOL)


def _met(base: Rel, asked: Meeting) -> Rel:
    row, width = schema(base), len(schema(base))
    other: Schema = schema(asked.source)
    pairs = tuple(
        equality(Column(c, row[c].type, row[c].nullable), Column(width + k, other[k].type, other[k].nullable))
        for k, c in enumerate(asked.columns)
    )
    return push_down(Join(JoinKind.SEMI, base, asked.source, conjunction(pairs)))
