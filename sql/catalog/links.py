"""Foreign keys between a catalog's tables, indexed from both sides, and the triggers of each table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from planner.physical.key_checks import KeyCheck, key_check
from sql.catalog.catalog import Catalog, Relation
from sql.catalog.keys import ForeignKey, Index
from sql.catalog.triggers import Trigger


@dataclass(frozen=True, slots=True)
class Holder:
    """A table that stores referenced rows. ``order``: the places of its arrangement's key words in the link's key."""

    table: Relation
    key_check: KeyCheck
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """A foreign key, with the arrangements by which each side looks up the other.

    ``parent``: the table whose rows are checked, a partition of the ``declared`` one if that is partitioned.
    ``holders``: the tables with the declared one's rows. ``owner``: the table whose key it is, or is a copy of.
    """

    child: Relation
    parent: Relation
    key: ForeignKey
    declared: Relation
    holders: tuple[Holder, ...]
    owner: Relation

    @property
    def places(self) -> tuple[int, ...]:
        """The positions of the parent's columns."""
        names = [c.name for c in self.parent.columns]
        return tuple(names.index(name) for name in self.key.keys)

    @property
    def child_check(self) -> KeyCheck:
        return key_check(self.child.schema, self.key.columns)

    @property
    def parent_check(self) -> KeyCheck:
        return key_check(self.parent.schema, self.places)


@dataclass(frozen=True, slots=True)
class Links:
    """Foreign keys by relation id; ``version`` is the catalog's. ``triggers``: those that fire, ordered by name, with
    the row triggers of the partitioned tables above."""

    version: int
    outgoing: Mapping[int, tuple[Link, ...]]
    incoming: Mapping[int, tuple[Link, ...]]
    triggers: Mapping[int, tuple[Trigger, ...]]

    def touch(self, relation: int) -> bool:
        return relation in self.outgoing or relation in self.incoming


def links_of(catalog: Catalog) -> Links:
    outgoing: dict[int, tuple[Link, ...]] = {}
    incoming: dict[int, tuple[Link, ...]] = {}
    by_oid = {r.oid: r for r in catalog.relations.values()}
    by_id = {k.id: (r, k) for r in by_oid.values() for k in r.foreign_keys}
    for child in sorted(by_oid.values(), key=lambda r: r.oid):
        for key in child.foreign_keys:
            declared = by_oid[key.parent]
            family = (declared, *(catalog.below(declared) if declared.partitioning is not None else ()))
            holders = tuple(_holder(t, key) for t in family if t.partitioning is None)
            link = Link(child, declared, key, declared, holders, _owner(child, key, by_id))
            outgoing[child.id] = (*outgoing.get(child.id, ()), link)
            for table in family:
                one = replace(link, parent=table)
                incoming[table.id] = (*incoming.get(table.id, ()), one)
    return Links(catalog.version, outgoing, incoming, _triggers(by_oid))


def _owner(child: Relation, key: ForeignKey, keys: Mapping[int, tuple[Relation, ForeignKey]]) -> Relation:
    above = keys.get(key.origin)  # in the course of ALTER TABLE its table may have lost it already
    return child if above is None else _owner(*above, keys)


def _holder(table: Relation, key: ForeignKey) -> Holder:
    """A partition may have its key's columns in another order than its table."""
    index = key_index(table, key.keys)
    assert index is not None, "a referenced table has a key"
    names = [table.columns[i].name for i in index.columns]
    check = key_check(table.schema, index.columns)
    return Holder(table, check, tuple(key.keys.index(name) for name in names))


def _triggers(by_oid: Mapping[int, Relation]) -> Mapping[int, tuple[Trigger, ...]]:
    found: dict[int, tuple[Trigger, ...]] = {}
    if not any(r.triggers for r in by_oid.values()):
        return found
    for relation in by_oid.values():
        own = [t for t in relation.triggers if t.fires]
        above = relation
        while above.bound is not None:
            above = by_oid[above.parents[0]]
            own += [t for t in above.triggers if t.fires and t.row]
        if own:
            found[relation.id] = tuple(sorted(own, key=lambda t: t.name))
    return found


def key_index(parent: Relation, names: Iterable[str]) -> Index | None:
    """The unique index on exactly these columns, in any order."""
    wanted = sorted(names)
    for index in parent.keys:
        if sorted(parent.columns[i].name for i in index.columns) == wanted and index.nulls_distinct:
            return index
    return None
