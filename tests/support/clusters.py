"""All databases of a server without sockets, driven from plain test functions."""

from __future__ import annotations

import asyncio
from pathlib import Path

from sql.admission.admission import OPEN
from sql.cluster.cluster import Cluster, Opening
from sql.coordination.coordinator import Coordinator
from sql.engine.persist import Tuning
from sql.session.door import admit
from sql.session.sources import Sources
from tests.support.sessions import Client, Server


class Databases(Server):
    """``database``: a session of one of them, by name, as the listener opens it."""

    cluster: Cluster

    def __init__(self, folder: Path, tuning: Tuning | None = None) -> None:
        super().__init__(folder, tuning=tuning, patience=60)

    async def _open(self) -> Coordinator:
        self.cluster = await Cluster.open(Opening(self.folder, self.memory, tuning=self.tuning))
        self.cluster.on_open(Sources)
        return self.cluster.first

    def database(self, name: str = "postgres", user: str = "postgres", **parameters: str) -> Client:
        return Client(self, self.run(admit(self.cluster, user, name, parameters, OPEN)))

    def woken(self) -> None:
        """Return when the databases that a start opens are open, and all know what is shared."""

        async def wait() -> None:
            await asyncio.gather(*self.cluster._tasks)

        self.run(wait())

    def restart(self) -> None:
        self.run(self.cluster.close())
        self.coordinator = self.run(self._open())

    async def _shut(self) -> None:
        await self.cluster.close()
