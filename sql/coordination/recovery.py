"""Recovery at startup: the store's state, then the log (write-ahead log) after it, then the views.

Tables are restored from the store as of its high water. Then the log's records are replayed as the commits that they
were. Views are filled afterwards, beside the engine (``Failing.await_filling``), so a start waits for none of them.
Views that were down stay so until then.

The exceptions are views whose joins with PROCTIME() have found what is primary data, views that are replaced in the
log, and what these read: they are computed first, and take part in the replay. The store already has their contents, so
these first changes are discarded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ivm.budget import NO_BUDGET, Budget
from ivm.rows import Words
from sql.catalog.catalog import FED, Catalog, Relation, RelationKind, is_temporary
from sql.catalog.stored_form import catalog_from_json
from sql.ddl.create import drop_temporary
from sql.engine.clock import EpochClock
from sql.engine.engine import Engine
from sql.engine.persist import Persistence
from sql.engine.writer import Writer
from sql.system.own import OWN_RELATIONS
from sql.system.relations import system_relations
from storage.checkpoint import Recovered
from storage.dictionary import Dictionary
from storage.duck import WITHOUT_ERRORS
from storage.record import CommitRecord, opened

ReportProgress = Callable[[str], None]


def restore(
    persistence: Persistence, clock: EpochClock, progress: ReportProgress, budget: Budget = NO_BUDGET,
    safe: bool = False,
) -> Engine:  # fmt: skip
    """The engine as of the newest durable commit. XX001 if the folder is damaged. ``budget``: as in ``Dataflow``.
    ``safe``: leave all views down."""
    found = persistence.recovered
    dictionary = Dictionary(persistence.store.secret)
    dictionary.load(*found.entries)
    catalog = Catalog().with_system((*system_relations(), *OWN_RELATIONS))
    if found.catalog is not None:
        catalog = catalog_from_json(catalog, found.catalog)
    clock.restore(found.high_water)
    persistence.clock = clock
    persistence.catalog = catalog
    engine = Engine(dictionary, clock, catalog, persistence)
    engine.dataflow.limit_memory(budget)
    engine.failing.safe = safe
    base = _base_epoch(found, clock)
    engine.since = engine.timeline.append(base)
    engine.dataflow.set_moment(engine.since, base)
    engine.sequences.load(found.sequences)
    exchanged = _exchanged(catalog, found)
    _restore_stored(engine, persistence, progress, exchanged, safe)
    persistence.start()
    for sequence, record in found.tail:
        if sequence == persistence.log.last_group:  # only of that one the store may not know which views it took down
            engine.flush_replayed(sequence - 1)
        clock.restore(record.epoch)
        engine.entries.load(record.entries)
        engine.load_marks(record.sequences)
        _replay(engine, sequence, replace(record, updates=tuple(map(opened, record.updates))), exchanged)
    if found.tail:
        engine.flush_replayed(found.tail[-1][0])
    engine.loads.restore(found.loads, {relation.oid for relation in engine.catalog.relations.values()})
    engine.republish()
    engine.next_moment = engine.dataflow.next_moment
    _settle_views(engine, safe)
    _drop_temporary(engine)
    return engine


def _settle_views(engine: Engine, safe: bool) -> None:
    """Decide which views are to be filled; what the store does not know of that is a commit of its own."""
    failing = engine.failing
    if safe:
        failing.leave_all()
    else:
        failing.fill_restored()
    for relation in list(failing.filling):
        failing.catch_up(relation)
    engine.published = engine.root()
    if failing.history.differs or failing.history.changes:
        engine.admit(CommitRecord(engine.clock.advance(engine.dataflow.moment)), engine.catalog, [])
        engine.flush()


def _drop_temporary(engine: Engine) -> None:
    """Drop the temporary relations of sessions that ended with the server, as a commit."""
    left = [name for name in engine.catalog.schemas if is_temporary(name)]
    if left:
        writer = Writer.begin(engine)
        drop_temporary(writer, left)
        writer.commit()
        engine.flush()


def _base_epoch(found: Recovered, clock: EpochClock) -> int:
    """The epoch of the store's state: before every record of the log."""
    if found.high_water:
        return found.high_water
    return found.tail[0][1].epoch - 1 if found.tail else clock.advance()


