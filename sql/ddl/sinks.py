"""CREATE SINK and ALTER SINK, as changes of a writer's catalog, which ``sql/coordination/sinks.py`` follows."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from ivm.errors import SqlError
from sql.bind.ddl import duration, retention
from sql.catalog.catalog import LABELS, Relation, RelationKind
from sql.catalog.search_path import SearchPathReader, check_creatable, no_schema
from sql.catalog.sink import EVERY, RETAIN, Sink, sink_of
from sql.ddl.indexes import taken_names
from sql.engine.writer import Writer
from sql.statements.results import Notice, Notify
from sql.statements.sinks import AlterSink, CreateSink, SinkOption, SinkStatement
from storage.sinks.arrow import SinkColumn
from storage.sinks.envelope import Envelope, SinkLayout, key_of
from storage.sinks.target import SinkFormat, scheme_of

_KNOWN: Final = ("format", "envelope", "key", "snapshot", "every", "retain history", "engine")
_READABLE: Final = (RelationKind.TABLE, RelationKind.MATERIALIZED_VIEW, RelationKind.SOURCE)


def sink_options(statement: CreateSink) -> Sink:
    """A sink of the statement's options. 42601, 22023, 22007, 0A000."""
    given: dict[str, SinkOption] = {}
    for option in statement.options:
        name, _, at = option
        if name not in _KNOWN:
            raise SqlError("42601", f'option "{name}" not recognized', position=at + 1,
                           hint=f"The options of a sink are {', '.join(n.upper() for n in _KNOWN)}.")  # fmt: skip
        if name in given:
            raise SqlError("42601", "conflicting or redundant options", position=at + 1)
        given[name] = option
    key, every = given.get("key", ("key", (), 0))[1], _interval(given, "every")
    sink = Sink(
        statement.uri, secrets.token_hex(8), SinkFormat(_choice(given, "format", [f.value for f in SinkFormat])),
        Envelope(_choice(given, "envelope", ["changelog", "upsert", "debezium"])),
        (key,) if isinstance(key, str) else key if isinstance(key, tuple) else (),
        _boolean(given, "snapshot"), _by_spark(given, statement.uri),
        EVERY if every is None else duration(every, "EVERY"), retention(_interval(given, "retain history")) or RETAIN,
    )  # fmt: skip
    if sink.envelope is Envelope.DEBEZIUM and sink.format is SinkFormat.CSV:
        raise SqlError("0A000", "ENVELOPE DEBEZIUM needs rows inside rows, which FORMAT csv does not have",
                       hint="Use FORMAT parquet or jsonl.")  # fmt: skip
    return sink


def layout_of(sink: Sink, relation: Relation) -> SinkLayout:
    """The columns that a sink writes. 42701: a column has the name of one of the sink's own; 42P10: a key is needed;
    42703."""
    names = [c.name for c in relation.columns]
    for name in sink.envelope.own_columns:
        if name in names:
            raise SqlError("42701", f'"{relation.name}" has a column "{name}", as the sink has of its own')
    columns = tuple(SinkColumn(c.name, s) for c, s in zip(relation.columns, relation.schema, strict=True))
    if sink.envelope is Envelope.CHANGELOG:
        return SinkLayout(columns, sink.envelope)
    key = key_of(names, sink.key) or relation.primary_key
    if not key:
        label = sink.envelope.value.upper()
        raise SqlError("42P10", f'ENVELOPE {label} needs a key, and "{relation.name}" has no primary key',
                       hint="Name columns by which its rows are unique: KEY (…).")  # fmt: skip
    return SinkLayout(columns, sink.envelope, key)


def check_source(relation: Relation) -> None:
    """Raises 42809 or 0A000 for a relation whose changes cannot be sent."""
    if relation.kind not in _READABLE:
        label = LABELS[relation.kind]
        hint = "Create a materialized view of it." if relation.kind is RelationKind.VIEW else None
        raise SqlError("42809", f'"{relation.name}" is a {label}; a sink reads a table or a materialized view',
                       hint=hint)  # fmt: skip
    if relation.partitioning is not None or relation.children:
        what = "is partitioned" if relation.partitioning is not None else "has tables that inherit from it"
        raise SqlError("0A000", f'a sink of "{relation.name}", which {what}',
                       hint=f"Create a materialized view: SELECT * FROM {relation.name}.")  # fmt: skip
    if relation.temporary:
        raise SqlError("0A000", f'a sink of "{relation.name}", which goes with its session')


