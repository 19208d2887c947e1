"""The rows of schema ``freshet``'s relations, as of the asking."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from planner.identifiers import quoted
from planner.row_errors import decode_error
from sql.catalog.catalog import Relation
from sql.catalog.search_path import Lookup, SearchPath
from sql.engine.snapshot import Published
from sql.session.vacuum import dictionary_row
from sql.system.own import DICTIONARY, HYDRATIONS, VIEW_ERRORS
from storage.dictionary import Dictionary

if TYPE_CHECKING:
    from sql.session.session import Session

Datums = tuple[object, ...]


def own_rows(relation: Relation, session: Session, published: Published, dictionary: Dictionary) -> Iterable[Datums]:
    """One of ``OWN_RELATIONS``; datums in column order."""
    path = session.path(published.catalog)
    if relation == VIEW_ERRORS:
        return view_errors(published, dictionary, Lookup(published.catalog, path))
    if relation == DICTIONARY:
        return [dictionary_row(session.coordinator)]
    assert relation == HYDRATIONS, "each relation has its rows here"
    return hydrations(session, path)


def hydrations(session: Session, path: SearchPath) -> Iterable[Datums]:
    """freshet.hydrations: the views that are being made, the first one first."""
    for creation in list(session.coordinator.hydrators.under_way):
        made = creation.statement
        name = quoted(made.name)
        shown = name if made.schema_name in path.places else f"{quoted(made.schema_name)}.{name}"
        operators, done, updates = creation.place or (None, None, None)
        yield shown, creation.backend, creation.phase.value, operators, done, updates, creation.behind, creation.started


def view_errors(published: Published, dictionary: Dictionary, names: Lookup) -> Iterable[tuple[object, ...]]:
    """freshet.view_errors: each error row of each materialized view, and the views that are taken down."""
    for relation in sorted(published.catalog.relations.values(), key=lambda r: r.name):
        failure = published.failures.get(relation.id)
        if failure is not None:
            yield names.shown(relation), failure.sqlstate, failure.message, None
        version = published.errors(relation.id)
        if version is None:
            continue
        rows, _ = version.rows_at(published.ordinal)
        for data in sorted(dictionary.lookup(np.ascontiguousarray(rows[:, 0]))):
            error, row = decode_error(data)
            yield names.shown(relation), error.sqlstate, error.message, row
