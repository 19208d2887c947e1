"""The syntax tree of windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sql.syntax.nodes.queries import Expr, OrderItem


@dataclass(frozen=True, slots=True)
class Over:
    """A window: PARTITION BY, ORDER BY; ``other``: what else it says, a frame or a window's name."""

    partition: tuple[Expr, ...]
    order: tuple[OrderItem, ...]
    other: bool
