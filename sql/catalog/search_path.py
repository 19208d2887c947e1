"""Resolves names without a schema: search_path, and the catalog as seen along one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from ivm.errors import SqlError
from planner.identifiers import quoted
from sql.catalog.catalog import (
    INTERNAL_SCHEMAS,
    LABELS,
    NO_OPERATORS,
    PUBLIC,
    ROWED,
    Catalog,
    CatalogReader,
    Operators,
    Relation,
    RelationKind,
    is_temporary,
)
from sql.catalog.references import RelationReference
from sql.catalog.roles import BOOTSTRAP_ID
from sql.catalog.securables import check_create, check_use, may_use, schema_denied

TEMPORARY: Final = "pg_temp"
"""The name by which a session refers to its own schema for temporary relations."""
_ITEM: Final = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^\s,"]+))\s*')


@dataclass(frozen=True, slots=True)
class SearchPath:
    """``places``: the schemas searched, in order, implied ones included. ``named``: those of them that search_path
    names. ``temporary``: the session's own schema, whether or not it exists yet. ``role``: whose rights count."""

    places: tuple[str, ...] = ("pg_catalog", PUBLIC)
    named: tuple[str, ...] = (PUBLIC,)
    temporary: str = TEMPORARY
    role: int = BOOTSTRAP_ID


DEFAULT_PATH: Final = SearchPath()


@lru_cache(1000)
def schema_list(text: str) -> tuple[str, ...]:
    """The schema names in a search_path's text. Raises 22023."""
    found: list[str] = []
    at = 0
    while text.strip() and at <= len(text):
        item = _ITEM.match(text, at)
        if item is None or text[item.end() : item.end() + 1] not in (",", ""):
            message = f'invalid value for parameter "search_path": "{text}"'
            raise SqlError("22023", message, detail="List syntax is invalid.")
        found.append(item[2].lower() if item[1] is None else item[1].replace('""', '"'))
        at = item.end() + 1
    return tuple(found)


def path_of(setting: str, user: str, temporary: str, catalog: Catalog, role: int = BOOTSTRAP_ID) -> SearchPath:
    """Resolves a search_path in a catalog. Schemas that do not exist, or that the role ``role`` may not use, are
    skipped, as in Postgres. ``user``: its name.

    A user may be named like an internal schema, which is then not taken for the user's own.
    """
    named: list[str] = []
    for name in schema_list(setting):
        if name == "$user" and user in INTERNAL_SCHEMAS:
            continue  # a user named freshet creates tables like any other
        meant = user if name == "$user" else temporary if name == TEMPORARY else name
        there = meant == temporary or (
            catalog.has_schema(meant) and not is_temporary(meant) and may_use(catalog, role, meant)
        )
        if there and meant not in named:
            named.append(meant)
    implied = [] if "pg_catalog" in named else ["pg_catalog"]
    if temporary in catalog.schemas and temporary not in named:
        implied.insert(0, temporary)
    return SearchPath((*implied, *named), tuple(named), temporary, role)


