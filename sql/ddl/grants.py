"""GRANT and REVOKE on objects, and ALTER DEFAULT PRIVILEGES, as changes of the catalog."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ivm.errors import SqlError, unsupported
from sql.bind.inheritance_tree import TABLEOID_ATTRIBUTE
from sql.catalog.access import Access, Securable, database_object
from sql.catalog.acl import ALL, PRIVILEGES, PUBLIC_ROLE, Acl, default_acl, options_of, ordered, with_grant, without
from sql.catalog.catalog import Relation, RelationKind
from sql.catalog.search_path import SearchPathReader, no_schema
from sql.catalog.securables import (
    LANGUAGES,
    TRUSTED,
    language,
    permission_denied,
    schema_denied,
    schema_object,
    securable,
)
from sql.ddl.acting import Actor
from sql.engine.writer import Writer
from sql.statements.results import Notice, Notify
from sql.statements.roles import AlterDefaults, Grant, Privilege

_LETTERS: Final = {name.lower(): letter for letter, name in PRIVILEGES.items()} | {"temp": "T"}
_OTHERS: Final = ("set", "alter system")
_KIND_NAMES: Final = {"r": "relation", "s": "sequence", "d": "database", "f": "function", "l": "language",
                      "n": "schema", "T": "type"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Object:
    """An object to change the list of. ``shown``: its name; ``denied``: the error for one who may do nothing."""

    what: Securable
    shown: str
    denied: SqlError
    relation: Relation | None = None


@dataclass(frozen=True, slots=True)
class Granter:
    """Runs these statements for one writer."""

    writer: Writer
    names: SearchPathReader
    notify: Notify
    actor: Actor

    @property
    def access(self) -> Access:
        """What the transaction's own catalog says."""
        return self.writer.catalog.access

    def run(self, statement: Grant) -> str:
        """The statement's tag. Raises 0LP01, 2BP01, 42501, 42601, 42703, 42704, and the error of an object that is not
        there."""
        grantees = self._grantees(statement)
        if statement.grantor is not None and self.actor.of(statement.grantor) != self.actor.role:
            raise SqlError("0A000", "grantor must be current user")
        whole = [p for p in statement.privileges if not p.columns]
        if statement.kind != "r" and len(whole) < len(statement.privileges):
            raise SqlError("0LP01", "column privileges are only valid for relations")
        letters = None if any(p.name == "all" for p in whole) else _letters(whole, statement.kind, statement.routine)
        for target in list(self._objects(statement)):
            if whole:
                self._change(target, self._fitting(target, letters), statement, grantees, every=letters is None)
            for privilege in statement.privileges:
                self._change_columns(target, privilege, statement, grantees)
        return "REVOKE" if statement.revoke else "GRANT"

    def _grantees(self, statement: Grant) -> list[int]:
        grantees = [self.actor.grantee(g) for g in statement.grantees]
        if statement.option and not statement.revoke and PUBLIC_ROLE in grantees:
            raise SqlError("0LP01", "grant options can only be granted to roles")
        return grantees

    def _fitting(self, target: _Object, letters: str | None) -> str:
        """The privileges, all for None. A sequence takes those of its own that a table has too, with a warning."""
        kind = target.what.kind
        if letters is None:
            return ALL[kind]
        if set(letters) - set(ALL[kind]):
            message = f'sequence "{target.shown}" only supports USAGE, SELECT, and UPDATE privileges'
            self.notify(Notice("WARNING", "0LP01", message))
        return ordered(set(letters) & set(ALL[kind]))

    def _objects(self, statement: Grant) -> Iterator[_Object]:
        if statement.kind == "f" and not statement.inside:
            yield from (_of(r) for r in statement.routines)
            return
        for schema_name, name in statement.names:
            if statement.inside:
                yield from self._inside(statement, name)
            elif statement.kind == "n":
                yield self._schema(name)
            elif statement.kind == "d":
                what = database_object(self.actor.database_named(name).oid)
                yield _Object(what, name, SqlError("42501", f"permission denied for database {name}"))
            elif statement.kind == "l":
                yield _language(name)
            elif statement.kind == "T":
                yield self._type(schema_name, name)
            else:
                yield self._relation(schema_name, name, statement.kind)

    def _schema(self, name: str) -> _Object:
        place = self.names.schema(name)
        if not self.writer.catalog.has_schema(place):
            raise no_schema(name)
        return _Object(schema_object(self.writer.catalog, place), name, schema_denied(name))

    def _type(self, schema_name: str | None, name: str) -> _Object:
        found = self.names.type(schema_name, name)
        if found is None:
            raise SqlError("42704", f'type "{name}" does not exist')
        if found.kind is not RelationKind.TYPE:
            raise unsupported(f"GRANT on the row type of {name}", "Grant USAGE on types of their own.")
        return _of(found)

    def _relation(self, schema_name: str | None, name: str, kind: str) -> _Object:
        found = self.names.resolve(schema_name, name)
        if found is None or found.kind is RelationKind.FUNCTION:
            if schema_name is not None and not self.names.catalog.has_schema(self.names.schema(schema_name)):
                raise no_schema(schema_name)
            shown = name if schema_name is None else f"{schema_name}.{name}"
            raise SqlError("42P01", f'relation "{shown}" does not exist')
        if kind == "s" and found.sequence is None:
            raise SqlError("42809", f'"{found.name}" is not a sequence')
        if found.kind is RelationKind.SYSTEM:
            raise unsupported("GRANT on a relation of the system")
        return _of(found)

    def _inside(self, statement: Grant, name: str) -> Iterator[_Object]:
        place = self.names.schema(name)
        if not self.writer.catalog.has_schema(place):
            raise no_schema(name)
        for relation in self.writer.catalog.inside([place]):
            routine = relation.routine
            if securable(relation).kind != statement.kind:
                continue
            if (
                routine is None
                or statement.routine == "routine"
                or routine.procedure == (statement.routine == "procedure")
            ):
                yield _of(relation)

    def _change_columns(self, target: _Object, privilege: Privilege, statement: Grant, grantees: Sequence[int]) -> None:
        relation = target.relation
        if not privilege.columns:
            return
        assert relation is not None, "checked above"
        letters = ALL["c"] if privilege.name == "all" else _letters([privilege], "c", "")
        names = [c.name for c in relation.columns]
        for name in privilege.columns:
            if name not in names and name != "tableoid":
                message = f'column "{name}" of relation "{relation.name}" does not exist'
                raise SqlError("42703", message)
            place = names.index(name) + 1 if name in names else TABLEOID_ATTRIBUTE
            what = target.what.at(place)
            shown = f'column "{name}" of relation "{relation.name}"'
            every = privilege.name == "all"
            self._change(replace(target, what=what, shown=shown), letters, statement, grantees, every=every)

    def _change(self, target: _Object, letters: str, statement: Grant, grantees: Sequence[int], *, every: bool) -> None:
        """Change one list, as far as the current role may pass the privileges on. ``every``: ALL was written, which
        means those that it may."""
        access, what = self.access, target.what
        owner = access.owner(what)
        grantor, allowed = self._grantor(what, owner, letters)
        given = ordered(set(letters) & set(allowed))
        if not given and not self._holds_any(what):
            raise target.denied
        if len(given) < len(letters) and not (given and every):
            self._warn(target, given, statement.revoke)
        acl = changed_acl(access.acl(what), owner, grantor, given, statement, grantees)
        self.writer.set_access(access.with_acl(what, acl))
        if statement.revoke and what.kind == "r":
            self._revoke_on_columns(what, owner, grantor, given, statement, grantees)

    def _revoke_on_columns(
        self, what: Securable, owner: int, grantor: int, letters: str, statement: Grant, grantees: Sequence[int]
    ) -> None:
        """What is revoked on a table is revoked on its columns too."""
        for key, acl in self.access.acls.items():
            if key.column and key.whole == what:
                own = ordered(set(letters) & set(ALL["c"]))
                left = changed_acl(acl, owner, grantor, own, statement, grantees)
                self.writer.set_access(self.access.with_acl(key, left))

    def _grantor(self, what: Securable, owner: int, letters: str) -> tuple[int, str]:
        """As whom to grant, and what that role may grant: the owner's whole power if the current role has it, else the
        role with the most of the options asked for."""
        access, role = self.access, self.actor.role
        if access.may_act_as(role, owner):
            return owner, letters
        roles = (role, *sorted(access.inherited(role) - {role}))
        lists = access.acl(what) + (access.acl(what.whole) if what.column else ())
        options = {r: set(options_of(lists, {r})) & set(letters) for r in roles}
        best = max(roles, key=lambda r: len(options[r]))
        return best, ordered(options[best])

    def _holds_any(self, what: Securable) -> bool:
        access, role = self.access, self.actor.role
        lists = access.acl(what) + (access.acl(what.whole) if what.column else ())
        return bool(access.privileges(role, what)) or bool(options_of(lists, access.inherited(role)))

    def _warn(self, target: _Object, given: str, revoke: bool) -> None:
        some = "not all privileges were granted" if given else "no privileges were granted"
        code = "01007"
        if revoke:
            some = "not all privileges could be revoked" if given else "no privileges could be revoked"
            code = "01006"
        shown = target.shown if target.what.column else f'"{target.shown}"'
        self.notify(Notice("WARNING", code, f"{some} for {shown}"))

    def defaults(self, statement: AlterDefaults) -> str:
        """ALTER DEFAULT PRIVILEGES; the tag."""
        kind, grantees = statement.grant.kind, self._grantees(statement.grant)
        roles = self.actor.all_of(statement.roles) or (self.actor.role,)
        whole = [p for p in statement.grant.privileges if p.name != "all"]
        letters = ALL[kind] if len(whole) < len(statement.grant.privileges) else _letters(whole, kind, "")
        if kind == "n" and statement.schemas:
            message = "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS"
            raise SqlError("0LP01", message)
        schemas = [self._schema(name).what.oid for name in statement.schemas] or [0]
        for role in roles:
            self.actor.check_becomes(role)
            for schema in schemas:
                self._set_default(role, schema, kind, letters, statement.grant, grantees)
        return "ALTER DEFAULT PRIVILEGES"

    def _set_default(
        self, role: int, schema: int, kind: str, letters: str, grant: Grant, grantees: Sequence[int]
    ) -> None:
        usual = () if schema else default_acl(kind, role)
        key = role, schema, kind
        acl = changed_acl(self.access.defaults.get(key, usual), role, role, letters, grant, grantees)
        defaults = {k: v for k, v in self.access.defaults.items() if k != key}
        if set(acl) != set(usual):
            defaults[key] = acl
        self.writer.set_access(self.access.changed(defaults=defaults))


