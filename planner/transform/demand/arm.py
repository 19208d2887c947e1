"""Splits a recursion's step into an inner join of its reference with inputs that do not depend on it."""

from __future__ import annotations

from dataclasses import dataclass

from ivm.words import BOOL
from planner.expr.functions.internal.subquery import SAME_WORD
from planner.expr.functions.library import FUNCTIONS, is_equality
from planner.expr.scalar import Call, Column, Or, Scalar
from planner.logical.fallibility import can_raise
from planner.logical.join_keys import as_type, common_type, is_constant
from planner.logical.nodes import Distinct, Filter, Join, JoinKind, Project, Recursive, Reference, Rel, schema
from planner.logical.temporal import reads_clock
from planner.logical.traversal import TRUE, conjuncts, keeps_types, own_columns, shift, substitute
from planner.transform.decorrelate.mentions import references
from planner.transform.join_order import Region, column_equality

Predicates = tuple[Scalar, ...]
Wanted = dict[int, tuple[Scalar, ...]]
"""The constants demanded for some columns of a recursion."""

MOST = 1000
"""The most constants demanded for one column."""


@dataclass(frozen=True, slots=True)
class Arm:
    """The step as ``exprs`` over the joined inputs' columns, where the predicates hold.

    The reference is ``inputs[place]``; its columns are [start, end).
    """

    exprs: tuple[Scalar, ...]
    inputs: tuple[Rel, ...]
    predicates: Predicates
    place: int
    start: int
    end: int

    def own(self, expr: Scalar) -> int | None:
        """The reference's column that the expression is, if it is a plain column of the reference."""
        return expr.index - self.start if isinstance(expr, Column) and self.is_own(expr.index) else None

    def is_own(self, index: int) -> bool:
        return self.start <= index < self.end

    def other(self, expr: Scalar) -> Column | None:
        """The column of another input that the expression is, if it is one."""
        return expr if isinstance(expr, Column) and not self.is_own(expr.index) else None

    def equal_to(self) -> dict[int, Column]:
        """Maps columns of the reference to a column of another input that the predicates make equal, word for word."""
        found: dict[int, Column] = {}
        for predicate in self.predicates:
            pair = column_equality(predicate)
            for one, two in (pair, pair[::-1]) if pair else ():
                own, other = self.own(one), self.other(two)
                if own is not None and other is not None:
                    found.setdefault(own, other)
        return found


def arm_of(rel: Recursive) -> Arm | None:
    """The step as one inner join with its reference; None: it has another form."""
    node, exprs, predicates = rel.step, tuple[Scalar, ...](own_columns(schema(rel.step))), tuple[Scalar, ...]()
    while isinstance(node, Project | Filter | Distinct):
        if isinstance(node, Filter):
            predicates = (*predicates, *conjuncts(node.predicate))
        elif isinstance(node, Project):
            if not keeps_types(node.exprs, (*exprs, *predicates)):
                return None
            exprs = tuple(substitute(e, node.exprs) for e in exprs)
            predicates = tuple(substitute(p, node.exprs) for p in predicates)
        elif rel.all:
            return None
        node = node.input
    region = Region((node,), predicates)
    if isinstance(node, Join) and node.kind is JoinKind.INNER and not node.lateral:
        region = Region.of(node, predicates)
    return _arm(rel.binding, exprs, region)


def _arm(binding: int, exprs: tuple[Scalar, ...], region: Region) -> Arm | None:
    inputs = list(region.inputs)
    places = [i for i, part in enumerate(inputs) if binding in references(part)]
    if len(places) != 1:
        return None
    (place,) = places
    start = sum(len(schema(part)) for part in inputs[:place])
    reference, predicates = inputs[place], region.predicates
    if isinstance(reference, Filter):
        predicates = (*predicates, *(shift(p, start) for p in conjuncts(reference.predicate)))
        reference = reference.input
    if not isinstance(reference, Reference):
        return None
    inputs[place] = reference
    return Arm(exprs, tuple(inputs), predicates, place, start, start + len(reference.schema))


def constants(predicates: Predicates) -> Wanted:
    """The columns that the predicates equate with one of a few constants."""
    found: Wanted = {}
    for predicate in predicates:
        pairs = [_constant(p) for p in (predicate.args if isinstance(predicate, Or) else (predicate,))]
        columns = {pair[0] for pair in pairs if pair is not None}
        if None not in pairs and len(columns) == 1 and len(pairs) <= MOST:
            found.setdefault(columns.pop(), tuple(dict.fromkeys(pair[1] for pair in pairs if pair is not None)))
    return found


def _constant(predicate: Scalar) -> tuple[int, Scalar] | None:
    """(column, constant) of an equality of the two, in one representation."""
    if not is_equality(predicate):
        return None
    for column, value in (predicate.args, predicate.args[::-1]):
        if not isinstance(column, Column) or not is_constant(value) or can_raise(value) or reads_clock(value):
            continue
        type_ = column.type
        if not type_.has_equality_class and common_type(type_, value.type) == type_ and as_type(value, type_) is value:
            return column.index, value
    return None


def equality(left: Column, right: Column) -> Scalar:
    """The equality of two columns of one type."""
    function = f"=({left.type.kind.value},{left.type.kind.value})"
    if function not in FUNCTIONS:
        return Call(SAME_WORD, (left, right), BOOL, False)
    return Call(function, (left, right), BOOL, left.nullable or right.nullable)


def says_nothing(predicate: Scalar) -> bool:
    """Whether a predicate equates a column with itself, while ``equality`` in a join excludes NULLs anyway."""
    pair = column_equality(predicate)
    return pair is not None and pair[0] == pair[1] and is_equality(equality(*pair))


def product(inputs: tuple[Rel, ...]) -> Rel:
    """The cross product of the inputs."""
    out = inputs[0]
    for part in inputs[1:]:
        out = Join(JoinKind.INNER, out, part, TRUE)
    return out
