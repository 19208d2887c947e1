"""SQL functions about the catalog and the session, and reg* names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

from ivm.errors import SqlError, unsupported
from ivm.words import REGTYPE, Kind, SqlType
from planner.expr.context import ObjectNames
from planner.identifiers import quoted, split_name
from sql.bind.partitions import constraint_text
from sql.catalog.catalog import Relation, RelationKind, is_temporary
from sql.catalog.column_types import is_type_name, parse_type
from sql.catalog.comments import CATALOGS
from sql.catalog.composite import ROW_ARRAY_BASE
from sql.catalog.keys import Index, constraint_oid
from sql.catalog.search_path import TEMPORARY, no_schema
from sql.catalog.system.definitions import definitions, system_oid
from sql.catalog.user_types import type_of_oid, typed
from sql.syntax.lexing.keywords import keyword_rows
from sql.syntax.lexing.standard_strings import doubled
from sql.system import pg_routines
from sql.system.acls import default_text, exploded
from sql.system.builtin import COLLATIONS, descriptions
from sql.system.information_schema import updatable
from sql.system.objects import described
from sql.system.pg_relations import (
    constraint_definition,
    foreign_key_definition,
    index_column,
    index_definition,
    timing,
)
from sql.system.pg_triggers import trigger_definition
from sql.system.pg_types import pseudo_types, type_names
from sql.system.privilege_functions import Privileges
from sql.system.signatures import Signatures
from sql.system.state import SystemState, composite_types, indexed
from sql.system.texts import check_definition, partition_key, stored_text, view_definition
from storage.types.type_names import format_type, info, type_from_oid, type_oid

_PSEUDO_TYPES: Final = pseudo_types()
_NAMED: Final = {"xml": 142}
"""Types of PostgreSQL that are not here, but are compared with by clients (``'xml'::regtype``)."""
_NAMES: Final = {oid: name for name, oid in _NAMED.items()}
VECTORS: Final = (22, 30)
"""int2vector and oidvector: arrays in everything but their names."""


class SystemFunctions:
    """The functions that only read; ``sql.session.information`` has the others. Created for each statement.

    ``setting``: name → value of a run-time setting, None for an unknown one.
    """

    def __init__(self, state: SystemState | None, setting: Callable[[str], str | None], backend_id: int = 0) -> None:
        """``state``: None if it is one itself.

        Invariant: it does not refer to itself. Nobody waits for the collector to free what a statement has held.
        """
        self._other = state
        self._setting = setting
        self._backend_id = backend_id
        self._by_id: dict[int, Relation] | None = None
        self._by_name: dict[str, dict[str, int]] | None = None

    @property
    def _state(self) -> SystemState:
        return cast(SystemState, self) if self._other is None else self._other

    @property
    def _signatures(self) -> Signatures:
        return Signatures(self._state, self._type_name, lambda text: self._type_oid(text, pseudo=True))

    def current_user(self) -> str:
        return self._state.roles.name(self._state.role)

    def session_user(self) -> str:
        return self._state.roles.name(self._state.session_role)

    def current_database(self) -> str:
        return self._state.database

    def current_schema(self) -> str | None:
        return next(iter(self._state.path.named), None)

    def current_schemas(self, implicit: bool) -> tuple[str, ...]:
        return self._state.path.places if implicit else self._state.path.named

    def temporary_schema(self) -> int:
        """The oid of the session's temporary schema; 0 if it does not exist yet."""
        return self._state.schemas().get(self._state.path.temporary, 0)

    def is_other_temporary(self, oid: int) -> bool:
        """Whether a schema is another session's temporary schema."""
        named = (name for name, number in self._state.schemas().items() if number == oid)
        return any(is_temporary(name) and name != self._state.path.temporary for name in named)

    def setting(self, name: str) -> str | None:
        return self._setting(name)

    def function_text(self, oid: int, what: str) -> str | None:
        found = next((r for r in self._state.routines() if r.id == oid), None)
        if found is None or found.routine is None:
            return pg_routines.builtin_text(oid, what)
        match what:
            case "definition":
                return pg_routines.function_definition(found, self._type_name)
            case "result":
                return pg_routines.result(found, self._type_name)
            case _:
                return pg_routines.arguments(found.routine, self._type_name, what == "arguments")

    def _type_name(self, oid: int) -> str:
        return self.reg_out(REGTYPE, oid)

    def backend_pid(self) -> int:
        """pg_backend_pid()."""
        return self._backend_id

    def has_privilege(self, kind: str, role: object, subject: object, column: object, privileges: str) -> bool | None:
        return self._privileges.has(kind, role, subject, column, privileges)

    def has_role(self, role: object, other: object, privileges: str) -> bool:
        return self._privileges.has_role(role, other, privileges)

    def row_security_active(self, table: object) -> bool:
        return self._privileges.row_security_active(table)

    def default_acl(self, kind: str, owner: int) -> tuple[str, ...]:
        return default_text(kind, owner, self._state.roles)

    def exploded_acl(self, items: Sequence[object]) -> Sequence[tuple[int, int, str, bool]]:
        return exploded(items, self._state.roles)

    @property
    def _privileges(self) -> Privileges:
        return Privileges(self._state, self.reg_in, lambda oid: self._relations().get(oid))

    def role_name(self, oid: int) -> str:
        """pg_get_userbyid."""
        return self._state.roles.name(oid)

    def format_type(self, oid: int, typmod: int | None) -> str | None:
        if oid == 0:
            return "-"
        if oid in VECTORS:
            return type_names()[oid]
        type_ = type_from_oid(oid, -1 if typmod is None else typmod)
        if type_ is None:
            return self._own_type_name(oid) or type_names().get(oid) or _NAMES.get(oid, "???")
        return format_type(type_, typmod is not None)

    # Relations.

    def _relations(self) -> dict[int, Relation]:
        if self._by_id is None:
            self._by_id = {d.relation.oid: d.relation for d in definitions().values()}
            self._by_id.update((r.oid, r) for r in (*self._state.relations(), *composite_types(self._state)))
        return self._by_id

    def _index(self, oid: int) -> tuple[Relation, Index] | None:
        """The index with that oid, and its relation."""
        return next(((r, i) for r, i in indexed(self._state) if i.id == oid), None)

    def table_is_visible(self, oid: int) -> bool | None:
        relation = self._relations().get(oid)
        if relation is not None:
            return self._visible(relation.schema_name, relation.name)
        found = self._index(oid)
        return None if found is None else self._visible(found[0].schema_name, found[1].name)

    def _visible(self, schema_name: str, name: str) -> bool:
        """Whether the name without a schema finds the relation in this schema."""
        return next((p for p in self._state.path.places if p in self._named(name)), None) == schema_name

    def _named(self, name: str) -> Mapping[str, int]:
        """The oids of everything with that name, by schema."""
        if self._by_name is None:
            self._by_name = {}
            for relation in self._relations().values():
                self._by_name.setdefault(relation.name, {})[relation.schema_name] = relation.oid
            for relation, index in indexed(self._state):
                self._by_name.setdefault(index.name, {}).setdefault(relation.schema_name, index.id)
        return self._by_name.get(name, {})

    def partition_key(self, oid: int) -> str | None:
        """pg_get_partkeydef; None if the table is not partitioned."""
        found = self._relations().get(oid)
        return (
            None
            if found is None or found.partitioning is None
            else partition_key(self._state, found, found.partitioning)
        )

    def partition_constraint(self, oid: int) -> str | None:
        """pg_get_partition_constraintdef, with the ancestors' constraints first."""
        known = self._relations()
        table = found = known.get(oid)
        parts: list[str] = []
        while found is not None and found.bound is not None:
            parent = known[found.parents[0]]
            bounds = [r.bound for r in known.values() if r.bound is not None and r.parents == found.parents]
            parts.insert(0, constraint_text(parent, found.bound, bounds))
            found = parent
        whole = " AND ".join(part for part in parts if part)
        return stored_text(self._state, table, whole, pretty=False) if whole and table is not None else None

    def partition_ancestors(self, oid: int) -> list[int]:
        """pg_partition_ancestors: a partition or partitioned table, and its ancestors."""
        known, found = self._relations(), self._relations().get(oid)
        if found is None or (found.bound is None and found.partitioning is None):
            return []
        result = [oid]
        while found.bound is not None:
            found = known[found.parents[0]]
            result.append(found.oid)
        return result

    def partition_tree(self, oid: int) -> list[tuple[int, int | None, bool, int]]:
        """pg_partition_tree, level by level."""
        known, found = self._relations(), self._relations().get(oid)
        if found is None or (found.bound is None and found.partitioning is None):
            return []
        rows, level, depth = [], [found], 0
        while level:
            for table in level:
                parent = table.parents[0] if table.bound is not None else None
                rows.append((table.oid, parent, table.partitioning is None, depth))
            parents = {table.oid for table in level}
            level = [r for r in known.values() if r.bound is not None and parents.intersection(r.parents)]
            depth += 1
        return rows

    def described_object(self, catalog: int, oid: int, number: int) -> ObjectNames:
        return described(self._state, self, catalog, oid, number)

    def routine_visible(self, routine: Relation) -> bool:
        """Whether the path finds the routine by its name and types."""
        return self._signatures.visible(False, routine.oid) or False

    def function_is_visible(self, oid: int) -> bool | None:
        return self._signatures.visible(False, oid)

    def operator_is_visible(self, oid: int) -> bool | None:
        return self._signatures.visible(True, oid)

    def argument_default(self, oid: int, number: int) -> str | None:
        found = next((r.routine for r in self._state.routines() if r.oid == oid), None)
        declared = () if found is None else found.declared
        return declared[number - 1].default if 0 < number <= len(declared) else None

    def keywords(self) -> list[tuple[str, str, bool, str, str]]:
        return keyword_rows()

    def sequence_parameters(self, oid: int) -> tuple[int, int, int, int, bool, int, int]:
        found = self._relations().get(oid)
        if found is None or found.sequence is None:
            shown = f"relation with OID {oid}" if found is None else f'"{found.name}"'
            raise SqlError("42809", f"{shown} is not a sequence")
        own = found.sequence
        limits = own.start, own.minimum, own.maximum, own.increment
        return *limits, own.cycle, own.cache, type_oid(own.type)

    def base_type(self, oid: int) -> int | None:
        domain = next((t for t in self._state.types() if t.domain and t.oid == oid), None)
        if domain is not None:
            return type_oid(domain.columns[0].type)
        known = type_from_oid(oid) is not None or oid in type_names() or self._found_type(oid) is not None
        return oid if known else None

    def description(self, oid: int, number: int, catalog: str | None) -> str | None:
        comments, builtin = self._state.comments(), descriptions()
        places = [*CATALOGS.values()] if catalog is None else [system_oid(catalog)]
        for place in places:
            if (place, oid, number) in comments:
                return comments[place, oid, number] or None
            if not number and (place, oid) in builtin:
                return builtin[place, oid]
        return None

    def updatable(self, oid: int) -> tuple[bool, ...]:
        found = self._relations().get(oid)
        return () if found is None else updatable(found, self._state)

    def view_definition(self, oid: int, pretty: bool = False, width: int = 0) -> str | None:
        relation = self._relations().get(oid)
        if relation is None or relation.kind not in (RelationKind.VIEW, RelationKind.MATERIALIZED_VIEW):
            return None
        return self._as_read(view_definition(relation, self._state, pretty=pretty, width=width))

    def index_definition(self, oid: int, column: int, pretty: bool = False) -> str | None:
        """pg_get_indexdef: the whole index, or (``column`` from 1) one column."""
        found = self._index(oid)
        if found is None:
            return None
        relation, index = found
        if column == 0:
            return self._as_read(index_definition(self._state, relation, index, pretty=pretty))
        if not 0 < column <= index.width + len(index.included):
            return None
        return self._as_read(index_column(self._state, relation, index, column - 1, pretty=pretty))

    def constraint_definition(self, oid: int, pretty: bool = False) -> str | None:
        """pg_get_constraintdef."""
        for relation, index in indexed(self._state):
            if index.constraint and constraint_oid(index) == oid:
                return constraint_definition(self._state, relation, index, pretty=pretty) + timing(index)
        for relation in self._state.relations():
            for key in relation.foreign_keys:
                if key.id == oid:
                    return foreign_key_definition(relation, key, self._relation_name(key.parent)) + timing(key)
        owners = (*self._state.relations(), *self._state.types())
        checks = ((r, c) for r in owners for c in r.checks if c.id == oid)
        return next((self._as_read(check_definition(self._state, r, c, pretty=pretty)) for r, c in checks), None)

    def expression(self, text: str, oid: int, pretty: bool) -> str:
        """pg_get_expr. Plain text is what the system relations have."""
        relation = self._relations().get(oid) if pretty else None
        return self._as_read(text if relation is None else stored_text(self._state, relation, text, pretty=True))

    def trigger_definition(self, oid: int, pretty: bool) -> str | None:
        """pg_get_triggerdef."""

        def shown(relation: Relation) -> str:
            whole = f"{quoted(relation.schema_name)}.{quoted(relation.name)}"
            return self._relation_name(relation.oid) if pretty else whole

        found = trigger_definition(self._state, oid, shown, self.routine_visible, pretty=pretty)
        return None if found is None else self._as_read(found)

    def _as_read(self, text: str) -> str:
        """A definition with its strings as the session reads them."""
        return doubled(text) if self._setting("standard_conforming_strings") == "off" else text

    # The reg* types.

    def reg_out(self, type: SqlType, oid: int) -> str:
        if oid == 0:
            return "-"
        match type.kind:
            case Kind.REGCLASS:
                return self._relation_name(oid)
            case Kind.REGTYPE:
                known = None if oid in VECTORS else type_from_oid(oid)
                if known is not None:
                    return format_type(known, False)
                return self._own_type_name(oid) or type_names().get(oid) or _NAMES.get(oid, str(oid))
            case Kind.REGPROC | Kind.REGOPER:
                return self._signatures.name_of(type.kind is Kind.REGOPER, oid)
            case Kind.REGPROCEDURE | Kind.REGOPERATOR:
                return self._signatures.text_of(type.kind is Kind.REGOPERATOR, oid)
            case Kind.REGROLE:
                known_role = oid in self._state.roles.access.roles
                return quoted(self._state.roles.name(oid)) if known_role else str(oid)
            case Kind.REGCOLLATION:
                return next((quoted(name) for number, name in COLLATIONS.items() if number == oid), str(oid))
            case Kind.REGNAMESPACE:
                return next((quoted(name) for name, number in self._state.schemas().items() if number == oid), str(oid))
            case _:
                raise unsupported(f"type {type.kind.value}")

    def _relation_name(self, oid: int) -> str:
        relation = self._relations().get(oid)
        name = None if relation is None else relation.name
        if relation is None:
            found = self._index(oid)
            if found is not None:
                relation, name = found[0], found[1].name
        if relation is None or name is None:
            return str(oid)
        visible = self._visible(relation.schema_name, name)
        return quoted(name) if visible else f"{quoted(relation.schema_name)}.{quoted(name)}"

    def reg_in(self, type: SqlType, text: str) -> int:
        if text == "-":
            return 0
        if text.isdigit():
            return int(text)
        if type.kind is Kind.REGTYPE:
            return self._type_oid(text, pseudo=True)
        if type.kind in (Kind.REGPROC, Kind.REGOPER):
            return self._signatures.by_name(type.kind is Kind.REGOPER, text)
        if type.kind in (Kind.REGPROCEDURE, Kind.REGOPERATOR):
            return self._signatures.by_text(type.kind is Kind.REGOPERATOR, text)
        schema, name = split_name(text)
        match type.kind:
            case Kind.REGCLASS:
                return self._relation_oid(schema, name, text)
            case Kind.REGROLE:
                return self._state.roles.role(name).oid
            case Kind.REGCOLLATION:
                oid = next((number for number, known in COLLATIONS.items() if known == name), None)
                if oid is None:
                    raise SqlError("42704", f'collation "{text}" for encoding "UTF8" does not exist')
                return oid
            case Kind.REGNAMESPACE:
                found = self._state.schemas().get(name)
                if found is None:
                    raise SqlError("3F000", f'schema "{name}" does not exist')
                return found
            case _:
                raise unsupported(f"type {type.kind.value}")

    def _type_oid(self, text: str, pseudo: bool = False) -> int:
        """``pseudo``: also of a type that only functions have."""
        if pseudo and (found := _PSEUDO_TYPES.get(text.strip().removeprefix("pg_catalog.").strip('"'))) is not None:
            return found
        for oid in VECTORS:
            if text == type_names()[oid]:
                return oid
        own = self._own_type_oid(text)
        if own is not None:
            return own
        try:
            return type_oid(parse_type(text))
        except SqlError as error:
            # a known but unsupported type is not in pg_type; psycopg's TypeInfo.fetch relies on 42704
            if error.sqlstate != "0A000":
                raise
            if text in _NAMED:
                return _NAMED[text]
            raise SqlError("42704", f'type "{text}" does not exist') from None

    def _own_type_name(self, oid: int) -> str | None:
        """A user-defined type's name as SQL text, with its schema if the name alone does not find it."""
        own = (oid, oid - ROW_ARRAY_BASE)
        domain = next((t for t in self._state.types() if t.domain and t.oid in own), None)
        found = self._found_type(oid) if domain is None else (domain, domain.own_type)
        if found is None:
            return None
        name = format_type(found[1]) if domain is None else quoted(domain.name) + "[]" * (domain.oid != oid)
        return name if self._own_type(found[0].name) == found[0] else f"{quoted(found[0].schema_name)}.{name}"

    def _found_type(self, oid: int) -> tuple[Relation, SqlType] | None:
        return type_of_oid((*self._state.types(), *self._state.relations()), oid)

    def type_is_visible(self, oid: int) -> bool:
        """pg_type_is_visible. Postgres's own types always are."""
        found = self._found_type(oid)
        return found is None or self._own_type(found[0].name) == found[0]

    def _own_type(self, name: str, schema: str | None = None) -> Relation | None:
        known = typed((*self._state.relations(), *self._state.types()))
        types = {t.schema_name: t for t in known if name in (t.name, t.multirange)}
        places = self._state.path.places if schema is None else (schema,)
        return next((types[place] for place in places if place in types), None)

    def _own_type_oid(self, text: str) -> int | None:
        """The oid of a user-defined type, or of its array type; None if it is one of Postgres's own names, or
        unknown."""
        base = text.strip().removesuffix("[]").rstrip()
        try:
            schema, name = split_name(base)
        except SqlError:
            return None
        if schema is None and is_type_name(name):
            return None
        element = None if name[:1] != "_" else self._own_type(name[1:], schema)
        found = self._own_type(name, schema) or element
        if found is None:
            return None
        if found.domain:
            return ROW_ARRAY_BASE + found.oid if base != text.strip() or found is element else found.oid
        own = info(found.type_named(name[1:] if found is element else name))
        return own.array_oid if base != text.strip() or found is element else own.oid

    def _relation_oid(self, schema: str | None, name: str, text: str) -> int:
        path = self._state.path
        if schema == TEMPORARY:
            schema = path.temporary
        elif schema is not None and schema not in self._state.schemas():
            raise no_schema(schema)
        found = self._named(name)
        for place in path.places if schema is None else (schema,):
            if place in found:
                return found[place]
        raise SqlError("42P01", f'relation "{text}" does not exist')
