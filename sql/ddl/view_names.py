"""The column names that views' definitions use for an altered relation, pinned when a name would change its meaning."""

from __future__ import annotations

from dataclasses import replace

from ivm.errors import SqlError
from planner.logical.nodes import Rel
from sql.bind.statement import bind_statement
from sql.catalog.catalog import Catalog, Relation
from sql.catalog.references import RelationReference
from sql.catalog.search_path import Pinned, Recorder, SearchPathReader
from sql.engine.definition import definition_rel
from sql.parse import StatementText


def seen_by(catalog: Catalog, relation: int) -> list[Relation]:
    """The views whose own definitions name a relation, with their references known."""
    found = []
    for known in catalog.relations.values():
        if known.definition is not None and relation in known.dependencies:
            view = with_references(known, catalog)
            if any(r.relation == relation for r in view.references):
                found.append(view)
    return sorted(found, key=lambda v: v.oid)


def with_references(view: Relation, catalog: Catalog) -> Relation:
    """A view with its references. One that was created before references were recorded resolves its names in
    ``public``."""
    if view.references or view.definition is None or view.routine is not None:
        return view  # a routine may depend on a relation for its row type alone
    recorder = Recorder(Pinned(SearchPathReader(catalog), view))
    bind_statement(StatementText(view.definition, 0), recorder)
    return replace(view, references=recorder.references(0, len(view.definition)))


def called(view: Relation, relation: Relation, names: tuple[str, ...]) -> Relation:
    """The view with these names for the relation's columns; () for the relation's own names."""
    references = (_called(r, names) if r.relation == relation.id else r for r in view.references)
    return replace(view, references=tuple(references))


def _called(reference: RelationReference, names: tuple[str, ...]) -> RelationReference:
    return replace(reference, columns=names)


def names_in(view: Relation, relation: Relation) -> tuple[str, ...]:
    """The view's names for the relation's columns."""
    pinned = next((r.columns for r in view.references if r.relation == relation.id), ())
    return pinned or tuple(c.name for c in relation.columns)


def settled(view: Relation, relation: Relation, names: tuple[str, ...], catalog: Catalog) -> Relation:
    """The view to store in the catalog after a change. It keeps the meaning of ``names``, and uses the relation's own
    names if they mean the same."""
    pinned = called(view, relation, names)
    plain = called(view, relation, ())
    wanted = definition_rel(pinned, catalog)
    return plain if _rel(plain, catalog) == wanted else pinned


def uses(view: Relation, relation: Relation, column: int, catalog: Catalog) -> bool:
    """Whether a view's own definition uses a column of a relation, also through a star or a natural join."""
    names = names_in(view, relation)
    if not names[column]:
        return False
    hidden = tuple("" if i == column else name for i, name in enumerate(names))
    return _rel(called(view, relation, hidden), catalog) != _rel(view, catalog)


def _rel(view: Relation, catalog: Catalog) -> Rel | None:
    try:
        return definition_rel(view, catalog)
    except SqlError:
        return None
