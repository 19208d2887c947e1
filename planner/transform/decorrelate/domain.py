"""Domains: the set of outer bindings to which a correlated subquery is applied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ivm.words import BOOL, INT8, ColumnType, Schema
from planner.expr.functions.internal.subquery import SAME_WORD
from planner.expr.scalar import Call, Column, Scalar
from planner.logical.nodes import Rel, Values

ScopedColumn = tuple[int, int]
"""(scope, position): a column of a row that a query's expressions see. Each such row has its own scope number."""


@dataclass(frozen=True, slots=True)
class Domain:
    """A set of outer bindings. ``rel`` has these columns, in order, and each binding once."""

    rel: Rel
    columns: tuple[ScopedColumn, ...]

    @property
    def width(self) -> int:
        return len(self.columns)

    def position(self, column: ScopedColumn) -> int:
        return self.columns.index(column)


UNIT = Domain(Values(((),), ()), ())
Scopes = tuple[int, ...]
"""The scopes around a plan, innermost first: ``OuterColumn.level`` k is in ``scopes[k - 1]``."""


class Decorrelation(Protocol):
    """What ``Lifter`` needs of the decorrelator: the recursion into plans."""

    def outer_columns_in(self, rel: Rel, scopes: Scopes) -> frozenset[ScopedColumn]:
        """The outer columns that the plan refers to."""
        ...

    def apply(self, rel: Rel, domain: Domain, scopes: Scopes) -> Rel:
        """For each row of the domain, its columns, then those of each row of the plan under that binding."""
        ...

    def closed_plan(self, rel: Rel, scopes: Scopes) -> Rel:
        """Decorrelates a plan that refers to no column of a domain."""
        ...

    def outer(self, expr: Scalar, domain: Domain, scopes: Scopes) -> Scalar:
        """An expression without subqueries, its outer columns replaced by the domain's columns."""
        ...


def same_words(left: int, right: int, column: ColumnType) -> Scalar:
    """A join key for domains: columns ``left`` and ``right`` have the same word or are both NULL."""
    arguments = (Column(left, column.type, column.nullable), Column(right, column.type, column.nullable))
    return Call(SAME_WORD, arguments, BOOL, False)


def raw_columns(positions: tuple[int, ...], row: Schema) -> tuple[Column, ...]:
    """Columns that compare as words: those of types with equality classes are read as bigint."""
    found = []
    for position, column in zip(positions, row, strict=True):
        type_ = INT8 if column.type.has_equality_class else column.type
        found.append(Column(position, type_, column.nullable))
    return tuple(found)
