"""Where a query of WITH RECURSIVE may refer to itself (checkWellFormedRecursion in parse_cte.c)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import cast

from ivm.errors import SqlError
from sql.syntax.nodes import queries as nodes


@lru_cache(maxsize=256)
def _names(type_: Hashable) -> tuple[str, ...]:
    return tuple(f.name for f in fields(type_) if f.name != "at")  # type: ignore[arg-type]


def _children(node: object) -> Iterator[object]:
    return _flat(getattr(node, name) for name in _names(cast(Hashable, type(node))))


def _flat(values: Iterable[object]) -> Iterator[object]:
    for value in values:
        if isinstance(value, tuple):
            yield from _flat(value)
        elif is_dataclass(value):
            yield value


def mentions(node: object, name: str) -> bool:
    """Whether the syntax reads a table of that name, except where an inner WITH has the same name."""
    return next(_references(node, name, ""), None) is not None


_SUBLINKS = (nodes.Subquery, nodes.ExistsExpr, nodes.ArrayQuery, nodes.InQuery, nodes.Quantifier)


def _references(node: object, name: str, context: str) -> Iterator[tuple[int, str]]:
    """The offset of each reference, and what forbids it there ("" if nothing does)."""
    if isinstance(node, nodes.TableName):
        if node.name == name and node.schema_name is None:
            yield node.at, context
        return
    if isinstance(node, nodes.Query) and node.with_ is not None and _shadows(node.with_, name):
        for inner in () if node.with_.recursive else node.with_.ctes:
            yield from _references(inner.query, name, context)
            if inner.name == name:
                break
        return
    if isinstance(node, _SUBLINKS):
        context = context or "within a subquery"
    if isinstance(node, nodes.JoinedTable):
        outer = "within an outer join"
        left = outer if node.kind in ("right", "full") else ""
        right = outer if node.kind in ("left", "full") else ""
        yield from _references(node.left, name, context or left)
        yield from _references(node.right, name, context or right)
        if node.on is not None:
            yield from _references(node.on, name, context)
        return
    if isinstance(node, nodes.SetQuery) and node.kind in ("except", "intersect"):
        within = f"within {node.kind.upper()}"
        left = within if node.kind == "intersect" and node.all else ""
        yield from _references(node.left, name, context or left)
        yield from _references(node.right, name, context or within)
        return
    for child in _children(node):
        yield from _references(child, name, context)


def _shadows(with_: nodes.With, name: str) -> bool:
    return any(c.name == name for c in with_.ctes)


def check_recursion(cte: nodes.Cte, query: nodes.Query) -> nodes.SetQuery:
    """The UNION of a recursive query. Raises 42P19, 0A000 where its form is not allowed."""
    name = cte.name
    body = query.body
    if query.with_ is not None and mentions(query.with_, name):
        raise _error(name, "must not appear within a WITH clause of its own", cte.at)
    if not isinstance(body, nodes.SetQuery) or body.kind != "union":
        message = f'recursive query "{name}" does not have the form non-recursive-term UNION [ALL] recursive-term'
        raise SqlError("42P19", message, position=cte.at + 1)
    for found, _ in _references(body.left, name, ""):
        raise _error(name, "must not appear within its non-recursive term", found)
    for what, present in (
        ("ORDER BY", query.order), ("LIMIT", query.limit is not None), ("OFFSET", query.offset is not None),
    ):  # fmt: skip
        if present:
            raise SqlError("0A000", f"{what} in a recursive query is not implemented", position=cte.at + 1)
    references = list(_references(body.right, name, ""))
    for at, forbidden in references:
        if forbidden:
            raise _error(name, f"must not appear {forbidden}", at)
    if len(references) > 1:
        raise _error(name, "must not appear more than once", references[1][0])
    return body


def _error(name: str, what: str, at: int) -> SqlError:
    return SqlError("42P19", f'recursive reference to query "{name}" {what}', position=at + 1)
