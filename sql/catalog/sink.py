"""A sink's definition, stored in its ``Connection``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sql.catalog.catalog import Relation, RelationKind
from sql.catalog.connection import Connection
from storage.sinks.envelope import Envelope
from storage.sinks.target import SinkFormat

EVERY: Final = 1_000_000
RETAIN: Final = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Sink:
    """``uri``: the destination; for a local folder a path without links. ``spark``: whether Spark writes. ``owner``: a
    random name that identifies the sink in its folder. ``key``: column names. ``every``: µs between polls for changes.
    ``retain``: the maximum of history, in µs, kept for it while it makes no progress. ``restarts``: how often it was
    told to restart from the beginning."""

    uri: str
    owner: str
    format: SinkFormat = SinkFormat.PARQUET
    envelope: Envelope = Envelope.CHANGELOG
    key: tuple[str, ...] = ()
    snapshot: bool = True
    spark: bool = False
    every: int = EVERY
    retain: int = RETAIN
    restarts: int = 0
    paused: bool = False

    def connection(self) -> Connection:
        """The definition as the catalog stores it."""
        options = (
            ("uri", self.uri), ("owner", self.owner), ("format", self.format.value), ("snapshot", self.snapshot),
            ("retain", str(self.retain)), ("restarts", str(self.restarts)),
        )  # fmt: skip
        system = "spark" if self.spark else "local"
        return Connection(system, options, (), self.key, self.envelope.value, self.every, self.paused)


def sink_of(relation: Relation) -> Sink:
    """The definition of a sink relation."""
    assert relation.kind is RelationKind.SINK, "a sink"
    assert relation.connection is not None, "a sink has a connection"
    connection = relation.connection
    given = dict(connection.options)
    return Sink(
        str(given["uri"]), str(given["owner"]), SinkFormat(given["format"]), Envelope(connection.envelope),
        connection.key, bool(given["snapshot"]), connection.system == "spark", connection.trigger,
        int(str(given["retain"])), int(str(given["restarts"])), connection.paused,
    )  # fmt: skip


def source_of(relation: Relation) -> int:
    """The id of the relation that a sink reads."""
    return relation.dependencies[0]
