"""A server's databases as one of them sees them: what they share, and the others' sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sql.catalog.databases import Shared
from sql.coordination.sessions import OpenSession
from sql.ddl.acting import Actor
from sql.ddl.roles import Elsewhere
from sql.statements.databases import RenameDatabase, WholeDatabase
from sql.statements.results import Notify


class Databases(Protocol):
    """``sql.cluster.cluster.Cluster``, a layer above, implements it. Used on the event loop."""

    @property
    def shared(self) -> Shared:
        """What all databases share, as it is committed now; this one may be too busy to know of it yet."""

    @property
    def sessions(self) -> Sequence[OpenSession]:
        """The sessions of all databases."""

    async def merge(self, before: Shared, after: Shared) -> None:
        """Commit what a transaction of another database has changed to the first one. Raises 40001."""

    async def settle(self) -> None:
        """Return when every database knows what is shared now, or has been busy for long."""

    async def run(self, statement: WholeDatabase, actor: Actor, notify: Notify) -> str:
        """CREATE or DROP DATABASE; the tag."""

    async def check_renames(self, statement: RenameDatabase) -> None:
        """Raises 55006 where sessions use the database."""

    async def elsewhere(self, roles: Sequence[str], here: int) -> Elsewhere:
        """What keeps roles from being dropped in databases other than ``here``, the session's own."""

    def size(self, database: int) -> int:
        """The bytes that a database has on disk."""
