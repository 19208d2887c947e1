"""A catalog in a dict, filled by the binder's own CREATE statements."""

from __future__ import annotations

from itertools import count

from sql.bind.statement import bind_statement
from sql.catalog.catalog import NO_OPERATORS, Operators, Relation, RelationKind, TableColumn
from sql.parse import split
from sql.statements.definitions import CreateTable, CreateView
from sql.statements.queries import Query
from sql.statements.statements import Statement


class FakeCatalog:
    """A ``CatalogReader``; relations get ids from 16384 on, in the order of creation."""

    def __init__(self, ddl: str = "") -> None:
        self.relations: dict[tuple[str, str], Relation] = {}
        self._ids = count(16384)
        for statement in split(ddl):
            self.apply(bind_statement(statement, self).statement)

    def resolve(self, schema_name: str | None, name: str) -> Relation | None:
        places = (schema_name,) if schema_name else ("pg_catalog", "public")
        return next((self.relations[p, name] for p in places if (p, name) in self.relations), None)

    def by_id(self, relation: int) -> Relation | None:
        return next((r for r in self.relations.values() if r.id == relation), None)

    def routines(self, schema_name: str | None, name: str) -> tuple[Relation, ...]:
        return ()

    def operators(self, schema_name: str | None, symbol: str) -> Operators:
        return NO_OPERATORS

    def type(self, schema_name: str | None, name: str) -> Relation | None:
        return None

    def home(self, schema_name: str | None, temporary: bool) -> str:
        return schema_name or "public"

    def add(self, relation: Relation) -> None:
        self.relations[relation.schema_name, relation.name] = relation

    def apply(self, statement: Statement) -> None:
        match statement:
            case CreateTable():
                kind, key, columns = RelationKind.TABLE, statement.primary_key, statement.columns
                definition = None
            case CreateView():
                kind = RelationKind.MATERIALIZED_VIEW if statement.materialized else RelationKind.VIEW
                key, definition = (), statement.definition
                columns = tuple(TableColumn(c.name, c.type) for c in statement.query.columns)
            case _:
                raise AssertionError(statement)
        self.add(Relation(next(self._ids), "public", statement.name, kind, columns, key, definition))


def query(sql: str, catalog: FakeCatalog) -> Query:
    """The bound query of a text."""
    statement = bind_statement(sql, catalog).statement
    assert isinstance(statement, Query)
    return statement
