"""Statements that are answered in one go, where their bytes arrive: no task, no messages.

They are those that short transactions consist of: BEGIN, reads by key, changes of one row, COMMIT; prepared, or as
texts whose plans are known (``sql.coordination.shapes``). What a statement's answer depends on besides its parameters
is looked up once, and again when any of that has changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sql.coordination.prepared import Prepared
from sql.engine.clock import timestamp_now
from sql.parse import split
from sql.pgwire.messages_backend import BIND_COMPLETE
from sql.pgwire.run_request import Begun, RunRequest
from sql.session.at_once.beginning import Beginning
from sql.session.at_once.changing import General, row_change
from sql.session.at_once.ending import Ending
from sql.session.at_once.form import Form
from sql.session.at_once.reading import point_read
from sql.session.portal import NamedStatement
from sql.session.preparing import current, prepared_before
from sql.session.reads import Reads
from sql.session.state import SessionState
from sql.session.writes import Writes
from sql.statements.queries import Query
from sql.statements.statements import Begin, Commit, Delete, Insert, Rollback, Update

_AS_TEXT: Final = b"\0\0"
_KNOWN: Final = 256
"""How many statements a session remembers."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a statement as long as all else here is the same; ``form`` None: it is none of these.
    ``of``: it, as prepared by name or by its text. ``version``: the catalog's."""

    form: Form | None
    of: NamedStatement | Prepared
    version: int
    changes: int
    arranged: int


class AtOnce:
    """One session's."""

    def __init__(self, state: SessionState, reads: Reads, writes: Writes, general: General) -> None:
        """``general``: runs a statement as any other."""
        self._state = state
        self._reads = reads
        self._writes = writes
        self._general = general
        self._known: dict[tuple[str, bytes] | int, _Known] = {}
        """By name and formats of the result; by the identity of what a text is prepared as."""

    def answer(self, request: RunRequest) -> bytes | Begun | None:
        """See ``WireSession.answer``. SqlError: the way of all statements reports it."""
        state = self._state
        if state.apart or state.coordinator.refills.busy:
            return None
        known = self._look(request)
        if known is None or known.form is None:
            return None
        assert isinstance(known.of, NamedStatement)
        self._record(known.of.text)
        return known.form.answer(request)

    def answer_text(self, text: str) -> bytes | Begun | None:
        """The same for a text of the simple protocol."""
        state = self._state
        if state.apart or state.coordinator.refills.busy:
            return None
        statements = split(text)
        found = prepared_before(state, statements[0]) if len(statements) == 1 else None
        if found is None:
            return None
        prepared, datums = found
        described = isinstance(prepared.bound.statement, Query)
        request = RunRequest("", (), (b"",) * len(datums), _AS_TEXT, described, 0, datums)
        known = self._known_text(prepared, request)
        if known is None or known.form is None:
            return None
        self._record(text)
        answer = known.form.answer(request)
        if isinstance(answer, Begun):
            return Begun(answer.head.removeprefix(BIND_COMPLETE), answer.result)
        return None if answer is None else answer.removeprefix(BIND_COMPLETE)

    def _record(self, text: str) -> None:
        state = self._state
        state.coordinator.jobs.record_statement(state.backend_id, text)
        state.statement, state.statement_started = text, timestamp_now()

    def _look(self, request: RunRequest) -> _Known | None:
        key, state = (request.statement, request.formats), self._state
        named = state.statements.get(request.statement)
        known = self._known.get(key)
        if known is not None and self._holds(known, named):
            return known
        if named is None or named.prepared is None or named.constants:
            return None
        prepared = current(state, named).prepared
        return None if prepared is None else self._remember(key, named, prepared, request)

    def _known_text(self, prepared: Prepared, request: RunRequest) -> _Known | None:
        known = self._known.get(id(prepared))
        if known is not None and self._holds(known, prepared):
            return known
        return self._remember(id(prepared), prepared, prepared, request)

    def _holds(self, known: _Known, of: NamedStatement | Prepared | None) -> bool:
        state = self._state
        return (
            known.of is of
            and known.version == state.catalog.version
            and known.changes == state.settings.changes
            and known.arranged == state.coordinator.engine.published.arranged
        )

    def _remember(
        self, key: tuple[str, bytes] | int, of: NamedStatement | Prepared, prepared: Prepared, request: RunRequest
    ) -> _Known | None:
        """What is known from now on; None: nothing until it has run."""
        if len(self._known) >= _KNOWN:
            self._known.clear()
        if not self._is_ready(prepared):
            return None
        state = self._state
        version, changes = state.catalog.version, state.settings.changes
        arranged = state.coordinator.engine.published.arranged
        known = self._known[key] = _Known(self._form(prepared, request), of, version, changes, arranged)
        return known

    def _is_ready(self, prepared: Prepared) -> bool:
        """Whether a statement has the plan that its form is made of, if it needs one."""
        if isinstance(prepared.bound.statement, Query | Update | Delete):
            return prepared.planned(self._state.coordinator.engine.published)
        return True

    def _form(self, prepared: Prepared, request: RunRequest) -> Form | None:
        prepared.check_allowed()
        match prepared.bound.statement:
            case Begin() as statement:
                return Beginning.of(self._state, statement)
            case Commit() | Rollback() as statement:
                return Ending(self._state, statement)
            case Query():
                return point_read(self._state, self._reads, prepared, request)
            case Insert() | Update() | Delete():
                return row_change(self._state, self._writes, self._general, prepared)
            case _:
                return None
