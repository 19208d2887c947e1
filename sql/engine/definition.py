"""Turns a view's definition into a relational plan."""

from __future__ import annotations

from ivm.errors import unsupported
from planner.expr.scalar import Column
from planner.logical.locked_joins import with_names
from planner.logical.nodes import Project, Rel, TopK, schema
from sql.bind.entry_points import environment_of
from sql.bind.routine_resolution import RoutineOverload
from sql.bind.routines import routine_body
from sql.bind.statement import bind_statement
from sql.bind.uses import Asking
from sql.catalog.catalog import Catalog, Relation
from sql.catalog.search_path import Pinned, SearchPathReader
from sql.parse import StatementText
from sql.statements.queries import Query


def view_rel(query: Query) -> Rel:
    """The plan of a view's rows: its query, with LIMIT and OFFSET kept (as a set of rows), without helper columns of
    ORDER BY."""
    rel = query.rel
    finishing = query.finishing
    if query.as_of is not None:
        raise unsupported("AS OF in a view")
    if finishing.limit is not None or finishing.offset is not None:
        rel = TopK(rel, (), finishing.order, finishing.limit, finishing.offset)
    columns = schema(rel)
    width = len(columns) if finishing.width is None else finishing.width
    if width < len(columns):
        rel = Project(rel, tuple(Column(i, c.type, c.nullable) for i, c in enumerate(columns[:width])))
    return rel


def definition_rel(view: Relation, catalog: Catalog, asking: Asking | None = None) -> Rel:
    """The plan of a stored view, bound again from its definition; for a function, its arguments are one level out.
    ``asking``: as whom; None: as its viewer, if it has one."""
    assert view.definition is not None, "a view has a definition"
    if view.routine is not None:
        return routine_body(environment_of(SearchPathReader(catalog)), RoutineOverload(view, view.routine))
    if asking is None and view.viewer:
        asking = Asking.for_view(catalog.access, view.viewer)
    pinned = Pinned(SearchPathReader(catalog), view)
    statement = bind_statement(StatementText(view.definition, 0), pinned, asking=asking).statement
    assert isinstance(statement, Query), "a view's definition is a query"
    return with_names(view_rel(statement), view.locks)
