"""CREATE, ALTER and DROP POLICY, and ENABLE ROW LEVEL SECURITY: only the catalog changes."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace

from ivm.errors import SqlError, unsupported
from planner.logical.traversal import columns_of, has_subquery
from sql.bind.entry_points import environment_of
from sql.bind.renamed import renamed_text
from sql.bind.row_security import bound_guard
from sql.catalog.acl import PUBLIC_ROLE
from sql.catalog.catalog import Relation, RelationKind
from sql.catalog.policies import Guard, Policy
from sql.catalog.search_path import SearchPathReader
from sql.ddl.acting import Actor
from sql.ddl.audited import note
from sql.ddl.dependents import dependents_error, tell_cascade
from sql.engine.writer import Writer
from sql.statements.definitions import DropColumn
from sql.statements.policies import (
    AlterPolicy,
    CreatePolicy,
    DropPolicy,
    PolicyStatement,
    RenamePolicy,
    SetRowSecurity,
)
from sql.statements.results import Notice, Notify
from sql.statements.role_spec import RoleSpec


@dataclass(frozen=True, slots=True)
class PolicyDefiner:
    """Runs these statements for one writer."""

    writer: Writer
    notify: Notify
    names: SearchPathReader
    actor: Actor

    def run(self, statement: PolicyStatement) -> str:
        """Run one statement; its tag. Raises 42P01, 42704, 42710, 42809."""
        match statement:
            case CreatePolicy():
                self._create(statement)
            case AlterPolicy():
                self._alter(statement)
            case RenamePolicy():
                self._rename(statement)
            case DropPolicy():
                self._drop(statement)
            case SetRowSecurity():
                self._set(statement)
        note(self.actor, statement.tag, statement)
        return statement.tag

    def _put(self, table: Relation, policies: tuple[Policy, ...]) -> None:
        self.writer.redefine(replace(table, security=replace(table.security, policies=policies)))

    def _roles(self, specs: tuple[RoleSpec, ...]) -> tuple[int, ...]:
        found = tuple(dict.fromkeys(map(self.actor.grantee, specs)))
        if PUBLIC_ROLE in found and len(found) > 1:
            message = "ignoring specified roles other than PUBLIC"
            self.notify(Notice("WARNING", "01000", message, "All roles are members of the PUBLIC role."))
            return (PUBLIC_ROLE,)
        return found

    def _create(self, statement: CreatePolicy) -> None:
        table = self.writer.catalog.relations[statement.table.id]
        name = statement.policy.name
        if any(p.name == name for p in table.security.policies):
            raise SqlError("42710", f'policy "{name}" for table "{table.name}" already exists')
        policy = replace(statement.policy, id=self.writer.new_id(), roles=self._roles(statement.roles))
        table = self.writer.catalog.relations[statement.table.id]
        self._put(table, (*table.security.policies, policy))

    def _alter(self, statement: AlterPolicy) -> None:
        table = self.writer.catalog.relations[statement.table.id]
        changed = statement.policy
        if statement.roles is not None:
            changed = replace(changed, roles=self._roles(statement.roles))
        self._put(table, tuple(changed if p.id == changed.id else p for p in table.security.policies))

    def _table(self, name: tuple[str | None, str], if_exists: bool) -> Relation | None:
        found = self.names.resolve(*name)
        if found is None and if_exists:
            self._skip(f'relation "{name[1]}" does not exist, skipping')
            return None
        if found is None:
            raise SqlError("42P01", f'relation "{".".join(n for n in name if n)}" does not exist')
        if found.kind is not RelationKind.TABLE:
            raise SqlError("42809", f'"{found.name}" is not a table')
        return found

    def _skip(self, message: str) -> None:
        self.notify(Notice("NOTICE", "00000", message))

    def _named(self, table: Relation, name: str) -> Policy:
        found = next((p for p in table.security.policies if p.name == name), None)
        if found is None:
            raise SqlError("42704", f'policy "{name}" for table "{table.name}" does not exist')
        return found

    def _rename(self, statement: RenamePolicy) -> None:
        table = self._table(statement.table, statement.if_exists)
        if table is None:
            return
        old = self._named(table, statement.name)
        if any(p.name == statement.new_name for p in table.security.policies):
            raise SqlError("42710", f'policy "{statement.new_name}" for table "{table.name}" already exists')
        self._put(table, tuple(replace(p, name=statement.new_name) if p is old else p for p in table.security.policies))

    def _drop(self, statement: DropPolicy) -> None:
        table = self._table(statement.table, statement.if_exists)
        if table is None:
            return
        if statement.if_exists and all(p.name != statement.name for p in table.security.policies):
            self._skip(f'policy "{statement.name}" for relation "{table.name}" does not exist, skipping')
            return
        gone = self._named(table, statement.name)
        self._put(table, tuple(p for p in table.security.policies if p is not gone))

    def _set(self, statement: SetRowSecurity) -> None:
        table = self._table(statement.table, statement.if_exists)
        if table is None:
            return
        old = table.security
        enabled = old.enabled if statement.enabled is None else statement.enabled
        forced = old.forced if statement.forced is None else statement.forced
        self.writer.redefine(replace(table, security=replace(old, enabled=enabled, forced=forced)))


def drop_policies(
    writer: Writer, names: SearchPathReader, ids: Set[int], what: str, notify: Notify, *, cascade: bool
) -> None:
    """Drop the policies of other tables that need any of these relations and functions. 2BP01 without ``cascade``.
    ``what``: the object that is dropped."""
    used = [
        (table, policy)
        for table in writer.catalog.relations.values()
        if table.id not in ids
        for policy in table.security.policies
        if any(guard is not None and not ids.isdisjoint(guard.dependencies) for guard in (policy.using, policy.check))
    ]
    shown = [f"policy {policy.name} on table {names.shown(table)}" for table, policy in used]
    if used and not cascade:
        raise dependents_error(what, [f"{policy} depends on {what}" for policy in shown])
    tell_cascade(notify, shown)
    for table, policy in used:
        now = writer.catalog.relations[table.id]
        kept = tuple(p for p in now.security.policies if p.id != policy.id)
        writer.redefine(replace(now, security=replace(now.security, policies=kept)))


def without_roles(writer: Writer, roles: Set[int]) -> None:
    """Take roles out of all policies; one that is for nobody any more is dropped."""
    for table in list(writer.catalog.relations.values()):
        kept = (replace(p, roles=tuple(r for r in p.roles if r not in roles)) for p in table.security.policies)
        policies = tuple(p for p in kept if p.roles)
        if policies != table.security.policies:
            writer.redefine(replace(table, security=replace(table.security, policies=policies)))


def without_policies(names: SearchPathReader, table: Relation, change: DropColumn, notify: Notify) -> Relation:
    """The table without the policies that name a dropped column. 2BP01 where there are any, without CASCADE."""
    place = [c.name for c in table.columns].index(change.name)
    told = f"column {change.name} of table {table.name}"
    users = [p for p in table.security.policies if any(_names(names, table, g, place) for g in (p.using, p.check))]
    shown = [f"policy {p.name} on table {table.name}" for p in users]
    if users and not change.cascade:
        raise dependents_error(told, [f"{policy} depends on {told}" for policy in shown])
    tell_cascade(notify, shown)
    kept = tuple(p for p in table.security.policies if p not in users)
    return replace(table, security=replace(table.security, policies=kept)) if users else table


def _names(names: SearchPathReader, table: Relation, guard: Guard | None, place: int) -> bool:
    """Whether a condition names a column; one with a subquery counts if it has the name anywhere."""
    if guard is None:
        return False
    condition = bound_guard(environment_of(names), table, None, guard)
    if has_subquery(condition):
        name = table.columns[place].name
        return renamed_text(guard.text, name, f"{name}_", table=False) != guard.text
    return place in columns_of(condition)


def renamed_policies(table: Relation, old: str, new: str) -> tuple[Policy, ...]:
    """The policies after a column was renamed. Raises 0A000 for one with a subquery, in which the name may be another
    table's."""

    def changed(guard: Guard | None) -> Guard | None:
        if guard is None:
            return None
        text = renamed_text(guard.text, old, new, table=False)
        if text != guard.text and guard.references:
            raise unsupported(f"renaming column {old}, which a policy with a subquery names")
        return replace(guard, text=text)

    return tuple(replace(p, using=changed(p.using), check=changed(p.check)) for p in table.security.policies)
