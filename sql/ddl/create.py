"""CREATE and DROP, as changes of a writer's catalog and dataflow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ivm.errors import SqlError, unsupported
from ivm.words import INT8
from planner.identifiers import quoted
from planner.logical.locked_joins import locks_of_view, with_names
from planner.logical.nodes import Rel, schema
from sql.catalog.catalog import (
    INTERNAL_SCHEMAS,
    LABELS,
    SEQUENCE_COLUMNS,
    Relation,
    RelationKind,
    TableColumn,
    is_temporary,
)  # fmt: skip
from sql.catalog.links import Link, links_of
from sql.catalog.search_path import SearchPathReader, check_creatable, no_schema
from sql.ddl.acting import Actor
from sql.ddl.alter_views import Views, rebuild_views, remade
from sql.ddl.dependents import dependents_error, tell_cascade
from sql.ddl.foreign_keys import link_text, needed_by, with_copies, with_foreign_key
from sql.ddl.indexes import index_named, taken_names, with_constraints
from sql.ddl.partitions import check_keys, partition_parts
from sql.ddl.policies import drop_policies
from sql.ddl.seen_rows import check_replaced
from sql.ddl.sequences import alter_sequence, create_column_sequences, new_sequence, owner_of, release
from sql.dml.row_changes import RowChanger
from sql.engine.definition import view_rel
from sql.engine.persist import DEFAULT_RETAIN
from sql.engine.spread import spread_of
from sql.engine.writer import Writer
from sql.settings.maintainable import check_maintainable
from sql.settings.settings import Settings
from sql.statements import definitions
from sql.statements.queries import OutputColumn
from sql.statements.results import Notice, Notify
from sql.statements.routines import DropFunction


@dataclass(frozen=True, slots=True)
class Definer:
    """Runs DDL for one writer. ``seen``: the relations that binding the statement looked up. ``names``: the session's
    current name lookup."""

    writer: Writer
    notify: Notify
    seen: frozenset[int]
    names: SearchPathReader
    settings: Settings

    def create_table(self, statement: definitions.CreateTable, changer: RowChanger) -> Relation | None:
        """The new table; None if it exists and IF NOT EXISTS accepts that."""
        if self.exists(statement.schema_name, statement.name, statement.if_not_exists):
            return None
        columns = tuple(
            replace(c, nullable=c.nullable and i not in statement.primary_key) for i, c in enumerate(statement.columns)
        )
        _check_names([c.name for c in columns])
        table = self.relation(statement.schema_name, statement.name, RelationKind.TABLE, columns)
        parents = tuple(p.oid for p in statement.parents)
        table = replace(table, retain=statement.retain or DEFAULT_RETAIN, parents=parents)
        table = replace(table, empties=statement.on_commit == "delete")
        for message in statement.notices:
            self.say(message)
        if statement.bound is not None:
            self.writer.hold_still(self.writer.catalog.relations[statement.parents[0].id])
        table = partition_parts(changer, table, statement)
        table = create_column_sequences(self.writer, table, statement)
        table = with_constraints(table, statement, self.writer)
        check_keys(table)
        for key in statement.foreign_keys:
            table = with_foreign_key(self.writer, table, key)
        if statement.bound is not None:
            above = self.writer.catalog.relations[statement.parents[0].id]
            table = with_copies(self.writer, table, above, above.foreign_keys)
        self.writer.create(table, None)
        if statement.on_commit == "drop":
            self.writer.passing.append(table.oid)
        if not table.temporary:
            rebuild_views(self.writer, self.writer.catalog.above(table))
        return table

    def create_sequence(self, statement: definitions.CreateSequence) -> Relation | None:
        """The new sequence; None if it exists and IF NOT EXISTS accepts that."""
        schema_name = self.names.home(statement.schema_name, statement.temporary)
        check_creatable(schema_name, statement.name)
        if self.exists(schema_name, statement.name, statement.if_not_exists):
            return None
        found = self.relation(schema_name, statement.name, RelationKind.SEQUENCE, SEQUENCE_COLUMNS)
        owner = None
        if statement.options.owner is not None:
            owner = owner_of(self.names, found, statement.options.owner)
        found = replace(found, sequence=new_sequence(self.writer, statement.options, INT8, owner))
        self.writer.create(found, None)
        return found

    def _drop_triggers(self, statement: DropFunction) -> None:
        """Drop the triggers that call the functions. 2BP01 without CASCADE."""
        oids = {r.oid: r.name for r in statement.functions}
        used = [(r, t) for r in self.writer.catalog.relations.values() for t in r.triggers if t.function in oids]
        if not used:
            return
        shown = [(f"trigger {t.name} on table {r.name}", oids[t.function]) for r, t in used]
        if not statement.cascade:
            lines = [f"{trigger} depends on function {function}" for trigger, function in shown]
            raise dependents_error(f"function {shown[0][1]}", lines)
        tell_cascade(self.notify, [trigger for trigger, _ in shown])
        for table in {r.id: r for r, _ in used}.values():
            kept = tuple(t for t in table.triggers if t.function not in oids)
            self.writer.redefine(replace(table, triggers=kept))

    def drop_function(self, statement: DropFunction) -> None:
        """Drop functions, and with CASCADE the views that use them."""
        for message in statement.missing:
            self.say(message)
        ids = {r.id for r in statement.functions}
        self._drop_triggers(statement)
        dependents = self.writer.catalog.dependents(ids)
        if dependents and not statement.cascade:
            raise self._needed(list(statement.functions), dependents)
        self._drop_policies(statement.functions, {*ids, *(r.id for r in dependents)}, statement.cascade)
        tell_cascade(self.notify, [*map(self._described, dependents)])
        if ids:
            self.writer.drop(ids | {r.id for r in dependents})

    def alter_sequence(self, statement: definitions.AlterSequence) -> None:
        """ALTER SEQUENCE."""
        found = self.names.resolve(statement.schema_name, statement.name)
        if found is None and statement.if_exists:
            self.say(f'relation "{statement.name}" does not exist, skipping')
        elif found is None:
            raise SqlError("42P01", f'relation "{statement.name}" does not exist')
        elif found.sequence is None:
            raise SqlError("42809", f'"{found.name}" is not a sequence')
        else:
            alter_sequence(self.writer, self.names, found, statement.options)

    def create_view(self, statement: definitions.CreateView) -> Relation | None:
        """The new view (hydrated if materialized); None if it exists and IF NOT EXISTS accepts that."""
        described = self.described(statement)
        if described is None:
            return None
        view, rel = described
        before = self.writer.catalog.relations.get(view.id)
        if before is not None and statement.materialized:
            return self._replace_materialized(before, view, rel)
        if before is None or len(before.columns) == len(view.columns):
            self.writer.create(view, rel if statement.materialized else None)
            return view
        views = Views(self.writer, self.names, self.notify, before)
        seen = views.seen()
        self.writer.create(view, None)
        views.renew(view, seen, [i if i < len(before.columns) else None for i in range(len(view.columns))])
        return view

    def _replace_materialized(self, before: Relation, view: Relation, rel: Rel) -> Relation:
        """Put a materialized view of another query in the place of an existing one. Those over it are rebuilt, and keep
        their meaning."""
        views = Views(self.writer, self.names, self.notify, before)
        seen = views.seen()
        made = self.writer.exchange(before.id, replace(view, indexes=before.indexes), rel)
        views.renew(made, seen, [i if i < len(before.columns) else None for i in range(len(view.columns))])
        remade(self.writer, [made.id])
        return made

    def described(self, statement: definitions.CreateView, stays: bool = False) -> tuple[Relation, Rel] | None:
        """The checked view that the statement defines, and its plan; None if it exists and IF NOT EXISTS accepts
        that. ``stays``: a view that is replaced stays the same relation, so that sinks go on."""
        if statement.follows:
            self.say(f'view "{statement.name}" will be a temporary view')
        existing = self.writer.catalog.find(statement.schema_name, statement.name)
        replaced = existing if statement.replace else None
        if replaced is None and self.exists(statement.schema_name, statement.name, statement.if_not_exists):
            return None
        _check_names([c.name for c in statement.query.columns])
        rel = view_rel(statement.query)
        columns = _view_columns(statement.query.columns, rel)
        locks = self._locks(rel) if statement.materialized else ()
        kind = RelationKind.MATERIALIZED_VIEW if statement.materialized else RelationKind.VIEW
        view = self.relation(statement.schema_name, statement.name, kind, columns)
        dependencies = tuple(sorted(self._dependencies()))
        view = replace(
            view, definition=statement.definition, dependencies=dependencies, references=statement.references,
            options=statement.options,
        )  # fmt: skip
        if statement.materialized:
            check_maintainable(rel, self.writer.catalog, self.settings)
        if statement.parts:
            spread_of(with_names(rel, locks), self.writer.catalog, statement.parts)
            view = replace(view, parts=statement.parts)
        if statement.materialized:
            view = replace(
                view, retain=statement.retain or DEFAULT_RETAIN, locks=locks, planning=self.writer.planning,
                viewer=statement.viewer,
            )  # fmt: skip
        if replaced is not None:
            view = replace(view, id=replaced.id, created=replaced.created, columns=_kept(replaced, view))
            self._check_replacement(replaced, view, stays)
            if statement.materialized:
                check_replaced(self.writer.catalog, replaced, view, self.names.path.role)
        return view, with_names(rel, locks)

    def _locks(self, rel: Rel) -> tuple[int, ...]:
        """Relation ids for the state that joins with PROCTIME() keep, allocated before the view's own id."""
        return tuple(self.writer.engine.next_id(self.writer.catalog) for _ in locks_of_view(rel))

    def drop(self, statement: definitions.Drop) -> None:
        """Drop the named relations, partitions along with their table, and with CASCADE their dependents."""
        found = [r for r in (self._to_drop(statement, *name) for name in statement.names) if r is not None]
        ids = {r.id for r in found}
        ids |= {c.id for r in found if r.partitioning is not None for c in self.writer.catalog.below(r)}
        owned = self.writer.catalog.owned(ids)
        ids |= {r.id for r in owned}
        dependents = self.writer.catalog.dependents(ids)
        referring = self._referring(ids)
        if referring and not dependents and not statement.cascade:
            what = self._described(found[0]) if len(found) == 1 else "desired object(s)"
            raise needed_by(referring, what, self._described(referring[0].parent))
        if any(link.declared.id not in ids for link in referring):
            hint = "Detach it first, when no row refers to it."
            raise unsupported("dropping a partition that foreign keys refer to with CASCADE", hint=hint)
        if dependents and not statement.cascade:
            raise self._needed(found, dependents)
        self._drop_policies(found, {*ids, *(r.id for r in dependents)}, statement.cascade)
        sequences = [r for r in (*found, *owned) if r.sequence is not None]
        cascaded = release(self.writer, self.names, sequences, ids, statement.cascade)
        tell_cascade(self.notify, [*cascaded, *map(link_text, referring), *map(self._described, dependents)])
        if ids:
            above = [r for i in ids for r in self.writer.catalog.above(self.writer.catalog.relations[i])]
            self.writer.drop(ids | {r.id for r in dependents})
            rebuild_views(self.writer, above)

    def _drop_policies(self, found: Sequence[Relation], ids: set[int], cascade: bool) -> None:
        what = self._described(found[0]) if len(found) == 1 else "desired object(s)"
        drop_policies(self.writer, self.names, ids, what, self.notify, cascade=cascade)

    def _referring(self, ids: set[int]) -> list[Link]:
        """The foreign keys of other tables that refer to these."""
        links = links_of(self.writer.catalog)
        found = [k for i in sorted(ids) for k in links.incoming.get(i, ()) if k.child.id not in ids]
        own = [k for k in found if not k.key.origin]
        return [k for k in own if k.parent is k.declared or k.declared.id not in ids]

    def create_schema(self, statement: definitions.CreateSchema, actor: Actor) -> int:
        """Create a schema; its owner. 42P06, 42939, 42704."""
        if statement.owner is not None:
            self.writer.owner = actor.of(statement.owner)
        name = statement.name or actor.roles.name(self.writer.owner)
        if name.startswith("pg_"):
            detail = 'The prefix "pg_" is reserved for system schemas.'
            raise SqlError("42939", f'unacceptable schema name "{name}"', detail)
        if not self.writer.catalog.has_schema(name):
            self.writer.create_schema(name)
        elif statement.if_not_exists:
            self.notify(Notice("NOTICE", "42P06", f'schema "{name}" already exists, skipping'))
        else:
            raise SqlError("42P06", f'schema "{name}" already exists')
        return self.writer.owner

    def drop_schema(self, statement: definitions.DropSchema) -> None:
        """Drop schemas, and with CASCADE their contents and what depends on those."""
        names = [name for name in statement.names if self._schema_to_drop(name, statement.if_exists)]
        inside = self.writer.catalog.inside(names)
        outside = self.writer.catalog.dependents([r.id for r in inside])
        if inside and not statement.cascade:
            raise self._schema_needed(names, inside, outside)
        self._check_types(inside, {r.id for r in (*inside, *outside)})
        gone = sorted((*inside, *outside), key=lambda r: r.oid)
        ids, cascaded = closed(self.writer, self.names, gone)
        drop_policies(self.writer, self.names, ids, "schema", self.notify, cascade=True)
        with_tables = {r.id for r in self.writer.catalog.owned(ids)}
        described = [self._described(r) for r in gone if r.id not in with_tables]
        tell_cascade(self.notify, [*described, *map(link_text, self._referring(ids)), *cascaded])
        if names:
            above = [r for i in ids for r in self.writer.catalog.above(self.writer.catalog.relations[i])]
            self.writer.drop_schemas(names, sorted(ids))
            rebuild_views(self.writer, above)

    def _check_types(self, inside: list[Relation], gone: set[int]) -> None:
        """Raises 0A000 if a table that stays has a column of a dropped type."""
        for type_ in (r for r in inside if r.kind is RelationKind.TYPE):
            for table, _ in self.writer.catalog.using(type_):
                if table.id not in gone:
                    hint = f"Drop the type first: DROP TYPE {type_.schema_name}.{type_.name} CASCADE."
                    raise unsupported(f"dropping a schema whose types {self._described(table)} has columns of", hint)

    def _schema_to_drop(self, name: str, missing: bool) -> bool:
        if name in INTERNAL_SCHEMAS:
            raise SqlError("2BP01", f"cannot drop schema {name} because it is required by the database system")
        if self.names.catalog.has_schema(self.names.schema(name)):
            return True
        if not missing:
            raise no_schema(name)
        self.say(f'schema "{name}" does not exist, skipping')
        return False

    def _schema_needed(self, names: list[str], inside: list[Relation], outside: list[Relation]) -> SqlError:
        known = {r.id: r for r in (*inside, *outside)}
        owned = {r.id for r in self.writer.catalog.owned(known)}
        there = (r for r in inside if r.id not in owned)
        lines = [f"{self._described(r)} depends on schema {quoted(r.schema_name)}" for r in there]
        lines += [self._needing(r, known) for r in outside]
        what = f"schema {quoted(names[0])}" if len(names) == 1 else "desired object(s)"
        return dependents_error(what, lines, len(names) > 1)

    def relation(self, schema_name: str, name: str, kind: RelationKind, columns: tuple[TableColumn, ...]) -> Relation:
        """A new relation, not yet in the catalog."""
        engine = self.writer.engine
        created = engine.timeline.epoch(engine.timeline.last) + 1
        return Relation(engine.next_id(self.writer.catalog), schema_name, name, kind, columns, created=created)

    def _dependencies(self) -> set[int]:
        return {i for i in self.seen if i in self.writer.catalog.relations}

    def check_schema(self, schema_name: str) -> None:
        """Creates the session's temporary schema when this is its first object. Raises 3F000."""
        if not self.writer.catalog.has_schema(schema_name):
            if not is_temporary(schema_name):
                raise no_schema(schema_name)
            self.writer.create_schema(schema_name)

    def exists(self, schema_name: str, name: str, accept: bool) -> bool:
        """Whether such a relation exists already; the schema does then."""
        self.check_schema(schema_name)
        catalog = self.writer.catalog
        if name not in taken_names(catalog, schema_name):
            return False
        if not accept:
            raise SqlError("42P07", f'relation "{name}" already exists')
        self.notify(Notice("NOTICE", "42P07", f'relation "{name}" already exists, skipping'))
        return True

    def _check_replacement(self, old: Relation, new: Relation, stays: bool) -> None:
        if old.kind is not new.kind:
            raise SqlError("42809", f'"{old.name}" is not a {LABELS[new.kind]}')
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
        if new.kind is RelationKind.VIEW:
            self.check_dependents(old)
        elif old.parts or new.parts or any(r.parts for r in dependents):
            raise unsupported(f"replacing the materialized view {old.name}, which Spark maintains or reads")
        elif not stays and any(r.kind is RelationKind.SINK for r in dependents):
            hint = "Outside of a transaction block, and with the same columns, it can be replaced by most queries."
            raise unsupported(f"replacing the materialized view {old.name} in this way while a sink reads it", hint)

    def check_dependents(self, old: Relation) -> None:
        """Check that no view is maintained over the replaced relation."""
        for dependent in self.writer.catalog.dependents([old.id]):
            if dependent.kind is RelationKind.MATERIALIZED_VIEW:
                raise unsupported(
                    f"replacing a {LABELS[old.kind]} that materialized view {dependent.name} depends on",
                    hint=f"Drop {dependent.name} first and create it again.",
                )

    def _to_drop(self, statement: definitions.Drop, schema_name: str | None, name: str) -> Relation | None:
        label = LABELS[statement.kind]
        found = self.names.resolve(schema_name, name)
        if found is None:
            if index_named(self.names, schema_name, name) is not None:
                hint = "Use DROP INDEX to remove an index."
                raise SqlError("42809", f'"{name}" is not a {label}', hint=hint)
            missing = SqlError("42P01", f'{label} "{name}" does not exist')
            if schema_name is not None:
                missing = SqlError("42P01", f'{label} "{schema_name}.{name}" does not exist')
                if not self.names.catalog.has_schema(self.names.schema(schema_name)):
                    missing = no_schema(schema_name)
            if not statement.if_exists:
                raise missing
            self.say(f"{missing.message}, skipping")
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
        known = {r.id: r for r in (*found, *dependents)}
        lines = [self._needing(r, known) for r in dependents]
        what = self._described(found[0]) if len(found) == 1 else "desired object(s)"
        return dependents_error(what, lines, len(found) > 1)

    def _needing(self, view: Relation, known: Mapping[int, Relation]) -> str:
        """The dependency that keeps one of the known relations, as a message's line: a view reads it, directly or
        through other views, or a table inherits from it."""
        parent = next((r for r in known.values() if r.oid in view.parents), None)
        if parent is not None:
            return f"{self._described(view)} depends on {self._described(parent)}"
        direct = [r.relation for r in view.references if r.relation in known]
        found = [known[i] for i in direct or view.dependencies if i in known]
        needed = next((r for r in found if r.operator is not None), found[0])  # rather than the function behind it
        return f"{self._described(view)} depends on {self._described(needed)}"

    def _described(self, relation: Relation) -> str:
        return self.names.described(relation)

    def say(self, message: str) -> None:
        """Send a notice to the client."""
        self.notify(Notice("NOTICE", "00000", message))


