"""A session's state between its statements.

Everything that runs statements takes this state, and none of it knows ``Session``, which drives it.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from ivm.errors import SqlError
from ivm.words import SqlType
from planner.expr.random_numbers import RandomNumbers
from planner.identifiers import quoted
from sql.admission.admission import OWN, Admission
from sql.catalog.access import RoleNames
from sql.catalog.catalog import Catalog
from sql.catalog.roles import BOOTSTRAP_ID
from sql.catalog.search_path import SearchPath, path_of
from sql.coordination.advisory import Key
from sql.coordination.coordinator import Coordinator
from sql.coordination.notifications import Notifications
from sql.coordination.stepping import Steps
from sql.coordination.transaction import Extent, Transaction
from sql.ddl.acting import Actor
from sql.ddl.roles import NOTHING_ELSEWHERE
from sql.dml.triggers import TriggerCaller
from sql.engine.clock import timestamp_now
from sql.engine.row_locks import LockOwner
from sql.engine.writer import Writer
from sql.session.cursors import Cursor, Cursors
from sql.session.interrupts import Interrupts
from sql.session.portal import NamedStatement, Portal
from sql.settings.limits import RESERVED
from sql.settings.settings import FRESH, ROLE_OID, SESSION_OID, Settings
from sql.statements.results import Notice
from sql.syntax.lexing.standard_strings import StandardText, standard
from sql.system.state import CopyInfo, SessionInfo
from storage.types.text_style import TextStyle

_BACKENDS = itertools.count(1)
_NO_SETTINGS = ("user", "database", "options", "replication")
"""Start-up parameters that are not settings."""


@dataclass(slots=True)
class SequenceNumbers:
    """The numbers that sequences issued to this session. ``by_id``: the last of each; ``last``: the id of the sequence
    used last."""

    by_id: dict[int, int] = field(default_factory=dict)
    last: int = 0


class RoutineCaller(TriggerCaller, Protocol):
    """What runs interpreted routines (``sql.session.routines.calling``)."""

    def call(
        self, writer: Writer, oid: int, arguments: Sequence[object], types: tuple[SqlType, ...], result: SqlType,
        in_from: bool,
    ) -> Sequence[tuple[object, ...]]: ...  # fmt: skip


class SessionState:
    """One session's state, used on the event loop only.

    ``parameters``: of the start-up message. ``parameter_changes``: reported settings with their new values, drained by
    the wire, as are ``notices``.
    """

    def __init__(
        self, coordinator: Coordinator, user: str, database: str, parameters: dict[str, str], admission: Admission
    ) -> None:
        self.coordinator = coordinator
        self.admission = admission
        self.transaction: Transaction | None = None
        self.ending: Transaction | None = None
        """The transaction that is being committed: statements of deferred triggers run in it."""
        self.user = user
        self.database = database
        self.login = login(coordinator, user, database, admission)
        own = coordinator.engine.published.catalog.access
        usual = own.shared.databases[own.database].settings
        if (role := own.roles.get(self.login)) is not None and admission is not OWN:
            usual = (*usual, *role.settings_in(0), *role.settings_in(own.database))
        self.settings = _starting_settings(
            user, usual, parameters, own.is_superuser(self.login), coordinator.most_sessions
        )  # fmt: skip
        self.acting: list[int] = []
        """The owners of the functions with SECURITY DEFINER that are running."""
        self.notices: list[Notice] = []
        self.parameter_changes = self.settings.report()
        self.failed = False
        """Whether the open transaction block has failed and must be ended."""
        self.several = False
        """Whether the running message has several statements: they are a block of their own."""
        self.statements: dict[str, NamedStatement] = {}
        self.portals: dict[str, Portal] = {}
        self.cursors = Cursors()
        self.copying: Callable[[], CopyInfo] | None = None
        """Reports the progress of the running COPY."""
        self.interrupts = Interrupts()
        self.numbers = SequenceNumbers()
        self.random_numbers = RandomNumbers()
        self.statement = ""
        self.statement_started: int | None = None
        """The text of the last statement."""
        self.pause = 0.0
        """Seconds that the running statement is to wait before it ends (pg_sleep)."""
        self.advisory_locks: list[tuple[Key, bool, bool]] = []
        """Those that the running statement has taken: keys, whether for the transaction, whether shared."""
        self.held_locks: list[tuple[Key, bool, bool]] = []
        """Those of the statements before it, in the running routine."""
        self.addresses: tuple[tuple[str, int], tuple[str, int]] | None = None
        """The client's host and port, and the server's; None without TCP."""
        self.backend_id = next(_BACKENDS)
        self.notifications = Notifications(coordinator.channels, self.backend_id)
        self.routines: RoutineCaller | None = None
        """Runs the routines that are interpreted."""
        self.steps: Steps[Any] | None = None
        """Lets others go on between the statements of the running routine, where they may."""
        self._started = timestamp_now()
        self._path: tuple[str, int, int, SearchPath] | None = None
        self.output_style: tuple[Catalog, int, TextStyle] | None = None
        """``information.output_style`` of a catalog, after so many changes of settings."""
        self.elsewhere = NOTHING_ELSEWHERE
        """What other databases have of the roles that the running DROP ROLE names."""
        self.creating: str | None = None
        """The schema that CREATE SCHEMA makes objects in, which comes first in the search path."""

    # Transactions.

    @property
    def transaction_status(self) -> Literal["I", "T", "E"]:
        """The status for ReadyForQuery: idle, in a transaction block, in a failed one."""
        if self.failed:
            return "E"
        return "T" if self.in_block else "I"

    @property
    def in_block(self) -> bool:
        """Whether a transaction block is open."""
        return self.transaction is not None and self.transaction.is_block

    @property
    def in_any_block(self) -> bool:
        """Whether BEGIN has opened a block, or the message's statements are one."""
        return self.in_block or (self.several and self.transaction is not None)

    @property
    def apart(self) -> bool:
        """Whether a statement is not all that the session is about: it has failed, or has something to tell."""
        told = self.notices or self.parameter_changes or self.notifications.inbox.arrived
        return bool(self.failed or told or self.acting)

    @property
    def running(self) -> Transaction:
        """The transaction of the running statement."""
        found = self.transaction or self.ending
        assert found is not None, "a statement runs in a transaction"
        return found

    def new_transaction(self, extent: Extent, modes: Mapping[str, str] | None = None) -> Transaction:
        """Open a transaction, with these modes or the session's defaults."""
        self.settings.begin(modes)
        read_only = self.settings.boolean("transaction_read_only")
        now = timestamp_now()
        settings = self.settings
        fresh = settings.get("transaction_isolation") in FRESH
        owner = LockOwner(self.backend_id)
        self.transaction = Transaction(
            self.coordinator.jobs, now, extent, read_only, fresh, owner, lambda: settings.milliseconds("lock_timeout")
        )
        return self.transaction

    def begin_implicit(self, extent: Extent = Extent.MESSAGE) -> Transaction:
        """The transaction for the next statement; if none is open, a new one of this extent."""
        return self.new_transaction(extent) if self.transaction is None else self.transaction

    async def rest(self, reads: bool) -> None:
        """Wait as long as the statement asked for. An interrupt ends it, with its error unless the statement changes
        something, not only ``reads``, and has committed by itself: that stands."""
        try:
            await asyncio.sleep(self.pause)
        except asyncio.CancelledError:
            committed = self.running.extent is Extent.STATEMENT and not reads
            if not committed or not self.interrupts.forgiven():
                raise

    # Names.

    @property
    def catalog(self) -> Catalog:
        """The catalog in which names are resolved now."""
        return self.coordinator.engine.published.catalog if self.transaction is None else self.transaction.catalog

    @property
    def temporary_schema(self) -> str:
        """The name of the schema for this session's temporary relations. It is created with the first of them."""
        return f"pg_temp_{self.backend_id}"

    def path(self, catalog: Catalog) -> SearchPath:
        """The search path now."""
        setting, role = self.settings.get("search_path"), self.role
        if self.creating is not None:
            setting = f"{quoted(self.creating)}, {setting}"
        if self._path is None or self._path[:3] != (setting, catalog.version, role):
            name = self.roles(catalog).name(role)
            found = path_of(setting, name, self.temporary_schema, catalog, role)
            self._path = setting, catalog.version, role, found
        return self._path[3]

    # Roles.

    @property
    def role(self) -> int:
        """The current role, by its oid."""
        if self.acting:
            return self.acting[-1]
        values = self.settings.values
        return int(values.get(ROLE_OID) or values.get(SESSION_OID) or self.login)

    @property
    def session_role(self) -> int:
        """The role of the session: who connected, or SET SESSION AUTHORIZATION."""
        return int(self.settings.values.get(SESSION_OID) or self.login)

    def roles(self, catalog: Catalog) -> RoleNames:
        """The names of roles as this session sees them."""
        return RoleNames(catalog.access, self.user if self.login == BOOTSTRAP_ID else None)

    def is_superuser(self, role: int) -> bool:
        """Whether a role may do everything now."""
        return self.catalog.access.is_superuser(role)

    def actor(self, catalog: Catalog) -> Actor:
        """Who runs the session's definitions."""
        return Actor(self.role, self.session_role, self.roles(catalog), self.database)

    # Cursors and portals.

    def cursor(self, name: str) -> Cursor:
        """A cursor, or a portal that has returned some of its rows. 34000: there is none."""
        portal = self.portals.get(name) if name else None
        if portal is not None and portal.rows is not None:
            return Cursor(name, portal.statement.text, portal.rows)
        return self.cursors.named(name)

    def close_cursor(self, name: str) -> None:
        """CLOSE. 34000: no cursor or portal has that name."""
        if self.portals.pop(name, None) is None:
            self.cursors.close(name)

    # Messages to the client and to other sessions.

    def notice(self, message: str, severity: str = "NOTICE", sqlstate: str = "00000", hint: str | None = None) -> None:
        """Send a notice with the next answer."""
        self.notices.append(Notice(severity, sqlstate, message, None, hint))

    def standard(self, text: str) -> StandardText:
        """A text with its strings as the standard writes them. Raises what its tokens raise; warns of escapes."""
        quoting = self.settings.quoting
        return StandardText(text) if quoting is None else standard(text, quoting, self._warn_of_string)

    def _warn_of_string(self, message: str, hint: str, position: int | None) -> None:
        self.notices.append(Notice("WARNING", "22P06", message, None, hint, position=position))

    def report_settings(self) -> None:
        """Tell the client of the reported settings that have changed."""
        if self.settings.reported:
            self.parameter_changes += [(name, self.settings.get(name)) for name in self.settings.reported]
            self.settings.reported.clear()

    def info(self) -> SessionInfo:
        """The row of pg_stat_activity."""
        status = {"I": "idle", "T": "idle in transaction", "E": "idle in transaction (aborted)"}
        shown = "active" if self.interrupts.running else status[self.transaction_status]
        application = self.settings.get("application_name")
        database = self.coordinator.engine.published.catalog.access.database
        return SessionInfo(
            self.backend_id, self.user, self.login, self.database, database, application, shown, self.statement,
            self._started, self.statement_started, None if self.transaction is None else self.transaction.started,
            tls=self.admission.tls,
        )  # fmt: skip


