"""The databases of one server: a coordinator for each that is open, in one process.

The first database is always open, and its catalog keeps what all of them share (``sql.catalog.databases.Shared``): a
change of that is a commit there, and is then told to the others, each of which has a copy in its own catalog. Another
database is opened when its first client connects, or before that if it has sources or sinks.

Used on the event loop only, whose code between two awaits is what makes a check and its consequence one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from ivm.errors import SqlError, unsupported
from sql.admission.admission import Admission
from sql.admission.gate import Gate
from sql.catalog.access import Access
from sql.catalog.databases import FIRST_DATABASE, TEMPLATE1, Database, Shared
from sql.catalog.merging import merged_shared
from sql.cluster.folders import Folders
from sql.cluster.leaving import Leaving, check_signals
from sql.cluster.sharing import adopt, check_copied, elsewhere, has_nothing
from sql.cluster.waking import Waking, wakes
from sql.coordination.coordinator import DEFAULT_MEMORY, Coordinator
from sql.coordination.sessions import OpenSession
from sql.ddl.acting import Actor
from sql.ddl.databases import database_to_drop, insert_database, new_database, remove_database
from sql.ddl.roles import Elsewhere
from sql.ddl.seen_rows import check_seen
from sql.engine.persist import Tuning
from sql.engine.writer import Writer
from sql.settings.limits import MOST_SESSIONS
from sql.statements.databases import CreateDatabase, DropDatabase, RenameDatabase, WholeDatabase
from sql.statements.results import Notice, Notify
from storage.files import FatalStorageError
from storage.outbound import NOWHERE, Outbound, Reach
from storage.secrets import Secrets
from storage.spark.session import SparkSettings

log = logging.getLogger("freshet.cluster")

TELL_SECONDS: Final = 2.0
"""How long a change of what is shared waits for a database that is busy. It is told all the same, later."""
AGAIN_SECONDS: Final = 1.0
PART_OF_STORES: Final = 8
"""The store of a database other than the first may use this part of the memory that the first one's may."""


@dataclass(frozen=True, slots=True)
class Opening:
    """How the databases of a server are opened; as of ``Coordinator.open``."""

    data: Path
    memory: int | None = None
    files: tuple[Path, ...] = ()
    progress: Callable[[str], None] = field(default=lambda _: None)
    tuning: Tuning | None = None
    python: bool = False
    spark: SparkSettings | None = None
    places: tuple[str, ...] = ()
    safe: bool = False
    hosts: Outbound = NOWHERE


