"""The views over an altered table: which of them block dropping a column, and what the others select afterwards."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ivm.errors import SqlError
from planner.expr.parts import walk
from planner.logical.nodes import schema
from planner.logical.traversal import all_inputs, nodes, scalars
from sql.catalog.catalog import Catalog, Relation, RelationKind
from sql.catalog.composite import mentions
from sql.catalog.search_path import SearchPathReader
from sql.ddl.dependents import dependents_error, tell_cascade
from sql.ddl.view_names import called, names_in, seen_by, settled, uses
from sql.engine.definition import definition_rel
from sql.engine.writer import Writer
from sql.statements.results import Notify
from storage.types.type_names import type_oid


def rebuild_views(writer: Writer, tables: Iterable[Relation]) -> None:
    """Rebuild the materialized views over these tables, whose inheritance children have changed."""
    remade(writer, [t.id for t in tables if t.id in writer.catalog.relations])


def remade(writer: Writer, tables: Iterable[int]) -> None:
    """Rebuild the materialized views over these relations from their definitions, bound again."""
    for view in _materialized(writer.catalog, tables):
        _remake(writer, view)


def followed(writer: Writer, rewritten: Mapping[int, tuple[Relation, tuple[int, ...]]], over: Collection[int]) -> bool:
    """Let the materialized views over these relations, ``over``, read what tables, by their former ids, have been
    rewritten to. The new one has the old one's columns at these positions. Those in which rows of the tables are values
    are rebuilt. False: they cannot read them."""
    catalog = writer.catalog
    views = _materialized(catalog, over)
    if not writer.successions.may_follow(rewritten, views):
        return False
    oids = {type_oid(table.own_type) for table, _ in rewritten.values()}
    otherwise = {v.id for v in views if not _means_the_same(v, catalog, oids)}
    otherwise |= {v.id for v in _materialized(catalog, otherwise)}
    for old, (table, columns) in rewritten.items():
        writer.succeed(old, table.id, columns)
    for view in views:
        if view.id in otherwise:
            _remake(writer, view)
    return True


def _means_the_same(view: Relation, catalog: Catalog, rows: Collection[int]) -> bool:
    """Whether a view has the same plan but for the columns' positions. ``rows``: the types of rows that are others."""
    rel = definition_rel(view, catalog)
    types = (e.type for node in nodes(rel, all_inputs) for expr in scalars(node) for e in walk(expr))
    return schema(rel) == view.schema and not any(mentions(type_, oid) for type_ in types for oid in rows)


def _materialized(catalog: Catalog, relations: Iterable[int]) -> list[Relation]:
    """The materialized views over relations, each after those that it reads."""
    ids = set(relations)
    return [v for v in catalog.dependents(ids) if v.kind is RelationKind.MATERIALIZED_VIEW] if ids else []


def _remake(writer: Writer, view: Relation) -> None:
    known = writer.catalog.relations[view.id]
    rel = definition_rel(known, writer.catalog)
    columns = tuple(replace(c, nullable=s.nullable) for c, s in zip(known.columns, schema(rel), strict=True))
    writer.exchange(view.id, replace(known, columns=columns), rel)


@dataclass(frozen=True, slots=True)
class Views:
    """The views that name a table, for one change of that table."""

    writer: Writer
    names: SearchPathReader
    notify: Notify
    table: Relation

    def check(self, dropped: Mapping[int, bool], retyped: Sequence[int]) -> None:
        """Check dropped columns (position → whether with CASCADE) and retyped columns (positions) against the views.

        CASCADE drops the dependent views. Raises 0A000, 2BP01.
        """
        catalog = self.writer.catalog
        gone: dict[int, str] = {}
        lines: list[str] = []
        for view in seen_by(catalog, self.table.id):
            for column in (*retyped, *dropped):
                if not uses(view, self.table, column, catalog):
                    continue
                name = self.table.columns[column].name
                if column in retyped:
                    detail = f'rule _RETURN on {self._described(view)} depends on column "{name}"'
                    raise SqlError("0A000", "cannot alter type of a column used by a view or rule", detail)
                gone.setdefault(view.id, self._described(view))
                if not dropped[column]:
                    lines.append(f"{self._described(view)} depends on column {name} of table {self.table.name}")
        if lines:
            name = next(self.table.columns[i].name for i, cascade in dropped.items() if not cascade)
            raise dependents_error(f"column {name} of table {self.table.name}", lines)
        self._drop(gone)

    def _drop(self, gone: dict[int, str]) -> None:
        if not gone:
            return
        further = self.writer.catalog.dependents(gone)
        tell_cascade(self.notify, [*gone.values(), *map(self._described, further)])
        self.writer.drop({*gone, *(r.id for r in further)})

    def seen(self) -> dict[int, tuple[str, ...]]:
        """Each view's names for the table's columns, by the view's id. Call it before the table changes."""
        found = {}
        for view in seen_by(self.writer.catalog, self.table.id):
            self.writer.redefine(view)
            found[view.id] = names_in(view, self.table)
        return found

    def renew(self, table: Relation, seen: Mapping[int, tuple[str, ...]], origins: Sequence[int | None]) -> None:
        """Keep the meaning of the views: ``table`` has been replaced, its columns come from ``origins``."""
        for id_, names in seen.items():
            known = tuple("" if i is None else names[i] for i in origins)
            self.writer.redefine(called(self.writer.catalog.relations[id_], table, known))
        for id_ in seen:
            view = self.writer.catalog.relations[id_]
            self.writer.redefine(settled(view, table, names_in(view, table), self.writer.catalog))

    def _described(self, relation: Relation) -> str:
        return self.names.described(relation)
