"""Access control lists as clients see them, and the functions that tell what roles may do."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from ivm.errors import SqlError
from planner.identifiers import quoted
from sql.catalog.access import RoleNames, Securable
from sql.catalog.acl import ALL, PRIVILEGES, PUBLIC_ROLE, Acl, AclItem, default_acl, held, options_of

_LETTERS: Final = {name.lower(): letter for letter, name in PRIVILEGES.items()} | {"temp": "T"}
_BOTH: Final = (" with grant option", " with admin option")


def item_text(item: AclItem, names: RoleNames) -> str:
    """An item of a list: ``grantee=privileges/grantor``, where ``*`` follows what may be passed on."""
    grantee = "" if item.grantee == PUBLIC_ROLE else _role(item.grantee, names)
    letters = "".join(p + "*" * (p in item.options) for p in item.privileges)
    return f"{grantee}={letters}/{_role(item.grantor, names)}"


def _role(oid: int, names: RoleNames) -> str:
    name = names.name(oid) if oid in names.access.roles else str(oid)
    return name if re.fullmatch(r"\w+", name, re.ASCII) else '"' + name.replace('"', '""') + '"'


def acl_text(acl: Acl, names: RoleNames) -> tuple[str, ...]:
    """A list as an array of texts."""
    return tuple(item_text(item, names) for item in acl)


def own_acl(what: Securable, names: RoleNames) -> tuple[str, ...] | None:
    """The list that the catalogs show of an object: NULL where nothing has been granted on it or revoked from it."""
    acl = names.access.shown(what)
    return None if acl is None else acl_text(acl, names)


def initial_acl(what: Securable, names: RoleNames) -> tuple[str, ...] | None:
    """The list that pg_init_privs shows of an object that came with the server."""
    acl = names.access.initial(what)
    return None if acl is None else acl_text(acl, names)


def parse_item(text: str, names: RoleNames) -> AclItem:
    """An item from its text. Raises 22P02, 42704."""
    found = re.fullmatch(r'(?:"((?:[^"]|"")*)"|(\w*))=([a-zA-Z*]*)/(?:"((?:[^"]|"")*)"|(\w+))', text.strip())
    if found is None:
        raise SqlError("22P02", f'invalid aclitem: "{text}"')
    grantee = found[2] if found[1] is None else found[1].replace('""', '"')
    grantor = found[5] if found[4] is None else found[4].replace('""', '"')
    letters = found[3].replace("*", "")
    options = "".join(re.findall(r"(.)\*", found[3]))
    return AclItem(names.role(grantee).oid if grantee else PUBLIC_ROLE, names.role(grantor).oid, letters, options)


def exploded(items: Sequence[object], names: RoleNames) -> list[tuple[int, int, str, bool]]:
    """Grantor, grantee, privilege, and whether it may be granted, of each privilege in a list."""
    found = [parse_item(str(item), names) for item in items]
    return [(i.grantor, i.grantee, PRIVILEGES[p], p in i.options) for i in found for p in i.privileges]


def default_text(kind: str, owner: int, names: RoleNames) -> tuple[str, ...]:
    """acldefault. Raises 22023."""
    if kind not in ALL:
        raise SqlError("22023", f'unrecognized object type abbreviation: "{kind}"')
    return acl_text(default_acl(kind, owner), names)


def any_granted(names: RoleNames, role: int, what: Securable, privileges: str) -> bool:
    """Whether a role has any of the privileges, given as has_…_privilege takes them. Raises 22023."""
    return any(_granted(names, role, what, letter, option) for letter, option in _asked(privileges, what.kind))


def _granted(names: RoleNames, role: int, what: Securable, letter: str, option: bool) -> bool:
    access = names.access
    if not letter:
        return False
    if role == PUBLIC_ROLE:
        lists = access.acl(what) + (access.acl(what.whole) if what.column else ())
        return not option and letter in held(lists, ())
    if not option:
        return access.has(role, what, letter)
    if access.owns(role, what):
        return True
    lists = access.acl(what) + (access.acl(what.whole) if what.column else ())
    return letter in options_of(lists, access.inherited(role))


def _asked(privileges: str, kind: str) -> list[tuple[str, bool]]:
    """The letters of privileges, and whether the right to grant each is meant. Raises 22023."""
    return [_one(word, lambda name: name in _LETTERS and _LETTERS[name] in ALL[kind]) for word in privileges.split(",")]


def _one(word: str, known: Callable[[str], bool]) -> tuple[str, bool]:
    name = word.strip().lower()
    if name.removesuffix(_BOTH[0]) == "rule":
        return "", False  # a privilege of old, which nobody has
    option = name.endswith(_BOTH[0])
    name = name.removesuffix(_BOTH[0])
    if not known(name):
        raise SqlError("22023", f'unrecognized privilege type: "{word.strip()}"')
    return _LETTERS[name], option


def role_privilege(names: RoleNames, role: int, other: int, privileges: str) -> bool:
    """pg_has_role. Raises 22023."""
    access = names.access
    for word in privileges.split(","):
        name = word.strip().lower()
        option = name.endswith(_BOTH)
        for ending in _BOTH:
            name = name.removesuffix(ending)
        if name not in ("member", "usage"):
            raise SqlError("22023", f'unrecognized privilege type: "{word.strip()}"')
        if option:
            found = access.may_admit(role, other)
        else:
            found = access.may_become(role, other) if name == "member" else access.may_act_as(role, other)
        if found:
            return True
    return False


def shown_role(names: RoleNames, oid: int) -> str:
    """A role's name as SQL text."""
    return quoted(names.name(oid)) if oid in names.access.roles else str(oid)
