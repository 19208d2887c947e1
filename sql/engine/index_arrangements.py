"""The arrangements that the catalog's indexes need: created and freed with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ivm.graph import NodeId
from planner.physical.key_checks import KeyCheck, key_check
from planner.render.dataflow import Renderer
from sql.bind.index_keys import key_check_of
from sql.catalog.catalog import Catalog, Relation


@dataclass(slots=True)
class IndexArrangements:
    """``made``: the arrangements that exist only for an index, by relation."""

    renderer: Renderer
    made: set[tuple[int, KeyCheck]] = field(default_factory=set)

    def add(self, relation: Relation) -> None:
        """Add the missing arrangements of a relation's indexes; they have rows after ``hydrate``."""
        for wanted in key_checks_of(relation):
            if not self.renderer.has_key_check(relation.id, wanted):
                self.renderer.add_key_check(relation.id, wanted)
                self.made.add((relation.id, wanted))

    def adopt(self, other: Renderer, relation: int, wanted: KeyCheck, nodes: tuple[NodeId, ...]) -> None:
        """Take over an arrangement that was filled beside the engine."""
        self.renderer.adopt_key_check(other, relation, wanted, nodes)
        self.made.add((relation, wanted))

    def forget(self, relation: int) -> None:
        """The relation has been removed from the dataflow."""
        self.made = {m for m in self.made if m[0] != relation}

    def drop_unused(self, catalog: Catalog, held: Callable[[int], bool]) -> bool:
        """Free the arrangements that no index in the catalog needs; whether there were any. ``held``: whether an open
        transaction may have defined an index of a relation: its arrangements stay until a later time."""
        found = False
        for relation, arranged in list(self.made):
            known = catalog.relations.get(relation)
            if known is not None and not held(relation) and arranged not in key_checks_of(known):
                self.made.discard((relation, arranged))
                self.renderer.drop_key_check(relation, arranged)
                found = True
        return found


def key_checks_of(relation: Relation) -> list[KeyCheck]:
    """The arrangements that a relation's indexes and foreign keys need."""
    found = [key_check_of(relation, i) for i in relation.all_indexes if i.unique or i.arranged]
    outgoing = [key_check(relation.schema, k.columns) for k in relation.foreign_keys]
    return [*found, *outgoing]
