"""Prepared statements that are answered in one go, where their bytes arrive: no task, no messages.

They are those that short transactions consist of: BEGIN, reads by key, changes of one row, COMMIT. What a statement's
answer depends on besides its parameters is looked up once, and again when any of that has changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sql.coordination.prepared import Prepared
from sql.engine.clock import timestamp_now
from sql.pgwire.run_request import Begun, RunRequest
from sql.session.at_once.beginning import Beginning
from sql.session.at_once.changing import General, row_change
from sql.session.at_once.ending import Ending
from sql.session.at_once.form import Form
from sql.session.at_once.reading import point_read
from sql.session.portal import NamedStatement
from sql.session.preparing import current
from sql.session.reads import Reads
from sql.session.state import SessionState
from sql.session.writes import Writes
from sql.statements.queries import Query
from sql.statements.statements import Begin, Commit, Delete, Insert, Rollback, Update

_KNOWN: Final = 256
"""How many statements a session remembers."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a statement as long as all else here is the same; ``form`` None: it is none of these.
    ``version``: the catalog's."""

    form: Form | None
    named: NamedStatement
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
        self._known: dict[tuple[str, bytes], _Known] = {}

    def answer(self, request: RunRequest) -> bytes | Begun | None:
        """See ``WireSession.answer``. SqlError: the way of all statements reports it."""
        state = self._state
        if state.apart or state.coordinator.refills.busy:
            return None
        known = self._look(request)
        if known is None or known.form is None:
            return None
        text = known.named.text
        state.coordinator.jobs.record_statement(state.backend_id, text)
        state.statement, state.statement_started = text, timestamp_now()
        return known.form.answer(request)

    def _look(self, request: RunRequest) -> _Known | None:
        key = request.statement, request.formats
        state = self._state
        known, named = self._known.get(key), state.statements.get(request.statement)
        version, changes = state.catalog.version, state.settings.changes
        arranged = state.coordinator.engine.published.arranged
        if (
            known is not None
            and known.named is named
            and known.version == version
            and known.changes == changes
            and known.arranged == arranged
        ):
            return known
        if named is None or named.prepared is None or named.constants:
            return None
        if len(self._known) >= _KNOWN:
            self._known.clear()
        prepared = current(state, named).prepared
        if prepared is None or not self._is_ready(prepared):
            return None  # it may be one when it has run
        known = self._known[key] = _Known(self._form(prepared, request), named, version, changes, arranged)
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
