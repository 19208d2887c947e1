"""pg_depend, by which a dump orders objects, the rules of views, and extensions, whose objects it leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ivm.words import SqlType
from sql.catalog.access import CLASS, FUNCTION, NAMESPACE, TYPE
from sql.catalog.catalog import INTERNAL_SCHEMAS, Relation, RelationKind
from sql.catalog.comments import CONSTRAINT, TRIGGER
from sql.catalog.composite import domain_oid
from sql.catalog.keys import constraint_oid
from sql.catalog.links import key_index
from sql.catalog.securables import LANGUAGE, LANGUAGES
from sql.catalog.system.definitions import Datums, Row
from sql.system.own import OWN_RELATIONS
from sql.system.pg_sequences import sequences_of
from sql.system.state import OWNER, SystemState, composite_types, defaults_of, indexed, user_relations
from storage.types.type_names import type_oid

_ATTRDEF: Final = 2604
_REWRITE: Final = 2618
_EXTENSION: Final = 3079
EXTENSIONS: Final = {"plpgsql": 13563, "freshet": 13998}
"""The oids of the extensions."""
RULE_BASE: Final = 0x4800_0000
_VIEWS: Final = (RelationKind.VIEW, RelationKind.MATERIALIZED_VIEW)
_OWN_TYPES: Final = 16384

Edge = tuple[int, int, int, int, int, int, str]
"""A row of pg_depend."""


def pg_rewrite(state: SystemState, row: Row) -> Iterator[Datums]:
    for view in user_relations(state, *_VIEWS):
        yield row(
            oid=RULE_BASE + view.oid, rulename="_RETURN", ev_class=view.oid, ev_type="1", ev_enabled="O",
            is_instead=True,
        )  # fmt: skip


def pg_depend(state: SystemState, row: Row) -> Iterator[Datums]:
    for parts in (_own, _sequences, _defaults, _views, _tables, _constraints, _types, _routines, _schemas):
        for catalog, oid, number, other_catalog, other, other_number, kind in parts(state):
            yield row(
                classid=catalog, objid=oid, objsubid=number, refclassid=other_catalog, refobjid=other,
                refobjsubid=other_number, deptype=kind,
            )  # fmt: skip


def pg_extension(state: SystemState, row: Row) -> Iterator[Datums]:
    for name, oid in EXTENSIONS.items():
        schema = "freshet" if name == "freshet" else "pg_catalog"
        yield row(
            oid=oid, extname=name, extowner=OWNER, extnamespace=INTERNAL_SCHEMAS[schema], extversion="1.0",
        )  # fmt: skip


def _own(state: SystemState) -> Iterator[Edge]:
    """The members of extensions. Schema freshet is one: no dump creates what every server has."""
    yield LANGUAGE, LANGUAGES["plpgsql"], 0, _EXTENSION, EXTENSIONS["plpgsql"], 0, "e"
    yield NAMESPACE, INTERNAL_SCHEMAS["freshet"], 0, _EXTENSION, EXTENSIONS["freshet"], 0, "e"
    for relation in OWN_RELATIONS:
        yield CLASS, relation.oid, 0, _EXTENSION, EXTENSIONS["freshet"], 0, "e"


def _sequences(state: SystemState) -> Iterator[Edge]:
    """Which column owns a sequence."""
    columns = {r.oid: [c.name for c in r.columns] for r in user_relations(state, RelationKind.TABLE)}
    for relation, sequence in sequences_of(state):
        if sequence.owner is not None and sequence.owner[0] in columns:
            owner, column = sequence.owner
            number = columns[owner].index(column) + 1
            yield CLASS, relation.oid, 0, CLASS, owner, number, "i" if sequence.internal else "a"


def _defaults(state: SystemState) -> Iterator[Edge]:
    for oid, table, number in defaults_of(state):
        yield _ATTRDEF, oid, 0, CLASS, table.oid, number, "a"
        generated = table.columns[number - 1].generated
        if generated is not None:
            yield _ATTRDEF, oid, 0, CLASS, generated.sequence, 0, "n"


def _views(state: SystemState) -> Iterator[Edge]:
    """A view's rule is part of it, and needs what its query names."""
    oids = {r.id: r.oid for r in state.relations()}
    for view in user_relations(state, *_VIEWS):
        rule = RULE_BASE + view.oid
        yield _REWRITE, rule, 0, CLASS, view.oid, 0, "i"
        named = {oids[r.relation] for r in view.references if r.relation in oids}
        for oid in sorted(named):
            yield _REWRITE, rule, 0, CLASS, oid, 0, "n"


