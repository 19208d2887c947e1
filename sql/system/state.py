"""The input of the system relations, and the oids of objects without a number of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from ivm.words import SqlType
from sql.catalog.access import RoleNames
from sql.catalog.catalog import FED, Relation, RelationKind
from sql.catalog.databases import Database
from sql.catalog.keys import Index
from sql.catalog.search_path import SearchPath, SearchPathReader
from sql.catalog.securables import securable
from sql.catalog.system.definitions import definitions
from storage.types.text_style import TextStyle

OWNER: Final = 10
"""The oid of the bootstrap superuser, who owns what came with the server."""
DEFAULT_BASE: Final = 0x6000_0000


@dataclass(frozen=True, slots=True)
class TlsInfo:
    """An encrypted connection. The last four are of the client's certificate, if it has shown one that holds;
    ``client_name``: its common name, empty if there is not exactly one."""

    version: str
    cipher: str
    bits: int
    client_dn: str = ""
    client_serial: int | None = None
    issuer_dn: str = ""
    client_name: str = ""


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A client's session. Times are µs since 2000-01-01 UTC. ``state``: active, idle, idle in transaction, …"""

    backend_id: int
    user: str
    role: int
    database: str
    database_oid: int
    application_name: str
    state: str
    query: str
    started: int
    query_started: int | None = None
    transaction_started: int | None = None
    tls: TlsInfo | None = None


@dataclass(frozen=True, slots=True)
class HbaLine:
    """A rule of pg_hba.conf as pg_hba_file_rules shows it. ``error``: of a line that is none; the rest is empty."""

    line: int
    type: str | None = None
    databases: tuple[str, ...] | None = None
    users: tuple[str, ...] | None = None
    address: str | None = None
    netmask: str | None = None
    method: str | None = None
    options: tuple[str, ...] | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class CursorInfo:
    """An open cursor of the current session. Times are µs since 2000-01-01 UTC."""

    name: str
    statement: str
    holdable: bool
    scrollable: bool
    created: int
    binary: bool = False


@dataclass(frozen=True, slots=True)
class StatementInfo:
    """A prepared statement of the current session. Times are µs since 2000-01-01 UTC."""

    name: str
    statement: str
    created: int
    types: tuple[SqlType, ...]
    by_sql: bool


@dataclass(slots=True)
class CopyInfo:
    """A running COPY. ``relation``: its oid, 0 for a query's rows; ``target``: FILE or PIPE; ``size``: in bytes, 0 if
    unknown; ``skipped``: the number of bad rows left out."""

    backend_id: int
    relation: int
    to: bool
    target: str
    done: int = 0
    size: int = 0
    rows: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class LockInfo:
    """A lock that a session holds or waits for (not ``granted``). ``kind``: pg_locks.locktype. ``relation``: the id of
    the table; ``numbers``: classid, objid and objsubid of another object."""

    kind: str
    backend_id: int
    mode: str
    granted: bool = True
    relation: int = 0
    numbers: tuple[int, int, int] | None = None


class SystemState(Protocol):
    """The input of the system relations' rows: one catalog, and the current session. ``sql.session.session`` implements
    it."""

    @property
    def roles(self) -> RoleNames:
        """The roles, and who may do what."""
        ...

    @property
    def role(self) -> int:
        """The current role."""
        ...

    @property
    def session_role(self) -> int: ...
    @property
    def database(self) -> str: ...
    def relations(self) -> Iterable[Relation]:
        """All relations except those of pg_catalog and information_schema."""
        ...

    def types(self) -> Iterable[Relation]:
        """User-defined types."""
        ...

    def routines(self) -> Iterable[Relation]:
        """User-defined functions."""
        ...

    def operators(self) -> Iterable[Relation]:
        """User-defined operators."""
        ...

    def schemas(self) -> Mapping[str, int]:
        """All schemas with their oids."""
        ...

    def comments(self) -> Mapping[tuple[int, int, int], str]:
        """The comments on objects, by the object's system catalog, its oid, and a column's number or 0."""
        ...

    @property
    def path(self) -> SearchPath:
        """The session's search path."""
        ...

    @property
    def reader(self) -> SearchPathReader:
        """The catalog along that path."""
        ...

    @property
    def constants(self) -> TextStyle:
        """How the session sees the constants of definitions."""
        ...

    def settings(self) -> Sequence[tuple[str, str]]:
        """(name, value) of every run-time setting of the session."""
        ...

    def sessions(self) -> Sequence[SessionInfo]: ...
    def hba_lines(self) -> Sequence[HbaLine]:
        """The lines of pg_hba.conf as it is now."""
        ...

    def copies(self) -> Sequence[CopyInfo]: ...
    def locks(self) -> Sequence[LockInfo]: ...
    def cursors(self) -> Sequence[CursorInfo]: ...
    def prepared_statements(self) -> Sequence[StatementInfo]: ...
    def sequence_state(self, relation: Relation) -> tuple[int, int, bool]:
        """last_value, log_cnt and is_called of a sequence."""
        ...


