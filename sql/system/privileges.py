"""Rows of information_schema's views about privileges and roles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sql.catalog.acl import ALL, PRIVILEGES, PUBLIC_ROLE, AclItem
from sql.catalog.catalog import Relation, RelationKind
from sql.catalog.roles import BOOTSTRAP_ID
from sql.catalog.securables import securable
from sql.catalog.system.definitions import Datums, Row
from sql.system.state import SystemState, user_relations

_SHOWN: Final = (RelationKind.TABLE, RelationKind.VIEW)


def _name(state: SystemState, role: int) -> str:
    return "PUBLIC" if role == PUBLIC_ROLE else state.roles.name(role)


def _concerns(state: SystemState, item: AclItem) -> bool:
    """Whether a role may see an item: it grants, or receives, or everybody does."""
    own = state.roles.access.inherited(state.role)
    superuser = state.roles.access.is_superuser(state.role)
    return superuser or item.grantee == PUBLIC_ROLE or item.grantee in own or item.grantor in own


def _yes(value: bool) -> str:
    return "YES" if value else "NO"


def _grantable(state: SystemState, relation: Relation, item: AclItem, letter: str) -> str:
    owner = state.roles.access.owner(securable(relation))
    return _yes(letter in item.options or item.grantee == owner)


def table_privileges(state: SystemState, row: Row) -> Iterator[Datums]:
    for relation in user_relations(state, *_SHOWN):
        for item in state.roles.access.acl(securable(relation)):
            for letter in item.privileges if _concerns(state, item) else "":
                yield row(
                    grantor=_name(state, item.grantor), grantee=_name(state, item.grantee),
                    table_catalog=state.database, table_schema=relation.schema_name, table_name=relation.name,
                    privilege_type=PRIVILEGES[letter], is_grantable=_grantable(state, relation, item, letter),
                    with_hierarchy=_yes(letter == "r"),
                )  # fmt: skip


def role_table_grants(state: SystemState, row: Row) -> Iterator[Datums]:
    names = {state.roles.name(role) for role in _enabled(state)}
    for found in table_privileges(state, row):
        if found[0] in names or found[1] in names:
            yield found


def column_privileges(state: SystemState, row: Row) -> Iterator[Datums]:
    """Those of columns, and those of relations for each column."""
    access = state.roles.access
    for relation in user_relations(state, *_SHOWN):
        what = securable(relation)
        for i, column in enumerate(relation.columns):
            granted = {
                (item.grantor, item.grantee, letter): _grantable(state, relation, item, letter)
                for item in (*access.acl(what.at(i + 1)), *access.acl(what)) if _concerns(state, item)
                for letter in item.privileges if letter in ALL["c"]
            }  # fmt: skip
            for (grantor, grantee, letter), grantable in granted.items():
                yield row(
                    grantor=_name(state, grantor), grantee=_name(state, grantee), table_catalog=state.database,
                    table_schema=relation.schema_name, table_name=relation.name, column_name=column.name,
                    privilege_type=PRIVILEGES[letter], is_grantable=grantable,
                )  # fmt: skip


def _enabled(state: SystemState) -> list[int]:
    access = state.roles.access
    return [role for role in sorted(access.roles) if access.may_act_as(state.role, role)]


def enabled_roles(state: SystemState, row: Row) -> Iterator[Datums]:
    for role in _enabled(state):
        yield row(role_name=state.roles.name(role))


def applicable_roles(state: SystemState, row: Row) -> Iterator[Datums]:
    names, access = state.roles, state.roles.access
    for m in access.memberships:
        if m.member == BOOTSTRAP_ID or access.may_act_as(state.role, m.member):
            yield row(grantee=names.name(m.member), role_name=names.name(m.role), is_grantable=_yes(m.admin))
