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

    def answer(self, request: RunRequest) -> bytes | None:
        if self.state.transaction is not None or request.values:
            return None
        result = begin(self.state, self.statement)
        head = BIND_COMPLETE + NO_DATA if request.described else BIND_COMPLETE
        return head + CommandComplete(result.tag).encode() + READY["T"]
