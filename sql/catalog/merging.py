"""Changes of the catalog by transactions that are open at the same time, put together.

A transaction changes a catalog of its own. When others have committed changes since, its changes are made to the newest
catalog: what only one side has changed is as that side has it (a three-way merge, as version control has it). What both
have changed, and what one side has made of something that the other has changed or dropped, is a conflict: 40001, and
the error of a name that is taken.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeVar

from ivm.errors import SqlError
from sql.catalog.access import Access
from sql.catalog.catalog import INTERNAL_SCHEMAS, Catalog, Relation, RelationKind
from sql.catalog.databases import Shared
from sql.catalog.user_types import types_inside

K = TypeVar("K")
V = TypeVar("V")


def merged(newest: Catalog, before: Catalog, after: Catalog, version: int) -> Catalog:
    """The ``newest`` catalog, with what a transaction has made of the one ``before``; ``version``: its version. Raises
    40001, and 42P06, 42P07, 42710, 42723 for a name that is taken. Cost: the catalog."""
    own, others = _changed(before, after), _changed(before, newest)
    relations = dict(newest.relations)
    for id_ in own:
        new, known = after.relations.get(id_), before.relations.get(id_)
        if id_ in others and not _same(new, newest.relations.get(id_)):
            if _same(known, new):
                continue
            if not _same(known, newest.relations.get(id_)):
                raise _conflict("relations")
        if new is None:
            relations.pop(id_, None)
        else:
            relations[id_] = new
    _check_names(newest, others, after, own)
    _check_needs(before, newest, others, after, own)
    made = replace(
        newest,
        schemas=_schemas(newest.schemas, before.schemas, after.schemas),
        comments=_comments(newest.comments, before.comments, after.comments),
        access=_access(newest.access, before.access, after.access),
    ).with_relations(relations, max(newest.next_id, after.next_id), version)
    for relation in made.relations.values():
        if relation.schema_name not in made.schemas and relation.schema_name not in INTERNAL_SCHEMAS:
            raise _conflict("schemas")
        for policy in relation.security.policies:
            if not made.access.roles.keys() >= set(policy.roles) - {0}:
                raise _conflict("roles")
    return made


def merged_shared(newest: Shared, before: Shared, after: Shared) -> Shared:
    """The same of what databases share. Raises 40001."""
    roles = _merged(newest.roles, before.roles, after.roles, "roles")
    members = [{(m.role, m.member): m for m in shared.memberships} for shared in (newest, before, after)]
    databases = _merged(newest.databases, before.databases, after.databases, "databases")
    for named in (roles, databases):
        if len({each.name for each in named.values()}) < len(named):
            raise _conflict("roles or databases")
    memberships = tuple(_merged(members[0], members[1], members[2], "roles").values())
    if not all(m.role in roles and m.member in roles for m in memberships):
        raise _conflict("roles")
    return Shared(roles, memberships, databases)


def _changed(before: Catalog, after: Catalog) -> set[int]:
    """The relations that differ."""
    old, new = before.relations, after.relations
    if old is new:
        return set()
    return {i for i in old.keys() | new.keys() if old.get(i) is not new.get(i)}


def _same(one: Relation | None, other: Relation | None) -> bool:
    """Whether two forms of a relation differ only in what follows from other relations."""
    if one is None or other is None:
        return one is other
    return one == other or replace(one, children=()) == replace(other, children=())


def _check_names(newest: Catalog, others: Collection[int], after: Catalog, own: Collection[int]) -> None:
    """Raises the error of a name that both sides have given, to different objects."""
    taken = {name: id_ for id_ in others for name in _names(newest.relations.get(id_))}
    for id_ in own:
        relation = after.relations.get(id_)
        for schema, name in _names(relation):
            if taken.get((schema, name), id_) != id_:
                assert relation is not None, "it has names"
                detail = "Another transaction has created it meanwhile."
                raise SqlError(_TAKEN.get(relation.kind, "42P07"), f'"{name}" already exists', detail)


_TAKEN = {
    RelationKind.TYPE: "42710", RelationKind.FUNCTION: "42723", RelationKind.OPERATOR: "42723",
}  # fmt: skip
"""The SQLSTATE by what is created; 42P07 for others."""


def _names(relation: Relation | None) -> set[tuple[str, str]]:
    """The names that a relation takes up in its schema, its indexes' too."""
    if relation is None:
        return set()
    of = relation.schema_name
    return {(of, relation.name), *((of, index.name) for index in relation.all_indexes)}


