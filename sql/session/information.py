"""System information for functions and system relations: names, settings, sequences, locks, other sessions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ivm.errors import SqlError, unsupported
from ivm.rows import Words, pack
from ivm.stops import polled
from ivm.words import SqlType
from planner.expr.context import Context
from planner.expr.random_numbers import RandomNumbers
from sql.admission.shown import shown
from sql.catalog.access import DATABASE, RoleNames, database_object
from sql.catalog.catalog import INTERNAL_SCHEMAS, Catalog, Relation, RelationKind
from sql.catalog.comments import living
from sql.catalog.roles import READ_ALL_STATS
from sql.catalog.search_path import SearchPath, SearchPathReader
from sql.engine.clock import timestamp_now
from sql.engine.row_locks import BlockedError
from sql.engine.snapshot import Published
from sql.engine.writer import Writer
from sql.session.inputs import input_error, modifier
from sql.session.modes import set_variable
from sql.session.own_relations import own_rows
from sql.session.read_points import ReadPoint, present
from sql.session.rights import check_signal
from sql.session.sequences import SequenceFunctions
from sql.session.shown_locks import locks
from sql.session.state import SessionState
from sql.settings.settings import encoding_of_client
from sql.statements.statements import CopyOptions
from sql.system import relations as system
from sql.system.functions import SystemFunctions
from sql.system.own import OWN_RELATIONS
from sql.system.state import CopyInfo, CursorInfo, HbaLine, LockInfo, SessionInfo, StatementInfo
from storage.dictionary import Dictionary
from storage.encodings.encoding import Encoding
from storage.types.codec import encode
from storage.types.text_style import TextStyle


class SystemInformation(SequenceFunctions, SystemFunctions):
    """``planner.expr.context.SessionFunctions`` and ``sql.system.state.SystemState`` of one session, over one
    catalog."""

    def __init__(self, session: SessionState, catalog: Catalog, writer: Writer | None = None) -> None:
        """``writer``: of the transaction, on the engine thread; None where none may be used."""
        super().__init__(None, session.settings.find, session.backend_id)
        self.session = session
        self.writer = writer
        self.catalog = catalog

    @property
    def roles(self) -> RoleNames:
        return self.session.roles(self.catalog)

    @property
    def role(self) -> int:
        return self.session.role

    @property
    def session_role(self) -> int:
        return self.session.session_role

    @property
    def database(self) -> str:
        return self.session.database

    def relations(self) -> Iterable[Relation]:
        others = (RelationKind.FUNCTION, RelationKind.OPERATOR, RelationKind.TYPE, RelationKind.SINK)
        return (*OWN_RELATIONS, *(r for r in self.catalog.relations.values() if r.kind not in others))

    def types(self) -> Iterable[Relation]:
        # a range type is found by its multirange type's name too
        return {t.id: t for t in self.catalog.types.values()}.values()

    def routines(self) -> Iterable[Relation]:
        return tuple(r for functions in self.catalog.routines.values() for r in functions)

    def operators(self) -> Iterable[Relation]:
        return tuple(r for operators in self.catalog.operators.values() for r in operators)

    def schemas(self) -> Mapping[str, int]:
        return {**INTERNAL_SCHEMAS, **self.catalog.schemas}

    def comments(self) -> Mapping[tuple[int, int, int], str]:
        known = self.catalog.access.shared.databases.values()
        return living(self.catalog) | {(DATABASE, d.oid, 0): d.comment for d in known if d.comment is not None}

    @property
    def path(self) -> SearchPath:
        return self.session.path(self.catalog)

    @property
    def reader(self) -> SearchPathReader:
        return SearchPathReader(self.catalog, self.path)

    @property
    def constants(self) -> TextStyle:
        return self.session.settings.constants

    def settings(self) -> Sequence[tuple[str, str]]:
        return self.session.settings.all()

    def sessions(self) -> Sequence[SessionInfo]:
        return [s.info() for s in self.session.coordinator.everybody()]

    def hba_lines(self) -> Sequence[HbaLine]:
        gate = self.session.coordinator.gate
        return () if gate is None else [shown(line) for line in gate.lines()]

    def identity(self) -> str | None:
        admission = self.session.admission
        return f"{admission.method}:{admission.identity}" if admission.identity else None

    def reload(self) -> bool:
        if not self.session.is_superuser(self.role):
            raise SqlError("42501", "permission denied for function pg_reload_conf")
        gate = self.session.coordinator.gate
        return gate is not None and gate.reload()

    def database_bytes(self, database: str | int) -> int | None:
        """pg_database_size. Raises 3D000, 42501, 42704. Cost: a look at every file of the database."""
        access, role = self.catalog.access, self.role
        if isinstance(database, int):
            found = access.shared.databases.get(database)
            if found is None:
                raise SqlError("42704", f"database with OID {database} does not exist")
        else:
            found = self.session.actor(self.catalog).database_named(database)
        if not access.has(role, database_object(found.oid), "c") and not access.may_act_as(role, READ_ALL_STATS):
            raise SqlError("42501", f"permission denied for database {found.name}")
        databases = self.session.coordinator.databases
        return None if databases is None else databases.size(found.oid)

    def transaction_number(self) -> int:
        transaction = self.session.transaction
        return self.session.coordinator.jobs.next_number() if transaction is None else transaction.number()

    def export_snapshot(self) -> str:
        transaction = self.session.transaction
        if transaction is None:
            raise unsupported("pg_export_snapshot() here")
        return transaction.export()

    def locks(self) -> Sequence[LockInfo]:
        return tuple(locks(self.session.coordinator, self.catalog.access.database))

    def copies(self) -> Sequence[CopyInfo]:
        copying = [session.copying for session in self.session.coordinator.sessions]
        return [tell() for tell in copying if tell is not None]

    def cursors(self) -> Sequence[CursorInfo]:
        return [
            CursorInfo(c.name, c.text, c.hold, c.scrollable, c.created, c.binary) for c in self.session.cursors.all()
        ]

    def prepared_statements(self) -> Sequence[StatementInfo]:
        return [
            StatementInfo(name, s.text, s.created, s.parameters, s.by_sql)
            for name, s in self.session.statements.items()
            if name
        ]

    def notify(self, channel: str, payload: str) -> None:
        self.session.notifications.notify(channel, payload)

    def blocking_pids(self, backend: int) -> Sequence[int]:
        return self.session.coordinator.jobs.waits.blocking(backend)

    def listening_channels(self) -> Sequence[str]:
        return self.session.coordinator.channels.of(self.session.notifications)

    def wait(self, seconds: float) -> None:
        self.session.pause += seconds

    def statement_text(self) -> str:
        return self.session.statement

    def address(self, server: bool) -> tuple[str, int] | None:
        known = self.session.addresses
        return None if known is None else known[server]

    def input_error(self, context: Context, text: str, type_: str) -> SqlError | None:
        return input_error(SearchPathReader(self.catalog, self.path), context, text, type_)

    def type_modifier(self, type_: str) -> int | None:
        return modifier(SearchPathReader(self.catalog, self.path), type_)

    def advisory_lock(self, key: tuple[int, ...], transaction: bool, shared: bool) -> None:
        session = self.session
        try:
            session.coordinator.advisory.demand(session.backend_id, key, transaction, shared)
        except BlockedError:
            give_back(session)
            raise
        session.advisory_locks.append((key, transaction, shared))

    def try_advisory_lock(self, key: tuple[int, ...], transaction: bool, shared: bool) -> bool:
        session = self.session
        taken = session.coordinator.advisory.take(session.backend_id, key, transaction, shared)
        if taken:
            session.advisory_locks.append((key, transaction, shared))
        return taken

    def advisory_unlock(self, key: tuple[int, ...], shared: bool) -> bool:
        released = self.session.coordinator.advisory.give_back(self.session.backend_id, key, shared)
        if not released:
            kind = "ShareLock" if shared else "ExclusiveLock"
            self.session.notice(f"you don't own a lock of type {kind}", "WARNING", "01000")
        return released

    def advisory_unlock_all(self) -> None:
        self.session.coordinator.advisory.release(self.session.backend_id, transaction=False)

    def signal_backend(self, pid: int, terminate: bool) -> bool:
        if terminate and pid == self.session.backend_id:
            raise SqlError("57P01", "terminating connection due to administrator command")
        for session in self.session.coordinator.everybody():
            if session.backend_id == pid:
                check_signal(self.session, session.info().role, terminate)
                session.signal(terminate)
                return True
        self.session.notice(f"PID {pid} is not a PostgreSQL server process", "WARNING", "01000")
        return False

    def call_routine(
        self, oid: int, arguments: Sequence[object], types: tuple[SqlType, ...], result: SqlType, in_from: bool = False
    ) -> Sequence[tuple[object, ...]]:
        if self.writer is None or self.session.routines is None:
            known = self.catalog.by_id(oid)
            shown = "a function" if known is None else f"function {known.name}"
            raise unsupported(f"{shown}, which is interpreted, in this place", "Call it in SELECT, INSERT or UPDATE.")
        return self.session.routines.call(self.writer, oid, arguments, types, result, in_from)

    def trigger_depth(self) -> int:
        return 0 if self.session.routines is None else self.session.routines.trigger_depth

    def random_numbers(self) -> RandomNumbers:
        return self.session.random_numbers

    def set_setting(self, name: str, value: str | None, local: bool) -> str:
        set_variable(self.session, name, value, local)
        return self.session.settings.get(name)


def text_style(session: SessionState) -> TextStyle:
    """The settings of the text forms of values, with names for the reg* types."""
    transaction = session.transaction
    now = timestamp_now() if transaction is None else transaction.started
    return TextStyle(
        session.settings.get("timezone"), now, SystemInformation(session, session.catalog), session.settings.formats
    )


def output_style(session: SessionState) -> TextStyle:
    """The text forms of what a client reads, which have the digits that it wishes. Its ``now`` means nothing."""
    catalog, changes, known = session.catalog, session.settings.changes, session.output_style
    if known is not None and known[0] is catalog and known[1] == changes:
        return known[2]
    digits = int(session.settings.get("extra_float_digits"))
    style = replace(text_style(session), now=0, float_digits=digits, encoding=session.settings.encoding)
    session.output_style = catalog, changes, style
    return style


def copy_encoding(session: SessionState, options: CopyOptions) -> Encoding | None:
    """The encoding of a COPY's texts, to or from the client; None: UTF-8."""
    return session.settings.encoding if options.encoding is None else encoding_of_client(options.encoding)


def system_words(
    relation: int, information: SystemInformation, published: Published, dictionary: Dictionary,
    at: ReadPoint | None = None,
) -> Words:  # fmt: skip
    """The rows of a system relation, encoded with the query's dictionary. ``at``: the read point of AS OF."""
    known = published.catalog.by_id(relation)
    assert known is not None, "a system relation"
    if known in OWN_RELATIONS:
        session = information.session
        path, at = session.path(published.catalog), at or present(published)
        datums = list(own_rows(known, session.coordinator, path, published, dictionary, at))
    elif known.sequence is not None:
        datums = [information.sequence_state(known)]
    else:
        datums = system.rows(relation, information)
    vectors = [encode(c.type, [row[i] for row in datums], dictionary) for i, c in enumerate(polled(known.columns, 1))]
    return pack(vectors, known.schema, len(datums))


def give_back(session: SessionState) -> None:
    """Undo what the running statement has done to advisory locks and pauses, because it is to run again."""
    for key, transaction, shared in session.advisory_locks:
        session.coordinator.advisory.give_back(session.backend_id, key, shared, transaction)
    session.advisory_locks.clear()
    session.pause = 0.0
