"""The catalog as JSON, as it is in the log and in checkpoints."""

from __future__ import annotations

import json
from collections import abc
from collections.abc import Mapping
from dataclasses import asdict, astuple, fields, replace
from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import Kind, SqlType
from planner.memo import by_identity, of_newest
from planner.options import Joins, Late, Planning
from sql.catalog.access import DATABASE, Access
from sql.catalog.access_form import access_from_json, access_to_json
from sql.catalog.catalog import PUBLIC, PUBLIC_ID, Catalog, Generated, Relation, RelationKind, Sequence, TableColumn
from sql.catalog.composite import StoredTypes
from sql.catalog.connection import Connection
from sql.catalog.databases import FIRST_DATABASE
from sql.catalog.enumeration import Enumeration, enum_from_json, enum_to_json
from sql.catalog.keys import Check, ForeignKey, Index
from sql.catalog.operators import operator_from_json, operator_to_json
from sql.catalog.partitioning import PartitionBound, Partitioning
from sql.catalog.policies import NO_SECURITY, Guard, Policy, RowSecurity
from sql.catalog.references import RelationReference
from sql.catalog.routine import Types, routine_from_json, routine_to_json, type_from_json, type_to_json
from sql.catalog.triggers import Trigger

_PLAIN: Final = ("primary_key", "definition", "retain", "created", "dependencies")
"""Fields of a relation that are stored as they are; so are the following ones, which are left out where empty."""
_PLAIN_IF_SET: Final = (
    "key_name",
    "first_id",
    "parents",
    "locks",
    "parts",
    "options",
    "multirange",
    "domain",
    "empties",
    "viewer",
)


@of_newest
def catalog_to_json(catalog: Catalog) -> bytes:
    """A catalog's persistent contents; ``catalog_from_json`` reads them back.

    Cost: what has not been written before, and copying the rest's text.
    """
    relations = [_relation_text(r) for r in sorted(catalog.relations.values(), key=lambda r: r.id)]
    body = {
        "format": 1, "next_id": catalog.next_id, "version": catalog.version, "schemas": dict(catalog.schemas),
        "comments": [[*key, text] for key, text in catalog.comments.items()],
    }  # fmt: skip
    return f'{_dumps(body)[:-1]},"access":{_access_text(catalog.access)},"relations":[{",".join(relations)}]}}'.encode()


def _dumps(data: object) -> str:
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False)


@of_newest
def _access_text(access: Access) -> str:
    return _dumps(access_to_json(access))


@by_identity
def _relation_text(relation: Relation) -> str:
    return _dumps(_relation_to_json(relation))


def catalog_from_json(before: Catalog, data: bytes) -> Catalog:
    """The persisted catalog, with the internal relations of an earlier one. Raises XX001."""
    body = _with_tuples(json.loads(data))
    if body["format"] != 1:
        raise SqlError("XX001", f"the catalog has format {body['format']}, this version reads format 1")
    enums = {r["id"]: _enum_from_json(before, r) for r in body["relations"] if "enum" in r}
    known = {oid: SqlType(Kind.ENUM, enum=enum.type) for oid, enum in enums.items()}
    types = StoredTypes(known, body["relations"], type_from_json)
    domains: dict[int, Relation] = {}
    for each in body["relations"]:
        if each.get("domain"):
            domains[each["id"]] = _relation_from_json(each, enums, types, domains)
    relations = {r.id: r for r in (_relation_from_json(each, enums, types, domains) for each in body["relations"])}
    schemas = body.get("schemas", {PUBLIC: PUBLIC_ID})
    comments = {tuple(key): text for *key, text in body.get("comments", ())}
    access = access_from_json(body.get("access"))
    alone = comments.pop((DATABASE, FIRST_DATABASE, 0), None)  # of a server that had one database
    if alone is not None:
        access = access.with_database(replace(access.shared.databases[FIRST_DATABASE], comment=alone))
    return replace(before, schemas=schemas, comments=comments, access=access).with_relations(
        relations, body["next_id"], body["version"]
    )


def _enum_from_json(before: Catalog, data: Mapping[str, Any]) -> Enumeration:
    known = before.relations.get(data["id"])
    of_now = None if known is None or known.enum is None else known.enum.type
    return enum_from_json(data["id"], data["name"], data["enum"], of_now)