@dataclass(frozen=True, slots=True)
class SearchPathReader:
    """The ``CatalogReader`` for one search path."""

    catalog: Catalog
    path: SearchPath = DEFAULT_PATH

    def resolve(self, schema_name: str | None, name: str) -> Relation | None:
        if schema_name is not None:
            return self.catalog.find(self._usable(schema_name), name)
        for place in self.path.places:
            found = self.catalog.find(place, name)
            if found is not None:
                return found
        return None

    def by_id(self, relation: int) -> Relation | None:
        return self.catalog.by_id(relation)

    def below(self, relation: Relation) -> tuple[Relation, ...]:
        """The tables that inherit from a relation, without other sessions' temporary tables."""
        found = self.catalog.below(relation)
        return tuple(r for r in found if not r.temporary or r.schema_name == self.path.temporary)

    def routines(self, schema_name: str | None, name: str) -> tuple[Relation, ...]:
        found = self.catalog.routines.get(name, ())
        if not found:
            return ()
        places = self.path.places if schema_name is None else (self._usable(schema_name),)
        first: dict[str, Relation] = {}
        for place in places:
            for relation in found:
                if relation.schema_name == place:
                    first.setdefault(relation.name, relation)
        return tuple(first.values())

    def operators(self, schema_name: str | None, symbol: str) -> Operators:
        found = self.catalog.operators.get(symbol)
        if not found:
            return NO_OPERATORS
        places = self.path.places if schema_name is None else (self._usable(schema_name),)
        first: dict[str, Relation] = {}
        for relation in (r for place in places for r in found if r.schema_name == place):
            first.setdefault(relation.name, relation)
        system = places.index("pg_catalog") if "pg_catalog" in places else 0
        before = tuple(r for r in first.values() if places.index(r.schema_name) < system)
        return before, tuple(r for r in first.values() if r not in before)

    def type(self, schema_name: str | None, name: str) -> Relation | None:
        places = self.path.places if schema_name is None else (self._usable(schema_name),)
        return next((t for t in (self.catalog.type(place, name) for place in places) if t is not None), None)

    def schema(self, name: str) -> str:
        """The actual schema for a schema name, resolving the alias of the temporary one."""
        return self.path.temporary if name == TEMPORARY else name

    def _usable(self, name: str) -> str:
        """The same. Raises 42501 where the role may not use it."""
        found = self.schema(name)
        self._check_own(found)
        check_use(self.catalog, self.path.role, found)
        return found

    def _check_own(self, name: str) -> None:
        """Raises 42501 for another session's temporary schema, into which only a superuser looks."""
        if is_temporary(name) and name != self.path.temporary and not self.catalog.access.is_superuser(self.path.role):
            raise schema_denied(name)

    def home(self, schema_name: str | None, temporary: bool) -> str:
        found = self._home(schema_name, temporary)
        self._check_own(found)
        access = self.catalog.access
        if found == self.path.temporary and not access.has(self.path.role, access.own_database, "T"):
            raise SqlError("42501", "permission denied to create temporary tables in this database")
        if found not in INTERNAL_SCHEMAS:
            check_create(self.catalog, self.path.role, found)
        return found

    def _home(self, schema_name: str | None, temporary: bool) -> str:
        own = self.path.temporary
        if schema_name is None:
            if temporary:
                return own
            if not self.path.named:
                raise SqlError("3F000", "no schema has been selected to create in")
            return self.path.named[0]
        found = self.schema(schema_name)
        if found != own and not self.catalog.has_schema(found):
            raise no_schema(schema_name)
        if temporary and found != own:
            raise SqlError("42P16", "cannot create temporary relation in non-temporary schema")
        return found

    def visible(self, relation: Relation) -> bool:
        """Whether the unqualified name resolves to this relation."""
        found = self.resolve(None, relation.name)
        return found is not None and found.id == relation.id

    def described(self, relation: Relation) -> str:
        """The object as messages about its dependencies name it, such as ``function f(integer)``."""
        if not relation.signed:
            return f"{LABELS[relation.kind]} {self.shown(relation)}"
        kind = LABELS[relation.kind]
        place = "" if relation.schema_name in self.path.places else f"{quoted(relation.schema_name)}."
        return f"{kind} {place}{relation.name.removeprefix(f'{kind} ')}"

    def shown(self, relation: Relation) -> str:
        """The relation's name as SQL text, qualified by its schema if necessary."""
        name = quoted(relation.name)
        return name if self.visible(relation) else f"{quoted(relation.schema_name)}.{name}"


@dataclass(frozen=True, slots=True)
class Pinned:
    """A ``CatalogReader`` that resolves names as they were resolved when a view was created; others in pg_catalog and
    public."""

    catalog: CatalogReader
    view: Relation

    def resolve(self, schema_name: str | None, name: str) -> Relation | None:
        for reference in self.view.references:
            if (reference.schema_name, reference.name) == (schema_name, name):
                return _as_seen(self.catalog.by_id(reference.relation), reference)
        places = ("pg_catalog", PUBLIC) if schema_name is None else (schema_name,)
        return next(filter(None, (self.catalog.resolve(place, name) for place in places)), None)

    def by_id(self, relation: int) -> Relation | None:
        return self.catalog.by_id(relation)

    def below(self, relation: Relation) -> tuple[Relation, ...]:
        return self.catalog.below(relation)

    def routines(self, schema_name: str | None, name: str) -> tuple[Relation, ...]:
        needed = [r for r in map(self.catalog.by_id, self.view.dependencies) if r is not None]
        found = [r for r in needed if r.routine is not None and r.routine.name == name]
        return tuple(r for r in found if schema_name in (None, r.schema_name))

    def operators(self, schema_name: str | None, symbol: str) -> Operators:
        needed = [r for r in map(self.catalog.by_id, self.view.dependencies) if r is not None]
        found = [r for r in needed if r.operator is not None and r.operator.symbol == symbol]
        bare = {r.relation for r in self.view.references if r.schema_name is None}
        return tuple(r for r in found if (r.id in bare if schema_name is None else r.schema_name == schema_name)), ()

    def type(self, schema_name: str | None, name: str) -> Relation | None:
        for reference in self.view.references:
            if (reference.schema_name, reference.name) == (schema_name, name):
                return self.catalog.by_id(reference.relation)
        needed = [r for r in map(self.catalog.by_id, self.view.dependencies) if r is not None]
        found = (r for r in needed if r.kind in (RelationKind.TYPE, *ROWED) and r.name == name)
        return next((r for r in found if schema_name in (None, r.schema_name)), None)

    def home(self, schema_name: str | None, temporary: bool) -> str:
        return self.catalog.home(schema_name, temporary)