def _restore_stored(
    engine: Engine, persistence: Persistence, progress: ReportProgress, exchanged: set[int], safe: bool
) -> None:
    stored = engine.catalog.stored()
    tables = [r for r in stored if r.kind in FED]
    engine.failures |= engine.failing.history.restore(persistence.store)
    first = _first(engine.catalog, exchanged, persistence.store.format == WITHOUT_ERRORS) - engine.failures.keys()
    first -= persistence.store.lagging.keys()
    if safe:
        first.clear()
    views = [r for r in stored if r.kind not in FED]
    engine.failing.await_filling([r for r in views if r.id not in first and r.id not in engine.failures])
    for relation in stored:
        if relation.kind in FED:
            engine.add_table(relation)
        elif relation.id in first:
            install_view(engine, engine.catalog, relation, waiting=True)
    engine.hydrate()
    for table in tables:
        rows, diffs = persistence.recovered.rows(table.id)
        if len(rows):
            progress(f"{table.name}: {len(rows):,} rows")
            engine.feed(table.id, rows, diffs, engine.timeline.last)
            engine.count(table.id, diffs)
    if first:
        progress(f"hydrating {len(first)} views first")
    engine.settle_watched()
    for view in stored:
        if view.locks and view.id in engine.failures:
            engine.locks.hold_stored(view, persistence.recovered.rows)
        elif view.locks:  # in the order of creation: a view may read an earlier one
            engine.locks.load(view, persistence.recovered.rows)
            engine.unstepped = True
            engine.settle_watched()
    if persistence.store.format == WITHOUT_ERRORS:
        persistence.store.upgrade({view: _error_ids(engine, view) for view in engine.error_outputs})
    engine.drain()
    engine.republish()


def _first(catalog: Catalog, exchanged: set[int], everything: bool) -> set[int]:
    """The views that are hydrated before the log is replayed."""
    views = [r for r in catalog.stored() if r.kind not in FED]
    if everything:
        return {r.id for r in views}
    found = {r.id for r in views if r.locks or r.id in exchanged}
    return found | {r.id for r in views if found and any(d.id in found for d in catalog.dependents([r.id]))}


def _exchanged(catalog: Catalog, recovered: Recovered) -> set[int]:
    """The views that get another definition in the log, those over them, and what all these read."""
    found: set[int] = set()
    for _, record in recovered.tail:
        if record.catalog is not None:
            after = catalog_from_json(catalog, record.catalog)
            again = {r.id for r in after.stored() if _redefined(catalog.relations.get(r.id), r)}
            found |= again | {r.id for r in after.dependents(again)}
            catalog = after
    return _first(catalog, found, False) if found else found


def _error_ids(engine: Engine, view: int) -> Words:
    return engine.dataflow.publish()[engine.error_outputs[view]].rows_at(engine.timeline.last)[0][:, 0]


def install_view(engine: Engine, catalog: Catalog, view: Relation, waiting: bool = False) -> None:
    """Install a materialized view's dataflow from its definition, not yet hydrated. ``waiting``: as in
    ``Engine.install``."""
    if view.id in engine.failures or engine.failing.down(view, catalog):
        return
    engine.install(engine.plan_view(view, catalog), view.id, waiting)
    engine.add_indexes(view)


def _replay(engine: Engine, sequence: int, record: CommitRecord, exchanged: set[int]) -> None:
    """Replay one record of the log as the commit that it was."""
    ordinal = engine.timeline.last + 1
    before, after = engine.catalog, engine.catalog
    if record.catalog is not None:
        engine.flush_replayed(sequence - 1)
        after = catalog_from_json(before, record.catalog)
    created = [r for r in after.stored() if r.id not in before.relations]
    for table in created:
        if table.kind in FED:
            engine.add_table(table)
    if created:
        engine.hydrate()
    for update in record.updates:
        engine.feed(update.relation, update.rows, update.diffs, ordinal)
    views = [r for r in created if r.kind is RelationKind.MATERIALIZED_VIEW]
    if views:
        engine.settle()
    for view in views:
        if view.locks or view.id in exchanged:
            install_view(engine, after, view)
            engine.hydrate()
        else:
            engine.failing.await_new(view)
    altered = [
        r for i, r in after.relations.items() if i in before.relations and _arranged_otherwise(before.relations[i], r)
    ]
    if altered:
        engine.settle()
        for relation in altered:
            if relation.id not in engine.failures:
                engine.add_indexes(relation)
        engine.hydrate()
    dropped = [i for i in before.relations if i not in after.relations]
    redefined = [r.id for r in after.stored() if _redefined(before.relations.get(r.id), r)]
    if redefined:
        _rebuild(engine, after, redefined)
    engine.admit(record, after, dropped)
    if redefined:  # what the store gets of these views is as of this commit, and memory has nothing earlier of them
        engine.flush_replayed(sequence)
        engine.forget_before(engine.timeline.last)


def _redefined(old: Relation | None, new: Relation) -> bool:
    """Whether a materialized view has got another definition, by CREATE OR REPLACE."""
    return old is not None and new.kind is RelationKind.MATERIALIZED_VIEW and _meaning(old) != _meaning(new)


def _meaning(view: Relation) -> object:
    return view.definition, view.dependencies, view.planning


def _rebuild(engine: Engine, catalog: Catalog, redefined: list[int]) -> None:
    """Hydrate replaced views, and those over them, from their definitions, and replace what the store has of them."""
    over = {r.id for r in catalog.dependents(redefined)} | set(redefined)
    for view in over & engine.failing.filling.keys():  # it was down before
        engine.failing.lagging.was_away(view)
    views = [r for r in catalog.stored() if r.id in over and r.id not in engine.failures]
    engine.failing.rebuild(views, catalog)


def _arranged_otherwise(old: Relation, new: Relation) -> bool:
    return (new.indexes, new.foreign_keys) != (old.indexes, old.foreign_keys)
