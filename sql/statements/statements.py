"""Bound statements: the binder's output for the session and the coordinator. All names are resolved."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from ivm.errors import SqlError
from ivm.words import JSON, TEXT, SqlType
from planner.expr.scalar import Scalar
from planner.logical.nodes import Finishing, Rel
from sql.catalog.catalog import Relation
from sql.catalog.keys import Index
from sql.statements.definitions import Definition
from sql.statements.queries import OutputColumn, Query
from sql.statements.routines import CallProcedure
from sql.statements.secrets import SecretStatement
from sql.statements.vacuum import Vacuum


@dataclass(frozen=True, slots=True)
class Branch:
    """One of the tables that a statement changes: the position of each of its columns in the source's wide rows."""

    table: Relation
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ViewLayer:
    """One of the views through which a statement changes a table.

    ``exprs``: the view's columns, and ``condition``: its WHERE, over the table's (wide) row and the columns of the
    layers below. ``checked``: new rows must meet the condition (WITH CHECK OPTION).
    """

    view: Relation
    places: tuple[int | None, ...]
    """For each of the view's columns its position in the table; None for one that is computed."""
    exprs: tuple[Scalar, ...]
    condition: Scalar | None
    checked: bool
    refusal: SqlError | None = None
    """What a new row that does not meet it raises; None: 44000."""


@dataclass(frozen=True, slots=True)
class OnConflict:
    """What to do with a row whose key exists. ``arbiters``: the unique indexes and EXCLUDE constraints to check;
    all others raise 23505 or 23P01.

    ``changed``: the new row, over (existing row, proposed row); None: DO NOTHING. The row is changed if ``where``, over
    the same columns, is true.
    """

    arbiters: tuple[Index, ...]
    changed: tuple[Scalar, ...] | None = None
    where: Scalar | None = None
    layers: tuple[ViewLayer, ...] = ()
    """Those of ``Insert``, whose columns for the existing and for the proposed row follow both rows."""
    oid: bool = False
    present: tuple[ViewLayer, ...] = ()
    """What policies ask of the existing rows that are changed."""
    updated: tuple[ViewLayer, ...] = ()
    """What they ask of the rows that these become."""


def deferrable_arbiter(at: int | None = None) -> SqlError:
    """Postgres's error for ON CONFLICT with a constraint that is checked later; ``at``: where the clause begins."""
    message = "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters"
    return SqlError("55000", message, position=None if at is None else at + 1)


@dataclass(frozen=True, slots=True)
class Insert:
    """``source`` yields whole rows in the table's column order, with defaults and casts applied.

    ``returning``: expressions over the table's columns, shown as ``columns``; ``oid``: a tableoid column follows the
    table's columns. ``finishing``: columns computed by a volatile function (nextval), which ``source`` lacks; they are
    evaluated for each row, in the order of the query. ``layers``: the views that it goes through, from the table up;
    in ``returning`` their columns follow.
    """

    table: Relation
    source: Rel
    returning: tuple[Scalar, ...] | None = None
    columns: tuple[OutputColumn, ...] = ()
    conflict: OnConflict | None = None
    finishing: Finishing | None = None
    oid: bool = False
    layers: tuple[ViewLayer, ...] = ()


@dataclass(frozen=True, slots=True)
class Update:
    """``source`` yields, for each row to change, the old row, the new row, then the layers' columns and those of FROM.

    ``returning`` is over (new row, layers' columns, FROM's columns). ``assigned``: the columns that it sets, by name;
    None if unknown. If FROM matches a row several times, one match is used. With ``branches`` the rows are wide
    (``sql.bind.inheritance_tree``): ``width`` columns, the last of which is the tableoid, the oid of the row's table.
    """

    table: Relation
    source: Rel
    returning: tuple[Scalar, ...] | None = None
    columns: tuple[OutputColumn, ...] = ()
    branches: tuple[Branch, ...] = ()
    width: int = 0
    layers: tuple[ViewLayer, ...] = ()
    assigned: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """``source`` yields the old row, then the layers' columns and those of USING; ``returning`` is over all of them.
    ``branches`` and ``width``: as in ``Update``."""

    table: Relation
    source: Rel
    returning: tuple[Scalar, ...] | None = None
    columns: tuple[OutputColumn, ...] = ()
    branches: tuple[Branch, ...] = ()
    width: int = 0


