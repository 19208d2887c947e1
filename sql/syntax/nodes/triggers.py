"""The syntax tree of CREATE TRIGGER."""

from __future__ import annotations

from dataclasses import dataclass

from sql.syntax.nodes.queries import Expr, TableName


@dataclass(frozen=True, slots=True)
class CreateTriggerStatement:
    """``events``: each with the columns of UPDATE OF. ``condition``: WHEN's expression and its text. ``transitions``:
    whether it is the new one, and the name, of each transition table. The other fields are as in ``Trigger``."""

    name: str
    replace: bool
    timing: str
    events: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
    table: TableName
    row: bool
    condition: tuple[Expr, str] | None
    transitions: tuple[tuple[bool, str], ...]
    function: TableName
    arguments: tuple[str, ...]
    constraint: bool
    deferrable: bool
    deferred: bool
    at: int
