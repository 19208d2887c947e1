"""What binding a statement carries along: the catalog, the parameters, the CTEs in sight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from ivm.errors import SqlError
from ivm.words import TEXT, UNKNOWN, Kind, SqlType
from planner.expr.scalar import Literal, Parameter
from planner.logical.nodes import Rel
from sql.catalog.catalog import CatalogReader, Relation
from sql.catalog.column_types import array_of, is_type_name, type_from_name
from sql.catalog.search_path import pinned
from sql.statements.statements import Delete, Insert, Update
from sql.syntax.nodes import TypeName, With

MAX_PARAMETERS = 65535


class Parameters:
    """The types of ``$1, $2, …``: given by the client, or taken from the first context that demands one."""

    def __init__(self, given: tuple[SqlType | None, ...] = ()) -> None:
        self.types: list[SqlType | None] = [None if t is None or t.kind is Kind.UNKNOWN else t for t in given]

    def reference(self, index: int, at: int) -> Parameter:
        """The parameter as an expression, of type UNKNOWN as long as nothing tells its type."""
        if not 1 <= index <= MAX_PARAMETERS:
            raise SqlError("42P02", f"there is no parameter ${index}", position=at + 1)
        while len(self.types) < index:
            self.types.append(None)
        return Parameter(index, self.types[index - 1] or UNKNOWN)

    def infer(self, index: int, type_: SqlType) -> SqlType:
        """The parameter's type, which becomes ``type_`` if it has none yet."""
        known = self.types[index - 1]
        if known is None:
            known = self.types[index - 1] = _plain(type_)
        return known

    def finished(self) -> tuple[SqlType, ...]:
        return tuple(t or TEXT for t in self.types)


def _plain(type_: SqlType) -> SqlType:
    """A type without modifiers, as Postgres gives to parameters."""
    return SqlType(type_.kind, element=type_.element, fields=type_.fields, enum=type_.enum)


@dataclass(frozen=True, slots=True)
class CteBinding:
    """A CTE in sight: its plan (the same object at each use) and the columns' names.

    ``depth``: of the scope around it, which its outer references count from. ``working``: it is the working table of
    a recursion that is being bound. ``silent``: it changes rows and has no RETURNING, so that it cannot be read.
    """

    name: str
    columns: tuple[str, ...]
    rel: Rel
    working: bool = False
    depth: int = 0
    silent: bool = False


@dataclass(slots=True)
class Environment:
    """One statement's binding. ``views``: the views being expanded, against cycles.

    ``origins``: where each untyped literal stands, by its identity, for the error when it turns out not to be a number.
    ``marked``: the tables of FROM (by alias) that get a column which only an outer join makes NULL.
    ``oids``: stored relations in FROM get a column with their oid, ``tableoid``, which no star shows.
    ``top``: the statement's own WITH, the one place where data-modifying statements may stand: ``changes``.
    """

    catalog: CatalogReader
    parameters: Parameters
    ctes: Mapping[str, CteBinding | None] = field(default_factory=dict)
    bindings: count[int] = field(default_factory=lambda: count(1))
    views: tuple[int, ...] = ()
    origins: dict[int, tuple[Literal, int]] = field(default_factory=dict)
    marked: frozenset[str] = frozenset()
    top: With | None = None
    changes: list[tuple[int, Insert | Update | Delete]] = field(default_factory=list)
    oids: bool = False

    def with_ctes(self, ctes: Mapping[str, CteBinding | None]) -> Environment:
        return replace(self, ctes=ctes)

    def untyped(self, value: str, at: int) -> Literal:
        """An untyped literal, remembered with its place."""
        literal = Literal(value, UNKNOWN)
        self.origins[id(literal)] = literal, at
        return literal

    def origin(self, literal: Literal, otherwise: int) -> int:
        """Where a literal stands, if it is one of ``untyped``."""
        return self.origins.get(id(literal), (literal, otherwise))[1]

    def for_view(self, view: Relation) -> Environment:
        """For a view's own definition: it sees no CTEs, no parameters and no search path of ours."""
        catalog = pinned(self.catalog, view)
        return replace(self, catalog=catalog, ctes={}, parameters=Parameters(), views=(*self.views, view.id))

    def type(self, name: TypeName) -> SqlType:
        """The type that a name means. Raises 42704, 0A000, 22023."""
        text = name.name
        if text.startswith("interval "):
            return array_of(SqlType(Kind.INTERVAL)) if name.array else SqlType(Kind.INTERVAL)
        own = None if is_type_name(text) and name.schema in (None, "pg_catalog") else self._own_type(name)
        type_ = type_from_name(text, name.args, name.at + 1) if own is None else own
        return array_of(type_) if name.array else type_

    def _own_type(self, name: TypeName) -> SqlType | None:
        """A user's type of that name."""
        found = self.catalog.type(name.schema, name.name)
        if found is None and name.schema is not None:
            raise SqlError("42704", f'type "{name.schema}.{name.name}" does not exist', position=name.at + 1)
        if found is not None and name.args:
            raise SqlError("42601", f'type modifier is not allowed for type "{found.name}"', position=name.at + 1)
        return None if found is None else found.own_type


@dataclass(frozen=True, slots=True)
class Table:
    """A bound query as others see it: its plan and its columns' names."""

    rel: Rel
    names: tuple[str, ...]
