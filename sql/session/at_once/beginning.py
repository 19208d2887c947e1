"""BEGIN."""

from __future__ import annotations

from dataclasses import dataclass

from sql.pgwire.messages_backend import BIND_COMPLETE, NO_DATA, READY, CommandComplete
from sql.pgwire.run_request import RunRequest
from sql.session.state import SessionState
from sql.session.transactions import begin
from sql.statements.statements import Begin


@dataclass(frozen=True, slots=True)
class Beginning:
    """BEGIN as prepared by a session."""

    state: SessionState
    statement: Begin
    done: bytes
    """What ends the answer."""

    @classmethod
    def of(cls, state: SessionState, statement: Begin) -> Beginning:
        return cls(state, statement, CommandComplete(statement.tag).encode() + READY["T"])

    def answer(self, request: RunRequest) -> bytes | None:
        if self.state.transaction is not None or request.values:
            return None
        begin(self.state, self.statement)
        return (BIND_COMPLETE + NO_DATA if request.described else BIND_COMPLETE) + self.done
