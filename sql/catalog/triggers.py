"""Triggers of a table or view, as stored in the catalog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

EVENTS: Final = ("insert", "delete", "update", "truncate")


@dataclass(frozen=True, slots=True)
class Trigger:
    """``id`` is its oid. ``timing``: before, after or instead of. ``events``: of ``EVENTS``. ``row``: FOR EACH ROW.

    ``function``: the oid of the function, called with ``arguments``. ``columns``: those of UPDATE OF, by name; all if
    empty. ``condition``: WHEN, as SQL text. ``old_table`` and ``new_table``: the names of the transition tables.
    ``enabled``: O, D (disabled), R (on a replica) or A (always). ``constraint``: CREATE CONSTRAINT TRIGGER, which may
    be ``deferrable`` and initially ``deferred``.
    """

    id: int
    name: str
    timing: str
    events: tuple[str, ...]
    row: bool
    function: int
    arguments: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    condition: str | None = None
    old_table: str | None = None
    new_table: str | None = None
    enabled: str = "O"
    constraint: bool = False
    deferrable: bool = False
    deferred: bool = False

    @property
    def fires(self) -> bool:
        """Whether it fires in a session that is no replica."""
        return self.enabled in ("O", "A")
