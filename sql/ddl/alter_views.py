"""The views over an altered table: which of them block dropping a column, and what the others select afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ivm.errors import SqlError
from planner.logical.nodes import schema
from sql.catalog.catalog import Relation, RelationKind
from sql.catalog.search_path import SearchPathReader
from sql.ddl.dependents import dependents_error, tell_cascade
from sql.ddl.view_names import called, names_in, seen_by, settled, uses
from sql.engine.definition import definition_rel
from sql.engine.writer import Writer
from sql.statements.results import Notify


def rebuild_views(writer: Writer, tables: Iterable[Relation]) -> None:
    """Rebuild the materialized views over these tables, whose inheritance children have changed."""
    remade(writer, [t.id for t in tables if t.id in writer.catalog.relations])


def remade(writer: Writer, tables: Iterable[int]) -> None:
    """Rebuild the materialized views over these relations from their definitions, bound again."""
    ids = set(tables)
    if not ids:
        return
    for view in writer.catalog.dependents(ids):
        if view.kind is not RelationKind.MATERIALIZED_VIEW:
            continue
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
