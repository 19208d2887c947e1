"""CREATE and DROP, as changes of a writer's catalog and dataflow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from ivm.errors import SqlError, unsupported
from planner.functions import FUNCTIONS
from planner.logical import Get, Rel, schema
from planner.scalar import Call
from planner.traverse import children, scalars, subqueries, walk
from sql.catalog import INTERNAL_SCHEMAS, PUBLIC, Catalog, Relation, RelationKind, TableColumn
from sql.definition import view_rel
from sql.persist import DEFAULT_RETAIN
from sql.results import Notice
from sql.statements import CreateTable, CreateView, Drop, OutputColumn
from sql.writer import Writer

LABELS: Final = {
    RelationKind.TABLE: "table",
    RelationKind.VIEW: "view",
    RelationKind.MATERIALIZED_VIEW: "materialized view",
    RelationKind.SYSTEM: "view",
}

Notify = Callable[[Notice], None]


@dataclass(frozen=True, slots=True)
class Definer:
    """Runs DDL for one writer. ``seen``: the relations that binding the statement asked for."""

    writer: Writer
    notify: Notify
    seen: frozenset[int] = frozenset()

    def create_table(self, statement: CreateTable) -> Relation | None:
        """The new table, None when it exists and that is accepted."""
        if self._exists(statement.schema_name, statement.name, statement.if_not_exists):
            return None
        columns = tuple(
            replace(c, nullable=c.nullable and i not in statement.primary_key) for i, c in enumerate(statement.columns)
        )
        _check_names([c.name for c in columns])
        table = self._relation(statement.schema_name, statement.name, RelationKind.TABLE, columns)
        table = replace(table, primary_key=statement.primary_key, retain=statement.retain or DEFAULT_RETAIN)
        self.writer.create(table, None)
        return table

    def create_view(self, statement: CreateView) -> Relation | None:
        """The new view (hydrated if materialized), None when it exists and that is accepted."""
        existing = self.writer.catalog.resolve(statement.schema_name, statement.name)
        replaced = existing if statement.replace else None
        if replaced is None and self._exists(statement.schema_name, statement.name, statement.if_not_exists):
            return None
        _check_names([c.name for c in statement.query.columns])
        rel = view_rel(statement.query)
        columns = _view_columns(statement.query.columns, rel)
        kind = RelationKind.MATERIALIZED_VIEW if statement.materialized else RelationKind.VIEW
        view = self._relation(statement.schema_name, statement.name, kind, columns)
        view = replace(view, definition=statement.definition, dependencies=tuple(sorted(self._dependencies())))
        if statement.materialized:
            check_maintainable(rel, self.writer.catalog)
            view = replace(view, retain=statement.retain or DEFAULT_RETAIN)
        if replaced is not None:
            view = replace(view, id=replaced.id, created=replaced.created)
            self._check_replacement(replaced, view)
        self.writer.create(view, rel if statement.materialized else None)
        return view

    def drop(self, statement: Drop) -> None:
        """Drops the named relations, and with CASCADE what depends on them."""
        found = [r for r in (self._to_drop(statement, *name) for name in statement.names) if r is not None]
        ids = {r.id for r in found}
        dependents = self.writer.catalog.dependents(ids)
        if dependents and not statement.cascade:
            raise self._needed(found, dependents)
        if len(dependents) == 1:
            self._notice(f"drop cascades to {_described(dependents[0])}")
        elif dependents:
            detail = "\n".join(f"drop cascades to {_described(r)}" for r in dependents)
            self._notice(f"drop cascades to {len(dependents)} other objects", detail)
        if ids:
            self.writer.drop(ids | {r.id for r in dependents})

    def _relation(self, schema_name: str, name: str, kind: RelationKind, columns: tuple[TableColumn, ...]) -> Relation:
        engine = self.writer.engine
        created = engine.timeline.epoch(engine.timeline.last) + 1
        return Relation(engine.next_id(self.writer.catalog), schema_name, name, kind, columns, created=created)

    def _dependencies(self) -> set[int]:
        return {i for i in self.seen if i in self.writer.catalog.relations}

    def _exists(self, schema_name: str, name: str, accept: bool) -> bool:
        if schema_name in INTERNAL_SCHEMAS:
            raise SqlError("42501", f"permission denied for schema {schema_name}")
        if schema_name != PUBLIC:
            raise SqlError("3F000", f'schema "{schema_name}" does not exist')
        if (schema_name, name) not in self.writer.catalog.names:
            return False
        if not accept:
            raise SqlError("42P07", f'relation "{name}" already exists')
        self.notify(Notice("NOTICE", "42P07", f'relation "{name}" already exists, skipping'))
        return True

    def _check_replacement(self, old: Relation, new: Relation) -> None:
        if old.kind is not RelationKind.VIEW:
            raise SqlError("42809", f'"{old.name}" is not a view')
        if len(new.columns) < len(old.columns):
            raise SqlError("42P16", "cannot drop columns from view")
        for before, after in zip(old.columns, new.columns, strict=False):
            if before.name != after.name:
                message = f'cannot change name of view column "{before.name}" to "{after.name}"'
                hint = "Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead."
                raise SqlError("42P16", message, hint=hint)
            if before.type != after.type:
                raise SqlError("42P16", f'cannot change data type of view column "{before.name}"')
        dependents = self.writer.catalog.dependents([old.id])
        if {old.id, *(r.id for r in dependents)}.intersection(new.dependencies):
            raise SqlError("42P17", f'infinite recursion detected in rules for relation "{old.name}"')
        for dependent in dependents:
            if dependent.kind is RelationKind.MATERIALIZED_VIEW:
                raise unsupported(
                    f"replacing a view that materialized view {dependent.name} depends on",
                    hint=f"Drop {dependent.name} first and create it again.",
                )

    def _to_drop(self, statement: Drop, schema_name: str | None, name: str) -> Relation | None:
        label = LABELS[statement.kind]
        found = self.writer.catalog.resolve(schema_name, name)
        if found is None:
            if not statement.if_exists:
                raise SqlError("42P01", f'{label} "{name}" does not exist')
            self._notice(f'{label} "{name}" does not exist, skipping')
            return None
        if found.kind is not statement.kind:
            article = "an" if label[0] in "aeiou" else "a"
            own = LABELS[found.kind]
            hint = f"Use DROP {own.upper()} to remove a {own}."
            raise SqlError("42809", f'"{name}" is not {article} {label}', hint=hint)
        if found.id not in self.writer.catalog.relations:
            raise SqlError("42501", f"permission denied: {name} is a system relation")
        return found

    def _needed(self, found: list[Relation], dependents: list[Relation]) -> SqlError:
        lines = []
        known = {r.id: r for r in (*found, *dependents)}
        for dependent in dependents:
            direct = [known[i] for i in dependent.dependencies if i in known]
            lines.append(f"{_described(dependent)} depends on {_described(direct[0])}")
        what = _described(found[0]) if len(found) == 1 else "desired object(s)"
        message = f"cannot drop {what} because other objects depend on it"
        hint = "Use DROP ... CASCADE to drop the dependent objects too."
        return SqlError("2BP01", message, "\n".join(lines), hint)

    def _notice(self, message: str, detail: str | None = None) -> None:
        self.notify(Notice("NOTICE", "00000", message, detail))


def check_maintainable(rel: Rel, catalog: Catalog) -> None:
    """Refuses system relations, which no commit changes, and functions whose result changes while the data does not."""
    todo: list[Rel] = [rel]
    seen: set[int] = set()
    while todo:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Get) and node.relation not in catalog.relations:
            raise unsupported("a system relation in a materialized view or subscription", hint="Use a plain view.")
        todo += children(node)
        for expr in scalars(node):
            todo += [s.rel for s in subqueries(expr)]
            for part in walk(expr):
                if isinstance(part, Call):
                    _check_call(part)


def _check_call(call: Call) -> None:
    function = FUNCTIONS.get(call.function)
    if function is not None and function.volatility != "immutable":
        raise unsupported(
            f"the {function.volatility} function {function.name}() in a materialized view",
            hint="Its result changes while the data does not, so that no update would tell the view about it. "
            "Use a plain view, or put the value into a table.",
        )


def _view_columns(columns: tuple[OutputColumn, ...], rel: Rel) -> tuple[TableColumn, ...]:
    return tuple(TableColumn(c.name, s.type, s.nullable) for c, s in zip(columns, schema(rel), strict=True))


def _check_names(names: list[str]) -> None:
    for i, name in enumerate(names):
        if name in names[:i]:
            raise SqlError("42701", f'column "{name}" specified more than once')


def _described(relation: Relation) -> str:
    return f"{LABELS[relation.kind]} {relation.name}"