def _check_needs(
    before: Catalog, newest: Catalog, others: Collection[int], after: Catalog, own: Collection[int]
) -> None:
    """Raises 40001 if what one side has made needs what the other has changed or dropped."""
    for catalog, ids, other, changed in ((after, own, newest, others), (newest, others, after, own)):
        moved = {i for i in changed if not _looks_the_same(before.relations.get(i), other.relations.get(i))}
        moved &= before.relations.keys()
        for id_ in ids if moved else ():
            relation = catalog.relations.get(id_)
            if relation is None or _same(relation, before.relations.get(id_)):
                continue
            if not moved.isdisjoint(_needed(catalog, before, relation) - {id_}):
                raise _conflict(f'what "{relation.name}" is made of')


def _looks_the_same(one: Relation | None, other: Relation | None) -> bool:
    """Whether those who use a relation need not know of the change."""
    if one is None or other is None:
        return one is other
    return one == other or _plain(one) == _plain(other)


def _plain(relation: Relation) -> Relation:
    return replace(relation, indexes=(), foreign_keys=(), triggers=())


def _needed(catalog: Catalog, before: Catalog, relation: Relation) -> set[int]:
    """The ids of what a relation's definition names directly."""
    found = {*relation.dependencies, *types_inside(catalog, [c.type for c in relation.columns])}
    found |= {c.domain.id for c in relation.columns if c.domain is not None}
    found |= {c.generated.sequence for c in relation.columns if c.generated is not None}
    for policy in relation.security.policies:
        found.update(*(guard.dependencies for guard in (policy.using, policy.check) if guard is not None))
    oids = {*relation.parents, *(key.parent for key in relation.foreign_keys)}
    oids.update(trigger.function for trigger in relation.triggers)
    if relation.sequence is not None and relation.sequence.owner is not None:
        oids.add(relation.sequence.owner[0])
    if oids:
        found |= {r.id for r in before.relations.values() if r.oid in oids}
    return found


def _schemas(newest: Mapping[str, int], before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    for name in after.keys() & newest.keys() - before.keys():
        if after[name] != newest[name]:
            raise SqlError("42P06", f'schema "{name}" already exists', "Another transaction has created it meanwhile.")
    return _merged(newest, before, after, "schemas")


def _comments(newest: Mapping[K, str], before: Mapping[K, str], after: Mapping[K, str]) -> dict[K, str]:
    """The last one stays."""
    gone = before.keys() - after.keys()
    kept = {key: text for key, text in newest.items() if key not in gone}
    return {**kept, **{key: text for key, text in after.items() if before.get(key) != text}}


def _access(newest: Access, before: Access, after: Access) -> Access:
    if after is before:
        return newest
    if newest is before:
        return after
    shared = newest.shared
    if after.shared is not before.shared:
        shared = after.shared if shared is before.shared else merged_shared(shared, before.shared, after.shared)
    if before.roles.keys() - shared.roles.keys():  # what one side has dropped may own what the other has made
        raise _conflict("roles")
    return newest.changed(
        shared=shared,
        owners=_merged(newest.owners, before.owners, after.owners, "owners"),
        acls=_merged(newest.acls, before.acls, after.acls, "privileges"),
        defaults=_merged(newest.defaults, before.defaults, after.defaults, "privileges"),
    )


def _merged(newest: Mapping[K, V], before: Mapping[K, V], after: Mapping[K, V], what: str) -> dict[K, V]:
    found = dict(newest)
    for key in before.keys() | after.keys():
        old, new = before.get(key), after.get(key)
        if old == new or newest.get(key) == new:
            continue
        if newest.get(key) != old:
            raise _conflict(what)
        if new is None:
            del found[key]
        else:
            found[key] = new
    return found


def _conflict(what: str) -> SqlError:
    detail = f"Another transaction has committed a change of the same {what}."
    if what.startswith("what "):
        detail = f"Another transaction has committed a change of {what}."
    hint = "Run the transaction again."
    return SqlError("40001", "could not serialize access due to concurrent update", detail, hint)
