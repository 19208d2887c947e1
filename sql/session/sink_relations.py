"""freshet.sinks: the sinks and their status."""

from __future__ import annotations

from collections.abc import Iterator

from sql.catalog.catalog import RelationKind
from sql.catalog.search_path import SearchPathReader
from sql.catalog.sink import sink_of, source_of
from sql.coordination.sinks import Sinks
from sql.engine.snapshot import Published


def sink_rows(sinks: Sinks, published: Published, names: SearchPathReader) -> Iterator[tuple[object, ...]]:
    """freshet.sinks: one row for each sink, the oldest first."""
    now = published.epoch
    for relation in sorted(published.catalog.relations.values(), key=lambda r: r.oid):
        if relation.kind is not RelationKind.SINK:
            continue
        sink, at = sink_of(relation), sinks.status(relation.id)
        last, source = at.last, published.catalog.relations[source_of(relation)]
        lag = None if at.epoch is None else (0, 0, max(now - at.epoch, 0))
        totals = (0, 0, 0) if last is None else (last.totals.files, last.totals.rows, last.totals.bytes)
        yield (
            names.shown(relation), names.shown(source), sink.uri, sink.format.value, sink.envelope.value,
            "paused" if sink.paused else at.state, at.epoch, lag, None if last is None else last.generation,
            None if last is None else last.version, *totals, at.error,
        )  # fmt: skip
