"""Reads of one row by its key: no plan, no block of rows.

Whatever is out of the ordinary is left to the way of all queries, which reads the same rows or reports why it cannot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ivm.graph import Gather
from ivm.words import Kind, SqlType, Storage
from planner import gathers
from planner.expr.scalar import Parameter
from planner.peek.affected import AskedKey
from planner.peek.keyed import Keyed, keyed
from planner.physical.layouts import StoredKey, table_layout
from sql.catalog.catalog import Relation, RelationKind
from sql.coordination.prepared import Prepared
from sql.coordination.transaction import Transaction
from sql.dml.one_row import find_row
from sql.engine.read_set import Reading
from sql.engine.row_locks import BlockedError
from sql.engine.snapshot import Published
from sql.pgwire.described import describe_rows
from sql.pgwire.messages_backend import BIND_COMPLETE, PORTAL_SUSPENDED, READY, CommandComplete
from sql.pgwire.run_request import RunRequest
from sql.pgwire.values import DIGITS, TEXT_FORMAT, Writer, column_formats, decode_parameter, encode_row, row_writers
from sql.session.information import output_style
from sql.session.reads import Reads, is_plain
from sql.session.request import Request
from sql.session.state import SessionState
from sql.statements.queries import Query
from storage.types.codec import encode_one
from storage.types.text_bulk import TEXT_KINDS
from storage.types.text_style import DEFAULT_STYLE

_KINDS: Final = frozenset({Kind.INT2, Kind.INT4, Kind.INT8, Kind.UUID, *TEXT_KINDS})
"""The types of keys, all of them independent of the session's settings."""
_NO_ROW: Final = {status: CommandComplete("SELECT 0").encode() + ready for status, ready in READY.items()}
_ONE_ROW: Final = {status: CommandComplete("SELECT 1").encode() + ready for status, ready in READY.items()}
_FIRST_ROW: Final = {status: PORTAL_SUSPENDED + ready for status, ready in READY.items()}


@dataclass(frozen=True, slots=True)
class PointRead:
    """``gather``: from an arranged row to the result's; ``head``: what comes before the rows, with and without their
    description; ``table``: if its rows can be found among a transaction's own changes, with ``arrange`` and ``restore``
    to and from its arrangement."""

    state: SessionState
    reads: Reads
    prepared: Prepared
    relation: int
    key: StoredKey
    type: SqlType
    gather: Gather
    head: dict[bool, bytes]
    writers: list[Writer]
    table: Relation | None
    arrange: Gather | None
    restore: Gather | None

    def answer(self, request: RunRequest) -> bytes | None:
        coordinator, transaction = self.state.coordinator, self.state.transaction
        value = request.values[0]
        if value is None or coordinator.scattered.among((self.relation,)):
            return None
        published = coordinator.engine.published if transaction is None else _read_by(transaction)
        if published is None:
            assert transaction is not None, "one that has written"
            row = self._own(transaction, request, value)
        else:
            row = self._row(published, request, value)
        if row is None:
            return None
        if transaction is not None:
            self._note(transaction, request, value)
        status = "I" if transaction is None else "T"
        moved = gathers.apply_to_one(self.gather, row) if row else None
        if moved is None:
            return self.head[request.described] + _NO_ROW[status]
        last = _FIRST_ROW if request.max_rows == 1 else _ONE_ROW
        return self.head[request.described] + encode_row(moved, self.writers) + last[status]

    def _row(self, published: Published, request: RunRequest, value: bytes) -> list[int] | None:
        """The arranged row with the key, [] if there is none; None: not to be had in this way."""
        if self.relation in published.failures:
            return None
        version, errors = published.arrangement(self.relation, self.key), published.errors(self.relation)
        if version is None or (errors is not None and errors.count):
            return None
        row = version.lookup_one(self._word(request, value), published.ordinal)
        if row is None:
            return None
        return row[0].tolist() if len(row) else []

    def _own(self, transaction: Transaction, request: RunRequest, value: bytes) -> list[int] | None:
        """The same as a transaction sees it that has written."""
        table, restore = self.table, self.restore
        if table is None or self.arrange is None or restore is None:
            return None
        word = self._word(request, value)
        try:
            found = transaction.here(lambda writer: find_row(writer, table, word, restore, shown=True))
        except BlockedError:
            return None
        if found is None:
            return None
        return [] if not found else gathers.apply_to_one(self.arrange, found)

    def _note(self, transaction: Transaction, request: RunRequest, value: bytes) -> None:
        """What else the way of all queries does in a transaction."""
        self.state.portals.pop("", None)
        transaction.queried = True
        if not transaction.checks_reads:
            return
        if self.table is not None and self.type.storage is Storage.DIRECT:
            asked = AskedKey(self.table.primary_key[0], self._word(request, value))
            transaction.note_reading(Reading(frozenset((self.relation,)), asked))
        else:
            datum = self._datum(request, value)
            assert self.prepared.plan is not None
            self.reads.note_key(self.prepared.plan, self.prepared.inputs, Request((datum,)))

    def _word(self, request: RunRequest, value: bytes) -> int:
        type_, form = self.type, request.form(0)
        if (
            request.datums is None
            and form == TEXT_FORMAT
            and value.isdigit()
            and len(value) <= DIGITS.get(type_.kind, 0)
        ):
            return int(value)
        datum = self._datum(request, value)
        dictionary = self.state.coordinator.engine.dictionary
        return encode_one(type_, datum, dictionary if type_.storage is Storage.DIRECT else dictionary.scratch())

    def _datum(self, request: RunRequest, value: bytes) -> object:
        if request.datums is not None:
            return request.datums[0]
        return decode_parameter(self.type, request.form(0), value, DEFAULT_STYLE)


def point_read(state: SessionState, reads: Reads, prepared: Prepared, request: RunRequest) -> PointRead | None:
    """A query as a read by key, if it is one. It has been planned."""
    statement, formats = prepared.bound.statement, request.result_formats
    found = keyed(prepared.plan) if prepared.plan else None
    if not isinstance(statement, Query) or formats is None or statement.locks or prepared.bound.interpreted:
        return None
    finishing = statement.finishing
    if not is_plain(statement) or finishing.limit is not None or finishing.offset is not None:
        return None
    if found is None or len(prepared.bound.parameters) != 1 or not _by_one(found):
        return None
    assert prepared.plan is not None, "a plan that has been looked at"
    forms = column_formats(formats, len(statement.columns))
    writers = row_writers(prepared.plan.schema, forms, state.coordinator.engine.dictionary, output_style(state))
    head = {True: BIND_COMPLETE + describe_rows(statement.columns, forms), False: BIND_COMPLETE}
    table = state.catalog.relations.get(found.relation)
    if table is not None and (table.kind is not RelationKind.TABLE or found.key != table.primary_key):
        table = None
    layout = None if table is None else table_layout(table.schema, table.primary_key)
    return PointRead(
        state, reads, prepared, found.relation, found.key, found.keys.type, found.gather, head, writers, table,
        None if layout is None else layout.gather,
        None if layout is None or table is None else layout.restore(table.schema),
    )  # fmt: skip


def _read_by(transaction: Transaction) -> Published | None:
    """What a transaction reads; None: it has written."""
    if transaction.writer is not None:
        return None
    transaction.begin_statement()
    return transaction.first_snapshot()


def _by_one(found: Keyed) -> bool:
    """Whether the row is only moved, and its key is the statement's parameter, of a type whose values mean the same in
    every session."""
    return (
        not found.is_array
        and found.program is None
        and isinstance(found.keys, Parameter)
        and found.keys.type.kind in _KINDS
    )