def _relation_to_json(relation: Relation) -> dict[str, object]:
    newer: dict[str, object] = {
        **{name: getattr(relation, name) for name in _PLAIN_IF_SET},
        "indexes": [_without_defaults(i) for i in relation.indexes],
        "references": [_reference_to_json(r) for r in relation.references],
        "sequence": _sequence_to_json(relation.sequence) if relation.sequence else None,
        "routine": routine_to_json(relation.routine) if relation.routine else None,
        "operator": operator_to_json(relation.operator) if relation.operator else None,
        "enum": enum_to_json(relation.enum) if relation.enum else None,
        "checks": [astuple(c) for c in relation.checks],
        "foreign_keys": [astuple(k) for k in relation.foreign_keys],
        "triggers": [astuple(t) for t in relation.triggers],
        "security": None if relation.security == NO_SECURITY else asdict(relation.security),
        "joins": None if relation.planning.joins is Joins.AUTO else relation.planning.joins.value,
        "undemanding": not relation.planning.demanding,
        "late": None if relation.planning.late is Late.AUTO else relation.planning.late.value,
        "partitioning": asdict(relation.partitioning) if relation.partitioning else None,
        "bound": asdict(relation.bound) if relation.bound else None,
        "connection": asdict(relation.connection) if relation.connection else None,
    }
    return {
        "id": relation.id,
        "schema": relation.schema_name,
        "name": relation.name,
        "kind": relation.kind.value,
        "columns": [_column_to_json(c) for c in relation.columns],
        **{name: getattr(relation, name) for name in _PLAIN},
        **{name: value for name, value in newer.items() if value},
    }


def _security_from_json(data: Mapping[str, Any]) -> RowSecurity:
    def guard(found: Mapping[str, Any] | None) -> Guard | None:
        if found is None:
            return None
        references = tuple(RelationReference(**r) for r in found["references"])
        return Guard(found["text"], references, found["dependencies"])

    policies = (Policy(**{**p, "using": guard(p["using"]), "check": guard(p["check"])}) for p in data["policies"])
    return RowSecurity(data["enabled"], data["forced"], tuple(policies))


def _relation_from_json(
    data: Mapping[str, Any], enums: Mapping[int, Enumeration], types: Types, domains: Mapping[int, Relation]
) -> Relation:
    """``data``: with tuples for lists. ``domains``: those with lower ids, if it is a domain, or else all."""
    return Relation(
        data["id"],
        data["schema"],
        data["name"],
        RelationKind(data["kind"]),
        tuple(_column_from_json(c, types, domains) for c in data["columns"]),
        **{name: data[name] for name in (*_PLAIN, *_PLAIN_IF_SET) if name in data},
        indexes=tuple(Index(**i) for i in data.get("indexes", ())),
        references=tuple(RelationReference(*r) for r in data.get("references", ())),
        sequence=_sequence_from_json(data["sequence"]) if "sequence" in data else None,
        checks=tuple(Check(*c) for c in data.get("checks", ())),
        foreign_keys=tuple(ForeignKey(*k) for k in data.get("foreign_keys", ())),
        triggers=tuple(Trigger(*t) for t in data.get("triggers", ())),
        security=_security_from_json(data["security"]) if "security" in data else NO_SECURITY,
        routine=routine_from_json(data["routine"], types) if "routine" in data else None,
        operator=operator_from_json(data["operator"], types) if "operator" in data else None,
        enum=enums.get(data["id"]),
        partitioning=Partitioning(**data["partitioning"]) if "partitioning" in data else None,
        bound=PartitionBound(**data["bound"]) if "bound" in data else None,
        planning=Planning(
            Joins(data.get("joins", Joins.AUTO.value)),
            not data.get("undemanding", False),
            Late(data.get("late", Late.AUTO.value)),
        ),
        connection=Connection(**data["connection"]) if "connection" in data else None,
    )


def _with_tuples(data: Any) -> Any:
    """JSON with its lists as tuples."""
    if isinstance(data, dict):
        return {name: _with_tuples(value) for name, value in data.items()}
    return tuple(map(_with_tuples, data)) if isinstance(data, list) else data


def _without_defaults(index: Index) -> dict[str, object]:
    values = {f.name: (getattr(index, f.name), f.default) for f in fields(index)}
    return {name: value for name, (value, default) in values.items() if value != default}


def _reference_to_json(reference: RelationReference) -> list[object]:
    columns = (reference.columns,) if reference.columns else ()
    return [reference.schema_name, reference.name, reference.relation, reference.places, *columns]


def _column_to_json(column: TableColumn) -> list[object]:
    generated = None if column.generated is None else astuple(column.generated)
    domain = None if column.domain is None else column.domain.id
    found = [generated, column.expression, None if column.local else False, domain]
    while found and found[-1] is None:
        found.pop()
    return [column.name, type_to_json(column.type), column.nullable, column.default, *found]


def _column_from_json(data: abc.Sequence[Any], types: Types, domains: Mapping[int, Relation]) -> TableColumn:
    name, type_, nullable, default, *rest = data
    generated = Generated(*rest[0]) if rest and rest[0] is not None else None
    expression = rest[1] if len(rest) > 1 else None
    local = len(rest) < 3 or rest[2] is None
    domain = domains[rest[3]] if len(rest) > 3 else None
    return TableColumn(name, type_from_json(type_, types), nullable, default, generated, expression, local, domain)


def _sequence_to_json(sequence: Sequence) -> dict[str, object]:
    return {**asdict(sequence), "type": type_to_json(sequence.type)}


def _sequence_from_json(data: Mapping[str, Any]) -> Sequence:
    return Sequence(**{**data, "type": type_from_json(data["type"], {})})