def _tables(state: SystemState) -> Iterator[Edge]:
    for table in user_relations(state, RelationKind.TABLE):
        for parent in table.parents:
            yield CLASS, table.oid, 0, CLASS, parent, 0, "n" if table.bound is None else "a"
        for number, column in enumerate(table.columns):
            for oid in _own_types([column.type]):
                yield CLASS, table.oid, number + 1, TYPE, oid, 0, "n"
        for trigger in table.triggers:
            yield TRIGGER, trigger.id, 0, CLASS, table.oid, 0, "a"
            yield TRIGGER, trigger.id, 0, FUNCTION, trigger.function, 0, "n"


def _constraints(state: SystemState) -> Iterator[Edge]:
    tables = {r.oid: r for r in user_relations(state, RelationKind.TABLE)}
    for relation, index in indexed(state):
        if index.constraint:
            yield CLASS, index.id, 0, CONSTRAINT, constraint_oid(index), 0, "i"
        source = (CONSTRAINT, constraint_oid(index)) if index.constraint else (CLASS, index.id)
        for part in index.parts:
            yield *source, 0, CLASS, relation.oid, part + 1 if isinstance(part, int) else 0, "a"
    for table in tables.values():
        for check in table.checks:
            for column in check.columns or (-1,):
                yield CONSTRAINT, check.id, 0, CLASS, table.oid, column + 1, "a"
        for key in table.foreign_keys:
            for column in key.columns:
                yield CONSTRAINT, key.id, 0, CLASS, table.oid, column + 1, "a"
            parent = tables[key.parent]
            names = [c.name for c in parent.columns]
            for name in key.keys:
                yield CONSTRAINT, key.id, 0, CLASS, parent.oid, names.index(name) + 1, "n"
            unique = key_index(parent, key.keys)
            if unique is not None:
                yield CONSTRAINT, key.id, 0, CLASS, unique.id, 0, "n"


def _types(state: SystemState) -> Iterator[Edge]:
    for type_ in composite_types(state):
        yield CLASS, type_.oid, 0, TYPE, type_oid(type_.own_type), 0, "i"
        for number, column in enumerate(type_.columns):
            for oid in _own_types([column.type]):
                yield CLASS, type_.oid, number + 1, TYPE, oid, 0, "n"
    for domain in (t for t in state.types() if t.domain):
        (value,) = domain.columns
        for oid in _own_types([value.type]):
            yield TYPE, domain.oid, 0, TYPE, oid, 0, "n"
        for check in domain.checks:
            yield CONSTRAINT, check.id, 0, TYPE, domain.oid, 0, "a"


def _routines(state: SystemState) -> Iterator[Edge]:
    for relation in state.routines():
        routine = relation.routine
        assert routine is not None, "a function"
        given = [a.type for a in routine.declared] + [routine.result]
        for oid in _own_types(t for t in given if isinstance(t, SqlType)):
            yield FUNCTION, relation.oid, 0, TYPE, oid, 0, "n"


def _schemas(state: SystemState) -> Iterator[Edge]:
    known = state.schemas()
    for relation in state.relations():
        if relation.oid >= _OWN_TYPES and relation.schema_name in known:
            yield CLASS, relation.oid, 0, NAMESPACE, known[relation.schema_name], 0, "n"
    for relation in state.routines():
        yield FUNCTION, relation.oid, 0, NAMESPACE, known[relation.schema_name], 0, "n"
    for type_ in state.types():
        yield TYPE, _type_oid(type_), 0, NAMESPACE, known[type_.schema_name], 0, "n"


def _type_oid(type_: Relation) -> int:
    return type_.oid if type_.domain else type_oid(type_.own_type)


def _own_types(types: Iterable[SqlType]) -> list[int]:
    """The oids of the users' types among these, and of the elements of arrays."""
    found = set()
    for type_ in types:
        inside = type_ if type_.element is None or domain_oid(type_) is not None else type_.element
        oid = domain_oid(inside) or type_oid(inside)
        if oid >= _OWN_TYPES:
            found.add(oid)
    return sorted(found)
