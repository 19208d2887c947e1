"""What the modules that read syntax nodes share: names, what binding found out, and the way to the other modules.

A node may hold any other: ``Reader.value`` leads from a module to those above it, as ``Binder`` does in ``sql.bind``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Protocol

from ivm.words import SqlType
from sql.bind.notes import Notes
from sql.deparse.names import Names
from sql.deparse.tree import Shown
from sql.syntax.nodes import queries as nodes


@dataclass(frozen=True, slots=True)
class Item:
    """An item of FROM under the name that it is shown with. ``columns``: the names of its columns; ``renamed``: they
    are not those that it has by itself."""

    alias: str
    columns: tuple[str, ...]
    renamed: bool


@dataclass(slots=True)
class Context:
    """``items``: those of FROM, by offset. ``qualified``: names that mean none of them keep their qualifiers.
    ``is_value``: the name VALUE is a domain's value. ``outer``: the table that those mean at these offsets, which are
    in subqueries."""

    notes: Notes
    names: Names
    items: dict[int, Item] = field(default_factory=dict)
    qualified: bool = False
    is_value: bool = False
    outer: tuple[str, frozenset[int]] = ("", frozenset())


class Reader(Protocol):
    """Makes what is shown from syntax nodes. ``sql.deparse.expressions.ExpressionReader`` is the implementation."""

    context: Context

    def value(self, node: nodes.Expr, wanted: SqlType | None = None) -> Shown:
        """An expression. ``wanted``: the type of untyped literals in it, text if None."""

    def coerced(self, node: nodes.Expr, wanted: SqlType | None) -> Shown:
        """The same, cast implicitly to a type if it has another one."""

    def items(self, nodes_: Sequence[nodes.Expr]) -> tuple[Shown, ...]:
        """A list of expressions, in which ``t.*`` stands for the columns of t."""

    def type(self, node: nodes.Expr) -> SqlType:
        """The type that binding gave to an expression; UNKNOWN for an untyped literal."""


def inner_names(node: object) -> Iterator[int]:
    """The offsets of the names in a node's subqueries."""
    if isinstance(node, nodes.Query):
        yield from (name.at for name in names_in(node))
    elif isinstance(node, tuple):
        for part in node:
            yield from inner_names(part)
    elif is_dataclass(node):
        for part in fields(node):
            yield from inner_names(getattr(node, part.name))


def names_in(node: object) -> Iterator[nodes.Name]:
    """The names in a node, at any depth."""
    if isinstance(node, nodes.Name):
        yield node
    elif isinstance(node, tuple):
        for part in node:
            yield from names_in(part)
    elif is_dataclass(node):
        for part in fields(node):
            yield from names_in(getattr(node, part.name))
