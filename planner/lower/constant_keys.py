"""Which key of a stored relation's arrangements a filter fixes to constants.

An arrangement of expressions is used if the filter has the same expressions, one of a predicate's rows if the filter
implies the predicate.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from ivm.words import INT8
from planner.expr.functions.internal.membership import MEMBER
from planner.expr.scalar import Call, Column, Literal, Or, Parameter, Scalar
from planner.logical.implication import implied, recognised
from planner.logical.join_keys import by_class, comparable, is_constant, operator
from planner.logical.nodes import Get
from planner.lower.state import Indexes, Lowering
from planner.physical.key_checks import KeyCheck
from planner.transform.normal.scalar import normal

LIMIT = 10_000
"""The most keys that one lookup may list; beyond it a scan is no worse."""


@dataclass(frozen=True, slots=True)
class Listed:
    """The elements of an array: a literal of a long list, or the parameter in its place. An expression for each would
    cost more than to look it up. Equal elements have equal words."""

    array: Literal | Parameter

    def __len__(self) -> int:
        """About how many there are."""
        return len(self.array.value) if isinstance(self.array, Literal) else 1  # type: ignore[arg-type]


Asked = tuple[Scalar, ...] | Listed
"""The constants that a part of a key may equal."""


@dataclass(frozen=True, slots=True)
class FixedKey:
    """The key of an arrangement, by columns or that of a key check. ``constants``: those of each of its parts.

    ``met``: the predicates that every row of these keys meets.
    """

    key: tuple[int, ...] | KeyCheck
    constants: tuple[Asked, ...]
    met: tuple[Scalar, ...]

    @property
    def weight(self) -> int:
        """How much it asks of rows: of several keys, the one that asks for more has fewer rows."""
        return len(self.constants) + (len(self.key.predicates) if isinstance(self.key, KeyCheck) else 0)


def fixed_key(low: Lowering, rel: Get, predicates: tuple[Scalar, ...]) -> FixedKey | None:
    """The best arrangement whose key the predicates fix, the primary key's before others; None: there is none."""
    return best_key(low.indexes, rel, predicates) if low.indexes.one_shot else None


def best_key(indexes: Indexes, rel: Get, predicates: tuple[Scalar, ...]) -> FixedKey | None:
    """The same for any plan."""
    fixed: _Fixed = {}
    part_of_keys = {column for key in indexes.keys(rel.relation) for column in key}
    by_parts = bool(indexes.key_checks(rel.relation))
    for predicate in predicates:
        if not by_parts and _is_member_of(predicate) not in (None, *part_of_keys):
            continue  # its thousands of constants would be made for nothing
        found = points(predicate)
        if found is not None:
            fixed.setdefault(_named(found[0]), (predicate, found[1]))
    if not fixed:
        return None
    candidates = list(_by_columns(indexes, rel, fixed))
    if candidates and candidates[0].key == indexes.primary_key(rel.relation):
        return candidates[0]
    candidates += _by_parts(indexes, rel, fixed, predicates)
    return max(candidates, key=lambda c: c.weight, default=None)


def _is_member_of(predicate: Scalar) -> int | None:
    """The column that the predicate looks for in an array."""
    if not isinstance(predicate, Call) or predicate.function != MEMBER:
        return None
    expr = predicate.args[0]
    return expr.index if isinstance(expr, Column) else None


_Fixed = dict[Scalar, tuple[Scalar, Asked]]
"""By expression: the predicate that fixes it, and the constants."""


def _by_columns(indexes: Indexes, rel: Get, fixed: _Fixed) -> Iterable[FixedKey]:
    for key in indexes.keys(rel.relation):
        found = _fixed(key, tuple(Column(k, INT8) for k in key), fixed)
        if found is not None:
            yield found


def _by_parts(indexes: Indexes, rel: Get, fixed: _Fixed, predicates: tuple[Scalar, ...]) -> Iterable[FixedKey]:
    given: list[Scalar] | None = None
    for check in indexes.key_checks(rel.relation):
        found = _fixed(check, tuple(map(_named, check.parts)), fixed) if check.schema == rel.schema else None
        if found is None:
            continue
        given = [recognised(normal(p)) for p in predicates] if given is None else given
        wanted = [recognised(normal(p)) for p in check.predicates]
        if all(implied(w, given) for w in wanted):
            same = tuple(p for p, g in zip(predicates, given, strict=True) if g in wanted)
            yield FixedKey(check, found.constants, (*found.met, *same))


def _fixed(key: tuple[int, ...] | KeyCheck, parts: tuple[Scalar, ...], fixed: _Fixed) -> FixedKey | None:
    if not parts or not all(p in fixed for p in parts) or prod(len(fixed[p][1]) for p in parts) > LIMIT:
        return None
    return FixedKey(key, tuple(fixed[p][1] for p in parts), tuple(fixed[p][0] for p in parts))


def _named(expr: Scalar) -> Scalar:
    """The form in which equal expressions are equal objects. A column's type may be another name of the same words."""
    return Column(expr.index, INT8) if isinstance(expr, Column) else recognised(normal(expr))


def points(predicate: Scalar) -> tuple[Scalar, Asked] | None:
    """(expression, constants) of expression = constant, or of an OR of such; None: the predicate is neither.

    Both have equal words where they are equal.
    """
    if isinstance(predicate, Or):
        parts = [points(a) for a in predicate.args]
        exprs = {p[0] for p in parts if p is not None}
        each = [_each(p[1]) for p in parts if p is not None]
        if None in parts or None in each or len(exprs) != 1:
            return None
        return exprs.pop(), tuple(c for some in each if some is not None for c in some)
    if isinstance(predicate, Call) and predicate.function == MEMBER:
        return _points_of_member(*predicate.args)
    equality = comparable(predicate)
    if equality is None or equality[2]:
        return None
    for expr, value in (equality[:2], equality[1::-1]):
        if is_constant(value) and not is_constant(expr):
            return expr, (value,)
    return None


def _each(asked: Asked) -> tuple[Scalar, ...] | None:
    """The constants as expressions; None: they are not known."""
    if not isinstance(asked, Listed):
        return asked
    array, element = asked.array, asked.array.type.element
    assert element is not None
    if not isinstance(array, Literal) or not isinstance(array.value, tuple):
        return None
    return tuple(Literal(value, element) for value in dict.fromkeys(array.value) if value is not None)


def _points_of_member(expr: Scalar, array: Scalar) -> tuple[Scalar, Asked] | None:
    element = array.type.element
    assert element is not None
    if is_constant(expr):
        return None
    if isinstance(array, Call) and operator(array) == "array":
        items = array.args
    elif isinstance(array, Parameter) and not element.has_equality_class:
        return expr, Listed(array)
    elif isinstance(array, Literal) and isinstance(array.value, tuple) and len(array.value) <= LIMIT:
        if not element.has_equality_class:
            return expr, Listed(array)
        items = _each(Listed(array)) or ()
    else:
        return None
    if not items or not all(map(is_constant, items)):
        return None
    return by_class(expr), tuple(map(by_class, items)) if items[0].type.has_equality_class else items