def drop_temporary(writer: Writer, schemas: Iterable[str]) -> None:
    """Drop sessions' temporary schemas, with their contents and all dependents."""
    catalog = writer.catalog
    names = [name for name in schemas if name in catalog.schemas]
    inside = catalog.inside(names)
    ids, _ = closed(writer, SearchPathReader(catalog), [*inside, *catalog.dependents([r.id for r in inside])])
    writer.drop_schemas(names, ids)


def closed(writer: Writer, names: SearchPathReader, gone: list[Relation]) -> tuple[set[int], list[str]]:
    """The ids of the dropped relations and their tables' sequences, and the defaults that were dropped with the
    sequences."""
    ids = {r.id for r in gone}
    sequences = [r for r in gone if r.sequence is not None]
    sequences += [r for r in writer.catalog.owned(ids) if r.id not in ids]
    ids |= {r.id for r in sequences}
    return ids, release(writer, names, sequences, ids, cascade=True)


def _kept(before: Relation, after: Relation) -> tuple[TableColumn, ...]:
    """A replaced view's columns. Those that it had keep their defaults and, if it is materialized, stay nullable, so
    that its rows stay as they are stored."""
    kept, stored = {c.name: c for c in before.columns}, after.kind is RelationKind.MATERIALIZED_VIEW
    return tuple(
        replace(c, default=old.default, nullable=c.nullable or (stored and old.nullable)) if old is not None else c
        for c in after.columns
        for old in [kept.get(c.name)]
    )


def _view_columns(columns: tuple[OutputColumn, ...], rel: Rel) -> tuple[TableColumn, ...]:
    return tuple(
        TableColumn(c.name, replace(s.type, domain=None), s.nullable, domain=s.type.domain)
        for c, s in zip(columns, schema(rel), strict=True)
    )


def _check_names(names: list[str]) -> None:
    for i, name in enumerate(names):
        if name in names[:i]:
            raise SqlError("42701", f'column "{name}" specified more than once')