@dataclass(frozen=True, slots=True)
class MergePolicies:
    """What policies ask of the old rows that MERGE updates and deletes, and of the new rows."""

    updates: tuple[ViewLayer, ...] = ()
    deletes: tuple[ViewLayer, ...] = ()
    updated: tuple[ViewLayer, ...] = ()
    inserted: tuple[ViewLayer, ...] = ()


@dataclass(frozen=True, slots=True)
class Merge:
    """``source`` (after ``finishing``) yields for each row the number of its action, from 1, in ``actions`` (insert,
    update or delete); then the old row, the new row, the layers' columns, and those of USING.

    The rows have ``width`` columns, wide if there are ``branches`` as in ``Update``. ``returning`` is over (the
    action's name, the row, the layers' columns, USING's columns), the row being the old one of a deletion.
    """

    table: Relation
    source: Rel
    finishing: Finishing
    actions: tuple[str, ...]
    width: int
    branches: tuple[Branch, ...] = ()
    returning: tuple[Scalar, ...] | None = None
    columns: tuple[OutputColumn, ...] = ()
    layers: tuple[ViewLayer, ...] = ()
    policies: MergePolicies = MergePolicies()


DataChange = Insert | Update | Delete | Merge
"""A data-modifying statement."""


@dataclass(frozen=True, slots=True)
class Compound:
    """The data-modifying statements of WITH in order, then the main statement.

    Also a single statement whose subqueries in ON CONFLICT or RETURNING read the table that it changes: they see the
    rows from before it. ``parts``: each statement with the id (negative) of the relation that holds its RETURNING rows
    for the other parts.
    """

    parts: tuple[tuple[int, DataChange], ...]
    main: Query | DataChange


@dataclass(frozen=True, slots=True)
class Truncate:
    """``restart``: RESTART IDENTITY, for the sequences that the tables own."""

    tables: tuple[Relation, ...]
    restart: bool = False
    cascade: bool = False


class CopyFormat(Enum):
    TEXT = "text"
    CSV = "csv"
    BINARY = "binary"
    PARQUET = "parquet"
    ORC = "orc"
    JSON = "json"
    JDBC = "jdbc"


@dataclass(frozen=True, slots=True)
class CopyOptions:
    """Options of COPY, with Postgres's defaults for the format filled in (``null``: the NULL marker).

    ``load_id``: a load with this id that was committed is not loaded again; ``max_rejects``: how many bad rows may be
    left out; None: the first one is an error. ``encoding``: its name; None: the client's, or UTF8
    in files.
    """

    format: CopyFormat = CopyFormat.TEXT
    delimiter: str = "\t"
    null: str = "\\N"
    header: bool = False
    match_header: bool = False
    """The header must name the columns, in order."""
    quote: str = '"'
    escape: str = '"'
    force_quote: tuple[int, ...] = ()
    force_not_null: tuple[int, ...] = ()
    force_null: tuple[int, ...] = ()
    engine: str = "auto"
    load_id: str | None = None
    max_rejects: int | None = None
    mapping: tuple[tuple[str, str], ...] = ()
    """Names in the file (or a CSV field's number), and the columns that they map to."""
    array: bool = False
    """A JSON file is one array of objects."""
    jdbc: tuple[tuple[str, str], ...] = ()
    """Options for Spark's JDBC reader, by Spark's own names."""
    encoding: str | None = None


@dataclass(frozen=True, slots=True)
class CopyFrom:
    """``columns``: positions in the table, in the data's order; ``listed``: the statement lists them. ``path`` None:
    STDIN. ``where``: a condition over the table's columns, for STDIN."""

    table: Relation
    columns: tuple[int, ...]
    defaults: tuple[Scalar | None, ...]
    """For every column of the table, its default, cast to its type (None: NULL)."""
    options: CopyOptions
    path: str | None = None
    listed: bool = False
    where: Scalar | None = None


