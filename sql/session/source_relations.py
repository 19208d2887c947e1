"""freshet.sources: the sources, their status and their progress."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sql.catalog.catalog import Relation, RelationKind
from sql.catalog.search_path import Lookup
from sql.catalog.system.definitions import Datums
from sql.coordination.source_status import SourceStatus
from sql.engine.clock import timestamp_now
from sql.engine.snapshot import Published
from sql.session.source_progress import progress_in
from storage.dictionary import Dictionary


def source_rows(
    statuses: Mapping[int, SourceStatus], published: Published, names: Lookup, dictionary: Dictionary
) -> Iterator[Datums]:
    """freshet.sources: one row for each source, by name. ``statuses``: of those that run, by relation."""
    for source in sorted(published.catalog.relations.values(), key=lambda r: (r.schema_name, r.name)):
        if source.kind is RelationKind.SOURCE:
            yield _shown(source, published, names, statuses.get(source.id) or SourceStatus(), dictionary)


def _shown(
    source: Relation, published: Published, names: Lookup, status: SourceStatus, dictionary: Dictionary
) -> Datums:
    assert source.connection is not None, "a source"
    table = published.catalog.relations[source.dependencies[0]]
    done = progress_in(source, published, dictionary)
    now = timestamp_now()
    behind = None if status.state == "paused" else 0 if status.behind is None else max(0, now - status.behind)
    error = None if status.error is None else f"{status.error.sqlstate}: {status.error.message}"
    detail = None if status.error is None else " ".join(filter(None, (status.error.detail, status.error.hint))) or None
    return (
        names.shown(source), names.shown(table), source.connection.system, status.state, status.since,
        None if done is None else done.batch, 0 if done is None else done.rows,
        None if done is None else done.committed, None if behind is None else (0, 0, behind),
        error, detail, status.failed_at, status.failures,
    )  # fmt: skip
