"""Foreign keys between a catalog's tables, indexed from both sides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from planner.physical.key_checks import KeyCheck, key_check
from sql.catalog.catalog import Catalog, Relation
from sql.catalog.keys import ForeignKey, Index


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
    """Foreign keys by relation id; ``version`` is the catalog's."""

    version: int
    outgoing: Mapping[int, tuple[Link, ...]]
    incoming: Mapping[int, tuple[Link, ...]]

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
    return Links(catalog.version, outgoing, incoming)


def key_index(parent: Relation, names: Iterable[str]) -> Index | None:
    """The unique index on exactly these columns, in any order."""
    wanted = sorted(names)
    for index in parent.keys:
        if sorted(parent.columns[i].name for i in index.columns) == wanted and index.nulls_distinct:
            return index
    return None
