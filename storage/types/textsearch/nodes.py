"""The tree of a tsquery."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Operator = Literal["!", "&", "|", "<->"]


@dataclass(frozen=True, slots=True)
class Term:
    """A lexeme. ``weights``: 8, 4, 2, 1 for A, B, C, D, 0 for any; ``prefix``: it may go on."""

    lexeme: str
    weights: int = 0
    prefix: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator on its operands; ``!`` has the right one only. ``distance``: of ``<->``, else 0."""

    operator: Operator
    right: Node
    left: Node | None = None
    distance: int = 0


Node = Term | Operation


@dataclass(frozen=True, slots=True)
class Query:
    """A datum of type tsquery: its tree, or None for the empty query."""

    root: Node | None = None

    def __bool__(self) -> bool:
        return self.root is not None

    def items(self) -> tuple[Node, ...]:
        """All its nodes, as Postgres stores them."""
        return () if self.root is None else tuple(items(self.root))


def negation(node: Node) -> Operation:
    """``!node``."""
    return Operation("!", node)


def joined(operator: Operator, left: Node, right: Node, distance: int = 0) -> Operation:
    """``left operator right``."""
    return Operation(operator, right, left, distance)


def items(node: Node) -> Iterator[Node]:
    """The nodes as Postgres stores them: an operator, its right operand, its left one."""
    yield node
    if isinstance(node, Operation):
        yield from items(node.right)
        if node.left is not None:
            yield from items(node.left)
