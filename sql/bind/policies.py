"""CREATE and ALTER POLICY."""

from __future__ import annotations

from dataclasses import replace

from ivm.errors import SqlError
from sql.bind.environment import Environment
from sql.bind.lookup import lookup
from sql.bind.row_security import over_columns
from sql.catalog.catalog import Relation, RelationKind
from sql.catalog.policies import COMMANDS, Guard, Policy
from sql.catalog.search_path import Recorder
from sql.statements.policies import AlterPolicy, CreatePolicy
from sql.syntax.nodes import queries as nodes
from sql.syntax.nodes.policies import AlterPolicyStatement, Condition, CreatePolicyStatement


def define_policy(env: Environment, node: CreatePolicyStatement | AlterPolicyStatement) -> CreatePolicy | AlterPolicy:
    """A policy as it is to be. Raises what the two below raise."""
    return create_policy(env, node) if isinstance(node, CreatePolicyStatement) else alter_policy(env, node)


def create_policy(env: Environment, node: CreatePolicyStatement) -> CreatePolicy:
    """Raises 42P01, 42809, and what is wrong with a condition."""
    table = _table(env, node.table)
    using, check = _guard(env, table, node.using), _guard(env, table, node.check)
    policy = Policy(0, node.name, node.permissive, COMMANDS[node.command], (), using, check)
    return CreatePolicy(table, policy, node.roles)


def alter_policy(env: Environment, node: AlterPolicyStatement) -> AlterPolicy:
    """Raises 42704, 42601, and what ``create_policy`` raises."""
    table = _table(env, node.table)
    old = next((p for p in table.security.policies if p.name == node.name), None)
    if old is None:
        raise SqlError("42704", f'policy "{node.name}" for table "{table.name}" does not exist')
    if old.command == "a" and node.using is not None:
        raise SqlError("42601", "only WITH CHECK expression allowed for INSERT")
    if old.command in "rd" and node.check is not None:
        raise SqlError("42601", "only USING expression allowed for SELECT, DELETE")
    using = old.using if node.using is None else _guard(env, table, node.using)
    check = old.check if node.check is None else _guard(env, table, node.check)
    return AlterPolicy(table, replace(old, using=using, check=check), node.roles)


def _table(env: Environment, name: nodes.TableName) -> Relation:
    found = lookup(env, name)
    if found.kind is RelationKind.SYSTEM:
        raise SqlError("42501", f'permission denied: "{found.name}" is a system catalog', position=name.at + 1)
    if found.kind is not RelationKind.TABLE:
        raise SqlError("42809", f'"{found.name}" is not a table', position=name.at + 1)
    return found


def _guard(env: Environment, table: Relation, condition: Condition | None) -> Guard | None:
    """A condition with what its names mean now."""
    if condition is None:
        return None
    before = frozenset[int]()
    if isinstance(env.catalog, Recorder):
        before = frozenset(env.catalog.seen)
    over_columns(replace(env, asking=None), table, condition.expr)
    if not isinstance(env.catalog, Recorder):
        return Guard(condition.text)
    catalog = env.catalog
    found = catalog.references(condition.at, condition.at + len(condition.text))
    references = tuple(replace(reference, places=()) for reference in (*found, *catalog.unplaced()))
    ids = (catalog.seen - before) | {reference.relation for reference in found}
    relations = [r for r in map(catalog.by_id, sorted(ids)) if r is not None]
    if any(r.temporary for r in relations) and not table.temporary:
        raise SqlError("0A000", "policies must not use temporary tables or views")
    return Guard(condition.text, references, tuple(r.id for r in relations))