def databases(state: SystemState) -> list[Database]:
    """All databases of the server, this one by the name that its session knows."""
    own = state.roles.access.database
    known = state.roles.access.shared.databases.values()
    return [replace(d, name=state.database) if d.oid == own else d for d in known]


def owner_of(state: SystemState, relation: Relation) -> int:
    """The oid of the owner of a relation, type or function."""
    return state.roles.access.owner(securable(relation))


def owner_name(state: SystemState, relation: Relation) -> str:
    return state.roles.name(owner_of(state, relation))


def all_relations(state: SystemState) -> Iterator[tuple[Relation, str]]:
    """Every relation with its relkind, system relations included."""
    seen = set()
    for relation in state.relations():
        seen.add(relation.oid)
        yield relation, relkind(relation)
    for system in definitions().values():
        if system.relation.oid not in seen:
            yield system.relation, system.relkind


def own_relations(state: SystemState) -> Iterator[tuple[Relation, str]]:
    """Every relation with its relkind, except other sessions' temporary ones."""
    for relation, kind in all_relations(state):
        if not relation.temporary or relation.schema_name == state.path.temporary:
            yield relation, kind


HIDDEN: Final = "<insufficient privilege>"
"""What stands for a text that the current role may not see."""


def user_relations(state: SystemState, *kinds: RelationKind) -> list[Relation]:
    """The user's relations of these kinds, by oid."""
    return sorted((r for r in state.relations() if r.kind in kinds), key=lambda r: r.oid)


def composite_types(state: SystemState) -> list[Relation]:
    """The types of CREATE TYPE … AS, which pg_class has too, by oid."""
    return sorted((t for t in state.types() if t.composite), key=lambda r: r.oid)


def relkind(relation: Relation) -> str:
    """pg_class.relkind."""
    known = definitions().get(relation.oid)
    if known is not None:
        return known.relkind
    if relation.partitioning is not None:
        return "p"
    if relation.kind in FED:
        return "r"
    if relation.kind is RelationKind.TYPE:
        return "c"
    return "v" if relation.kind is RelationKind.SYSTEM else relation.kind.value


def indexed(state: SystemState) -> Iterator[tuple[Relation, Index]]:
    """Every index with its relation, ordered by the relation's oid, the primary key first."""
    for relation in user_relations(state, RelationKind.TABLE, RelationKind.MATERIALIZED_VIEW):
        for index in relation.all_indexes:
            yield relation, index


def is_null(default: str | None) -> bool:
    """Whether a DEFAULT is NULL, as it is without one."""
    return default is None or default.lower() == "null"


def defaults_of(state: SystemState) -> Iterator[tuple[int, Relation, int]]:
    """(pg_attrdef oid, relation, attribute number) of every DEFAULT and generated column."""
    number = DEFAULT_BASE
    for relation in user_relations(state, RelationKind.TABLE):
        for i, column in enumerate(relation.columns):
            from_sequence = column.generated is not None and not column.generated.identity
            if column.expression is not None or not is_null(column.default) or from_sequence:
                yield number, relation, i + 1
                number += 1
