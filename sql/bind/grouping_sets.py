"""GROUPING SETS, ROLLUP and CUBE: the sets of keys that GROUP BY means, and the plan of the groups of all sets.

Each row of the input becomes one row for each set, with the set's number and NULL for the keys that the set does not
have; these rows are grouped by number and keys. So a change costs as much as one change in each set's groups, and no
set's input is kept more than once. The group of an empty set is there even for no input: it is a reduction of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ivm.errors import SqlError
from ivm.words import BOOL, INT4, ColumnType
from planner.expr.scalar import Aggregate, And, Call, Case, Column, Literal, Or, Scalar
from planner.logical.nodes import Project, Reduce, Rel, TableFunction, Values, schema
from planner.logical.traversal import own_columns
from sql.bind.bound_query import union_all
from sql.syntax.nodes import queries as nodes

MAX_SETS: Final = 4096
MAX_CUBE: Final = 12
KeySet = frozenset[int]
"""The positions of a grouping set's keys."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a GROUP BY, and its sets; without GROUPING SETS, ROLLUP and CUBE it is the one set of all keys.

    ``targets``: for each column of the select list that is a key, the key's position. Equal keys are one, unless they
    are different columns of the select list.
    """

    exprs: tuple[Scalar, ...] = ()
    targets: tuple[tuple[int, int], ...] = ()
    sets: tuple[KeySet, ...] = (frozenset(),)

    @property
    def common(self) -> KeySet:
        """The keys that are in every set."""
        return frozenset.intersection(*self.sets)


def has_sets(items: Iterable[nodes.GroupItem]) -> bool:
    """Whether GROUP BY may have other sets than that of all keys."""
    return any(isinstance(i, nodes.GroupingSets) and (i.kind != "list" or has_sets(i.items)) for i in items)


def may_be_empty(items: Iterable[nodes.GroupItem]) -> bool:
    """Whether GROUP BY has a set without keys, whose group is there for no input."""
    return all(isinstance(i, nodes.GroupingSets) and _may_be_empty(i) for i in items)


def _may_be_empty(item: nodes.GroupingSets) -> bool:
    match item.kind:
        case "sets":
            return any(may_be_empty((i,)) for i in item.items)
        case "list":
            return may_be_empty(item.items)
        case _:
            return True


def key_sets(
    items: Sequence[nodes.GroupItem], distinct: bool, position: Callable[[nodes.Expr], int]
) -> tuple[KeySet, ...]:
    """The sets of GROUP BY, the smallest first. ``position``: that of an expression's key. Raises 54001, 54011."""
    sets = _product([_sets(item, position) for item in items])
    if distinct:
        sets = list(dict.fromkeys(sets))
    return tuple(sorted(sets, key=len))


def _sets(item: nodes.GroupItem, position: Callable[[nodes.Expr], int]) -> list[KeySet]:
    """The alternatives that one item stands for."""
    if not isinstance(item, nodes.GroupingSets):
        return [frozenset((position(item),))]
    if item.kind == "cube" and len(item.items) > MAX_CUBE:
        raise SqlError("54011", f"CUBE is limited to {MAX_CUBE} elements", position=item.at + 1)
    inner = [_sets(i, position) for i in item.items]
    match item.kind:
        case "sets":
            return [one for sets in inner for one in sets]
        case "rollup":
            return [_union(inner[:count]) for count in range(len(inner), -1, -1)]
        case "cube":
            return [_union(_chosen(inner, bits)) for bits in range((1 << len(inner)) - 1, -1, -1)]
        case _:
            return [_union(inner)]


def _chosen(inner: list[list[KeySet]], bits: int) -> list[list[KeySet]]:
    """The elements of a cube that a number's bits choose, the last by the lowest bit."""
    return [one for i, one in enumerate(reversed(inner)) if bits >> i & 1]


def _union(lists: Iterable[list[KeySet]]) -> KeySet:
    """The union of lists of keys, each of which is one set."""
    return frozenset().union(*(one for (one,) in lists))


def _product(alternatives: list[list[KeySet]]) -> list[KeySet]:
    """Every choice of one alternative of each item."""
    made: list[KeySet] = [frozenset()]
    for each in alternatives:
        if len(made) * len(each) > MAX_SETS:
            raise SqlError("54001", f"too many grouping sets present (maximum {MAX_SETS})")
        made = [a | b for a in made for b in each]
    return made


