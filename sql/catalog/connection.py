"""Connections to the outside: where a source's rows come from, or where a sink's changes go.

A connection is a relation of its own (``RelationKind.SOURCE`` or ``SINK``) that depends on the one table or view that
it fills or reads. A source's rows record its progress. They are committed together with the rows that it has read, so
that either both are durable or neither is, and they are stored, recovered and read like a table's rows. A sink's
progress is recorded in what it has written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

OptionValue = str | bool | tuple[str, ...]
"""``SECRET name`` is ``("secret", name)``: no other option of a system is a list."""
Options = tuple[tuple[str, OptionValue], ...]


@dataclass(frozen=True, slots=True)
class Connection:
    """``system``: what it connects to (files, kafka, rate, jdbc; for a sink local, spark). ``options``: by lower-case
    name.

    ``columns``: names of the columns to fill, in order; () for all. ``key``: names of the columns that identify a row,
    () if none do. ``envelope``: none, upsert, debezium or (for a sink) changelog. ``trigger``: µs between polls.
    ``paused``: nothing runs until RESUME.
    """

    system: str
    options: Options
    columns: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    envelope: str = "none"
    trigger: int = 1_000_000
    paused: bool = False

    def option(self, name: str) -> OptionValue | None:
        """An option's value."""
        return next((value for known, value in self.options if known == name), None)


def secret_of(value: OptionValue) -> str | None:
    """The name of the secret that a value stands for."""
    return value[1] if isinstance(value, tuple) and len(value) == 2 and value[0] == "secret" else None


def revealed(connection: Connection, reveal: Callable[[str], str]) -> Connection:
    """The connection with the texts of its secrets: for the system alone, never to be shown or kept. Raises 42704."""
    named = ((name, value, secret_of(value)) for name, value in connection.options)
    options = tuple((name, value if secret is None else reveal(secret)) for name, value, secret in named)
    return replace(connection, options=options)
