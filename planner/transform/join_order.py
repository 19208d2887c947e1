"""Orders inner joins: left-deep and greedy by equalities, so that cross products come last.

Equalities are transitive: a = b and b = c imply a = c, and with a = 5 also b = 5, where the types are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from ivm.words import BOOL
from planner.expr.functions.compare import NOT_DISTINCT
from planner.expr.functions.library import is_equality
from planner.expr.scalar import Call, Column, Scalar
from planner.logical.fallibility import can_raise
from planner.logical.join_keys import is_constant, operator
from planner.logical.nodes import (
    Distinct,
    Filter,
    Get,
    Join,
    JoinKind,
    Project,
    Reduce,
    Reference,
    Rel,
    TopK,
    Values,
    schema,
)  # fmt: skip
from planner.logical.traversal import columns_of, conjunction, conjuncts, has_subquery, own_columns, renumber, shift
from planner.memo import by_identity


@dataclass(frozen=True, slots=True)
class Region:
    """Inputs of an inner join, and the conditions over all their columns, in the inputs' order."""

    inputs: tuple[Rel, ...]
    predicates: tuple[Scalar, ...]

    @property
    def owner(self) -> list[int]:
        """For each column, the input that it is of."""
        return [i for i, rel in enumerate(self.inputs) for _ in schema(rel)]

    @property
    def starts(self) -> list[int]:
        """For each input, its first column."""
        return list(accumulate([len(schema(rel)) for rel in self.inputs[:-1]], initial=0))

    @staticmethod
    def of(rel: Join, predicates: tuple[Scalar, ...]) -> Region:
        """Flattens a tree of inner joins into one region and adds the conditions that equalities imply."""
        inputs, found = _flatten(rel)
        everything = tuple(dict.fromkeys((*found, *predicates)))
        return Region(inputs, (*everything, *_constants(everything)))


LARGEST = 16
"""The most inputs of a region. A larger join is left as written, since nested CTEs grow exponentially."""


@by_identity
def _inputs(rel: Rel) -> int:
    """The number of inputs that the region of a plan would have."""
    if isinstance(rel, Join) and rel.kind is JoinKind.INNER and not rel.lateral:
        return _inputs(rel.left) + _inputs(rel.right)
    if isinstance(rel, Filter) and isinstance(rel.input, Join) and rel.input.kind is JoinKind.INNER:
        return _inputs(rel.input)
    return 1


def _flatten(rel: Rel, top: bool = True) -> tuple[tuple[Rel, ...], tuple[Scalar, ...]]:
    if not top and _inputs(rel) > LARGEST:
        return (rel,), ()
    if isinstance(rel, Join) and rel.kind is JoinKind.INNER and not rel.lateral:
        left, one = _flatten(rel.left, _inputs(rel) <= LARGEST)
        right, two = _flatten(rel.right, _inputs(rel) <= LARGEST)
        count = len(schema(rel.left))
        return (*left, *right), (*one, *(shift(p, count) for p in two), *conjuncts(rel.on))
    if isinstance(rel, Filter) and isinstance(rel.input, Join) and rel.input.kind is JoinKind.INNER:
        parts = conjuncts(rel.predicate)
        if not any(can_raise(p) or has_subquery(p) for p in parts):
            inputs, found = _flatten(rel.input, top)
            return inputs, (*found, *parts)
    return (rel,), ()


def column_equality(predicate: Scalar) -> tuple[Column, Column] | None:
    """Two columns of one type whose equality is a predicate, where equality is their words' one."""
    if not is_equality(predicate):
        return None
    left, right = predicate.args
    if isinstance(left, Column) and isinstance(right, Column) and left.type == right.type:
        return None if left.type.has_equality_class else (left, right)
    return None


def _constants(predicates: tuple[Scalar, ...]) -> list[Scalar]:
    """column = constant for every column equal to one with a constant; all constants, if there are several."""
    pairs = [p for e in predicates if (p := column_equality(e)) is not None]
    known: dict[tuple[int, Scalar], Call] = {}
    for predicate in predicates:
        if is_equality(predicate):
            for column, value in (predicate.args, predicate.args[::-1]):
                if isinstance(column, Column) and is_constant(value) and not can_raise(value):
                    equality = Call(predicate.function, (column, value), BOOL, predicate.nullable)
                    known.setdefault((column.index, value), equality)
    added: list[Scalar] = []
    todo = list(known.items())
    while todo:
        (index, value), equality = todo.pop()
        for source, target in (turned for pair in pairs for turned in (pair, pair[::-1])):
            same = source.index == index and equality.args[0].type == target.type
            if same and (target.index, value) not in known:
                new = Call(equality.function, (target, value), BOOL)
                known[target.index, value] = new
                added.append(new)
                todo.append(((target.index, value), new))
    return added


