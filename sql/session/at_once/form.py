"""What a statement that may be answered at once is for its session."""

from __future__ import annotations

from typing import Protocol

from sql.pgwire.run_request import Begun, RunRequest


class Form(Protocol):
    """One statement, in one session, as long as the catalog and the settings are the same."""

    def answer(self, request: RunRequest) -> bytes | Begun | None:
        """All that answers the request, up to ReadyForQuery, or its beginning; None, with nothing done: as any other.

        Raises SqlError: the way of all statements reports it.
        """
        ...
