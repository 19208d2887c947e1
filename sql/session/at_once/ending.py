"""COMMIT and ROLLBACK of a block: they wait, but nothing else needs to be looked at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from sql.pgwire.messages_backend import BIND_COMPLETE, NO_DATA
from sql.pgwire.run_request import Begun, RunRequest
from sql.session.state import SessionState
from sql.session.transactions import end_explicit
from sql.statements.statements import Commit, Rollback


@dataclass(frozen=True, slots=True)
class Ending:
    """COMMIT or ROLLBACK as prepared by a session."""

    state: SessionState
    statement: Commit | Rollback

    def answer(self, request: RunRequest) -> Begun | None:
        if not self.state.in_block or request.values:
            return None
        head = BIND_COMPLETE + NO_DATA if request.described else BIND_COMPLETE
        return Begun(head, partial(end_explicit, self.state, self.statement))
