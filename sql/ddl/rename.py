"""ALTER … RENAME, SWAP WITH, SET SCHEMA and OWNER TO: they only change the catalog.

Views keep their meaning: their references are by id, and ``sql/ddl/view_names.py`` pins column names.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from ivm.errors import SqlError, unsupported
from planner.identifiers import quoted
from sql.bind.alter import SYSTEM_COLUMNS
from sql.bind.constraints import renamed_check
from sql.bind.generation import renamed_generation
from sql.bind.index_keys import renamed_index
from sql.bind.renamed import renamed_text
from sql.catalog.catalog import Relation, RelationKind, is_temporary
from sql.catalog.keys import Index, object_name
from sql.catalog.search_path import SearchPathReader, check_creatable, no_schema
from sql.catalog.triggers import Trigger
from sql.ddl.acting import Actor
from sql.ddl.indexes import index_named, taken_names
from sql.ddl.owners import set_owner
from sql.ddl.policies import renamed_policies
from sql.ddl.view_names import called, names_in, seen_by, settled
from sql.engine.writer import Writer
from sql.statements.rename import Named, Rename, Renaming, SetOwner, SetSchema, Swap
from sql.statements.results import Notice, Notify

_KINDS = {
    "view": RelationKind.VIEW, "materialized view": RelationKind.MATERIALIZED_VIEW, "sequence": RelationKind.SEQUENCE,
    "source": RelationKind.SOURCE, "sink": RelationKind.SINK,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Renamer:
    """Runs these statements for one writer, with one session's name lookup."""

    writer: Writer
    names: SearchPathReader
    notify: Notify
    actor: Actor

    def run(self, statement: Renaming) -> None:
        """Raises 42P01, 42809, 42501, and the error of whatever blocks the change."""
        found = self._target(statement.target)
        if found is None:
            self.notify(Notice("NOTICE", "00000", f'relation "{statement.target.name}" does not exist, skipping'))
            return
        relation, index = found
        match statement:
            case SetOwner():
                set_owner(self.writer, self.actor, relation, statement.role)
            case Swap():
                self._swap(relation, statement.other)
            case SetSchema():
                self._move(relation, statement.schema_name)
            case Rename(part="constraint"):
                self._rename_constraint(relation, statement.old, statement.new, only=statement.target.only)
            case Rename(part="column"):
                self._rename_column(relation, statement.old, statement.new, only=statement.target.only)
            case Rename() if index is not None:
                self._rename_index(relation, index, statement.new)
            case Rename():
                self._rename(relation, statement.new)
            case _:
                assert_never(statement)

    def _target(self, target: Named) -> tuple[Relation, Index | None] | None:
        found = self.names.resolve(target.schema_name, target.name)
        if found is None:
            of = index_named(self.names, target.schema_name, target.name)
            if of is not None:
                if target.kind in _KINDS:
                    raise SqlError("42809", f'"{target.name}" is not a {target.kind}')
                return of
            if target.if_exists:
                return None
            if target.schema_name is not None and not self.names.catalog.has_schema(
                self.names.schema(target.schema_name)
            ):
                raise no_schema(target.schema_name)
            shown = target.name if target.schema_name is None else f"{target.schema_name}.{target.name}"
            raise SqlError("42P01", f'relation "{shown}" does not exist')
        if found.kind is RelationKind.SYSTEM:
            raise SqlError("42501", f'permission denied: "{found.name}" is a system catalog')
        if target.kind in _KINDS and found.kind is not _KINDS[target.kind]:
            raise SqlError("42809", f'"{found.name}" is not a {target.kind}')
        return found, None

    def _free(self, schema_name: str, name: str, where: str = "") -> None:
        if name in taken_names(self.writer.catalog, schema_name):
            raise SqlError("42P07", f'relation "{name}" already exists{where}')

    def _rename(self, relation: Relation, name: str) -> None:
        self._free(relation.schema_name, name)
        key = next((i.name for i in relation.all_indexes if i.primary), None)
        usual = object_name(name, "", "pkey")
        columns = tuple(renamed_generation(relation, c, relation.name, name) for c in relation.columns)
        renamed = replace(relation, name=name, key_name=None if key == usual else key, columns=columns)
        checks = tuple(renamed_check(relation, renamed, c, relation.name, name) for c in relation.checks)
        indexes = tuple(renamed_index(relation, renamed, i, relation.name, name) for i in relation.indexes)
        self.writer.redefine(replace(renamed, checks=checks, indexes=indexes))

    def _swap(self, relation: Relation, named: Named) -> None:
        """Exchange the names of two relations of one kind and schema. Dependents keep what they read."""
        found = self._target(named)
        assert found is not None, "without IF EXISTS"
        other = found[0]
        if other.kind is not relation.kind:
            raise SqlError("42809", f'"{other.name}" is not a {named.kind}')
        if other.schema_name != relation.schema_name:
            raise unsupported("swapping the names of relations in two schemas", hint="Use SET SCHEMA first.")
        if other.id == relation.id:
            return
        passing, number = "", 0
        while not passing or passing in taken_names(self.writer.catalog, relation.schema_name):
            passing, number = f"swap_{number}", number + 1
        for id_, name in ((relation.id, passing), (other.id, relation.name), (relation.id, other.name)):
            self._rename(self.writer.catalog.relations[id_], name)

    def _rename_index(self, relation: Relation, index: Index, name: str) -> None:
        self._free(relation.schema_name, name)
        if index.primary:
            self.writer.redefine(replace(relation, key_name=name))
            return
        indexes = tuple(replace(i, name=name) if i.id == index.id else i for i in relation.indexes)
        self.writer.redefine(replace(relation, indexes=indexes))

    def _rename_constraint(self, relation: Relation, old: str, new: str, *, only: bool) -> None:
        if any(old in (c.name for c in r.checks) for r in self.writer.catalog.above(relation)):
            raise SqlError("42P16", f'cannot rename inherited constraint "{old}"')
        if only and relation.children and any(c.name == old and not c.no_inherit for c in relation.checks):
            raise SqlError("42P16", f'inherited constraint "{old}" must be renamed in child tables too')
        for child in self.writer.catalog.below(relation) if old in (c.name for c in relation.checks) else ():
            checks_ = tuple(replace(c, name=new) if c.name == old else c for c in child.checks)
            self.writer.redefine(replace(child, checks=checks_))
        index = next((i for i in relation.all_indexes if i.constraint and i.name == old), None)
        checks = [c.name for c in relation.checks] + [k.name for k in relation.foreign_keys]
        if index is None and old not in checks:
            raise SqlError("42704", f'constraint "{old}" for table "{relation.name}" does not exist')
        if new in checks or any(i.constraint and i.name == new for i in relation.all_indexes):
            raise SqlError("42710", f'constraint "{new}" for relation "{relation.name}" already exists')
        if index is not None:
            self._rename_index(relation, index, new)
            return
        renamed = tuple(replace(c, name=new) if c.name == old else c for c in relation.checks)
        foreign = tuple(replace(k, name=new) if k.name == old else k for k in relation.foreign_keys)
        self.writer.redefine(replace(relation, checks=renamed, foreign_keys=foreign))

    def _rename_column(self, relation: Relation, old: str, new: str, *, only: bool) -> None:
        names = [c.name for c in relation.columns]
        if relation.kind in (RelationKind.SEQUENCE, RelationKind.SOURCE, RelationKind.SINK):
            raise SqlError("42809", f'"{relation.name}" is not a table, view or materialized view')
        if old in SYSTEM_COLUMNS:
            raise SqlError("0A000", f'cannot rename system column "{old}"')
        if old not in names:
            raise SqlError("42703", f'column "{old}" does not exist')
        if new in SYSTEM_COLUMNS:
            raise SqlError("42701", f'column name "{new}" conflicts with a system column name')
        catalog = self.writer.catalog
        if any(old in (c.name for c in r.columns) for r in catalog.above(relation)):
            raise SqlError("42P16", f'cannot rename inherited column "{old}"')
        family = (relation, *catalog.below(relation))
        if len(family) > 1 and only:
            raise SqlError("42P16", f'inherited column "{old}" must be renamed in child tables too')
        self._check_other_parents(family, old)
        views = {r.id: [(v, names_in(v, r)) for v in seen_by(catalog, r.id)] for r in family}
        changed = [self._with_column(each, old, new) for each in family]
        for each in changed:
            self.writer.redefine(each)
            self._rename_keys(each.oid, old, new)
            self._rename_owner(each, old, new)
        pinned = [(each, view, seen) for each in changed for view, seen in views[each.id]]
        for _, view, _ in pinned:
            self.writer.redefine(view)
        for each, view, seen in pinned:
            self.writer.redefine(called(self.writer.catalog.relations[view.id], each, seen))
        for each, view, seen in pinned:
            self.writer.redefine(settled(self.writer.catalog.relations[view.id], each, seen, self.writer.catalog))

    def _check_other_parents(self, family: tuple[Relation, ...], name: str) -> None:
        """Raises 42P16 if a table of the family has the column also from a table outside of it."""
        oids = {r.oid for r in family}
        for child in family[1:]:
            others = [r for r in self.writer.catalog.above(child) if r.oid not in oids]
            if any(name in (c.name for c in r.columns) for r in others):
                raise SqlError("42P16", f'cannot rename inherited column "{name}"')

    def _with_column(self, relation: Relation, old: str, new: str) -> Relation:
        """The relation with a column of another name."""
        if new in (c.name for c in relation.columns):
            raise SqlError("42701", f'column "{new}" of relation "{relation.name}" already exists')
        columns = tuple(replace(c, name=new) if c.name == old else c for c in relation.columns)
        changed = replace(relation, columns=tuple(renamed_generation(relation, c, old, new) for c in columns))
        changed = replace(changed, triggers=tuple(_renamed_trigger(t, old, new) for t in relation.triggers))
        security = replace(relation.security, policies=renamed_policies(relation, old, new))
        changed = replace(changed, security=security)
        checks = tuple(renamed_check(relation, changed, c, old, new) for c in relation.checks)
        key = relation.partitioning
        if key is not None and old in key.columns:
            renamed = tuple(quoted(new) if c == old else k for c, k in zip(key.columns, key.keys, strict=True))
            columns_ = tuple(new if c == old else c for c in key.columns)
            changed = replace(changed, partitioning=replace(key, keys=renamed, columns=columns_))
        indexes = tuple(renamed_index(relation, changed, i, old, new) for i in relation.indexes)
        return replace(changed, checks=checks, indexes=indexes)

    def _rename_keys(self, parent: int, old: str, new: str) -> None:
        """Rename a column in the foreign keys that refer to it."""
        for relation in list(self.writer.catalog.relations.values()):
            if any(k.parent == parent and old in k.keys for k in relation.foreign_keys):
                changed = (
                    replace(k, keys=tuple(new if n == old else n for n in k.keys)) if k.parent == parent else k
                    for k in relation.foreign_keys
                )
                self.writer.redefine(replace(relation, foreign_keys=tuple(changed)))

    def _rename_owner(self, table: Relation, old: str, new: str) -> None:
        for relation in self.writer.catalog.owned([table.id]):
            sequence = relation.sequence
            if sequence is not None and sequence.owner == (table.oid, old):
                self.writer.redefine(replace(relation, sequence=replace(sequence, owner=(table.oid, new))))

    def _move(self, relation: Relation, schema_name: str) -> None:
        place = self.names.schema(schema_name)
        catalog = self.writer.catalog
        if not catalog.has_schema(place):
            raise no_schema(schema_name)
        check_creatable(place, relation.name)
        if is_temporary(place) or relation.temporary:
            raise SqlError("0A000", "cannot move objects into or out of temporary schemas")
        if relation.sequence is not None and relation.sequence.owner is not None:
            raise unsupported("moving an owned sequence into another schema", hint="Move its table.")
        if place == relation.schema_name:
            return
        moved = [relation, *catalog.owned([relation.id])]
        for each in moved:
            for name in (each.name, *(i.name for i in each.all_indexes)):
                self._free(place, name, f' in schema "{place}"')
        for each in moved:
            self.writer.redefine(replace(self.writer.catalog.relations[each.id], schema_name=place))


def _renamed_trigger(trigger: Trigger, old: str, new: str) -> Trigger:
    """The trigger after a column of its table was renamed."""
    columns = tuple(new if c == old else c for c in trigger.columns)
    text = trigger.condition
    return replace(
        trigger, columns=columns, condition=None if text is None else renamed_text(text, old, new, table=False)
    )