@dataclass(frozen=True, slots=True)
class CreateTableFrom:
    """A table with the columns of its files, and with their rows unless ``with_no_data``."""

    schema_name: str
    name: str
    if_not_exists: bool
    path: str
    options: CopyOptions
    with_no_data: bool = False


@dataclass(frozen=True, slots=True)
class Subscribe:
    """SUBSCRIBE to a query. ``as_of``, ``up_to``: expressions without columns (bigint epoch or timestamptz)."""

    query: Query
    snapshot: bool = True
    progress: bool = False
    as_of: Scalar | None = None
    up_to: Scalar | None = None


@dataclass(frozen=True, slots=True)
class CopyTo:
    """COPY … TO of a query or a subscription. ``path`` None: STDOUT."""

    source: Query | Subscribe
    options: CopyOptions
    path: str | None = None


@dataclass(frozen=True, slots=True)
class ExplainOptions:
    """``form``: text, json, xml or yaml. ``analyze``: the statement is run. ``summary``: with the times it took."""

    form: str = "text"
    analyze: bool = False
    timing: bool = False
    summary: bool = False


@dataclass(frozen=True, slots=True)
class Explain:
    """``stage``: logical, optimized or physical."""

    statement: Statement
    stage: str = "physical"
    options: ExplainOptions = ExplainOptions()

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return (OutputColumn("QUERY PLAN", JSON if self.options.form == "json" else TEXT),)


@dataclass(frozen=True, slots=True)
class Verify:
    """VERIFY MATERIALIZED VIEW: recomputes a view from the tables at one epoch, and returns the rows that differ."""

    view: Relation


@dataclass(frozen=True, slots=True)
class VerifyDictionary:
    """VERIFY DICTIONARY: reports errors in the ids of interned values."""


@dataclass(frozen=True, slots=True)
class Modes:
    """Requested transaction modes; None if not given. Every isolation level runs as strict serializable."""

    isolation: str | None = None
    read_only: bool | None = None
    deferrable: bool | None = None

    def settings(self) -> dict[str, str]:
        """The modes as settings, without the prefixes ``transaction_`` and ``default_transaction_``."""
        switches = (("read_only", self.read_only), ("deferrable", self.deferrable))
        found = {name: "on" if on else "off" for name, on in switches if on is not None}
        return found if self.isolation is None else {"isolation": self.isolation, **found}


NO_MODES: Final = Modes()


@dataclass(frozen=True, slots=True)
class Begin:
    modes: Modes = NO_MODES
    tag: str = "BEGIN"


@dataclass(frozen=True, slots=True)
class SetTransaction:
    """SET TRANSACTION; ``session``: SET SESSION CHARACTERISTICS AS TRANSACTION."""

    modes: Modes
    session: bool = False


@dataclass(frozen=True, slots=True)
class ImportSnapshot:
    """SET TRANSACTION SNAPSHOT: read what another transaction reads. ``name``: as it has exported it."""

    name: str


@dataclass(frozen=True, slots=True)
class Commit:
    """``chain``: the next transaction begins at once, with the same modes."""

    chain: bool = False


@dataclass(frozen=True, slots=True)
class Rollback:
    """``chain``: as in ``Commit``."""

    chain: bool = False


@dataclass(frozen=True, slots=True)
class PrepareTransaction:
    """PREPARE TRANSACTION: rolls back, as in PostgreSQL with max_prepared_transactions = 0."""


@dataclass(frozen=True, slots=True)
class Savepoint:
    """SAVEPOINT, RELEASE or ROLLBACK TO, by ``action``: savepoint, release, rollback."""

    action: str
    name: str


