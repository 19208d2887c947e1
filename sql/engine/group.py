"""A group of commits, which are written, stepped and published together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from sql.catalog.catalog import Catalog
from storage.record import CommitRecord
from storage.stored import History


@dataclass(frozen=True, slots=True)
class Delta:
    """The changes of one published group, by relation; ``epoch``: that of its newest commit."""

    epoch: int
    changes: dict[int, History]


@dataclass(slots=True)
class CommitGroup:
    """The group while it is built, and then flushed."""

    records: list[CommitRecord] = field(default_factory=list)
    written: Callable[[], int] | None = None
    """Set when the write has begun: waits until the group is durable, and returns its last sequence number."""
    delta: Delta | None = None
    """Set when the group has been stepped."""
    before: Catalog | None = None
    """The catalog before the first record that changes it."""
    dropped: list[int] = field(default_factory=list)
    nbytes: int = 0
    """The bytes of its updates' rows."""


def preceded(changes: dict[int, History], contents: dict[int, History]) -> dict[int, History]:
    """A group's changes, preceded by the initial contents of some relations."""
    for relation, first in contents.items():
        later = changes.get(relation)
        changes[relation] = first if later is None else _joined(first, later)
    return changes


def _joined(a: History, b: History) -> History:
    return History(*(np.concatenate(pair) for pair in zip(a, b, strict=True)))
