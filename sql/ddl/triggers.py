"""CREATE, ALTER and DROP TRIGGER, and ALTER TABLE … ENABLE and DISABLE TRIGGER: only the catalog changes."""

from __future__ import annotations

from dataclasses import replace

from ivm.errors import SqlError
from sql.bind.triggers import condition_columns
from sql.catalog.catalog import Relation
from sql.catalog.search_path import SearchPathReader
from sql.catalog.triggers import Trigger
from sql.ddl.dependents import dependents_error, tell_cascade
from sql.engine.writer import Writer
from sql.statements.definitions import DropColumn
from sql.statements.results import Notice, Notify
from sql.statements.triggers import CreateTrigger, DropTrigger, EnableTrigger, RenameTrigger, TriggerStatement


def without_users(table: Relation, change: DropColumn, notify: Notify) -> Relation:
    """The table without the triggers that name a dropped column. 2BP01 where there are any, without CASCADE."""
    place = [c.name for c in table.columns].index(change.name)
    told = f"column {change.name} of table {table.name}"
    users = [t for t in table.triggers if change.name in t.columns or place in condition_columns(table, t)]
    shown = [f"trigger {t.name} on table {table.name}" for t in users]
    if users and not change.cascade:
        raise dependents_error(told, [f"{trigger} depends on {told}" for trigger in shown])
    tell_cascade(notify, shown)
    return replace(table, triggers=tuple(t for t in table.triggers if t not in users)) if users else table


class TriggerDefiner:
    """Runs statements about triggers for one writer."""

    def __init__(self, writer: Writer, notify: Notify, names: SearchPathReader) -> None:
        self._writer, self._notify, self._names = writer, notify, names

    def run(self, statement: TriggerStatement) -> str:
        """Run one statement; its tag. Raises 42P01, 42704, 42710."""
        match statement:
            case CreateTrigger():
                self._create(statement)
            case DropTrigger():
                self._drop(statement)
            case RenameTrigger():
                self._rename(statement)
            case EnableTrigger():
                self._enable(statement)
        return statement.tag

    def _create(self, statement: CreateTrigger) -> None:
        writer, new = self._writer, statement.trigger
        table = writer.catalog.relations[statement.table.id]
        old = next((t for t in table.triggers if t.name == new.name), None)
        if old is not None and not statement.replace:
            raise SqlError("42710", f'trigger "{new.name}" for relation "{table.name}" already exists')
        if old is not None and old.constraint:
            message = f'trigger "{new.name}" for relation "{table.name}" is a constraint trigger'
            raise SqlError("42710", message)
        if new.row and table.partitioning is not None:
            for below in writer.catalog.below(table):
                if any(t.name == new.name for t in below.triggers):
                    raise SqlError("42710", f'trigger "{new.name}" for relation "{below.name}" already exists')
        oid = writer.engine.next_id(writer.catalog) if old is None else old.id
        kept = tuple(t for t in table.triggers if t is not old)
        self._put(table, (*kept, replace(new, id=oid)))

    def _put(self, table: Relation, triggers: tuple[Trigger, ...]) -> None:
        self._writer.redefine(replace(table, triggers=triggers))

    def _table(self, name: tuple[str | None, str]) -> Relation:
        found = self._names.resolve(*name)
        if found is None:
            raise SqlError("42P01", f'relation "{".".join(n for n in name if n)}" does not exist')
        return found

    def _found(self, table: Relation, name: str) -> Trigger:
        found = next((t for t in table.triggers if t.name == name), None)
        if found is None:
            raise SqlError("42704", f'trigger "{name}" for table "{table.name}" does not exist')
        return found

    def _drop(self, statement: DropTrigger) -> None:
        if statement.if_exists and self._names.resolve(*statement.table) is None:
            self._skip(f'relation "{statement.table[1]}" does not exist, skipping')
            return
        table = self._table(statement.table)
        self._check_own(table, statement.name)
        if statement.if_exists and all(t.name != statement.name for t in table.triggers):
            self._skip(f'trigger "{statement.name}" for relation "{table.name}" does not exist, skipping')
            return
        gone = self._found(table, statement.name)
        self._put(table, tuple(t for t in table.triggers if t is not gone))

    def _check_own(self, table: Relation, name: str) -> None:
        """2BP01 for a partition's copy of a trigger."""
        for above in self._writer.catalog.above(table):
            own = all(t.name != name for t in table.triggers)
            if table.bound is not None and own and any(t.name == name and t.row for t in above.triggers):
                shown = f"trigger {name} on table {above.name}"
                message = f"cannot drop trigger {name} on table {table.name} because {shown} requires it"
                raise SqlError("2BP01", message, hint=f"You can drop {shown} instead.")

    def _skip(self, message: str) -> None:
        self._notify(Notice("NOTICE", "00000", message))

    def _rename(self, statement: RenameTrigger) -> None:
        table = self._table(statement.table)
        old = self._found(table, statement.name)
        if any(t.name == statement.new_name for t in table.triggers):
            message = f'trigger "{statement.new_name}" for relation "{table.name}" already exists'
            raise SqlError("42710", message)
        self._put(table, tuple(replace(t, name=statement.new_name) if t is old else t for t in table.triggers))

    def _enable(self, statement: EnableTrigger) -> None:
        if statement.if_exists and self._names.resolve(*statement.table) is None:
            self._skip(f'relation "{statement.table[1]}" does not exist, skipping')
            return
        table = self._table(statement.table)
        if statement.name is not None:
            self._found(table, statement.name)
        wanted = (None, *(t.name for t in table.triggers)) if statement.name is None else (statement.name,)
        changed = (replace(t, enabled=statement.enabled) if t.name in wanted else t for t in table.triggers)
        self._put(table, tuple(changed))
