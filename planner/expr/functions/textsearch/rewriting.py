"""ts_rewrite: a query in which another one is replaced by a third.

Operands of ``&`` and of ``|`` are compared without regard to their order and nesting, so the rewritten query's operands
come in PostgreSQL's order of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from ivm.errors import too_deep, unsupported
from ivm.words import TEXT, TSQUERY
from planner.expr.functions.table import per_value
from storage.types.textsearch.nodes import Node, Operation, Operator, Query, Term
from storage.types.textsearch.query import order_of_operator, order_of_term
from storage.types.textsearch.query_text import operands

_ANY_NUMBER: Final = ("&", "|")


@dataclass(frozen=True, slots=True)
class _Tree:
    """A term, or an operator of any number of operands, the right one first. ``done``: it has been put in the place of
    another."""

    term: Term | None
    operator: Operator | None = None
    operands: tuple[_Tree, ...] = ()
    distance: int = 0
    done: bool = False


def _key(tree: _Tree) -> tuple[object, ...]:
    """What orders trees, and is equal for equal ones: weights and prefix marks do not count."""
    if tree.term is not None:
        return 1, order_of_term(tree.term)
    assert tree.operator is not None
    parts = tuple(map(_key, tree.operands))
    return 0, -order_of_operator(tree.operator), -len(parts), parts, -tree.distance


def _as_written(node: Node) -> _Tree:
    if isinstance(node, Term):
        return _Tree(node)
    return _Tree(None, node.operator, tuple(map(_as_written, operands(node))), node.distance)


def _flat(node: Node) -> _Tree:
    """The tree with nested operands of one operator side by side."""
    if isinstance(node, Term):
        return _Tree(node)
    parts: list[_Tree] = []
    for part in map(_flat, operands(node)):
        parts += part.operands if part.operator == node.operator and node.operator in _ANY_NUMBER else (part,)
    return _Tree(None, node.operator, tuple(parts), node.distance)


def _sorted(tree: _Tree) -> _Tree:
    """The tree with the operands of all its ``&`` and ``|`` in order."""
    parts = tuple(map(_sorted, tree.operands))
    return replace(tree, operands=tuple(sorted(parts, key=_key)) if tree.operator in _ANY_NUMBER else parts)


def _binary(tree: _Tree) -> Node:
    if tree.term is not None:
        return tree.term
    assert tree.operator is not None
    parts = list(map(_binary, tree.operands))
    while len(parts) > 2:
        parts[0] = Operation(tree.operator, parts[0], parts[1], tree.distance)
        parts[1] = parts.pop()
    return Operation(tree.operator, parts[0], parts[1] if len(parts) > 1 else None, tree.distance)


def _replaced(tree: _Tree, target: _Tree, new: _Tree | None) -> _Tree | None:
    """The tree with the target replaced at this node; None: nothing is left of it."""
    if tree.done or tree.operator != target.operator:
        return tree
    if _key(tree) == _key(target):
        return new
    if tree.operator in _ANY_NUMBER and len(tree.operands) > len(target.operands):
        left = list(tree.operands)
        for wanted in map(_key, target.operands):
            at = next((i for i, part in enumerate(left) if _key(part) == wanted), None)
            if at is None:
                return tree
            del left[at]
        return _sorted(replace(tree, operands=(*left, *(() if new is None else (new,)))))
    return tree


def _rewritten(tree: _Tree, target: _Tree, new: _Tree | None) -> _Tree | None:
    found = _replaced(tree, target, new)
    if found is None or found.done or found.operator is None:
        return found
    parts = tuple(p for p in (_rewritten(part, target, new) for part in found.operands) if p is not None)
    if not parts:
        return None
    if len(parts) == 1 and found.operator != "!":
        return parts[0]
    return replace(found, operands=parts)


@per_value("ts_rewrite", (TSQUERY, TSQUERY, TSQUERY), TSQUERY, makes_null=False)
def ts_rewrite(query: Query, target: Query, substitute: Query) -> Query:
    if query.root is None or target.root is None:
        return query
    try:
        new = None if substitute.root is None else replace(_as_written(substitute.root), done=True)
        found = _rewritten(_sorted(_flat(query.root)), _sorted(_flat(target.root)), new)
        return Query(None if found is None else _binary(found))
    except RecursionError:
        raise too_deep() from None


@per_value("ts_rewrite", (TSQUERY, TEXT), TSQUERY)
def ts_rewrite_by_query(query: Query, text: str) -> Query:
    raise unsupported("ts_rewrite with the text of a query", "Call ts_rewrite(query, target, substitute) for each row.")
