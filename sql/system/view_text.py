"""Definitions as the system relations and functions show them: made from their trees, with present names."""

from __future__ import annotations

from sql.catalog.catalog import Relation
from sql.deparse.names import Names
from sql.deparse.views import view_query
from sql.system.state import SystemState


def names_of(state: SystemState) -> Names:
    """The names and the style in which a session sees definitions."""
    return Names(state.reader, state.constants)


def view_definition(view: Relation, state: SystemState, *, pretty: bool = False, width: int = 0) -> str:
    """A view's query, in the form of pg_get_viewdef."""
    return view_query(view, names_of(state), pretty=pretty, width=width)