@dataclass(slots=True)
class Recorder:
    """A ``CatalogReader`` that records which relations were looked up: a view's dependencies, a plan's inputs.

    ``seen``: their ids. ``inherited``: the ids of tables read because they inherit from one of these. ``names``: what
    the statement's own names resolved to, and their offsets.
    """

    catalog: CatalogReader
    seen: set[int] = field(default_factory=set)
    inherited: set[int] = field(default_factory=set)
    names: dict[tuple[str | None, str], tuple[int, set[int]]] = field(default_factory=dict)

    def resolve(self, schema_name: str | None, name: str) -> Relation | None:
        relation = self.catalog.resolve(schema_name, name)
        if relation is not None:
            self.seen.add(relation.id)
            self.names.setdefault((schema_name, name), (relation.id, set()))
        return relation

    def by_id(self, relation: int) -> Relation | None:
        found = self.catalog.by_id(relation)
        if found is not None:
            self.seen.add(found.id)
        return found

    def below(self, relation: Relation) -> tuple[Relation, ...]:
        found = self.catalog.below(relation)
        self.inherited.update(r.id for r in found)
        return found

    def routines(self, schema_name: str | None, name: str) -> tuple[Relation, ...]:
        return self.catalog.routines(schema_name, name)

    def operators(self, schema_name: str | None, symbol: str) -> Operators:
        return self.catalog.operators(schema_name, symbol)

    def type(self, schema_name: str | None, name: str) -> Relation | None:
        found = self.catalog.type(schema_name, name)
        if found is not None:
            self.seen.add(found.id)
            if found.kind is not RelationKind.TYPE:
                self.names.setdefault((schema_name, name), (found.id, set()))
        return found

    def home(self, schema_name: str | None, temporary: bool) -> str:
        return self.catalog.home(schema_name, temporary)

    def record(self, schema_name: str | None, name: str, at: int) -> None:
        """Records that a resolved name occurs at this offset."""
        self.names[schema_name, name][1].add(at)

    def record_operator(self, relation: Relation, at: int) -> None:
        """Records that an operator at this offset, written without a schema, is this one."""
        self.names.setdefault((None, relation.name), (relation.id, set()))[1].add(at)

    def temporary(self) -> bool:
        """Whether any relation looked up is temporary."""
        found = (self.catalog.by_id(i) for i in self.seen)
        return any(r is not None and r.temporary for r in found)

    def temporary_below(self) -> bool:
        """Whether any table read by inheritance is temporary."""
        found = (self.catalog.by_id(i) for i in self.inherited)
        return any(r is not None and r.temporary for r in found)

    def references(self, start: int, end: int) -> tuple[RelationReference, ...]:
        """The names recorded between two offsets of the statement, with places relative to ``start``."""
        found = []
        for (schema_name, name), (relation, places) in self.names.items():
            inside = tuple(sorted(at - start for at in places if start <= at < end))
            if inside:
                found.append(RelationReference(schema_name, name, relation, inside))
        return tuple(found)

    def unplaced(self) -> tuple[RelationReference, ...]:
        """The names looked up for constants, as nextval's."""
        return tuple(RelationReference(s, n, relation) for (s, n), (relation, at) in self.names.items() if not at)


def _as_seen(relation: Relation | None, reference: RelationReference) -> Relation | None:
    """A relation with the column names used in a view's definition."""
    if relation is None or not reference.columns:
        return relation
    columns = zip(relation.columns, reference.columns, strict=True)
    return replace(relation, columns=tuple(replace(c, name=name) for c, name in columns))


def pinned(catalog: CatalogReader, view: Relation) -> CatalogReader:
    """The reader against which a view's own definition is bound."""
    if isinstance(catalog, Recorder):
        return Recorder(Pinned(_trusted(catalog.catalog), view), catalog.seen, catalog.inherited)
    return Pinned(_trusted(catalog), view)


def _trusted(catalog: CatalogReader) -> CatalogReader:
    """The reader without the limits of a role: what a definition names was looked up by its creator."""
    if not isinstance(catalog, SearchPathReader):
        return catalog
    return SearchPathReader(catalog.catalog, replace(catalog.path, role=BOOTSTRAP_ID))


def no_schema(name: str) -> SqlError:
    return SqlError("3F000", f'schema "{name}" does not exist')


def check_creatable(schema_name: str, name: str) -> None:
    """Raises 42501 for a schema in which clients cannot create anything."""
    if schema_name in INTERNAL_SCHEMAS:
        message = f'permission denied to create "{schema_name}.{name}"'
        raise SqlError("42501", message, detail="System catalog modifications are currently disallowed.")
