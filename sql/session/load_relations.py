"""freshet.loads and freshet.rejects: finished and running loads, and their rejects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sql.catalog.search_path import SearchPathReader
from sql.catalog.securables import sees_below
from sql.catalog.system.definitions import Datums
from sql.engine.loads import Load, LoadState
from sql.system.state import HIDDEN


def load_rows(loads: Iterable[Load], names: SearchPathReader) -> Iterator[Datums]:
    """freshet.loads: the loads of existing tables, and running or failed ones."""
    for load, table, told in _shown(loads, names):
        ended = load.state in (LoadState.COMMITTED, LoadState.FAILED, LoadState.CANCELLED)
        error = load.error if told or load.error is None else HIDDEN
        yield (
            load.id, table, load.source, load.engine, None if ended else load.backend, load.state.value, load.rows,
            load.total, load.rejected, load.epoch, load.started, load.finished, error,
        )  # fmt: skip


def reject_rows(loads: Iterable[Load], names: SearchPathReader) -> Iterator[Datums]:
    """freshet.rejects: the bad rows that committed loads left out, their texts for who may read the table."""
    for load, table, told in _shown(loads, names):
        if load.state is LoadState.COMMITTED:
            for reject in load.rejects:
                yield (load.id, table, *(reject if told else reject._replace(text=HIDDEN, reason=HIDDEN)))


def _shown(loads: Iterable[Load], names: SearchPathReader) -> Iterator[tuple[Load, str, bool]]:
    """Loads, with the names of their tables, and whether the reader may see the rows."""
    relations = {relation.oid: relation for relation in names.catalog.relations.values()}
    role = names.path.role
    for load in loads:
        table = relations.get(load.relation)
        if table is not None:
            yield load, names.shown(table), sees_below(names.catalog, role, table)
        elif load.state is not LoadState.COMMITTED:
            yield load, load.table, names.catalog.access.is_superuser(role)
