"""freshet.arrangements and freshet.views: the dataflow's contents, and which views and indexes use them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from ivm.dataflow import Dataflow
from ivm.graph import NodeId
from planner.identifiers import quoted
from planner.render.holdings import Arrangement, Origin, arrangements, users
from sql.bind.index_keys import key_check_of
from sql.catalog.catalog import Relation, RelationKind
from sql.catalog.search_path import SearchPath, SearchPathReader
from sql.catalog.system.definitions import Datums
from sql.engine.snapshot import Published


def shown_name(schema_name: str, name: str, path: SearchPath) -> str:
    """The name of a relation that is not in the catalog yet, with its schema if that is not on the path."""
    return quoted(name) if schema_name in path.places else f"{quoted(schema_name)}.{quoted(name)}"


def arrangement_rows(dataflow: Dataflow, published: Published, names: SearchPathReader) -> Iterator[Datums]:
    """freshet.arrangements: each arrangement, the oldest first."""
    for found in arrangements(dataflow, published.stored):
        key = tuple(_column(published, o, i) for i, o in enumerate(found.key))
        reads = tuple(_name(published, r, names) for r in found.reads)
        relation = _relation(found, published)
        shown = None if relation is None else _name(published, relation, names)
        users_ = tuple(n for r in found.users for n in _users(found, r, published, names))
        failing = any(s.installed is not None and s.installed.errors == found.node for s in published.stored.values())
        yield (
            found.node,
            "Errors" if failing else found.kind,
            shown,
            key,
            reads,
            found.in_loop,
            found.records,
            found.size,
            users_,
        )


def view_rows(
    dataflow: Dataflow, published: Published, names: SearchPathReader, made: Iterable[tuple[str, str, str]],
    filling: Set[int] = frozenset(),
) -> Iterator[Datums]:  # fmt: skip
    """freshet.views: each materialized view, by name; then those being hydrated (``made``): (schema, name, phase).
    ``filling``: those that are down and are being filled."""
    held = arrangements(dataflow, published.stored)
    use = users(published.stored)
    for view in sorted(published.catalog.relations.values(), key=lambda r: (r.schema_name, r.name)):
        if view.kind is RelationKind.MATERIALIZED_VIEW and not view.parts:
            yield names.shown(view), *_view(view, published, held, use, view.id in filling)
    for schema_name, name, phase in made:
        yield shown_name(schema_name, name, names.path), phase, False, None, None, None, None, None


def _view(
    view: Relation, published: Published, held: list[Arrangement], use: dict[NodeId, list[int]], filling: bool
) -> tuple[object, ...]:
    stored = published.stored.get(view.id)
    if view.id in published.failures or stored is None:
        return "filling" if filling else "down", False, None, None, None, None, None
    errors, rows = published.errors(view.id), published.version(view.id)
    nodes = (*dict.fromkeys(stored.nodes),)
    shared = sum(len(use[n]) > 1 for n in nodes)
    mine = [a for a in held if view.id in a.users]
    size, own = sum(a.size for a in mine), sum(a.size for a in mine if len(a.users) == 1)
    status = "has errors" if errors is not None and errors.count else "running"
    return status, True, 0 if rows is None else rows.count, len(nodes), shared, size, own


def _name(published: Published, relation: int, names: SearchPathReader) -> str:
    known = published.catalog.by_id(relation)
    return str(relation) if known is None else names.shown(known)


def _column(published: Published, origin: Origin | None, position: int) -> str:
    known = None if origin is None else published.catalog.by_id(origin.relation)
    if origin is None or known is None:
        return f"#{position}"
    return known.columns[origin.column].name


def _relation(found: Arrangement, published: Published) -> int | None:
    """The relation whose rows an arrangement holds unchanged."""
    for relation, stored in published.stored.items():
        if found.node in stored.arrangements.values() or found.node in stored.key_checks.values():
            return relation
    return None


def _users(found: Arrangement, relation: int, published: Published, names: SearchPathReader) -> Iterator[str]:
    """The users of an arrangement: views by name; tables by the names of their indexes that it serves."""
    stored, known = published.stored[relation], published.catalog.by_id(relation)
    indexes = () if known is None else [i for i in known.all_indexes if i.unique or i.arranged]
    served = [i.name for i in indexes if known is not None and stored.check_node(key_check_of(known, i)) == found.node]
    yield from served or [_name(published, relation, names)]
