"""The rows of the relations of schema ``freshet``, computed when they are read."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import numpy as np

from ivm.rows import Words
from ivm.trace.trace import Version
from ivm.workers import workers
from planner.expr.row_errors import decode_error
from sql.catalog.catalog import Relation, RelationKind
from sql.catalog.search_path import SearchPath, SearchPathReader
from sql.catalog.securables import sees_below
from sql.catalog.system.definitions import Datums
from sql.coordination.coordinator import Coordinator
from sql.coordination.filling import HydrationPhase
from sql.coordination.hydration import Creation
from sql.coordination.refilling import Refill
from sql.coordination.scattered import ScatteredViews
from sql.engine.snapshot import Published
from sql.session.holdings import arrangement_rows, shown_name, view_rows
from sql.session.load_relations import load_rows, reject_rows
from sql.session.read_points import ReadPoint
from sql.session.sink_relations import sink_rows
from sql.session.source_relations import source_rows
from sql.session.view_errors import errors_then, may_know, store_at
from sql.system.state import HIDDEN
from storage.dictionary import Dictionary
from storage.duck import Store


def own_rows(
    relation: Relation, coordinator: Coordinator, path: SearchPath, published: Published, dictionary: Dictionary,
    at: ReadPoint,
) -> Iterable[Datums]:  # fmt: skip
    """The rows of one of ``OWN_RELATIONS``, as datums in column order. ``path``: where the reader looks up names.
    ``at``: which past view_errors tells of; all others tell of the present."""
    engine, names = coordinator.engine, SearchPathReader(published.catalog, path)
    match relation.name:
        case "view_errors":
            if at.history:
                return past_view_errors(store_at(at.epoch, engine.persistence), at, dictionary, names)
            return view_errors(published, at.ordinal, coordinator.scattered, dictionary, names)
        case "dictionary":
            return [dictionary_row(coordinator)]
        case "steps":
            return engine.times.rows()
        case "stalls":
            found = coordinator.jobs.stalls.all()
            return [
                (s.started, s.thread, round(s.seconds, 3), s.statement, s.view, s.operator, s.function, s.place)
                for s in found
            ]
        case "workers":
            return [(i, t.calls, t.nanoseconds // 1_000_000) for i, t in enumerate(workers().tallies)]
        case "arrangements":
            return arrangement_rows(engine.dataflow, published, names)
        case "views":
            made = (
                (c.statement.schema_name, c.statement.name, c.phase.value)
                for c in _under_way(coordinator)
                if not c.replaces
            )
            held = view_rows(engine.dataflow, published, names, made, set(engine.failing.filling))
            return chain(held, scattered_rows(coordinator.scattered, names))
        case "spark_jobs":
            return spark_jobs(coordinator.scattered, names)
        case "secrets":
            return [] if coordinator.secrets is None else [(name,) for name in coordinator.secrets.names()]
        case "loads":
            return load_rows(engine.loads.all(), names)
        case "rejects":
            return reject_rows(engine.loads.all(), names)
        case "sinks":
            return sink_rows(coordinator.sinks, published, names)
        case "sources":
            sources = coordinator.sources
            return () if sources is None else source_rows(sources, published, names, engine.dictionary)
        case "hydrations":
            return chain(hydrations(_under_way(coordinator), path), refills(coordinator, names))
        case _:
            raise AssertionError("each relation has its rows here")


def dictionary_row(coordinator: Coordinator) -> Datums:
    """freshet.dictionary: values in use, dead values that readers hold, bytes, sweeps, values removed."""
    arena, last = coordinator.engine.dictionary.arena, coordinator.sweeper.last
    return len(arena), arena.dead, arena.byte_size, last.sweeps, last.found


def _under_way(coordinator: Coordinator) -> list[Creation]:
    return list(coordinator.hydrators.under_way)


def hydrations(creations: Iterable[Creation], path: SearchPath) -> Iterable[Datums]:
    """freshet.hydrations: the views being hydrated, the oldest first."""
    for creation in creations:
        shown = shown_name(creation.statement.schema_name, creation.statement.name, path)
        operators, done, updates = creation.place or (None, None, None)
        place = (creation.phase.value, operators, done, updates, creation.behind, creation.started)
        yield shown, creation.backend, *place, creation.by, creation.step


def refills(coordinator: Coordinator, names: SearchPathReader) -> Iterable[Datums]:
    """freshet.hydrations: the views that are filled anew, without a session; then those that wait for their turn."""
    under_way = [r for r in list(coordinator.hydrators.refilling) if isinstance(r, Refill) and r.view is not None]
    shown = {r.view.id: r for r in under_way if r.view is not None}
    for relation in dict.fromkeys((*shown, *coordinator.engine.failing.filling)):
        known, refill = names.catalog.relations.get(relation), shown.get(relation)
        if known is None:
            continue
        if refill is None:
            yield names.shown(known), None, HydrationPhase.WAITING.value, *(None,) * 4, None, "local", None
            continue
        place = refill.place or (None, None, None)
        yield names.shown(known), None, refill.phase.value, *place, refill.behind, refill.started, "local", None


def scattered_rows(scattered: ScatteredViews, names: SearchPathReader) -> Iterable[Datums]:
    """freshet.views: those that Spark maintains; ``behind`` while there are commits that readers cannot see yet."""
    for view in sorted(scattered.views.values(), key=lambda view: view.relation.oid):
        served, waits = view.served, view.waiting > 0
        status = "failing" if view.error is not None else "behind" if waits or served is None else "running"
        if status == "running" and served is not None and len(_error_ids(served.errors, served.upper)):
            status = "has errors"
        held = None if served is None else served.rows.count
        yield names.shown(view.relation), status, served is not None, held, None, None, view.size, view.size


def spark_jobs(scattered: ScatteredViews, names: SearchPathReader) -> Iterable[Datums]:
    """freshet.spark_jobs: the last jobs of each view that Spark maintains, by view."""
    for view in sorted(scattered.views.values(), key=lambda view: view.relation.oid):
        for job in list(view.jobs):
            reports = job.reports
            read = sum(r.read for r in reports), sum(r.read_bytes for r in reports)
            written = sum(r.written for r in reports), sum(r.written_bytes for r in reports)
            touched = len({r.partition for r in reports})
            place = (job.number, job.started, round(1000 * job.seconds), job.epoch, job.commits, job.updates)
            error = None if job.error is None else job.error.message
            yield names.shown(view.relation), *place, touched, job.held, *read, *written, error


def view_errors(
    published: Published, ordinal: int, scattered: ScatteredViews, dictionary: Dictionary, names: SearchPathReader
) -> Iterable[tuple[object, ...]]:
    """freshet.view_errors: each error row of each materialized view, and the views that are down."""
    for relation in sorted(published.catalog.relations.values(), key=lambda r: r.name):
        failure = published.failures.get(relation.id) or scattered.broken.get(relation.id)
        if failure is not None:
            yield names.shown(relation), failure.sqlstate, failure.message, None
        for data in sorted(dictionary.lookup(_standing_errors(relation, published, ordinal, scattered))):
            yield names.shown(relation), *_error_columns(data, relation, names)


def past_view_errors(
    store: Store, at: ReadPoint, dictionary: Dictionary, names: SearchPathReader
) -> Iterable[tuple[object, ...]]:
    """freshet.view_errors at an epoch that the store remembers, of the views that there are now and were then."""
    for relation in sorted(at.published.catalog.relations.values(), key=lambda r: r.name):
        if relation.kind is RelationKind.MATERIALIZED_VIEW and relation.created <= at.epoch:
            for data in sorted(errors_then(store, at.epoch, relation, dictionary)):
                yield names.shown(relation), *_error_columns(data, relation, names)


def _error_columns(data: bytes, view: Relation, names: SearchPathReader) -> tuple[object, ...]:
    """The row and the values in the message are for those who may see them in the tables."""
    error, row = decode_error(data)
    role = names.path.role
    message = error.message if may_know(names.catalog, role, view) else HIDDEN
    return error.sqlstate, message, row if sees_below(names.catalog, role, view) else None


def _standing_errors(relation: Relation, published: Published, ordinal: int, scattered: ScatteredViews) -> Words:
    """The ids of a relation's error rows; for a view that Spark maintains, as of its last job."""
    if relation.id in scattered.views and (served := scattered.views[relation.id].served) is not None:
        return _error_ids(served.errors, served.upper)
    return _error_ids(published.errors(relation.id), ordinal)


def _error_ids(version: Version | None, ordinal: int) -> Words:
    if version is None:
        return np.zeros(0, np.int64)
    rows, _ = version.rows_at(ordinal)
    return np.ascontiguousarray(rows[:, 0])
