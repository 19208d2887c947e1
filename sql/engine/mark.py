"""Savepoints of a writer."""

from __future__ import annotations

from typing import NamedTuple

from sql.catalog.catalog import Catalog


class Mark(NamedTuple):  # one for each statement, and made in a third of a frozen dataclass's time
    """A savepoint's position in the changes."""

    updates: int
    created: int
    catalog: Catalog
    loads: int = 0
    deferred: int = 0
    deferring: tuple[bool | None, dict[int, bool]] = (None, {})
    locks: int = 0
    before: Catalog | None = None
    """What ``catalog`` has been made from, if the catalog had been changed."""
    successions: int = 0
