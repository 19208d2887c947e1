"""pg_policy and pg_policies: row-level security."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sql.catalog.catalog import RelationKind
from sql.catalog.policies import COMMANDS, Guard
from sql.catalog.system.definitions import Datums, Row
from sql.system.state import SystemState, user_relations

_WORDS: Final = {letter: word.upper() for word, letter in COMMANDS.items()}


def pg_policy(state: SystemState, row: Row) -> Iterator[Datums]:
    for relation in user_relations(state, RelationKind.TABLE):
        for policy in relation.security.policies:
            yield row(
                oid=policy.id, polname=policy.name, polrelid=relation.oid, polcmd=policy.command,
                polpermissive=policy.permissive, polroles=policy.roles, polqual=_text(policy.using),
                polwithcheck=_text(policy.check),
            )  # fmt: skip


def pg_policies(state: SystemState, row: Row) -> Iterator[Datums]:
    for relation in user_relations(state, RelationKind.TABLE):
        for policy in relation.security.policies:
            roles = tuple(state.roles.name(oid) if oid else "public" for oid in policy.roles)
            yield row(
                schemaname=relation.schema_name, tablename=relation.name, policyname=policy.name,
                permissive="PERMISSIVE" if policy.permissive else "RESTRICTIVE", roles=roles,
                cmd=_WORDS[policy.command], qual=_text(policy.using), with_check=_text(policy.check),
            )  # fmt: skip


def _text(guard: Guard | None) -> str | None:
    return None if guard is None else f"({guard.text})"
