"""The test bench of the planner's tests: small tables, an engine driven as by a coordinator, and the naive model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from ivm.dataflow import Dataflow
from ivm.rows import RowSet, Words, pack
from ivm.trace.trace import Version
from ivm.words import Schema
from planner.expr.context import Context
from planner.logical.nodes import Rel, schema
from planner.lower.plan import lower
from planner.lower.state import KnownIndexes
from planner.options import DEFAULT
from planner.peek.run import run
from planner.physical.layouts import StoredKey
from planner.render.dataflow import Renderer
from planner.transform.pipeline import maintained, optimize
from storage.dictionary import Dictionary
from storage.types import codec
from tests.support.planner_model import Bag, Model, Row

SECRET = bytes(range(16))


def encode(rows: Sequence[Row], row: Schema, dictionary: Dictionary) -> Words:
    vectors = [codec.encode(c.type, [r[i] for r in rows], dictionary) for i, c in enumerate(row)]
    return pack(vectors, row, len(rows))


def decode(rowset: RowSet, dictionary: Dictionary) -> list[Row]:
    if not len(rowset):
        return []
    columns = [codec.decode(c.type, v, dictionary) for c, v in zip(rowset.schema, rowset.columns(), strict=True)]
    return list(zip(*columns, strict=True)) if columns else [()] * len(rowset)


class World:
    """Tables in an engine, fed one commit at a time, beside their naive copies."""

    def __init__(self, tables: dict[int, tuple[Schema, tuple[int, ...]]]) -> None:
        self.dictionary = Dictionary(SECRET)
        self.context = Context(self.dictionary)
        self.dataflow = Dataflow(self.dictionary.arena)
        self.renderer = Renderer(self.dataflow, self.context)
        self.tables = tables
        self.contents: dict[int, Bag] = {t: Counter() for t in tables}
        self.views: dict[int, Rel] = {}
        self.ordinal = 0
        self.planning = DEFAULT
        for table, (row, key) in tables.items():
            self.renderer.add_table(table, row, key)
        self.dataflow.hydrate()

    # The interface that run() uses.
    @property
    def at(self) -> int:
        return self.ordinal

    def primary_key(self, relation: int) -> tuple[int, ...]:
        return self.tables[relation][1] if relation in self.tables else ()

    def keys(self, relation: int) -> tuple[tuple[int, ...], ...]:
        return ((self.primary_key(relation)), *self.renderer.keys(relation))

    def version(self, relation: int) -> Version | None:
        node = self.renderer.arrangement(relation, ())
        return None if node is None else self.dataflow.publish()[node]

    def arrangement(self, relation: int, key: StoredKey) -> Version | None:
        node = self.renderer.stored[relation].node(key) if key else None
        return None if node is None else self.dataflow.publish()[node]

    def rows(self, relation: int) -> None:
        return None

    def errors(self, relation: int) -> tuple[Words, Words] | None:
        node = self.renderer.errors(relation)
        return None if node is None else self.dataflow.publish()[node].rows_at(self.ordinal)

    # The coordinator's part.
    def indexes(self, one_shot: bool) -> KnownIndexes:
        keys = tuple((r, self.renderer.keys(r)) for r in self.renderer.stored)
        primary = tuple((r, key) for r, (_, key) in self.tables.items())
        return KnownIndexes(keys, (), one_shot, self.planning, primary)

    def install(self, view: int, rel: Rel) -> None:
        self.views[view] = rel
        self.renderer.install(lower(maintained(rel), self.indexes(False)), view)
        self.dataflow.hydrate()

    def commit(self, changes: Sequence[tuple[int, Row, int]]) -> None:
        self.feed(changes)
        self.dataflow.step()

    def feed(self, changes: Sequence[tuple[int, Row, int]]) -> None:
        """Feed a commit, which waits for the next step."""
        self.ordinal += 1
        for table in self.tables:
            mine = [(row, diff) for t, row, diff in changes if t == table]
            if not mine:
                continue
            words = encode([r for r, _ in mine], self.tables[table][0], self.dictionary)
            diffs = np.array([d for _, d in mine], np.int64)
            times = np.full(len(mine), self.ordinal, np.int64)
            self.dataflow.feed(self.renderer.input(table), words, times, diffs)
            for row, diff in mine:
                self.contents[table][row] += diff
            self.contents[table] = +self.contents[table]

    def view(self, view: int, at: int | None = None) -> Bag:
        return self.view_of(view, schema(self.views[view]), at)

    def view_of(self, view: int, row: Schema, at: int | None = None) -> Bag:
        version = self.dataflow.publish()[self.renderer.output(view)]
        rows, diffs = version.rows_at(self.ordinal if at is None else at)
        decoded = decode(RowSet(rows, row), self.dictionary)
        return Counter({r: int(d) for r, d in zip(decoded, diffs, strict=True)})

    def query(self, rel: Rel, parameters: Row = ()) -> Bag:
        context = Context(self.dictionary, parameters)
        return Counter(decode(run(lower(optimize(rel), self.indexes(True)), self, context), self.dictionary))

    def model(self, rel: Rel, parameters: Row = ()) -> Bag:
        return Model(self.contents, parameters).rel(rel)

    def check(self) -> None:
        """Check that every view agrees with the model and with a one-shot run from scratch."""
        for view, rel in self.views.items():
            expected = self.model(rel)
            assert self.view(view) == expected, (view, rel)
            assert self.query(rel) == expected, (view, rel)
