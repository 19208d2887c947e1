"""freshet.loads and freshet.rejects: finished and running loads, and their rejects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sql.catalog.search_path import Lookup
from sql.catalog.system.definitions import Datums
from sql.engine.loads import Load, LoadState


def load_rows(loads: Iterable[Load], names: Lookup) -> Iterator[Datums]:
    """freshet.loads: the loads of existing tables, and running or failed ones."""
    for load, table in _shown(loads, names):
        ended = load.state in (LoadState.COMMITTED, LoadState.FAILED, LoadState.CANCELLED)
        yield (
            load.id, table, load.source, load.engine, None if ended else load.backend, load.state.value, load.rows,
            load.total, load.rejected, load.epoch, load.started, load.finished, load.error,
        )  # fmt: skip


def reject_rows(loads: Iterable[Load], names: Lookup) -> Iterator[Datums]:
    """freshet.rejects: the bad rows that committed loads left out."""
    for load, table in _shown(loads, names):
        if load.state is LoadState.COMMITTED:
            for reject in load.rejects:
                yield (load.id, table, *reject)


def _shown(loads: Iterable[Load], names: Lookup) -> Iterator[tuple[Load, str]]:
    relations = {relation.oid: relation for relation in names.catalog.relations.values()}
    for load in loads:
        table = relations.get(load.relation)
        if table is not None:
            yield load, names.shown(table)
        elif load.state is not LoadState.COMMITTED:
            yield load, load.table
