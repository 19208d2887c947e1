"""A view's dataflow without a server: tables and query in SQL, the graph that the planner renders for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ivm.dataflow import Changes, Dataflow
from ivm.words import Schema
from planner.expr.context import Context
from planner.logical.nodes import Project, schema
from planner.logical.traversal import own_columns
from planner.lower.plan import lower
from planner.lower.state import KnownIndexes
from planner.options import DEFAULT, Planning
from planner.render.dataflow import Renderer
from planner.transform.pipeline import maintained
from sql.bind.statement import bind_statement
from sql.catalog.catalog import NO_OPERATORS, Operators, Relation, RelationKind, TableColumn
from sql.statements import definitions, queries
from storage.dictionary import Dictionary

Words = NDArray[np.int64]
VIEW = 1


class Tables:
    """A catalog of the workload's tables, and views over them that are not materialized."""

    def __init__(self, ddl: Sequence[str]) -> None:
        self.relations: dict[str, Relation] = {}
        for number, text in enumerate(ddl):
            made = bind_statement(text, self).statement
            match made:
                case definitions.CreateTable():
                    key = made.primary_key
                    columns = tuple(
                        replace(c, nullable=c.nullable and i not in key) for i, c in enumerate(made.columns)
                    )
                    found = Relation(100 + number, "public", made.name, RelationKind.TABLE, columns, key)
                case definitions.CreateView():
                    columns = tuple(TableColumn(c.name, c.type) for c in made.query.columns)
                    found = Relation(
                        100 + number, "public", made.name, RelationKind.VIEW, columns, definition=made.definition,
                        references=made.references,
                    )  # fmt: skip
                case _:
                    raise AssertionError(f"neither a table nor a view: {text}")
            self.relations[made.name] = found

    def resolve(self, schema_name: str | None, name: str) -> Relation | None:
        return self.relations.get(name)

    def by_id(self, relation: int) -> Relation | None:
        return next((r for r in self.relations.values() if r.id == relation), None)

    def below(self, relation: Relation) -> tuple[Relation, ...]:
        return ()

    def routines(self, schema_name: str | None, name: str) -> tuple[Relation, ...]:
        return ()

    def operators(self, schema_name: str | None, symbol: str) -> Operators:
        return NO_OPERATORS

    def type(self, schema_name: str | None, name: str) -> None:
        return None

    def temporary_below(self) -> bool:
        return False

    def home(self, schema_name: str | None, temporary: bool) -> str:
        return "public"


class Flow:
    """The dataflow that the planner renders for a view over some tables, or several, driven without a server."""

    def __init__(self, ddl: Sequence[str], view: str, planning: Planning = DEFAULT) -> None:
        self.dictionary = Dictionary(b"freshet benchmark"[:16])
        self.flow = Dataflow(self.dictionary.arena)
        self.renderer = Renderer(self.flow, Context(self.dictionary))
        self.tables = Tables(ddl)
        self.inputs = {}
        for name, relation in self.tables.relations.items():
            if relation.kind is RelationKind.TABLE:
                self.inputs[name] = self.renderer.add_table(relation.id, relation.schema, relation.primary_key)
        self.views: list[int] = []
        self.schema = self.install(view, 0, planning)
        self.output = self.renderer.output(VIEW)
        self.ordinal = 0

    def install(self, text: str, number: int, planning: Planning) -> Schema:
        """Installs the view with this number; gives its columns."""
        query = bind_statement(text, self.tables).statement
        assert isinstance(query, queries.Query)
        keys = tuple((r.id, r.primary_key) for r in self.tables.relations.values() if r.primary_key)
        indexes = KnownIndexes(tuple((table, (key,)) for table, key in keys), planning=planning, primary=keys)
        columns = own_columns(schema(query.rel))[: len(query.columns)]  # without those that only give an order
        rel = query.rel if len(columns) == len(schema(query.rel)) else Project(query.rel, columns)
        self.renderer.install(lower(maintained(rel), indexes), VIEW + number)
        self.flow.hydrate()
        self.views.append(VIEW + number)
        return schema(rel)

    def feed(self, table: str, rows: Words, diffs: Words) -> None:
        """Feeds updates of one table at the current ordinal."""
        self.flow.feed(self.inputs[table], rows, self.ordinal, diffs)

    def step(self) -> Changes:
        """Runs and publishes one step as production does; gives the view's changes."""
        self.flow.step()
        changes = self.flow.changes(self.output)
        self.flow.publish()
        self.flow.allow_compaction(self.ordinal)
        return changes