@dataclass(frozen=True, slots=True)
class SinkDefiner:
    """Runs these statements for one writer."""

    writer: Writer
    notify: Notify
    names: SearchPathReader

    def run(self, statement: SinkStatement) -> str:
        """Run the statement; the command tag."""
        if isinstance(statement, CreateSink):
            self._create(statement)
            return "CREATE SINK"
        self._alter(statement)
        return "ALTER SINK"

    def _create(self, statement: CreateSink) -> None:
        catalog, engine, name = self.writer.catalog, self.writer.engine, statement.name
        schema_name = self.names.home(statement.schema_name, temporary=False)
        check_creatable(schema_name, name)
        if not catalog.has_schema(schema_name):
            raise no_schema(schema_name)
        if name in taken_names(catalog, schema_name):
            message = f'relation "{name}" already exists'
            if not statement.if_not_exists:
                raise SqlError("42P07", message)
            self.notify(Notice("NOTICE", "42P07", f"{message}, skipping"))
            return
        source = self._source(*statement.source)
        sink = sink_options(statement)
        layout_of(sink, source)
        created = engine.timeline.epoch(engine.timeline.last) + 1
        made = Relation(engine.next_id(catalog), schema_name, name, RelationKind.SINK, (), created=created,
                        dependencies=(source.id,), connection=sink.connection())  # fmt: skip
        self.writer.create(made, None)

    def _source(self, schema_name: str | None, name: str) -> Relation:
        found = self.names.resolve(schema_name, name)
        if found is None or found.signed:
            shown = name if schema_name is None else f"{schema_name}.{name}"
            raise SqlError("42P01", f'relation "{shown}" does not exist')
        check_source(found)
        return found

    def _alter(self, statement: AlterSink) -> None:
        found = self.names.resolve(statement.schema_name, statement.name)
        shown = statement.name if statement.schema_name is None else f"{statement.schema_name}.{statement.name}"
        if found is None:
            if not statement.if_exists:
                raise SqlError("42P01", f'sink "{shown}" does not exist')
            self.notify(Notice("NOTICE", "00000", f'sink "{shown}" does not exist, skipping'))
            return
        if found.kind is not RelationKind.SINK:
            raise SqlError("42809", f'"{shown}" is not a sink')
        sink = sink_of(found)
        if statement.action == "restart":
            sink = replace(sink, restarts=sink.restarts + 1)
        else:
            sink = replace(sink, paused=statement.action == "pause")
        self.writer.redefine(replace(found, connection=sink.connection()))


def _choice(given: Mapping[str, SinkOption], name: str, values: list[str]) -> str:
    _, value, at = given.get(name, (name, values[0], 0))
    if not isinstance(value, str) or value.lower() not in values:
        raise SqlError("22023", f'{name.upper()} "{value}" is not known', position=at + 1,
                       hint=f"It is one of {', '.join(values)}.")  # fmt: skip
    return value.lower()


def _boolean(given: Mapping[str, SinkOption], name: str) -> bool:
    _, value, at = given.get(name, (name, True, 0))
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise SqlError("42601", f"{name} requires a Boolean value", position=at + 1)
    return value


def _interval(given: Mapping[str, SinkOption], name: str) -> str | None:
    _, value, at = given.get(name, (name, None, 0))
    if value is not None and not isinstance(value, str):
        raise SqlError("42601", f"{name} requires an interval", position=at + 1)
    return value


def _by_spark(given: Mapping[str, SinkOption], uri: str) -> bool:
    local = scheme_of(uri) in ("", "file")
    engine = _choice(given, "engine", ["auto", "local", "spark"])
    if engine == "local" and not local:
        raise SqlError("22023", f'only Spark writes to "{uri}"', hint="Leave ENGINE out, or say ENGINE = spark.")
    return engine == "spark" or not local
