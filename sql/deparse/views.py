"""The text of a view's query, made from its tree: with the present names of what it reads, in PostgreSQL's layout."""

from __future__ import annotations

from typing import Final

from sql.bind.notes import Notes
from sql.bind.statement import bind_tree
from sql.catalog.catalog import Relation
from sql.catalog.search_path import Pinned
from sql.deparse.context import Context
from sql.deparse.items import Level
from sql.deparse.names import Names
from sql.deparse.queries import Heading, QueryWriter
from sql.deparse.writer import Writer
from sql.parse import StatementText, parse
from sql.statements.queries import Query
from sql.syntax.nodes import queries as nodes

_RULE: Final = Level(frozenset({"old", "new"}))
"""The names that PostgreSQL's views have in them, beside those of FROM."""


def view_query(view: Relation, names: Names, *, pretty: bool, width: int = 0) -> str:
    """A view's query with a semicolon. ``pretty``: without parentheses that precedence makes needless; ``width``: that
    several columns on a line may have, if negative any."""
    assert view.definition is not None, "a view has a definition"
    text = StatementText(view.definition, 0)
    tree, notes = parse(text), Notes()
    bound = bind_tree(tree, text, Pinned(names.reader, view), notes=notes).statement
    assert isinstance(tree, nodes.Query), "a view's definition is a query"
    assert isinstance(bound, Query), "the same"
    writer = QueryWriter(Context(notes, names), Writer(pretty=pretty, width=width))
    writer.level = _RULE
    columns = tuple(c.name for c in view.columns)
    writer.query(tree, Heading(columns, True, tuple(c.type for c in bound.columns)))
    return f"{writer.out.text()};"