@dataclass(frozen=True, slots=True)
class SetVariable:
    """SET [LOCAL]; ``value`` None: to the default (also RESET, by its ``tag``). ``name`` 'all' with None: RESET ALL."""

    name: str
    value: str | None
    local: bool = False
    tag: str = "SET"


@dataclass(frozen=True, slots=True)
class Show:
    name: str


@dataclass(frozen=True, slots=True)
class Prepare:
    """SQL-level PREPARE; ``text`` is the statement's own text."""

    name: str
    types: tuple[SqlType, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Execute:
    """SQL-level EXECUTE; arguments are expressions without columns."""

    name: str
    arguments: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Deallocate:
    name: str | None


@dataclass(frozen=True, slots=True)
class Declare:
    """DECLARE CURSOR for a query or a subscription. ``scroll``: None if neither SCROLL nor NO SCROLL was given.
    ``binary``: its rows come in the binary format."""

    name: str
    statement: Query | Subscribe
    hold: bool = False
    scroll: bool | None = None
    binary: bool = False


class Direction(Enum):
    """FETCH's direction: by a count of rows, or to a row number, absolute or relative."""

    FORWARD = "forward"
    BACKWARD = "backward"
    ABSOLUTE = "absolute"
    RELATIVE = "relative"


@dataclass(frozen=True, slots=True)
class Fetch:
    """FETCH: ``count`` None is ALL; ``timeout``: seconds to wait for a subscription's rows (None: do not wait)."""

    name: str
    count: int | None
    timeout: float | None = None
    move: bool = False
    direction: Direction = Direction.FORWARD


@dataclass(frozen=True, slots=True)
class Close:
    name: str | None


@dataclass(frozen=True, slots=True)
class Do:
    """DO: a PL/pgSQL body that runs once."""

    text: str


@dataclass(frozen=True, slots=True)
class Discard:
    what: str


@dataclass(frozen=True, slots=True)
class Listen:
    """LISTEN, or (``stop``) UNLISTEN; ``channel`` None is every channel."""

    channel: str | None
    stop: bool = False


@dataclass(frozen=True, slots=True)
class SetConstraints:
    """``names`` None: ALL. A name comes with its schema."""

    names: tuple[tuple[str | None, str], ...] | None
    deferred: bool


@dataclass(frozen=True, slots=True)
class Lock:
    """LOCK TABLE of these tables; ``mode``: in lower case."""

    tables: tuple[Relation, ...]
    mode: str
    nowait: bool = False


@dataclass(frozen=True, slots=True)
class Notify:
    channel: str
    payload: str = ""


@dataclass(frozen=True, slots=True)
class Cared:
    """What ANALYZE, CLUSTER and REINDEX name. ``kind``: table, index, schema, database or system."""

    kind: str
    schema_name: str | None
    name: str


@dataclass(frozen=True, slots=True)
class NoOperation:
    """Accepted for compatibility, without effect; answers ``tag``. ``cared``: what it is for, which must exist and be
    the current role's."""

    tag: str
    notice: str | None = None
    cared: tuple[Cared, ...] = ()


@dataclass(frozen=True, slots=True)
class RefreshView:
    """REFRESH MATERIALIZED VIEW: fills a view that is down."""

    view: Relation


Statement = (
    Query | Insert | Update | Delete | Merge | Compound | Truncate | Definition | CopyFrom | CreateTableFrom | CopyTo
    | Subscribe | Explain | Verify | VerifyDictionary | Begin | Commit | Rollback | PrepareTransaction | Savepoint
    | SetVariable | SetTransaction | ImportSnapshot | Show | Prepare | Execute | Deallocate | Listen | Notify
    | Declare | Fetch | Close | Discard | NoOperation | RefreshView | Vacuum | SetConstraints | Do | CallProcedure
    | Lock | SecretStatement
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class BoundStatement:
    """A statement with the types of its parameters ($1 first), inferred if the client gave none. ``interpreted``: the
    routines that it calls and an interpreter runs, which needs the engine thread."""

    statement: Statement
    parameters: tuple[SqlType, ...] = ()
    interpreted: tuple[str, ...] = ()
