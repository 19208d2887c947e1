"""What a sink reads: a relation in the store, or a view that Spark maintains, whose jobs record its changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Words
from ivm.words import Schema
from sql.coordination.scattered_view import ScatteredView
from sql.engine.guard import ParkedError
from sql.engine.served import Served
from sql.engine.snapshot import Published, first_of
from storage.dictionary import Dictionary
from storage.duck import Store
from storage.sinks.envelope import SinkLayout
from storage.stored import History


class SinkSource(Protocol):
    """A sink's source as of one moment."""

    @property
    def upto(self) -> int:
        """The epoch up to which everything is known, and durable."""

    @property
    def since(self) -> int:
        """The epoch after which all changes are kept."""

    def error(self, dictionary: Dictionary) -> SqlError | None:
        """Why the relation's rows are unknown; None if they are known."""

    def read(self, after: int | None, upto: int, layout: SinkLayout) -> Iterator[History]:
        """The updates with after < epoch <= upto, or (``after`` None) the rows at ``upto``, which is ``self.upto``.
        They come in parts: each row once for an epoch, sorted by epoch, the layout's key, diff. 22023, 42P01: they are
        not kept."""


@dataclass(frozen=True, slots=True)
class StoredSource:
    """A relation in the store: durable, in whole epochs, up to a second behind the commits."""

    store: Store
    relation: int
    upto: int
    published: Published

    @property
    def since(self) -> int:
        return self.store.since(self.relation)

    def error(self, dictionary: Dictionary) -> SqlError | None:
        if self.relation in self.published.failures:
            return self.published.failures[self.relation]
        if self.store.lags(self.relation):
            return ParkedError("The server has been started.")
        return first_of(self.published.errors(self.relation), self.published.ordinal, dictionary)

    def read(self, after: int | None, upto: int, layout: SinkLayout) -> Iterator[History]:
        return self.store.changes(self.relation, after, upto, _sorting(layout.schema, layout.key))


@dataclass(frozen=True, slots=True)
class ScatteredSource:
    """A view that Spark maintains: ``served``, its rows, are those of ``upto``."""

    view: ScatteredView
    served: Served
    upto: int

    @property
    def since(self) -> int:
        return self.view.since

    def error(self, dictionary: Dictionary) -> SqlError | None:
        return first_of(self.served.errors, self.served.upper, dictionary)

    def read(self, after: int | None, upto: int, layout: SinkLayout) -> Iterator[History]:
        if after is not None:
            parts = self.view.changes(after, upto)
        else:
            assert upto == self.upto
            rows, diffs = self.served.rows.rows_at(self.served.upper)
            parts = iter([History(rows, np.full(len(rows), upto, np.int64), diffs)])
        return (_sorted(part, layout) for part in parts)


def _sorted(part: History, layout: SinkLayout) -> History:
    order = np.lexsort((part.diffs, *reversed(_key(part.rows, layout)), part.epochs))
    return History(part.rows[order], part.epochs[order], part.diffs[order])


def _key(rows: Words, layout: SinkLayout) -> list[Words]:
    """A key's columns, most significant first: words, and null bits if there are any."""
    schema, found = layout.schema, []
    for i in layout.key:
        found.append(rows[:, i])
        if schema[i].nullable:
            found.append(rows[:, len(schema) + i // 64] >> (i % 64) & 1)
    return found


def _sorting(schema: Schema, key: Sequence[int]) -> tuple[str, ...]:
    """The same key, as ORDER BY expressions for the store's SQL."""
    parts = []
    for i in key:
        parts.append(f"w{i}")
        if schema[i].nullable:
            parts.append(f"(w{len(schema) + i // 64} >> {i % 64}) & 1")
    return tuple(parts)
