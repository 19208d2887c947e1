"""What an evaluation may read besides its rows: the session, the parameters, the time, and its limits."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from ivm.budget import NO_BUDGET, Budget, out_of_memory
from ivm.errors import SqlError
from ivm.rows import Words
from ivm.words import SqlType
from planner.expr.random_numbers import RandomNumbers
from storage.dictionary import Dictionary
from storage.types.text_style import DEFAULT_FORMATS, TextFormats

SERVER_VERSION: Final = "15.0 (Freshet 0.1)"
"""Compatible with a PostgreSQL 15: what psql and drivers decide by."""


@dataclass(frozen=True, slots=True)
class ObjectNames:
    """``text``: pg_describe_object; ``kind`` to ``identity``: pg_identify_object; ``names`` and ``args``:
    pg_identify_object_as_address. All but the kind are None where there is no such object."""

    text: str | None
    kind: str
    schema: str | None
    name: str | None
    identity: str | None
    names: tuple[str, ...] | None
    args: tuple[str, ...] | None = ()


class SessionFunctions(Protocol):
    """What functions about the session and the catalog need; sql/ implements it."""

    def current_user(self) -> str: ...
    def session_user(self) -> str: ...
    def current_database(self) -> str: ...
    def current_schema(self) -> str | None: ...
    def current_schemas(self, implicit: bool) -> tuple[str, ...]: ...
    def setting(self, name: str) -> str | None:
        """The value of a run-time setting, None if there is no such setting."""
        ...

    def set_setting(self, name: str, value: str | None, local: bool) -> str:
        """set_config: changes a setting and returns its new value."""
        ...

    def random_numbers(self) -> RandomNumbers:
        """What random() draws from, and setseed sets."""
        ...

    def nextval(self, oid: int, count: int, of_column: bool = False) -> Words:
        """The next ``count`` numbers of a sequence. ``of_column``: for an identity column, whose numbers come with the
        right to insert. Raises SqlError 2200H, 42809, 25006, 42501."""
        ...

    def currval(self, oid: int) -> int: ...
    def lastval(self) -> int: ...
    def setval(self, oid: int, value: int, called: bool) -> int: ...
    def function_text(self, oid: int, what: str) -> str | None:
        """A user's function's definition, result, arguments, or (identity) its arguments without defaults."""
        ...

    def sequence_last_value(self, oid: int) -> int | None: ...
    def serial_sequence(self, table: str, column: str) -> str | None:
        """pg_get_serial_sequence."""
        ...

    def format_type(self, oid: int, typmod: int | None) -> str | None: ...
    def reg_out(self, type: SqlType, oid: int) -> str:
        """The text form of a reg* value: the object's name, or the number if it has none."""
        ...

    def reg_in(self, type: SqlType, text: str) -> int:
        """The oid for a reg* value's text form. Raises SqlError 42P01, 42704, 42883, 3F000: no such object."""
        ...

    def temporary_schema(self) -> int:
        """pg_my_temp_schema: the oid of the session's own schema for temporary relations, 0 before the first."""
        ...

    def transaction_number(self) -> int:
        """txid_current: the transaction's own number. Later ones have higher ones."""
        ...

    def export_snapshot(self) -> str:
        """pg_export_snapshot: the name by which other transactions read what this one does. Raises 0A000, 25001."""
        ...

    def is_other_temporary(self, oid: int) -> bool:
        """pg_is_other_temp_schema."""
        ...

    def type_is_visible(self, oid: int) -> bool:
        """pg_type_is_visible: whether the type's unqualified name resolves to it."""
        ...

    def function_is_visible(self, oid: int) -> bool | None:
        """pg_function_is_visible: whether the path finds a function by its name and types; None if there is none."""
        ...

    def operator_is_visible(self, oid: int) -> bool | None: ...
    def description(self, oid: int, number: int, catalog: str | None) -> str | None:
        """The comment on an object of that system catalog (None: any), or on a relation's column of that number."""
        ...

    def table_is_visible(self, oid: int) -> bool | None: ...
    def updatable(self, oid: int) -> tuple[bool, ...]:
        """For each column of a relation, whether statements can change it."""
        ...

    def view_definition(self, oid: int, pretty: bool = False, width: int = 0) -> str | None: ...
    def index_definition(self, oid: int, column: int, pretty: bool = False) -> str | None:
        """pg_get_indexdef: the whole index for column 0, else the expression of that column (counted from 1)."""
        ...

    def constraint_definition(self, oid: int, pretty: bool = False) -> str | None:
        """pg_get_constraintdef."""
        ...

    def described_object(self, catalog: int, oid: int, number: int) -> ObjectNames:
        """The names of an object of a system catalog, or of a relation's column. Raises 0A000."""
        ...

    def argument_default(self, oid: int, number: int) -> str | None:
        """pg_get_function_arg_default."""
        ...

    def partition_ancestors(self, oid: int) -> Sequence[int]:
        """A partition or partitioned table, and its ancestors."""
        ...

    def partition_tree(self, oid: int) -> Sequence[tuple[int, int | None, bool, int]]:
        """pg_partition_tree: oid, parent, whether it is a leaf, and level."""
        ...

    def keywords(self) -> Sequence[tuple[str, str, bool, str, str]]:
        """pg_get_keywords."""
        ...

    def sequence_parameters(self, oid: int) -> tuple[int, int, int, int, bool, int, int]:
        """pg_sequence_parameters. Raises 42809."""
        ...

    def base_type(self, oid: int) -> int | None:
        """The type's oid, or that below a domain; None for no type."""
        ...

    def has_privilege(self, kind: str, role: object, subject: object, column: object, privileges: str) -> bool | None:
        """has_…_privilege of this kind of object, for a role (None: the current one) and an object by name or oid."""
        ...

    def default_acl(self, kind: str, owner: int) -> tuple[str, ...]:
        """acldefault. Raises 22023."""
        ...

    def exploded_acl(self, items: Sequence[object]) -> Sequence[tuple[int, int, str, bool]]:
        """aclexplode: grantor, grantee, privilege, and whether it may be granted. Raises 22P02, 42704."""
        ...

    def has_role(self, role: object, other: object, privileges: str) -> bool:
        """pg_has_role."""
        ...

    def row_security_active(self, table: object) -> bool:
        """row_security_active, of a table by its oid or name."""
        ...

    def role_name(self, oid: int) -> str:
        """pg_get_userbyid."""
        ...

    def backend_pid(self) -> int:
        """pg_backend_pid."""
        ...

    def blocking_pids(self, backend: int) -> Sequence[int]:
        """pg_blocking_pids: the sessions whose locks one of them waits for."""
        ...

    def notify(self, channel: str, payload: str) -> None:
        """pg_notify."""
        ...

    def listening_channels(self) -> Sequence[str]: ...
    def wait(self, seconds: float) -> None:
        """Makes the running statement wait so long before it ends."""
        ...

    def statement_text(self) -> str:
        """The text of the statement that the client runs."""
        ...

    def address(self, server: bool) -> tuple[str, int] | None:
        """The client's host and port, or the server's; None for a client without TCP."""
        ...

    def input_error(self, context: Context, text: str, type_: str) -> SqlError | None:
        """What the input function of the type of that name says of a text; None: it takes it. Raises 42704, 42601."""
        ...

    def type_modifier(self, type_: str) -> int | None:
        """A type name's modifier, -1 without any; None if there is no such type."""
        ...

    def advisory_lock(self, key: tuple[int, ...], transaction: bool, shared: bool) -> None:
        """Takes an advisory lock. Raises 55P03 if another session holds it in a way that excludes this one."""
        ...

    def try_advisory_lock(self, key: tuple[int, ...], transaction: bool, shared: bool) -> bool: ...
    def advisory_unlock(self, key: tuple[int, ...], shared: bool) -> bool: ...
    def advisory_unlock_all(self) -> None: ...
    def call_routine(
        self, oid: int, arguments: Sequence[object], types: tuple[SqlType, ...], result: SqlType, in_from: bool = False
    ) -> Sequence[tuple[object, ...]]:
        """Runs a user's routine that is interpreted; the rows that it returns. ``types``: the arguments' own;
        ``result``: of the value, or ``in_from`` the type of the rows."""
        ...

    def signal_backend(self, pid: int, terminate: bool) -> bool:
        """pg_cancel_backend, pg_terminate_backend: whether a session with that number exists."""
        ...

    def identity(self) -> str | None:
        """system_user: the method by which the client was authenticated, and as whom."""
        ...

    def reload(self) -> bool:
        """pg_reload_conf: whether what is read from files has been read again."""
        ...