def changed_acl(
    acl: Acl, owner: int, grantor: int, letters: str, statement: Grant, grantees: Sequence[int]
) -> Acl:  # fmt: skip
    """The list after GRANT or REVOKE of these privileges. Raises 0LP01, 2BP01."""
    for grantee in grantees if letters else ():
        if statement.revoke:
            only = statement.option
            acl = without(acl, owner, grantee, grantor, letters, cascade=statement.cascade, only_option=only)
        else:
            acl = with_grant(acl, owner, grantee, grantor, letters, option=statement.option)
    return acl


def _of(relation: Relation) -> _Object:
    shown = relation.name if relation.routine is None else relation.routine.name
    return _Object(securable(relation), shown, permission_denied(relation), relation)


def _language(name: str) -> _Object:
    """A language. Raises 42704, 42809."""
    if name not in LANGUAGES:
        raise SqlError("42704", f'language "{name}" does not exist')
    if name not in TRUSTED:
        detail = "GRANT and REVOKE are not allowed on untrusted languages, "
        detail += "because only superusers can use untrusted languages."
        raise SqlError("42809", f'language "{name}" is not trusted', detail)
    return _Object(language(name), name, SqlError("42501", f"permission denied for language {name}"))


def _letters(privileges: Sequence[Privilege], kind: str, routine: str) -> str:
    """The letters of named privileges. Raises 42601 for an unknown one, 0LP01 for one of other objects."""
    found = ""
    for privilege in privileges:
        letter = _LETTERS.get(privilege.name)
        if letter is None and privilege.name not in _OTHERS:
            raise SqlError("42601", f'unrecognized privilege type "{privilege.name}"')
        # GRANT ON a table may mean a sequence, which has USAGE
        if letter is None or letter not in ALL[kind] + ("U" if kind == "r" else ""):
            label = "column" if kind == "c" else routine or _KIND_NAMES[kind]
            raise SqlError("0LP01", f"invalid privilege type {privilege.name.upper()} for {label}")
        found += letter
    return ordered(found)