def grouped(
    rel: Rel, keys: Sequence[Scalar], sets: Sequence[KeySet], aggregates: tuple[Aggregate, ...],
    groupings: Sequence[Sequence[int]],
) -> Rel:  # fmt: skip
    """The groups of all sets: their keys, aggregates, and the value of each GROUPING of keys at these positions."""
    if len(sets) == 1:
        made = _reduced(rel, tuple(keys), aggregates)
        none = (Literal(0, INT4),) * len(groupings)
        return Project(made, (*own_columns(schema(made)), *none)) if groupings else made
    parts = []
    some = [s for s in sets if s]
    if some:
        parts.append(_expanded(rel, keys, some, aggregates, groupings))
    parts += [_without_keys(rel, keys, aggregates, groupings)] * (len(sets) - len(some))
    return union_all(parts)


def _reduced(rel: Rel, keys: tuple[Scalar, ...], aggregates: tuple[Aggregate, ...]) -> Rel:
    """The groups. Without keys and aggregates there is one, whatever the input, as in Postgres."""
    return Reduce(rel, keys, aggregates) if keys or aggregates else Values(((),), ())


def _expanded(
    rel: Rel, keys: Sequence[Scalar], sets: Sequence[KeySet], aggregates: tuple[Aggregate, ...],
    groupings: Sequence[Sequence[int]],
) -> Rel:  # fmt: skip
    """The groups of the sets that have keys."""
    one, last = Literal(1, INT4), Literal(len(sets), INT4)
    number = Column(len(schema(rel)), INT4, False)
    rows = TableFunction(rel, "generate_series(int4,int4)", (one, last), (ColumnType(INT4, False),))
    nulled = [_unless_absent(number, key, [i in s for s in sets]) for i, key in enumerate(keys)]
    made = Reduce(rows, (number, *nulled), aggregates)
    own = own_columns(schema(made))
    return Project(made, (*own[1:], *(_grouping(own[0], sets, positions) for positions in groupings)))


def _unless_absent(number: Column, key: Scalar, present: list[bool]) -> Scalar:
    if all(present):
        return key
    return Case(((_among(number, present), key),), Literal(None, key.type), key.type)


def _among(number: Column, wanted: Sequence[bool]) -> Scalar:
    """Whether the set's number, from 1, is a wanted one: a test of the ranges of such numbers."""
    tests: list[Scalar] = []
    first = 0
    for i in range(1, len(wanted) + 1):
        if i < len(wanted) and wanted[i] == wanted[first]:
            continue
        if wanted[first]:
            tests.append(_between(number, first + 1, i, len(wanted)))
        first = i
    return tests[0] if len(tests) == 1 else Or(tuple(tests))


def _between(number: Column, low: int, high: int, count: int) -> Scalar:
    tests = []
    if low > 1:
        tests.append(Call(">=(int4,int4)", (number, Literal(low, INT4)), BOOL, False))
    if high < count:
        tests.append(Call("<=(int4,int4)", (number, Literal(high, INT4)), BOOL, False))
    return And(tuple(tests)) if len(tests) > 1 else tests[0] if tests else Literal(True, BOOL)


def _grouping(number: Column, sets: Sequence[KeySet], positions: Sequence[int]) -> Scalar:
    """GROUPING: a bit for each key, the last the lowest, set where the key is not in the row's set."""
    values = [_bits(positions, one) for one in sets]
    known = list(dict.fromkeys(values))
    arms = [(_among(number, [v == value for v in values]), Literal(value, INT4)) for value in known[1:]]
    return Case(tuple(arms), Literal(known[0], INT4), INT4, False) if arms else Literal(known[0], INT4)


def _bits(positions: Sequence[int], one: KeySet) -> int:
    value = 0
    for position in positions:
        value = 2 * value + (position not in one)
    return value


def _without_keys(
    rel: Rel, keys: Sequence[Scalar], aggregates: tuple[Aggregate, ...], groupings: Sequence[Sequence[int]]
) -> Rel:
    """The one group of an empty set."""
    made = _reduced(rel, (), aggregates)
    absent = tuple(Literal(None, key.type) for key in keys)
    bits = (Literal(_bits(positions, frozenset()), INT4) for positions in groupings)
    return Project(made, (*absent, *own_columns(schema(made)), *bits))
