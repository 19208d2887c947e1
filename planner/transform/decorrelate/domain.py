"""Domains: the set of outer bindings to which a correlated subquery is applied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ivm.words import BOOL, INT8, ColumnType, Schema
from planner.expr.functions.internal.subquery import SAME_WORD
from planner.expr.scalar import Call, Column, Scalar
from planner.logical.nodes import Rel, Values

Token = tuple[int, int]
"""(scope, column): a column of the row that a query's expressions see; each such row has a scope number of its own."""


@dataclass(frozen=True, slots=True)
class Domain:
    """The set of outer bindings: ``rel``'s columns are the tokens' values, in order, each row once."""

    rel: Rel
    tokens: tuple[Token, ...]

    @property
    def width(self) -> int:
        return len(self.tokens)

    def position(self, token: Token) -> int:
        return self.tokens.index(token)


UNIT = Domain(Values(((),), ()), ())
Scopes = tuple[int, ...]
"""The scopes around a plan, nearest first: ``OuterColumn.level`` k is in ``scopes[k - 1]``."""


class Decorrelation(Protocol):
    """What lifting subqueries out of expressions needs of the decorrelation under way: the recursion into plans."""

    def tokens_in(self, rel: Rel, scopes: Scopes) -> frozenset[Token]:
        """The outer columns that a plan mentions."""
        ...

    def apply(self, rel: Rel, domain: Domain, scopes: Scopes) -> Rel:
        """For each row of the domain, its columns beside the plan's."""
        ...

    def closed_plan(self, rel: Rel, scopes: Scopes) -> Rel:
        """A plan that mentions no token of a domain, itself decorrelated."""
        ...

    def outer(self, expr: Scalar, domain: Domain, scopes: Scopes) -> Scalar:
        """An expression without subqueries, its outer columns replaced by the domain's columns."""
        ...


def same_words(left: int, right: int, column: ColumnType) -> Scalar:
    """Columns ``left`` and ``right`` have the same word, or are both NULL. For domains, whose columns are words."""
    arguments = (Column(left, column.type, column.nullable), Column(right, column.type, column.nullable))
    return Call(SAME_WORD, arguments, BOOL, False)


def raw_columns(positions: tuple[int, ...], row: Schema) -> tuple[Column, ...]:
    """Columns whose equality is their words': those of types with equality classes under the name of bigint."""
    found = []
    for position, column in zip(positions, row, strict=True):
        type_ = INT8 if column.type.has_equality_class else column.type
        found.append(Column(position, type_, column.nullable))
    return tuple(found)