class Cluster:
    """``first``: the first database."""

    def __init__(self, first: Coordinator, opening: Opening) -> None:
        self.first = first
        self._opened: Callable[[Coordinator], object] = lambda _: None
        self.folders = Folders(opening.data)
        self._opening = opening
        self._open = {FIRST_DATABASE: first}
        self._locks: dict[int, asyncio.Lock] = {}
        self._told = self.shared
        self._telling = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False
        first.databases = self

    @classmethod
    async def open(cls, opening: Opening, most_sessions: int = MOST_SESSIONS) -> Cluster:
        """Open (or create) a data folder: its first database. SqlError 55006, XX001."""
        first = await Coordinator.open(
            opening.data, opening.memory, opening.files, opening.progress, opening.tuning, opening.python,
            opening.spark, opening.places, opening.safe,
        )  # fmt: skip
        first.most_sessions = most_sessions
        first.reach, first.secrets = Reach(opening.files, opening.hosts), Secrets(opening.data / "secrets")
        found = cls(first, opening)
        await asyncio.to_thread(found.folders.remove_unknown, found.shared.databases.keys())
        return found

    @property
    def shared(self) -> Shared:
        """What all databases share, as it is committed now."""
        return self._access.shared

    @property
    def _access(self) -> Access:
        return self.first.engine.published.catalog.access

    @property
    def sessions(self) -> Sequence[OpenSession]:
        """The sessions of all databases."""
        return [session for coordinator in self._open.values() for session in coordinator.sessions]

    @property
    def coordinators(self) -> Sequence[Coordinator]:
        """The databases that are open, the first one first."""
        return tuple(self._open.values())

    def on_open(self, start: Callable[[Coordinator], object]) -> None:
        """Call this with every database that is open, and that will be; begin to open those that wake by themselves."""
        self._opened = start
        for coordinator in self._open.values():
            start(coordinator)
        self._keep(asyncio.ensure_future(self._wake()))

    async def _wake(self) -> None:
        """One after the other: clients come first, and open their own at once."""
        for oid in list(self.shared.databases):
            if oid == FIRST_DATABASE or not wakes(self.folders.of(oid)):
                continue
            try:
                async with self._lock(oid):
                    if oid in self.shared.databases:
                        await self._coordinator(oid)
            except (SqlError, FatalStorageError) as error:
                log.warning("database %d cannot be opened: %s", oid, error)

    def _keep(self, task: asyncio.Task[None]) -> None:
        """Keep a task until it ends, or the server does."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def guard(self, gate: Gate) -> None:
        """``gate``: who may connect, of all databases."""
        for coordinator in self._open.values():
            coordinator.gate = gate

    # -- entering --------------------------------------------------------------------------------------------

    async def enter(self, name: str, user: str, admission: Admission) -> tuple[Coordinator, str]:
        """The database that a client asks for, open, and its name. As long as there are no rules, a client that asks
        for none, so that its database is named like its user, gets the first one. The caller opens its session before
        it awaits anything. Raises 3D000, 55000, and what opening raises."""
        while True:
            found = self._asked(name, user, admission)
            if found.oid == FIRST_DATABASE:
                return self.first, found.name
            async with self._lock(found.oid):
                if self.shared.databases.get(found.oid) == found:
                    return await self._coordinator(found.oid), found.name

    def _asked(self, name: str, user: str, admission: Admission) -> Database:
        found = self.shared.database(name)
        if found is None and admission.anybody and name == user:
            found = self.shared.databases[FIRST_DATABASE]
        if found is None:
            raise SqlError("3D000", f'database "{name}" does not exist')
        if not found.connects:
            raise SqlError("55000", f'database "{found.name}" is not currently accepting connections')
        return found

    def _lock(self, oid: int) -> asyncio.Lock:
        """Held while a database is opened, closed, copied or dropped."""
        return self._locks.setdefault(oid, asyncio.Lock())

    async def _coordinator(self, oid: int) -> Coordinator:
        """The coordinator of a database, whose lock the caller holds. Raises what ``Coordinator.open`` does."""
        found = self._open.get(oid)
        if found is not None:
            return found
        if self._closing:
            raise SqlError("57P03", "the database system is shutting down")
        opening, folder = self._opening, self.folders.of(oid)
        name = self.shared.databases[oid].name
        if oid != TEMPLATE1 and not folder.is_dir():
            detail = f'The database subdirectory "{folder.parent.name}/{folder.name}" is missing.'
            raise SqlError("3D000", f'database "{name}" does not exist', detail)
        made = await Coordinator.open(
            folder, (opening.memory or DEFAULT_MEMORY) // PART_OF_STORES, opening.files,
            lambda text: opening.progress(f"{name}: {text}"), opening.tuning, opening.python, opening.spark,
            opening.places, opening.safe, self.first.budget,
        )  # fmt: skip
        made.spark.borrow(self.first.spark)
        made.reach, made.secrets = self.first.reach, self.first.secrets
        made.databases, made.gate, made.most_sessions = self, self.first.gate, self.first.most_sessions
        self._open[oid] = made
        try:
            told = self._told
            await made.jobs.autocommit(partial(adopt, made.engine, self.shared, oid))
            if told is not self._told:  # while the commit was under way
                await self._tell(made, oid)
            Waking(folder, made.engine)
            self._opened(made)
        except BaseException:
            await asyncio.shield(self._close(oid))
            raise
        return made

    async def _close(self, oid: int) -> None:
        """Close a database without sessions, whose lock the caller holds."""
        found = self._open.pop(oid, None)
        if found is not None:
            await found.close()

    # -- what is shared --------------------------------------------------------------------------------------

    async def _change(self, work: Callable[[Writer], object]) -> None:
        """Change what is shared, as a transaction of its own on the first database."""
        engine = self.first.engine

        def run() -> None:
            writer = Writer.begin(engine)
            before = writer.catalog
            work(writer)
            check_seen(writer, before)
            writer.commit()

        await self.first.jobs.autocommit(run)

    async def settle(self) -> None:
        """Return when every open database knows what is shared now, or has been busy for ``TELL_SECONDS``."""
        if self._told is self.shared:
            return
        async with self._telling:
            self._told = self.shared
            tasks = [asyncio.ensure_future(self._tell(c, oid)) for oid, c in self._others()]
            for task in tasks:
                self._keep(task)
            if tasks:
                await asyncio.wait(tasks, timeout=TELL_SECONDS)

    def _others(self) -> Iterator[tuple[int, Coordinator]]:
        return ((oid, c) for oid, c in list(self._open.items()) if oid != FIRST_DATABASE)

    async def _tell(self, coordinator: Coordinator, oid: int) -> None:
        """Commit what is shared to another database, again and again until it succeeds or the database is closed."""
        while self._open.get(oid) is coordinator and not self._closing:
            try:
                await coordinator.jobs.autocommit(partial(adopt, coordinator.engine, self.shared, oid))
                return
            except SqlError as error:
                log.warning("database %d was not told of a change of roles: %s", oid, error.message)
                await asyncio.sleep(AGAIN_SECONDS)

    async def merge(self, before: Shared, after: Shared) -> None:
        """Commit what a transaction of another database has changed to the first one. Raises 40001."""

        def run(writer: Writer) -> None:
            access = writer.catalog.access
            writer.set_access(access.changed(shared=merged_shared(access.shared, before, after)))

        await self._change(run)

    async def elsewhere(self, roles: Sequence[str], here: int) -> Elsewhere:
        """What keeps roles from being dropped in databases other than ``here``, all of which are opened."""
        found: dict[str, list[str]] = {name: [] for name in roles if self._access.named(name)}
        for database in list(self.shared.databases.values()) if found else ():
            if database.oid == here or self.folders.is_empty(database.oid):
                continue
            async with self._lock(database.oid):
                if database.oid in self.shared.databases:
                    catalog = (await self._coordinator(database.oid)).engine.published.catalog
                    for name in found:
                        found[name] += elsewhere(catalog, name, database.name)
        return found

    # -- creating and dropping -------------------------------------------------------------------------------

    async def run(self, statement: WholeDatabase, actor: Actor, notify: Notify) -> str:
        """CREATE or DROP DATABASE; the tag. Raises what ``new_database`` and ``database_to_drop`` do, and 55006."""
        match statement:
            case CreateDatabase():
                await self._create(statement, actor)
                return "CREATE DATABASE"
            case DropDatabase():
                await self._drop(statement, actor, notify)
                return "DROP DATABASE"

    async def _create(self, statement: CreateDatabase, actor: Actor) -> None:
        """The database's folder is whole before the commit that makes it one."""
        new, engine = new_database(actor, statement), self.first.engine
        oid = new.oid or await self.first.jobs.submit(lambda: engine.next_id(engine.catalog))
        await asyncio.to_thread(self.folders.make, oid)
        try:
            async with self._lock(new.template.oid):
                await self._copy(new.template, oid, actor)
            await self._change(lambda writer: insert_database(writer, new, oid))
        except BaseException:
            if oid not in self.shared.databases:
                await asyncio.to_thread(self.folders.remove, oid)
            raise
        await self.settle()

    async def _copy(self, template: Database, oid: int, actor: Actor) -> None:
        """Copy what a template has, which nobody may use meanwhile. Raises 0A000, 3D000, 55006."""
        if template.oid not in self.shared.databases:
            raise SqlError("3D000", f'template database "{template.name}" does not exist')
        if self.folders.is_empty(template.oid):
            return
        own = 1 if actor.database == template.name else 0
        message = f'source database "{template.name}" is being accessed by other users'
        await Leaving(self._users(template.oid), message, own).wait()
        catalog = (await self._coordinator(template.oid)).engine.published.catalog
        if has_nothing(catalog):
            return
        check_copied(catalog, template.name)
        if own:
            raise unsupported("a copy of the database that the session is connected to")
        await self._close(template.oid)
        await asyncio.to_thread(self.folders.copy, template.oid, oid)

    async def _drop(self, statement: DropDatabase, actor: Actor, notify: Notify) -> None:
        """The commit that drops it comes first; its folder then counts no more."""
        found = database_to_drop(actor, statement)
        if found is None:
            notify(Notice("NOTICE", "00000", f'database "{statement.name}" does not exist, skipping'))
            return
        async with self._lock(found.oid):
            if found.oid not in self.shared.databases:
                raise SqlError("3D000", f'database "{statement.name}" does not exist')
            users = self._users(found.oid)
            if statement.force:
                check_signals(actor, users())
                for session in users():
                    session.signal(terminate=True)
            await Leaving(users, f'database "{found.name}" is being accessed by other users').wait()

            await asyncio.shield(self._remove(found.oid))
        await self.settle()

    async def _remove(self, oid: int) -> None:
        await self._change(lambda writer: remove_database(writer, oid))
        with suppress(SqlError):
            await self._close(oid)
        await asyncio.to_thread(self.folders.remove, oid)

    def _users(self, oid: int) -> Callable[[], list[OpenSession]]:
        """Asks for the clients of a database."""

        def users() -> list[OpenSession]:
            coordinator = self._open.get(oid)
            return [] if coordinator is None else [s for s in coordinator.sessions if not s.internal]

        return users

    async def check_renames(self, statement: RenameDatabase) -> None:
        """Raises 55006 where sessions use the database."""
        found = self.shared.database(statement.name)
        if found is not None:
            message = f'database "{statement.name}" is being accessed by other users'
            await Leaving(self._users(found.oid), message).wait()

    def size(self, database: int) -> int:
        """The bytes that a database has on disk."""
        return self.folders.size(database)

    async def close(self) -> None:
        """An orderly end of all databases, of the first one last."""
        self._closing = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*(c.close() for _, c in self._others()), return_exceptions=True)
        await self.first.close()
