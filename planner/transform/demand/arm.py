"""A recursion's step taken apart: an inner join of its reference with what does not depend on it."""

from __future__ import annotations

from dataclasses import dataclass

from ivm.words import BOOL
from planner.expr.functions.internal.subquery import SAME_WORD
from planner.expr.functions.library import FUNCTIONS, is_equality
from planner.expr.scalar import Call, Column, Or, Scalar
from planner.logical.fallibility import can_raise
from planner.logical.join_keys import as_type, common_type, is_constant
from planner.logical.nodes import Distinct, Filter, Join, JoinKind, Project, Recursive, Reference, Rel, schema
from planner.logical.traversal import TRUE, conjuncts, keeps_types, own_columns, shift, substitute
from planner.transform.decorrelate.mentions import references
from planner.transform.join_order import Region, column_equality

Predicates = tuple[Scalar, ...]
Wanted = dict[int, tuple[Scalar, ...]]
"""For some of a recursion's columns the constants that are asked for."""

MOST = 1000
"""Constants of one column."""


@dataclass(frozen=True, slots=True)
class Arm:
    """``exprs`` over the joined inputs' columns, where the predicates hold; its reference is ``inputs[place]``.

    The reference's columns are [start, end).
    """

    exprs: tuple[Scalar, ...]
    inputs: tuple[Rel, ...]
    predicates: Predicates
    place: int
    start: int
    end: int

    def own(self, expr: Scalar) -> int | None:
        """Which of the reference's columns an expression is, if it is just that."""
        return expr.index - self.start if isinstance(expr, Column) and self.is_own(expr.index) else None

    def is_own(self, index: int) -> bool:
        return self.start <= index < self.end

    def other(self, expr: Scalar) -> Column | None:
        """The other input's column that an expression is, if it is just that."""
        return expr if isinstance(expr, Column) and not self.is_own(expr.index) else None

    def equal_to(self) -> dict[int, Column]:
        """For columns of the reference another input's column that the predicates make equal to it, word for word."""
        found: dict[int, Column] = {}
        for predicate in self.predicates:
            pair = column_equality(predicate)
            for one, two in (pair, pair[::-1]) if pair else ():
                own, other = self.own(one), self.other(two)
                if own is not None and other is not None:
                    found.setdefault(own, other)
        return found


def arm_of(rel: Recursive) -> Arm | None:
    """The step as one inner join with its reference; None: it is something else."""
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
    """The columns that equal one of a few constants in the predicates."""
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
        if not isinstance(column, Column) or not is_constant(value) or can_raise(value):
            continue
        type_ = column.type
        if not type_.has_equality_class and common_type(type_, value.type) == type_ and as_type(value, type_) is value:
            return column.index, value
    return None


def equality(left: Column, right: Column) -> Scalar:
    """The two columns, of one type, have one value."""
    function = f"=({left.type.kind.value},{left.type.kind.value})"
    if function not in FUNCTIONS:
        return Call(SAME_WORD, (left, right), BOOL, False)
    return Call(function, (left, right), BOOL, left.nullable or right.nullable)


def says_nothing(predicate: Scalar) -> bool:
    """Whether a predicate is a column's equality with itself, where ``equality`` in a join keeps NULLs out anyway."""
    pair = column_equality(predicate)
    return pair is not None and pair[0] == pair[1] and is_equality(equality(*pair))


def product(inputs: tuple[Rel, ...]) -> Rel:
    """The inputs side by side."""
    out = inputs[0]
    for part in inputs[1:]:
        out = Join(JoinKind.INNER, out, part, TRUE)
    return out
