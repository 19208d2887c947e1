"""CREATE SINK and ALTER SINK; DROP SINK is a ``Drop``."""

from __future__ import annotations

from dataclasses import dataclass

SinkOption = tuple[str, "str | bool | tuple[str, ...]", int]


@dataclass(frozen=True, slots=True)
class CreateSink:
    """``options``: name, value and offset of each, as written. Names are looked up at execution."""

    schema_name: str | None
    name: str
    source: tuple[str | None, str]
    uri: str
    options: tuple[SinkOption, ...] = ()
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterSink:
    """``action``: pause, resume or restart."""

    schema_name: str | None
    name: str
    action: str
    if_exists: bool = False


SinkStatement = CreateSink | AlterSink
