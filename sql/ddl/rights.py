"""Whether the current role may run a definition: what it has to own, and what else it needs on what it names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ivm.errors import SqlError
from ivm.words import SqlType
from sql.catalog.catalog import Catalog, Relation, RelationKind, TableColumn, is_temporary
from sql.catalog.search_path import SearchPathReader
from sql.catalog.securables import check_create, language, permission_denied, schema_object, securable
from sql.ddl.acting import Actor
from sql.ddl.comments import BUILT_IN
from sql.ddl.indexes import index_named
from sql.ddl.owned import check_owner, check_schema_owner
from sql.statements import definitions, types
from sql.statements.comments import Comment
from sql.statements.connections import CreateSource, SetPaused
from sql.statements.partitions import Attach, Detach
from sql.statements.policies import AlterPolicy, CreatePolicy, DropPolicy, RenamePolicy, SetRowSecurity
from sql.statements.rename import Rename, SetSchema, Swap
from sql.statements.routines import AlterFunction, AlterOperator, CreateFunction, CreateOperator, DropFunction
from sql.statements.sinks import AlterSink, CreateSink
from sql.statements.triggers import CreateTrigger, DropTrigger, EnableTrigger, RenameTrigger


@dataclass(frozen=True, slots=True)
class Rights:
    """Checks for one role that is no superuser. What does not exist is left to the statement itself."""

    names: SearchPathReader
    actor: Actor

    @property
    def catalog(self) -> Catalog:
        return self.names.catalog

    def check(self, statement: definitions.Definition) -> None:
        """Raises 42501."""
        match statement:
            case definitions.CreateTable():
                self._check_table(statement)
            case definitions.CreateView(replace=True):
                self._own_named(statement.schema_name, statement.name)
            case definitions.CreateSchema() | definitions.AlterSchema() | definitions.DropSchema():
                self._check_schema(statement)
            case definitions.AlterTable(table=Relation() as table):
                self._own(table)
                self._check_changes(statement)
            case definitions.AlterView(view=Relation() as view):
                self._own(view)
            case definitions.CreateIndex():
                self._own(statement.table)
                check_create(self.catalog, self.actor.role, statement.table.schema_name)
            case definitions.Drop():
                for name in statement.names:
                    self._drop_named(*name)
            case definitions.DropIndex():
                for name in statement.names:
                    self._own_index(*name)
            case definitions.AlterSequence():
                self._own_named(statement.schema_name, statement.name)
            case Rename() | SetSchema() | Swap():
                self._check_renaming(statement)
            case CreateFunction():
                self._check_function(statement)
            case CreateOperator():
                self._check_callable(statement.relation)
            case AlterFunction(owner=None) | AlterOperator(owner=None):
                self._own(statement.old)
                if statement.new.schema_name != statement.old.schema_name:
                    check_create(self.catalog, self.actor.role, statement.new.schema_name)
            case DropFunction():
                for function in statement.functions:
                    self._own_or_schema(function)
            case Attach() | Detach():
                self._own_named(*statement.parent)
                self._own_named(*statement.child)
            case Comment():
                self._check_comment(statement)
            case CreatePolicy() | AlterPolicy():
                self._own(statement.table)
            case DropPolicy() | RenamePolicy() | SetRowSecurity():
                self._own_named(*statement.table)
            case CreateTrigger() | DropTrigger() | RenameTrigger() | EnableTrigger():
                self._check_trigger(statement)
            case types.AddLabel() | types.RenameLabel() | types.RenameType() | types.AlterDomain():
                self._own_type(statement.schema_name, statement.name)
            case types.AlterComposite():
                self._own_type(statement.schema_name, statement.name)
                self._check_attributes(statement)
            case types.CreateComposite():
                self._check_types(*statement.attributes)
            case types.CreateDomain():
                self._check_types(statement.value)
            case types.CreateRange():
                self._check_types(TableColumn("subtype", statement.subtype))
            case types.DropType():
                for name in statement.names:
                    self._drop_type(*name)
            case CreateSource() | CreateSink():
                what = "SOURCE" if isinstance(statement, CreateSource) else "SINK"
                self.actor.check_superuser(f"must be superuser to use CREATE {what}")
            case SetPaused() | AlterSink():
                self._own_named(statement.schema_name, statement.name)
            case _:
                pass  # it creates something, for which the schema was asked, or checks for itself

    def _own(self, relation: Relation) -> None:
        check_owner(self.catalog.access, self.actor.role, relation)

    def _own_named(self, schema_name: str | None, name: str) -> None:
        found = self.names.resolve(schema_name, name)
        if found is not None:
            self._own(found)

    def _owns_schema(self, name: str) -> bool:
        return is_temporary(name) or self.catalog.access.owns(self.actor.role, schema_object(self.catalog, name))

    def _own_or_schema(self, relation: Relation) -> None:
        """DROP is the schema's owner's right too."""
        if not self._owns_schema(relation.schema_name):
            self._own(relation)

    def _drop_named(self, schema_name: str | None, name: str) -> None:
        found = self.names.resolve(schema_name, name)
        if found is not None and found.kind is not RelationKind.SYSTEM:
            self._own_or_schema(found)

    def _own_index(self, schema_name: str | None, name: str) -> None:
        found = index_named(self.names, schema_name, name)
        if found is None or self._owns_schema(found[0].schema_name):
            return
        if not self.catalog.access.owns(self.actor.role, securable(found[0])):
            raise SqlError("42501", f"must be owner of index {name}")

    def _check_attributes(self, statement: types.AlterComposite) -> None:
        for change in statement.changes:
            match change:
                case types.AddAttribute():
                    self._check_types(change.attribute)
                case types.SetAttributeType():
                    self._check_types(TableColumn(change.name, change.type))
                case _:
                    pass

    def _own_type(self, schema_name: str | None, name: str) -> None:
        found = self.names.type(schema_name, name)
        if found is not None:
            self._own(found)

    def _drop_type(self, schema_name: str | None, name: str) -> None:
        found = self.names.type(schema_name, name)
        if found is not None:
            self._own_or_schema(found)

    def _check_table(self, statement: definitions.CreateTable) -> None:
        for parent in statement.parents:
            self._own(parent)
        self._check_keys(*statement.foreign_keys)
        if statement.source is None:
            self._check_types(*statement.columns)

    def _check_types(self, *columns: TableColumn) -> None:
        """USAGE on the types of columns, attributes and arguments."""
        for column in columns:
            for type_ in (column.domain,) if column.domain is not None else self._named(column.type):
                if not self.catalog.access.has(self.actor.role, securable(type_), "U"):
                    raise permission_denied(type_)

    def _named(self, type_: object) -> Iterator[Relation]:
        """The user's type that this is, or an array of."""
        named = type_.element or type_ if isinstance(type_, SqlType) else None
        for known in self.catalog.types.values():
            if not known.domain and known.own_type == named:
                yield known

    def _check_changes(self, statement: definitions.AlterTable) -> None:
        for change in statement.changes:
            match change:
                case definitions.NewForeignKey():
                    self._check_keys(change)
                case definitions.AddColumn():
                    self._check_types(change.column)
                case definitions.SetType():
                    self._check_types(TableColumn(change.column, change.type, domain=change.domain))
                case _:
                    pass

    def _check_keys(self, *keys: definitions.NewForeignKey) -> None:
        """REFERENCES on the columns that foreign keys refer to."""
        for key in keys:
            if key.parent is None:
                continue
            names = [c.name for c in key.parent.columns]
            keyed = key.keys or tuple(names[i] for i in key.parent.primary_key)
            columns = [names.index(k) + 1 for k in keyed if k in names]
            if not self.catalog.access.has_on_columns(self.actor.role, securable(key.parent), "x", columns):
                raise permission_denied(key.parent)

    def _check_schema(
        self, statement: definitions.CreateSchema | definitions.AlterSchema | definitions.DropSchema
    ) -> None:
        match statement:
            case definitions.CreateSchema():
                self.actor.check_creates_schemas()
                if statement.owner is not None:
                    self.actor.check_becomes(self.actor.of(statement.owner))
            case definitions.AlterSchema(owner=None):
                if statement.name in self.catalog.schemas:
                    check_schema_owner(self.catalog, self.actor.role, statement.name)
                    self.actor.check_creates_schemas()
            case definitions.DropSchema():
                for name in statement.names:
                    if name in self.catalog.schemas:
                        check_schema_owner(self.catalog, self.actor.role, name)
            case _:
                pass  # OWNER TO checks for itself

    def _check_renaming(self, statement: Rename | SetSchema | Swap) -> None:
        target = statement.target
        found = self.names.resolve(target.schema_name, target.name)
        if found is None:
            self._own_index(target.schema_name, target.name)
            return
        self._own(found)
        match statement:
            case Swap():
                self._own_named(statement.other.schema_name, statement.other.name)
            case SetSchema():
                place = self.names.schema(statement.schema_name)
                if self.catalog.has_schema(place):
                    check_create(self.catalog, self.actor.role, place)
            case Rename(part="relation"):
                check_create(self.catalog, self.actor.role, found.schema_name)
            case _:
                pass

    def _check_function(self, statement: CreateFunction) -> None:
        routine = statement.relation.routine
        assert routine is not None, "a function"
        if routine.language == "python":
            raise SqlError("42501", "permission denied for language python")
        if routine.fold is None and not self.catalog.access.has(self.actor.role, language(routine.language), "U"):
            raise SqlError("42501", f"permission denied for language {routine.language}")
        given = (*(a.type for a in routine.declared), routine.result)
        self._check_types(*(TableColumn("", t) for t in given if isinstance(t, SqlType)))
        known = self.catalog.names.get((statement.relation.schema_name, statement.relation.name))
        if known is not None and statement.replace:
            self._own(known)
        if routine.fold is not None:
            self._check_callable(statement.relation)

    def _check_callable(self, over: Relation) -> None:
        """EXECUTE on the functions behind an operator or an aggregate."""
        for function in map(self.catalog.by_id, over.dependencies):
            if function is None or function.routine is None:
                continue
            if not self.catalog.access.has(self.actor.role, securable(function), "X"):
                raise permission_denied(function)

    def _check_comment(self, statement: Comment) -> None:
        if statement.routine is not None:
            self._own(statement.routine)
        elif statement.kind == "schema":
            if statement.name in self.catalog.schemas:
                check_schema_owner(self.catalog, self.actor.role, statement.name)
        elif statement.kind == "database":
            pass  # checked where it is run
        elif statement.kind == "role":
            self._check_role(statement.name)
        elif statement.kind in BUILT_IN:
            if statement.name in BUILT_IN[statement.kind]:
                raise SqlError("42501", f"must be owner of {statement.kind} {statement.name}")
        elif statement.kind in ("type", "domain", "domain constraint"):
            self._own_type(statement.schema_name, statement.name)
        elif statement.kind == "index":
            self._own_index(statement.schema_name, statement.name)
        else:
            self._own_named(statement.schema_name, statement.name)

    def _check_role(self, name: str) -> None:
        """Who may comment on a role."""
        found, own = self.catalog.access.named(name), self.catalog.access.roles.get(self.actor.role)
        if found is None:
            return
        if found.superuser:
            self.actor.check_superuser("must be superuser")
        if own is None or not own.createrole:
            raise SqlError("42501", "must have CREATEROLE privilege")

    def _check_trigger(self, statement: CreateTrigger | DropTrigger | RenameTrigger | EnableTrigger) -> None:
        if not isinstance(statement, CreateTrigger):
            self._own_named(*statement.table)
            return
        access, role = self.catalog.access, self.actor.role
        if not access.has(role, securable(statement.table), "t"):
            raise permission_denied(statement.table)
        for function in self.catalog.relations.values():
            if function.oid == statement.trigger.function and not access.has(role, securable(function), "X"):
                raise permission_denied(function)
