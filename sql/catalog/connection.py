"""What connects the database with the outside: where a source's rows come from, where a sink's changes go.

A connection is a relation of its own (``RelationKind.SOURCE`` or ``SINK``) that depends on the one table or view that
it fills or reads. A source's rows say how far it has come. They are fed in the same commit as the work that they speak
of, so that either both are durable or neither is, and they are recovered, kept and read as a table's rows are. How far
a sink has come is told by what it has written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

OptionValue = str | bool | tuple[str, ...]
Options = tuple[tuple[str, OptionValue], ...]


@dataclass(frozen=True, slots=True)
class Connection:
    """``system``: what is connected (files, kafka, rate, jdbc; a sink's: local, spark). ``options``: about it,
    by lower-case names.

    ``columns``: names of those that are filled, in order; () for all. ``key``: names of the columns by which rows are
    found again, () where they are not. ``envelope``: none, upsert, debezium or (a sink's) changelog.
    ``trigger``: µs from one look to the next. ``paused``: nothing runs until RESUME.
    """

    system: str
    options: Options
    columns: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    envelope: str = "none"
    trigger: int = 1_000_000
    paused: bool = False

    def option(self, name: str) -> OptionValue | None:
        """What was said for an option."""
        return next((value for known, value in self.options if known == name), None)


def connection_to_json(connection: Connection) -> dict[str, object]:
    return asdict(connection)


def connection_from_json(data: Mapping[str, Any]) -> Connection:
    options = tuple((name, tuple(v) if isinstance(v, list) else v) for name, v in data["options"])
    return Connection(**{**data, "options": options, "columns": tuple(data["columns"]), "key": tuple(data["key"])})
