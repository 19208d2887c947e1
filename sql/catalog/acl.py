"""Access control lists: who may do what with one object, and who granted it.

A list is changed by the rules of PostgreSQL's acl.c: a privilege is held once for each grantor, a grant option may be
passed on, and what was passed on goes with the option that it came from.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final

from ivm.errors import SqlError

PUBLIC_ROLE: Final = 0
"""The grantee that means everybody."""
PRIVILEGES: Final = {
    "a": "INSERT", "r": "SELECT", "w": "UPDATE", "d": "DELETE", "D": "TRUNCATE", "x": "REFERENCES", "t": "TRIGGER",
    "X": "EXECUTE", "U": "USAGE", "C": "CREATE", "T": "TEMPORARY", "c": "CONNECT",
}  # fmt: skip
"""The privileges by letter, in the order in which a list shows them."""
ALL: Final = {
    "r": "arwdDxt", "c": "arwx", "s": "rwU", "d": "CTc", "f": "X", "l": "U", "n": "UC", "T": "U",
}  # fmt: skip
"""All privileges on each kind of object: relation, column, sequence, database, function, language, schema, type."""
_WORLD: Final = {"d": "Tc", "f": "X", "l": "U", "T": "U"}
"""What everybody may do with an object that nothing has been granted on."""


@dataclass(frozen=True, slots=True)
class AclItem:
    """What ``grantor`` has granted to ``grantee``, both oids. ``options``: the privileges that may be passed on."""

    grantee: int
    grantor: int
    privileges: str
    options: str = ""


Acl = tuple[AclItem, ...]


def ordered(letters: Collection[str]) -> str:
    """Letters in the order in which a list shows them."""
    return "".join(letter for letter in PRIVILEGES if letter in letters)


def default_acl(kind: str, owner: int) -> Acl:
    """The list of an object that nothing has been granted on or revoked from."""
    if kind == "c":
        return ()
    world = _WORLD.get(kind, "")
    everybody = (AclItem(PUBLIC_ROLE, owner, world),) if world else ()
    return (*everybody, AclItem(owner, owner, ALL[kind]))


def held(acl: Acl, roles: Collection[int]) -> str:
    """The privileges of these roles and of everybody."""
    return ordered({p for i in acl if i.grantee == PUBLIC_ROLE or i.grantee in roles for p in i.privileges})


def options_of(acl: Acl, roles: Collection[int]) -> str:
    """The privileges that these roles may pass on; PUBLIC never may."""
    return ordered({p for i in acl if i.grantee in roles for p in i.options})


def with_grant(acl: Acl, owner: int, grantee: int, grantor: int, privileges: str, *, option: bool) -> Acl:
    """The list with these privileges granted. Raises 0LP01 where the option would come back to its grantor."""
    if option and grantor != owner:
        _check_circularity(acl, owner, grantee, grantor, privileges)
    options = privileges if option else ""
    for place, item in enumerate(acl):
        if (item.grantee, item.grantor) == (grantee, grantor):
            changed = replace(
                item, privileges=ordered(item.privileges + privileges), options=ordered(item.options + options)
            )
            return (*acl[:place], changed, *acl[place + 1 :])
    return (*acl, AclItem(grantee, grantor, ordered(privileges), ordered(options)))


def _check_circularity(acl: Acl, owner: int, grantee: int, grantor: int, privileges: str) -> None:
    left = acl
    while any(i.grantee == grantee and set(i.options) & set(privileges) for i in left):
        item = next(i for i in left if i.grantee == grantee and set(i.options) & set(privileges))
        left = without(left, owner, grantee, item.grantor, privileges, cascade=True)
    if not set(privileges) <= set(options_of(left, {grantor})):
        raise SqlError("0LP01", "grant options cannot be granted back to your own grantor")


def without(
    acl: Acl, owner: int, grantee: int, grantor: int, privileges: str, *, cascade: bool, only_option: bool = False
) -> Acl:
    """The list with these privileges, or only the options to pass them on, revoked. Raises 2BP01 where others hold them
    from the grantee, and ``cascade`` does not take those too."""
    found = next((i for i in acl if (i.grantee, i.grantor) == (grantee, grantor)), None)
    if found is None:
        return acl
    kept = found.privileges if only_option else ordered(set(found.privileges) - set(privileges))
    item = AclItem(grantee, grantor, kept, ordered(set(found.options) - set(privileges)))
    left = tuple(item if i is found else i for i in acl)
    left = tuple(i for i in left if i.privileges or i.options)
    lost = ordered((set(found.options) & set(privileges)) - set(options_of(left, {grantee})))
    if lost and grantee != owner:
        left = _taken_on(left, owner, grantee, lost, cascade)
    return left


def _taken_on(acl: Acl, owner: int, grantor: int, privileges: str, cascade: bool) -> Acl:
    """The list without what a role that has lost its options has passed on."""
    while True:
        passed = (i for i in acl if i.grantor == grantor and set(i.privileges) & set(privileges))
        item = next(passed, None)
        if item is None:
            return acl
        if not cascade:
            raise SqlError("2BP01", "dependent privileges exist", hint="Use CASCADE to revoke them too.")
        acl = without(acl, owner, item.grantee, grantor, privileges, cascade=True)


def with_owner(acl: Acl, old: int, new: int) -> Acl:
    """The list of an object that has changed its owner."""
    found: dict[tuple[int, int], AclItem] = {}
    for item in acl:
        grantee, grantor = (new if role == old else role for role in (item.grantee, item.grantor))
        known = found.get((grantee, grantor))
        privileges = item.privileges if known is None else ordered(known.privileges + item.privileges)
        options = item.options if known is None else ordered(known.options + item.options)
        found[grantee, grantor] = AclItem(grantee, grantor, privileges, options)
    return tuple(found.values())


def roles_in(acl: Iterable[AclItem]) -> set[int]:
    """The roles that a list mentions, PUBLIC not counted."""
    return {role for i in acl for role in (i.grantee, i.grantor)} - {PUBLIC_ROLE}
