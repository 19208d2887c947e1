"""Where pretty text needs parentheses around an expression, by what stands around it.

Text that is not pretty has them around every operator, whatever the context.
"""

from __future__ import annotations

from typing import Final

from sql.deparse import tree
from sql.deparse.tree import Shown

_SUMS: Final = ("+", "-")
_PRODUCTS: Final = ("*", "/", "%")
_LISTS = tree.Part | tree.Array | tree.RowValue | tree.Cases
"""What has separators of its own around its parts."""


def is_closed(expr: Shown, parent: Shown) -> bool:
    """Whether the expression needs no parentheses as a part of ``parent``."""
    match expr:
        case tree.Coercion(function=False):
            return is_closed(expr.arg, expr)
        case tree.FieldOf():
            return not isinstance(parent, tree.FieldOf)
        case tree.Operation() if isinstance(parent, tree.Operation):
            return _binds(expr, parent)
        case tree.Operation() | tree.Link() | tree.Test() | tree.Differs():
            return isinstance(parent, tree.Logic) or _is_apart(parent)
        case tree.Logic() if isinstance(parent, tree.Logic):
            return parent.kind == "OR" or (expr.kind != "OR" and parent.kind == "AND")
        case tree.Logic():
            return _is_apart(parent)
        case tree.Quantified() | tree.RowComparison() | tree.Collated():
            return False
        case _:
            return True


def _is_apart(parent: Shown) -> bool:
    """Whether the parts of an expression stand between separators: those of calls, lists and CASE."""
    if isinstance(parent, tree.Phrase):
        return not parent.grouped
    return isinstance(parent, _LISTS | tree.FunctionCall)


def _binds(expr: tree.Operation, parent: tree.Operation) -> bool:
    """Whether an operator binds more tightly than the one around it, or stands before it in a chain of equal ones."""
    if len(expr.args) != 2 or len(parent.args) != 2:
        return False
    if expr.symbol in _PRODUCTS and parent.symbol in _SUMS:
        return True
    same = next((s for s in (_SUMS, _PRODUCTS) if expr.symbol in s and parent.symbol in s), None)
    return same is not None and expr is parent.args[0]