@dataclass(slots=True)
class Cut:
    """The rows after which a series may end, for a query that needs no more; ``reached``: whether one ended there."""

    most: int
    reached: bool = False


@dataclass(frozen=True, slots=True)
class Context:
    """``parameters``: the datums of $1, $2, …; ``now`` and ``statement_now``: the start of the transaction and of the
    statement, in µs since 2000-01-01 UTC; ``epoch``: the query's time, for mz_now(); ``hold``: keeps the values of the
    ids obtained during the evaluation; ``cut``: where series may end, None if they are whole."""

    dictionary: Dictionary
    parameters: tuple[object, ...] = ()
    now: int = 0
    statement_now: int = 0
    timezone: str = "UTC"
    epoch: int = 0
    session: SessionFunctions | None = None
    formats: TextFormats = DEFAULT_FORMATS
    hold: object = None
    cut: Cut | None = None

    def asked(self) -> SessionFunctions:
        """The session that runs the statement. Raises 0A000 if there is none, as on Spark's executors."""
        if self.session is None:
            raise SqlError("0A000", "this function needs a session")
        return self.session


@dataclass(frozen=True, slots=True)
class Bounds:
    """What may stop a query: ``cancel`` being set (57014), or needing more memory than ``budget`` allows (53200)."""

    cancel: threading.Event | None = None
    budget: Budget = NO_BUDGET

    def check(self, size: int) -> None:
        """Raises 57014 if the query was cancelled, 53200 if a result of ``size`` bytes does not fit the budget."""
        limit = self.budget.limit
        if limit and size > limit - self.budget.taken:
            raise out_of_memory(limit, size <= limit)
        if self.cancel is not None and self.cancel.is_set():
            raise SqlError("57014", "canceling statement due to user request")
