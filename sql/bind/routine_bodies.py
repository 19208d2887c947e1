"""The text of LANGUAGE sql bodies: their statements, and whether a body can be a part of the calling query's plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from sql.catalog.routine import Routine
from sql.parse import StatementText, parse, split
from sql.syntax.nodes import queries as nodes


def body_statements(routine: Routine, text: str) -> list[StatementText]:
    """A body's statements. Raises 42601."""
    return split(f"SELECT {text}" if routine.expression else text)


def is_query(routine: Routine, text: str) -> bool:
    """Whether the body is one query that calls no routine of its own name and changes nothing. Raises 42601."""
    statements = body_statements(routine, text)
    if len(statements) != 1:
        return False
    tree = parse(statements[0])
    if not isinstance(tree, nodes.Query) or tree.locking:
        return False
    for part in _parts(tree):
        if isinstance(part, nodes.Apply) and part.name[-1] == routine.name:
            return False
        if isinstance(part, nodes.InsertStatement | nodes.UpdateStatement | nodes.DeleteStatement):
            return False
    return True


def _parts(node: Any) -> Iterator[Any]:
    """The nodes of a syntax tree."""
    if isinstance(node, tuple):
        for item in node:
            yield from _parts(item)
    elif is_dataclass(node) and not isinstance(node, type):
        yield node
        for field in fields(node):
            yield from _parts(getattr(node, field.name))
