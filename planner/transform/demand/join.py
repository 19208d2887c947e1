"""A recursion that is joined with another relation computes what that asks for: magic sets, maintained.

``r ⋈ w`` on columns of r, and ``r ⋉ w`` (IN, EXISTS), show only rows of r whose columns are in w. Where the step copies
these columns (rule 1 of ``demand``, for "is one of w's" as it is for any other condition on them) r may start with the
rows of its base that are: base ⋉ w. Where the columns are a closure's far end (``demand_turned``), it is followed from
w's values backwards.

Side condition: w has no recursion in it, so that nothing is computed twice, and does not change in a loop around it.
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
"""Above the numbers of all parameters."""

Entered = Callable[[Recursive, tuple[Scalar, ...]], Recursive | None]


@dataclass(frozen=True, slots=True)
class Meeting:
    """A recursion's columns, ascending, and the relation with a column for each in which its rows are looked for.

    ``whole``: nothing else is asked of the two, and only the recursion's columns are shown.
    """

    columns: tuple[int, ...]
    source: Rel
    whole: bool

    def of(self, columns: tuple[int, ...]) -> Meeting:
        """What it asks of some of the columns."""
        own = own_columns(schema(self.source))
        source = Project(self.source, tuple(own[self.columns.index(c)] for c in columns))
        return Meeting(columns, source, self.whole and columns == self.columns)


def meeting(join: Rel, side: int) -> Meeting | None:
    """What a join asks of the recursion on one of its sides; None: nothing that is known."""
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
    """The recursion with the rows that a relation asks for, and maybe others; None: no rule applies."""
    row = schema(rel)
    own = tuple(Column(c, row[c].type, row[c].nullable) for c in asked.columns)
    marks = {c.index: _mark(c) for c in own}
    copied = tuple(c for c, mark in marks.items() if mark is not None and entered(rel, (mark,)) is not None)
    if copied:  # each alone, so all of them; the marks are only tried on the step, which stays as it is
        return replace(rel, base=_met(rel.base, asked.of(copied)), met=copied)
    return turned_from(rel, lambda far: asked.of(far).source if set(far) <= set(asked.columns) else None, fresh)


def _mark(column: Column) -> Scalar | None:
    """A condition on a column that stands for "is one of these"."""
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
