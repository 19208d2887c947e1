"""pg_policy and pg_policies: row-level security."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sql.catalog.catalog import RelationKind
from sql.catalog.policies import COMMANDS
from sql.catalog.system.definitions import Datums, Row
from sql.system.state import SystemState, user_relations
from sql.system.texts import policy_text

_WORDS: Final = {letter: word.upper() for word, letter in COMMANDS.items()}


def pg_policy(state: SystemState, row: Row) -> Iterator[Datums]:
    for relation in user_relations(state, RelationKind.TABLE):
        for policy in relation.security.policies:
            using, check = (policy_text(state, relation, guard) for guard in (policy.using, policy.check))
            yield row(
                oid=policy.id, polname=policy.name, polrelid=relation.oid, polcmd=policy.command,
                polpermissive=policy.permissive, polroles=policy.roles, polqual=using, polwithcheck=check,
            )  # fmt: skip


def pg_policies(state: SystemState, row: Row) -> Iterator[Datums]:
    for relation in user_relations(state, RelationKind.TABLE):
        for policy in relation.security.policies:
            roles = tuple(state.roles.name(oid) if oid else "public" for oid in policy.roles)
            using, check = (policy_text(state, relation, guard) for guard in (policy.using, policy.check))
            yield row(
                schemaname=relation.schema_name, tablename=relation.name, policyname=policy.name,
                permissive="PERMISSIVE" if policy.permissive else "RESTRICTIVE", roles=roles,
                cmd=_WORDS[policy.command], qual=using, with_check=check,
            )  # fmt: skip
