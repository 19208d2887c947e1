"""Prepared reads of one row by its key, answered in one go: no task, no plan, no block of rows.

What a prepared statement's answer depends on besides its parameter is looked up once, and again when any of that has
changed. Whatever is out of the ordinary is left to the way of all queries, which reads the same rows or reports why it
cannot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ivm.graph import Gather
from ivm.words import Kind, SqlType, Storage
from planner import gathers
from planner.expr.scalar import Parameter
from planner.peek.keyed import Keyed, keyed
from planner.physical.layouts import StoredKey
from sql.catalog.catalog import Catalog
from sql.engine.clock import timestamp_now
from sql.engine.snapshot import Published
from sql.pgwire.described import describe_rows
from sql.pgwire.messages_backend import BIND_COMPLETE, PORTAL_SUSPENDED, READY, CommandComplete
from sql.pgwire.point import PointRequest
from sql.pgwire.values import TEXT_FORMAT, Writer, column_formats, decode_parameter, encode_row, row_writers
from sql.session.information import output_style
from sql.session.portal import NamedStatement
from sql.session.preparing import current
from sql.session.reads import is_plain
from sql.session.state import SessionState
from sql.statements.queries import Query
from storage.types.codec import encode_one
from storage.types.text_bulk import TEXT_KINDS
from storage.types.text_style import DEFAULT_STYLE

_KINDS: Final = frozenset({Kind.INT2, Kind.INT4, Kind.INT8, Kind.UUID, *TEXT_KINDS})
"""The types of keys, all of them independent of the session's settings."""
_DIGITS: Final = {Kind.INT2: 4, Kind.INT4: 9, Kind.INT8: 18}
"""So many digits are never out of range."""
_KNOWN: Final = 256
"""How many statements a session remembers."""
_NO_ROW: Final = CommandComplete("SELECT 0").encode() + READY["I"]
_ONE_ROW: Final = CommandComplete("SELECT 1").encode() + READY["I"]
_FIRST_ROW: Final = PORTAL_SUSPENDED + READY["I"]


@dataclass(frozen=True, slots=True)
class _Point:
    """``text``: the statement's. ``head``: what comes before the rows, with and without their description."""

    text: str
    relation: int
    key: StoredKey
    type: SqlType
    gather: Gather
    head: dict[bool, bytes]
    writers: list[Writer]


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a statement as long as all else here is the same; ``point`` None: it is no read of one row."""

    point: _Point | None
    named: NamedStatement | None
    catalog: Catalog
    changes: int
    arranged: int


class PointReads:
    """One session's."""

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self._known: dict[tuple[str, bytes], _Known] = {}

    def answer(self, request: PointRequest) -> bytes | None:
        """See ``WireSession.read_point``. SqlError: the way of all queries reports it."""
        state, coordinator = self._state, self._state.coordinator
        published = coordinator.engine.published
        if state.occupied or coordinator.refills.busy:
            return None
        point = self._point(request, published)
        if point is None or point.relation in published.failures or coordinator.scattered.among((point.relation,)):
            return None
        version = published.arrangement(point.relation, point.key)
        errors = published.errors(point.relation)
        if version is None or (errors is not None and errors.count):
            return None
        row = version.lookup_one(self._word(point.type, request), published.ordinal)
        if row is None:
            return None
        coordinator.jobs.record_statement(state.backend_id, point.text)
        state.statement, state.statement_started = point.text, timestamp_now()
        moved = gathers.apply_to_one(point.gather, row[0].tolist()) if len(row) else None
        if moved is None:
            return point.head[request.described] + _NO_ROW
        last = _FIRST_ROW if request.max_rows == 1 else _ONE_ROW
        return point.head[request.described] + encode_row(moved, point.writers) + last

    def _word(self, type_: SqlType, request: PointRequest) -> int:
        value = request.value
        if request.form == TEXT_FORMAT and value.isdigit() and len(value) <= _DIGITS.get(type_.kind, 0):
            return int(value)
        datum = decode_parameter(type_, request.form, value, DEFAULT_STYLE)
        dictionary = self._state.coordinator.engine.dictionary
        return encode_one(type_, datum, dictionary if type_.storage is Storage.DIRECT else dictionary.scratch())

    def _point(self, request: PointRequest, published: Published) -> _Point | None:
        key = request.statement, request.formats
        known = self._known.get(key)
        named = self._state.statements.get(request.statement)
        changes = self._state.settings.changes
        if (
            known is None
            or known.named is not named
            or known.catalog is not published.catalog
            or known.changes != changes
            or known.arranged != published.arranged
        ):
            if len(self._known) >= _KNOWN:
                self._known.clear()
            point = None if named is None else self._look(named, request, published)
            if point is None and (named is None or named.prepared is None or named.prepared.plan is None):
                return None  # it may be one when it has run
            known = self._known[key] = _Known(point, named, published.catalog, changes, published.arranged)
        return known.point

    def _look(self, named: NamedStatement, request: PointRequest, published: Published) -> _Point | None:
        """The statement as a read by key, if it is one and its role may run it."""
        if self._state.settings.get("client_encoding") != "UTF8":
            return None
        prepared, formats = current(self._state, named).prepared, request.result_formats
        if prepared is None or formats is None or not prepared.planned(published):
            return None
        prepared.check_allowed()
        statement, found = prepared.bound.statement, keyed(prepared.plan) if prepared.plan else None
        if not isinstance(statement, Query) or statement.locks or prepared.bound.interpreted or found is None:
            return None
        finishing = statement.finishing
        if not is_plain(statement) or finishing.limit is not None or finishing.offset is not None:
            return None
        if len(prepared.bound.parameters) != 1 or not _by_one(found):
            return None
        assert prepared.plan is not None, "a plan that has been looked at"
        forms = column_formats(formats, len(statement.columns))
        dictionary = self._state.coordinator.engine.dictionary
        writers = row_writers(prepared.plan.schema, forms, dictionary, output_style(self._state))
        head = {True: BIND_COMPLETE + describe_rows(statement.columns, forms), False: BIND_COMPLETE}
        return _Point(prepared.text, found.relation, found.key, found.keys.type, found.gather, head, writers)


def _by_one(found: Keyed) -> bool:
    """Whether the row is only moved, and its key is the statement's parameter, of a type whose values mean the same in
    every session."""
    return (
        not found.is_array
        and found.program is None
        and isinstance(found.keys, Parameter)
        and found.keys.type.kind in _KINDS
    )