def ordered(region: Region) -> Rel:
    """The region as a tree of joins, with its columns in the region's order."""
    order = sequence(region)
    rel, place = joined(region, order)
    if order == list(range(len(order))):
        return rel
    own = own_columns(schema(rel))
    wanted = tuple(own[place[c]] for c in range(len(own)))
    return rel if wanted == own else Project(rel, wanted)


def sequence(region: Region) -> list[int]:
    """The order in which the inputs are joined."""
    owner = region.owner
    needs = _needs(region, owner)
    equalities = [_is_equality(p, owner) for p in region.predicates]
    ranks = [_rank(rel) for rel in region.inputs]
    order = [min(range(len(ranks)), key=lambda i: (ranks[i], i))] if ranks else []
    while len(order) < len(ranks):
        order.append(_next(order, ranks, needs, equalities))
    return order


def _needs(region: Region, owner: list[int]) -> list[frozenset[int]]:
    """For each predicate, the inputs that it reads."""
    return [frozenset([owner[c] for c in columns_of(p)]) for p in region.predicates]


def _is_equality(predicate: Scalar, owner: list[int]) -> bool:
    if not isinstance(predicate, Call) or not (is_equality(predicate) or operator(predicate) == NOT_DISTINCT):
        return False
    sides = [frozenset(owner[c] for c in columns_of(a)) for a in predicate.args]
    return len(sides) == 2 and all(sides) and not sides[0] & sides[1]


def _next(order: list[int], ranks: list[int], needs: list[frozenset[int]], equalities: list[bool]) -> int:
    placed = frozenset(order)

    def cost(i: int) -> tuple[int, int, int]:
        joined = placed | {i}
        meets = [equal for need, equal in zip(needs, equalities, strict=True) if i in need and need <= joined]
        connected = 0 if any(meets) else 1 if meets and len(meets) > 0 else 2
        return connected, ranks[i], i

    return min([i for i in range(len(ranks)) if i not in placed], key=cost)


def _rank(rel: Rel) -> int:
    """A guess of how selective an input is; 0: the fewest rows."""
    match rel:
        case Values():
            return 0 if len(rel.rows) <= 1 else 1
        case Reference():
            return 2
        case Filter():
            pointed = any(_is_point(p) for p in conjuncts(rel.predicate))
            return 3 if pointed else min(_rank(rel.input), 5)
        case Project() | Distinct() | Reduce() | TopK():
            return _rank(rel.input)
        case Get():
            return 6
        case _:
            return 5


def _is_point(predicate: Scalar) -> bool:
    equal = is_equality(predicate)
    return equal and isinstance(predicate, Call) and any(is_constant(a) for a in predicate.args)


def joined(region: Region, order: list[int]) -> tuple[Rel, dict[int, int]]:
    """The region joined in the given order, and the new position of each column."""
    starts = region.starts
    needs = _needs(region, region.owner)
    place: dict[int, int] = {}
    rel: Rel | None = None
    count = 0
    done: set[int] = set()
    for number, i in enumerate(order):
        part = region.inputs[i]
        for k in range(len(schema(part))):
            place[starts[i] + k] = count + k
        count += len(schema(part))
        placed = frozenset(order[: number + 1])
        ready = [k for k, need in enumerate(needs) if k not in done and need <= placed]
        if rel is None:
            rel = part
            ready = [k for k in ready if needs[k]]
            if ready:
                rel = Filter(rel, conjunction(tuple(renumber(region.predicates[k], place.__getitem__) for k in ready)))
        else:
            on = conjunction(tuple(renumber(region.predicates[k], place.__getitem__) for k in ready))
            rel = Join(JoinKind.INNER, rel, part, on)
        done |= set(ready)
    assert rel is not None
    rest = [k for k in range(len(needs)) if k not in done]
    if rest:
        rel = Filter(rel, conjunction(tuple(region.predicates[k] for k in rest)))
    return rel, place
