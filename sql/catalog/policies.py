"""Row-level security of a table, as stored in the catalog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sql.catalog.references import RelationReference

COMMANDS: Final = {"all": "*", "select": "r", "insert": "a", "update": "w", "delete": "d"}
"""pg_policy.polcmd by the word after FOR."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition as SQL text. ``references`` and ``dependencies``: what its names meant when it was made, as of a
    view's definition; ``places`` of references are empty."""

    text: str
    references: tuple[RelationReference, ...] = ()
    dependencies: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Policy:
    """``id`` is its oid. ``command``: as in ``COMMANDS``. ``roles``: their oids, 0 for PUBLIC. ``using``: which rows
    are there; ``check``: which new rows may be, the same if it is None."""

    id: int
    name: str
    permissive: bool
    command: str
    roles: tuple[int, ...]
    using: Guard | None = None
    check: Guard | None = None


@dataclass(frozen=True, slots=True)
class RowSecurity:
    """``enabled``: who neither owns the table nor bypasses it sees what policies show; ``forced``: the owner too."""

    enabled: bool = False
    forced: bool = False
    policies: tuple[Policy, ...] = ()


NO_SECURITY: Final = RowSecurity()
