"""What a reader sees: one immutable root of the engine, with the catalog and the failures that belong to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ivm.dataflow import Root
from ivm.errors import SqlError
from ivm.graph import NodeId
from ivm.rows import Words
from ivm.trace import Version
from planner.render import Renderer
from sql.catalog import Catalog, RelationKind
from storage.duck import Store

SystemRows = Callable[[int], Words]
"""The rows of a system relation by its id, as words of the query's own dictionary."""


@dataclass(frozen=True, slots=True)
class Published:
    """The state after one commit. ``failures``: views that are taken down, by the error that reading them gives.

    ``since``: the oldest ordinal that the root tells apart from older ones.
    """

    ordinal: int
    epoch: int
    since: int
    root: Root
    catalog: Catalog
    renderer: Renderer
    failures: Mapping[int, SqlError] = field(default_factory=dict)

    def node(self, node: NodeId | None) -> Version | None:
        """The arrangement of a node in this root, if it has one."""
        return None if node is None else self.root.get(node)


@dataclass(frozen=True, slots=True)
class MemorySnapshot:
    """``planner.run.Snapshot`` over a root, as of ordinal ``at``."""

    published: Published
    at: int
    system: SystemRows

    def version(self, relation: int) -> Version | None:
        renderer = self.published.renderer
        return self.published.node(renderer.stored(relation))

    def arrangement(self, relation: int, columns: tuple[int, ...]) -> Version | None:
        return self.published.node(self.published.renderer.arrangement(relation, columns))

    def errors(self, relation: int) -> Version | None:
        return self.published.node(self.published.renderer.errors(relation))

    def rows(self, relation: int) -> tuple[Words, Words] | None:
        return _system_rows(self.published.catalog, self.system, relation)


@dataclass(frozen=True, slots=True)
class HistorySnapshot:
    """``planner.run.Snapshot`` over the store: the rows as they were at an epoch that memory no longer knows."""

    store: Store
    epoch: int
    catalog: Catalog
    system: SystemRows
    at: int = 0

    def version(self, relation: int) -> Version | None:
        return None

    def arrangement(self, relation: int, columns: tuple[int, ...]) -> Version | None:
        return None

    def errors(self, relation: int) -> Version | None:
        return None

    def rows(self, relation: int) -> tuple[Words, Words] | None:
        return _system_rows(self.catalog, self.system, relation) or self.store.rows(relation, self.epoch)


def _system_rows(catalog: Catalog, system: SystemRows, relation: int) -> tuple[Words, Words] | None:
    found = catalog.by_id(relation)
    if found is None or found.kind is not RelationKind.SYSTEM:
        return None
    rows = system(relation)
    return rows, np.ones(len(rows), np.int64)

