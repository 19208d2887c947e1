"""UNION ALL of many branches of one form: one branch, over the rows of the constants in which they differ.

Rule: ``SELECT f(x, c1) FROM t WHERE x = c2 UNION ALL …`` is ``SELECT f(x, v.c1) FROM t JOIN (VALUES …) v ON x = v.c2``,
of which t has only the rows whose x is one of the constants; and ``SELECT c1 UNION ALL …`` is VALUES.

Side conditions: the branches are a projection of a condition on one stored relation, or of no relation; they differ in
constants of the same types only, and call no volatile function; one conjunct demands that an expression over the
relation equals a constant in which they differ, since without it each row would meet each constant. Not for views,
whose branches change one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Final

from ivm.words import BOOL, ColumnType, Kind, SqlType
from planner.expr.functions.internal.membership import MEMBER
from planner.expr.functions.library import is_volatile
from planner.expr.literal_rows import LiteralRows
from planner.expr.parts import walk
from planner.expr.scalar import And, Call, Case, Coalesce, Column, Literal, Or, Scalar, children, with_children
from planner.logical.join_keys import as_type, comparable
from planner.logical.kinds import kinds_in
from planner.logical.nodes import (
    Filter,
    Get,
    Join,
    JoinKind,
    Project,
    Rel,
    SetKind,
    SetOperation,
    Values,
    schema,
)  # fmt: skip
from planner.logical.traversal import TRUE, columns_of, conjuncts
from planner.logical.traversal import children as inputs
from planner.logical.traversal import with_children as with_inputs

MANY: Final = 32
"""From so many branches on."""
_INNER: Final = (Call, And, Or, Case, Coalesce)


@dataclass(frozen=True, slots=True)
class _Branch:
    """``read``: a stored relation, or the one row of a SELECT without FROM."""

    read: Get | Values
    exprs: tuple[Scalar, ...]
    predicate: Scalar

    @property
    def parts(self) -> list[Scalar]:
        """All expressions and their parts, in the order in which ``_rebuilt`` meets them."""
        return [part for expr in (*self.exprs, self.predicate) for part in walk(expr)]


def together(rel: Rel) -> Rel:
    """The plan with its alike branches as one each. Inputs that are shared stay so."""
    return _together(rel, {}) if SetOperation in kinds_in(rel) else rel


def _together(rel: Rel, known: dict[int, tuple[Rel, Rel]]) -> Rel:
    found = known.get(id(rel))
    if found is not None:
        return found[1]
    branches = list(_branches(rel))
    if len(branches) >= MANY:
        made = _alike(branches) or rel
    else:
        below = inputs(rel)
        changed = tuple([_together(r, known) for r in below])
        made = rel if all(a is b for a, b in zip(below, changed, strict=True)) else with_inputs(rel, changed)
    known[id(rel)] = rel, made
    return made


def _branches(rel: Rel) -> Iterator[Rel]:
    """The operands of a chain of UNION ALL, the last one first."""
    while isinstance(rel, SetOperation) and rel.kind is SetKind.UNION and rel.all:
        yield rel.right
        rel = rel.left
    yield rel


def _alike(rels: list[Rel]) -> Rel | None:
    branches: list[_Branch] = []
    for rel in reversed(rels):
        branch = _branch(rel)
        if branch is None or branch.read != (branches[0].read if branches else branch.read):
            return None
        branches.append(branch)
    first = branches[0].parts
    if any(is_volatile(part) for part in first):
        return None
    columns: list[list[object]] = [[part.value] if isinstance(part, Literal) else [] for part in first]
    for branch in branches[1:]:
        own = branch.parts
        if len(own) != len(first) or not all(map(_same, first, own, columns)):
            return None
    slots: dict[int, int] = {}
    for place, values in enumerate(columns):
        if len(set(map(repr, values))) > 1:
            slots[place] = len(slots)
    if not slots or any(None in columns[place] for place in slots):
        return None
    types = tuple(first[place].type for place in slots)
    rows = LiteralRows(tuple(tuple(columns[place]) for place in slots), types)
    return _joined(branches[0], slots, rows)


def _branch(rel: Rel) -> _Branch | None:
    if not isinstance(rel, Project):
        return None
    below, predicate = (rel.input.input, rel.input.predicate) if isinstance(rel.input, Filter) else (rel.input, TRUE)
    if isinstance(below, Get) or (isinstance(below, Values) and not below.schema and len(below.rows) == 1):
        return _Branch(below, rel.exprs, predicate)
    return None


def _same(one: Scalar, other: Scalar, values: list[object]) -> bool:
    """Whether two parts are the same but for what is in them; ``values`` gets the constant."""
    if type(one) is not type(other) or one.type != other.type:
        return False
    if isinstance(one, Literal) and isinstance(other, Literal):
        values.append(other.value)
        return True
    if isinstance(one, Call) and isinstance(other, Call):
        return one.function == other.function and len(one.args) == len(other.args) and one.nullable is other.nullable
    if isinstance(one, _INNER):
        return len(children(one)) == len(children(other)) and one.nullable is other.nullable
    return one == other


def _joined(branch: _Branch, slots: dict[int, int], rows: LiteralRows) -> Rel | None:
    width = len(schema(branch.read))
    places = count()
    columns = {place: Column(width + slot, rows.types[slot], False) for place, slot in slots.items()}
    exprs = tuple([_rebuilt(e, columns, places) for e in branch.exprs])
    predicate = _rebuilt(branch.predicate, columns, places)
    constants = Values(rows, tuple(ColumnType(t, False) for t in rows.types))
    if isinstance(branch.read, Values):
        return Project(constants, exprs) if predicate == TRUE else None
    tests = [_among(p, width, rows) for p in conjuncts(predicate)]
    among = next((t for t in tests if t is not None), None)
    if among is None:
        return None
    return Project(Filter(Join(JoinKind.INNER, Filter(branch.read, among), constants, TRUE), predicate), exprs)


def _rebuilt(expr: Scalar, columns: Mapping[int, Column], places: Iterator[int]) -> Scalar:
    """The expression with columns in these of its places, which are numbered as they are met."""
    column = columns.get(next(places))
    if column is not None:
        return column
    parts = children(expr)
    return with_children(expr, tuple([_rebuilt(p, columns, places) for p in parts])) if parts else expr


def _among(predicate: Scalar, width: int, rows: LiteralRows) -> Scalar | None:
    """For an equality of the relation's columns and a constant of the branches: that it is one of the constants."""
    equality = comparable(predicate)
    if equality is None or equality[2]:
        return None
    for value, constant in (equality[:2], equality[1::-1]):
        read = columns_of(value)
        if not isinstance(constant, Column) or constant.index < width or not read or max(read) >= width:
            continue
        own = rows.types[constant.index - width]
        datums = rows.columns[constant.index - width]
        sample = Literal(datums[0], own)
        if as_type(sample, constant.type) is sample:
            return Call(MEMBER, (value, Literal(datums, SqlType(Kind.ARRAY, element=own.plain))), BOOL, value.nullable)
    return None
