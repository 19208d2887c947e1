"""Cursors: open results and subscriptions that are read in parts, by FETCH or as portals."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ivm.errors import SqlError, unsupported
from ivm.rows import RowSet
from sql.engine.clock import timestamp_now
from sql.session.portal import PortalRows
from sql.session.subscription import Subscription
from sql.statements.queries import OutputColumn
from sql.statements.results import RowsResult
from sql.statements.statements import Declare, Direction, Fetch
from storage.dictionary import Dictionary


@dataclass(slots=True, eq=False)
class FailedRows:
    """The source of a cursor whose query fails at one of its rows. Rows are computed at DECLARE; the error belongs to
    the FETCH that meets them, so that a client may declare, look at the columns, and close."""

    columns: tuple[OutputColumn, ...]
    dictionary: Dictionary
    error: SqlError
    raised: bool = False

    def fail(self, name: str) -> SqlError:
        """What FETCH raises: the error, once; from then on 55000."""
        if self.raised:
            return SqlError("55000", f'portal "{name}" cannot be run')
        self.raised = True
        return self.error


Source = PortalRows | Subscription | FailedRows


@dataclass(slots=True, eq=False)
class Cursor:
    """``scroll``: None if neither SCROLL nor NO SCROLL was given. ``depth``: the number of savepoints at its
    declaration."""

    name: str
    text: str
    source: Source
    scroll: bool | None = None
    hold: bool = False
    depth: int = 0
    kept: bool = False
    """Whether it is WITH HOLD and its transaction has committed."""
    pinned: bool = False
    """Whether a loop of a procedure reads it, which may go on after the transaction."""
    created: int = 0
    """µs since 2000-01-01 UTC."""
    binary: bool = False

    @property
    def scrollable(self) -> bool:
        return self.scroll is not False and isinstance(self.source, PortalRows)

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return self.source.columns

    def fetch_now(self, fetch: Fetch) -> RowSet:
        """The next rows of a query's cursor. 55000: the cursor does not move in that direction."""
        source = self.source
        if isinstance(source, FailedRows):
            raise source.fail(self.name)
        if isinstance(source, Subscription):
            raise unsupported("FETCH from a subscription in a function")
        back = fetch.direction is not Direction.FORWARD or (fetch.count is not None and fetch.count < 0)
        if back and self.scroll is False:
            hint = "Declare it with SCROLL option to enable backward scan."
            raise SqlError("55000", "cursor can only scan forward", hint=hint)
        return source.fetch(fetch.direction, fetch.count)

    async def fetch(self, fetch: Fetch) -> RowSet:
        """The next rows. 55000: the cursor does not move in that direction."""
        source = self.source
        if not isinstance(source, Subscription):
            return self.fetch_now(fetch)
        back = fetch.direction is not Direction.FORWARD or (fetch.count is not None and fetch.count < 0)
        if back:
            raise SqlError("55000", "cursor can only scan forward")
        await source.wait(fetch.timeout or 0)
        return source.take(fetch.count)

    async def execute(self, max_rows: int) -> RowsResult:
        """The extended protocol's Execute of a cursor by name (0: all remaining rows)."""
        rows = await self.fetch(Fetch(self.name, max_rows or None))
        return replace(self.result(rows, f"SELECT {len(rows)}", ()), suspended=len(rows) == max_rows, describe=False)

    def result(self, rows: RowSet, tag: str, formats: tuple[int, ...]) -> RowsResult:
        wanted = (1,) if self.binary else formats
        return RowsResult(self.columns, rows, tag, self.source.dictionary, formats=wanted)

    def close(self) -> None:
        if isinstance(self.source, Subscription):
            self.source.close()


class Cursors:
    """One session's cursors, by name."""

    def __init__(self) -> None:
        self._open: dict[str, Cursor] = {}
        self._unnamed = 0

    def check_free(self, name: str) -> None:
        """42P03: the name is taken."""
        if name in self._open:
            raise SqlError("42P03", f'cursor "{name}" already exists')

    def declare(self, statement: Declare, text: str, source: Source, depth: int) -> None:
        now = timestamp_now()
        self._open[statement.name] = Cursor(
            statement.name,
            text,
            source,
            statement.scroll,
            statement.hold,
            depth,
            created=now,
            binary=statement.binary,
        )

    def open(
        self, name: str | None, text: str, source: PortalRows, scroll: bool | None, depth: int, *, pinned: bool = False
    ) -> str:
        """Open a routine's cursor; its name, a new one for None. ``pinned``: it stays until it is closed."""
        if name is None:
            self._unnamed += 1
            name = f"<unnamed portal {self._unnamed}>"
        self._open[name] = Cursor(
            name, text, source, scroll, False, depth, created=timestamp_now(), pinned=pinned
        )  # fmt: skip
        return name

    def find(self, name: str) -> Cursor | None:
        return self._open.get(name)

    def named(self, name: str) -> Cursor:
        """The cursor of that name. 34000: there is none."""
        found = self._open.get(name)
        if found is None:
            raise SqlError("34000", f'cursor "{name}" does not exist')
        return found

    def all(self) -> list[Cursor]:
        return list(self._open.values())

    def held_error(self) -> SqlError | None:
        """The error of a cursor WITH HOLD that the transaction has declared: its rows are due at COMMIT."""
        sources = (cursor.source for cursor in self._open.values() if cursor.hold and not cursor.kept)
        return next((source.error for source in sources if isinstance(source, FailedRows)), None)

    def close(self, name: str) -> None:
        """Close the cursor of that name. 34000: there is none."""
        self.named(name).close()
        del self._open[name]

    def close_all(self) -> None:
        for cursor in self._open.values():
            cursor.close()
        self._open.clear()

    def end_transaction(self, committed: bool) -> None:
        """Close all cursors except those WITH HOLD whose transaction committed, and those that loops read."""
        if not self._open:
            return
        for cursor in self.all():
            if cursor.pinned:
                continue
            if cursor.hold and (committed or cursor.kept):
                cursor.kept = True
            else:
                self.close(cursor.name)

    def roll_back(self, depth: int) -> None:
        """Close the cursors declared after savepoint number ``depth``, counted from 1."""
        for cursor in self.all():
            if cursor.depth >= depth and not cursor.kept:
                self.close(cursor.name)

    def release(self, depth: int) -> None:
        """Savepoint number ``depth`` was released: its cursors now belong to the enclosing one."""
        for cursor in self._open.values():
            cursor.depth = min(cursor.depth, depth - 1)
