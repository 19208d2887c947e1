"""Foreign keys between a catalog's tables, indexed from both sides, and the triggers of each table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from planner.physical.key_checks import KeyCheck, key_check
from sql.catalog.catalog import Catalog, Relation
from sql.catalog.keys import ForeignKey, Index
from sql.catalog.triggers import Trigger


@dataclass(frozen=True, slots=True)
class Link:
    """A foreign key, with the arrangements by which each side looks up the other."""

    child: Relation
    parent: Relation
    key: ForeignKey

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
    for child in sorted(by_oid.values(), key=lambda r: r.oid):
        for key in child.foreign_keys:
            link = Link(child, by_oid[key.parent], key)
            outgoing[child.id] = (*outgoing.get(child.id, ()), link)
            incoming[link.parent.id] = (*incoming.get(link.parent.id, ()), link)
    return Links(catalog.version, outgoing, incoming, _triggers(by_oid))


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
