"""Which rule a client falls under."""

from __future__ import annotations

from collections.abc import Iterable

from sql.admission.rules import Address, Name, Rule
from sql.catalog.access import Access


def matching(
    rules: Iterable[Rule], access: Access, address: Address | None, encrypted: bool, database: str, user: str
) -> Rule | None:
    """The first rule for such a client. None: there is none, and the client is refused."""
    for rule in rules:
        if rule.type == ("hostnossl" if encrypted else "hostssl"):
            continue
        if rule.network is not None and (address is None or address not in rule.network):
            continue
        if any(_is_database(name, access, database, user) for name in rule.databases) and any(
            _is_user(name, access, user) for name in rule.users
        ):
            return rule
    return None


def _is_database(name: Name, access: Access, database: str, user: str) -> bool:
    if name.is_word("all"):
        return True
    if name.is_word("sameuser"):
        return database == user
    if name.is_word("samerole") or name.is_word("samegroup"):
        return _is_member(access, user, database)
    return name.text == database and not name.is_word("replication")


def _is_user(name: Name, access: Access, user: str) -> bool:
    if name.text.startswith("+") and not name.quoted:
        return _is_member(access, user, name.text[1:])
    return name.is_word("all") or name.text == user


def _is_member(access: Access, user: str, group: str) -> bool:
    """Whether a role is a member of another, which to be a superuser is not enough for."""
    member, role = access.named(user), access.named(group)
    return member is not None and role is not None and role.oid in access.joined(member.oid)