def login(coordinator: Coordinator, user: str, database: str, admission: Admission) -> int:
    """The role that a user connects as: as long as there are no rules, the bootstrap superuser for a name that is no
    role's. Raises 28000 for such a name else, and for a role without LOGIN, 42501 for one without CONNECT, 53300 beyond
    its limit, the database's or the server's."""
    access, databases = coordinator.engine.published.catalog.access, coordinator.databases
    if databases is not None:
        access = access.changed(shared=databases.shared)
    found = access.named(user)
    if admission is OWN:
        return BOOTSTRAP_ID
    if found is None:
        if admission.anybody:
            _check_room(coordinator, superuser=True)
            return BOOTSTRAP_ID
        raise SqlError("28000", f'role "{user}" does not exist')
    if not found.login:
        raise SqlError("28000", f'role "{user}" is not permitted to log in')
    if not access.has(found.oid, access.own_database, "c"):
        detail = "User does not have CONNECT privilege."
        raise SqlError("42501", f'permission denied for database "{database}"', detail)
    _check_room(coordinator, superuser=found.superuser)
    limit = -1 if found.superuser else access.shared.databases[access.database].limit
    if 0 <= limit <= sum(not session.internal for session in coordinator.sessions):
        raise SqlError("53300", f'too many connections for database "{database}"')
    if found.superuser or found.limit < 0:
        return found.oid
    if found.limit <= sum(session.info().role == found.oid for session in coordinator.everybody()):
        raise SqlError("53300", f'too many connections for role "{user}"')
    return found.oid


def _check_room(coordinator: Coordinator, *, superuser: bool) -> None:
    """53300 when there are as many sessions as may be; the last ones are kept for superusers."""
    left = coordinator.most_sessions - len(coordinator.everybody())
    if left <= 0:
        raise SqlError("53300", "sorry, too many clients already")
    if not superuser and left <= RESERVED:
        message = "remaining connection slots are reserved for non-replication superuser connections"
        raise SqlError("53300", message)


def _starting_settings(
    user: str, usual: Sequence[tuple[str, str]], parameters: dict[str, str], superuser: bool, most: int
) -> Settings:
    """The settings of a new session, whose values become its defaults. ``usual``: the database's own, then the role's.
    Unknown ones are ignored."""
    settings = Settings()
    for name, value in usual:
        with suppress(SqlError):  # it was right when it was set
            settings.set(name, value)
    for name, value in parameters.items():
        if name.lower() not in _NO_SETTINGS and not name.startswith("_pq_."):
            try:
                settings.set(name, value)
            except SqlError as error:
                if error.sqlstate != "42704":
                    raise
    settings.become_defaults(
        session_authorization=user, is_superuser="on" if superuser else "off", max_connections=str(most)
    )
    return settings
