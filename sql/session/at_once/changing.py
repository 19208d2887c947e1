"""INSERT, UPDATE and DELETE of one row, in a transaction block that BEGIN has opened."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from sql.coordination.prepared import Prepared
from sql.engine.writer import Writer
from sql.pgwire.messages_backend import BIND_COMPLETE, NO_DATA, READY, CommandComplete
from sql.pgwire.run_request import RunRequest
from sql.pgwire.values import decode_parameter
from sql.session.information import text_style
from sql.session.request import Request
from sql.session.state import SessionState
from sql.session.writes import Writes
from sql.statements.statements import DataChange, Delete, Insert, Update
from storage.types.text_style import TextStyle


@dataclass(frozen=True, slots=True)
class RowChange:
    """``style``: of the parameters' texts; ``done``: the end of the answer, by the number of rows that have been
    changed."""

    state: SessionState
    writes: Writes
    prepared: Prepared
    statement: DataChange
    style: TextStyle
    done: tuple[bytes, bytes]

    def answer(self, request: RunRequest) -> bytes | None:
        transaction, types = self.state.transaction, self.prepared.bound.parameters
        if transaction is None or transaction.read_only or len(types) != len(request.values):
            return None
        datums = tuple(
            None if value is None else decode_parameter(type_, request.form(i), value, self.style)
            for i, (type_, value) in enumerate(zip(types, request.values, strict=True))
        )
        transaction.begin_statement()
        transaction.queried = True
        changed = transaction.here(partial(self._run, datums))
        if changed is None:
            return None
        self.state.portals.pop("", None)
        head = BIND_COMPLETE + NO_DATA if request.described else BIND_COMPLETE
        return head + self.done[changed]

    def _run(self, datums: tuple[object, ...], writer: Writer) -> int | None:
        return self.writes.row_now(writer, self.statement, self.prepared, Request(datums))


def row_change(state: SessionState, writes: Writes, prepared: Prepared) -> RowChange | None:
    """A statement as the change of one row, if it may be one."""
    statement = prepared.bound.statement
    if not isinstance(statement, Insert | Update | Delete) or prepared.bound.interpreted:
        return None
    if statement.returning is not None:
        return None
    name = type(statement).__name__.upper()
    tag = f"{name} 0" if name == "INSERT" else name
    none, one = (CommandComplete(f"{tag} {count}").encode() + READY["T"] for count in (0, 1))
    return RowChange(state, writes, prepared, statement, text_style(state), (none, one))
