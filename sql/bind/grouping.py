"""GROUP BY: the check of what expressions may use after grouping, and their rewriting to groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ivm.errors import SqlError
from planner.expr.scalar import Aggregate, Call, Case, Column, Scalar, children, with_children
from planner.logical.levels import relevel
from planner.logical.nodes import Rel
from sql.bind.grouping_sets import Keys, grouped
from sql.bind.namespace import Namespace
from sql.bind.scope import AGGREGATE_BASE, GROUPING_BASE, WINDOW_BASE, NameScope
from sql.bind.walk import has_subquery, references


@dataclass(slots=True)
class Grouping:
    """Rewrites expressions over a query's input rows into expressions over its groups.

    ``given``: the keys of GROUP BY; ``prepare`` adds to ``keys`` the columns that functionally depend on a primary key
    among those of every set. ``positions``: the keys that are columns, by column; ``sealed``: ``prepare`` has run, and
    the keys are final.
    """

    scope: NameScope
    given: Keys
    aggregates: list[Aggregate]
    keys: list[Scalar] = field(init=False)
    positions: dict[int, int] = field(default_factory=dict)
    sealed: bool = False

    def __post_init__(self) -> None:
        self.keys = list(self.given.exprs)

    def prepare(self, exprs: Sequence[Scalar]) -> None:
        """Checks the columns that the expressions use, and makes those that depend on the keys keys. Raises 42803."""
        for expr in exprs:
            self._check(expr)
        columns = [(k.index, i) for i, k in enumerate(self.keys) if isinstance(k, Column)]
        self.positions = dict(reversed(columns))
        self.sealed = True

    def _check(self, expr: Scalar) -> None:
        if expr in self.keys:
            return
        if isinstance(expr, Column):
            if expr.index < WINDOW_BASE:
                self._require(expr)
            return
        if has_subquery(expr) and not children(expr):
            for level, index in references(expr):
                if level == 0 and index < WINDOW_BASE:
                    self._require_index(index)
            return
        for child in children(expr):
            self._check(child)

    def _require_index(self, index: int) -> None:
        if any(isinstance(k, Column) and k.index == index for k in self.keys):
            return
        for range_ in self.scope.namespace.ranges:
            for visible in range_.columns:
                if isinstance(visible.expr, Column) and visible.expr.index == index:
                    self._require(visible.expr)
                    return
        raise self._ungrouped(index)

    def _require(self, column: Column) -> None:
        if any(isinstance(k, Column) and k.index == column.index for k in self.keys):
            return
        if not self._depends_on_key(column.index):
            raise self._ungrouped(column.index)
        self.keys.append(column)

    def _depends_on_key(self, index: int) -> bool:
        """Whether the primary key of the column's table is among the keys."""
        keys = [self.given.exprs[i] for i in self.given.common]
        grouped = {k.index for k in keys if isinstance(k, Column)}
        for range_ in self.scope.namespace.ranges:
            indices = [c.expr.index if isinstance(c.expr, Column) else -1 for c in range_.columns]
            if index in indices and range_.relation is not None and range_.relation.primary_key:
                return all(indices[k] in grouped for k in range_.relation.primary_key)
        return False

    def _ungrouped(self, index: int) -> SqlError:
        at, below = self.scope.seen.get(index, (0, False))
        shown = column_label(self.scope.namespace, index)
        if below:
            message = f'subquery uses ungrouped column "{shown}" from outer query'
        else:
            message = f'column "{shown}" must appear in the GROUP BY clause or be used in an aggregate function'
        return SqlError("42803", message, position=at + 1)

    def rewrite(self, expr: Scalar) -> Scalar:
        """The expression over the groups' rows, whose columns are the keys, then the aggregates, then GROUPING's."""
        assert self.sealed
        if expr in self.keys:
            return self.key(self.keys.index(expr))
        if isinstance(expr, Column):
            return Column(self._index(expr.index), expr.type, expr.nullable)
        parts = children(expr)
        if not parts:
            return relevel(expr, lambda level, index: (level, self._index(index) if level == 0 else index))
        new = tuple(self.rewrite(p) for p in parts)
        made = with_children(expr, new)
        if any(b.nullable and not a.nullable for a, b in zip(parts, new, strict=True)) and isinstance(
            made, Call | Case
        ):
            return replace(made, nullable=True)
        return made

    def key(self, position: int) -> Column:
        """A key of the groups, NULL in the groups of sets that do not have it."""
        key = self.keys[position]
        absent = position < len(self.given.exprs) and position not in self.given.common
        return Column(position, key.type, key.nullable or absent)

    def rewrite_targets(self, targets: Sequence[Scalar]) -> list[Scalar]:
        """The columns of the select list over the groups' rows; one that GROUP BY names is that key."""
        keys = dict(self.given.targets)
        return [self.key(keys[i]) if i in keys else self.rewrite(t) for i, t in enumerate(targets)]

    def _index(self, index: int) -> int:
        if index >= GROUPING_BASE:
            return len(self.keys) + len(self.aggregates) + index - GROUPING_BASE
        if index >= AGGREGATE_BASE:
            return len(self.keys) + index - AGGREGATE_BASE
        if index >= WINDOW_BASE:
            return index
        return self.positions[index]

    def outside_keys(self, expr: Scalar) -> Iterator[Scalar]:
        """The parts of the expression without parts that are not in a key."""
        if expr in self.keys:
            return
        parts = children(expr)
        if not parts:
            yield expr
        for part in parts:
            yield from self.outside_keys(part)

    def apply(self, rel: Rel, placed: Callable[[Scalar], Scalar]) -> Rel:
        """The groups. ``placed``: keys as expressions over ``rel``, which has the results of the set-returning
        functions in them."""
        depending = range(len(self.given.exprs), len(self.keys))
        sets = [one.union(depending) for one in self.given.sets]
        keys = tuple(map(placed, self.keys))
        return grouped(rel, keys, sets, tuple(self.aggregates), [self._positions(*g) for g in self.scope.groupings])

    def _positions(self, args: tuple[Scalar, ...], at: int) -> list[int]:
        """The keys that are the arguments of a GROUPING. Raises 42803."""
        if any(arg not in self.given.exprs for arg in args):
            message = "arguments to GROUPING must be grouping expressions of the associated query level"
            raise SqlError("42803", message, position=at + 1)
        return [self.given.exprs.index(arg) for arg in args]


def column_label(namespace: Namespace, index: int) -> str:
    """``t.a``, as errors show a column."""
    for range_ in namespace.ranges:
        for visible in range_.columns:
            if isinstance(visible.expr, Column) and visible.expr.index == index:
                return f"{range_.alias}.{visible.name}"
    return next((v.name for v in namespace.visible if isinstance(v.expr, Column) and v.expr.index == index), "?")
