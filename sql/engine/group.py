"""A group of commits: what is written, stepped and published together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from sql.catalog.catalog import Catalog
from storage.record import CommitRecord
from storage.stored import History


@dataclass(frozen=True, slots=True)
class Delta:
    """What one published group changed: by relation; ``epoch`` is the newest commit's."""

    epoch: int
    changes: dict[int, History]


@dataclass(slots=True)
class Group:
    """The group that is being built, then ended."""

    records: list[CommitRecord] = field(default_factory=list)
    written: Callable[[], int] | None = None
    """Once it is being written: waits until it is durable, and gives its last sequence number."""
    delta: Delta | None = None
    """Once it is stepped."""
    before: Catalog | None = None
    """The catalog before the first record that changes it."""
    dropped: list[int] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        """Of its updates' rows."""
        return sum(u.rows.nbytes for r in self.records for u in r.updates)


def preceded(changes: dict[int, History], contents: dict[int, History]) -> dict[int, History]:
    """The changes of a group, after what some relations have held before."""
    for relation, first in contents.items():
        later = changes.get(relation)
        changes[relation] = first if later is None else _joined(first, later)
    return changes


def _joined(a: History, b: History) -> History:
    return History(*(np.concatenate(pair) for pair in zip(a, b, strict=True)))
