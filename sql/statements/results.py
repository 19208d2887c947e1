"""A session's results for a statement; the wire's listener turns them into messages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ivm.rows import RowSet
from sql.statements.queries import OutputColumn

if TYPE_CHECKING:
    from storage.dictionary import Dictionary


@dataclass(frozen=True, slots=True)
class Notice:
    """A message beside a result: ``severity`` is NOTICE, WARNING, INFO …; ``position``: as of an error."""

    severity: str
    sqlstate: str
    message: str
    detail: str | None = None
    hint: str | None = None
    context: str | None = None
    position: int | None = None


Notify = Callable[[Notice], None]


@dataclass(frozen=True, slots=True)
class Notification:
    """A message of NOTIFY. ``sender``: the backend id of its session."""

    sender: int
    channel: str
    payload: str


@dataclass(eq=False, slots=True)
class Inbox:
    """The notifications that a session has received but not yet sent to its client."""

    arrived: list[Notification] = field(default_factory=list)
    arrives: Callable[[], None] | None = None
    """Set by the wire. Called after the notifications of a transaction, because the client may be idle."""


@dataclass(frozen=True, slots=True)
class RowsResult:
    """Rows of a query, cursor, RETURNING, SHOW or EXPLAIN.

    ``dictionary`` resolves the rows' interned words. ``formats``: as given by Bind (none: all text; one: for all
    columns; else one for each column). ``tag`` ends the result unless ``suspended``: then the portal has more rows
    (PortalSuspended). ``describe``: a RowDescription comes first (simple protocol, first part of a result).
    """

    columns: tuple[OutputColumn, ...]
    rows: RowSet
    tag: str
    dictionary: Dictionary
    suspended: bool = False
    describe: bool = True
    formats: tuple[int, ...] = ()
    hold: object = field(init=False, repr=False, compare=False)
    """Keeps the values of its words in the dictionary."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "hold", self.dictionary.generation)


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command without rows: its tag."""

    tag: str


@dataclass(frozen=True, slots=True)
class EmptyResult:
    """An empty query string."""


class CopyReceiver(Protocol):
    """Receives the data of COPY … FROM STDIN."""

    async def feed(self, data: bytes) -> None:
        """Take one CopyData message. Raises SqlError at once if the data is bad; the remaining data is then ignored."""
        ...

    async def finish(self) -> CommandResult:
        """CopyDone: end the data. The rows become visible when their transaction commits."""
        ...


@dataclass(frozen=True, slots=True)
class CopyInResult:
    """COPY … FROM STDIN is ready for data. ``columns``: their number; ``format``: 0 (text, csv) or 1 (binary).

    The listener feeds the receiver until CopyDone or CopyFail, and only then asks for the next result.
    """

    columns: int
    format: int
    receiver: CopyReceiver


@dataclass(slots=True)
class Outlet:
    """What sends messages between two chunks of a COPY … TO STDOUT. ``send``, set by the wire: False if the client is
    behind, or is to be told something first."""

    send: Callable[[bytes], bool] = lambda data: False


@dataclass(frozen=True, slots=True)
class CopyOutResult:
    """COPY … TO STDOUT: each chunk of ``data`` is the payload of one CopyData; then CopyDone and ``tag()``.

    A subscription's chunks come as changes happen, as long as it runs: flush after each. ``outlet``: what it may use
    while the next chunk is waited for.
    """

    columns: int
    format: int
    data: AsyncIterator[bytes]
    tag: Callable[[], str]
    outlet: Outlet | None = None


Result = RowsResult | CommandResult | CopyInResult | CopyOutResult | EmptyResult
