"""The status of a running source, as freshet.sources shows it."""

from __future__ import annotations

from dataclasses import dataclass, field

from ivm.errors import SqlError
from sql.engine.clock import timestamp_now


@dataclass(slots=True)
class SourceStatus:
    """Times are in µs since 2000. ``since``: when the source entered its ``state``.

    ``behind``: since when there has been data that is not yet in the table; None when there is none.
    """

    state: str = "starting"
    since: int = field(default_factory=timestamp_now)
    error: SqlError | None = None
    failed_at: int | None = None
    failures: int = 0
    behind: int | None = None

    def enter(self, state: str) -> None:
        """Enter a state; no effect if the source is in it already."""
        if state != self.state:
            self.state, self.since = state, timestamp_now()
