"""has_*_privilege and pg_has_role: whom and what their arguments mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ivm.errors import SqlError
from ivm.words import REGCLASS, REGTYPE
from planner.identifiers import split_name
from sql.catalog.access import NAMESPACE, RoleNames, Securable, database_object
from sql.catalog.acl import PUBLIC_ROLE
from sql.catalog.catalog import Relation
from sql.catalog.search_path import no_schema
from sql.catalog.securables import LANGUAGE, LANGUAGES, language, restricted, securable
from sql.system.acls import any_granted, role_privilege
from sql.system.state import SystemState, databases


@dataclass(frozen=True, slots=True)
class Privileges:
    """Answers for one session. ``oid_of``: reads the text forms of the reg* types; ``relation``: by its oid."""

    state: SystemState
    oid_of: Callable[..., int]
    relation: Callable[[int], Relation | None]

    @property
    def names(self) -> RoleNames:
        return self.state.roles

    def has(self, kind: str, role: object, subject: object, column: object, privileges: str) -> bool | None:
        """``role`` None: the current one. NULL where an oid or a column's number is no object's. Raises 22023, 42704,
        and the error of an object that is not there."""
        who = self._role(role, public=True)
        if kind in ("column", "any_column"):
            return self._on_columns(who, subject, column, privileges)
        if kind in ("parameter", "tablespace"):
            return self.names.access.is_superuser(who)
        what = self._object(kind, subject)
        if what is None:
            return None
        return any_granted(self.names, who, what, privileges)

    def has_role(self, role: object, other: object, privileges: str) -> bool:
        """pg_has_role. Raises 22023, 42704."""
        return role_privilege(self.names, self._role(role), self._role(other), privileges)

    def row_security_active(self, table: object) -> bool:
        """row_security_active. Raises 42P01."""
        found = self._relation(table)
        if found is None:
            raise SqlError("42P01", f"relation with OID {table} does not exist")
        return restricted(self.names.access, self.state.role, found)

    def _role(self, role: object, *, public: bool = False) -> int:
        if role is None:
            return self.state.role
        if isinstance(role, int):
            return role
        if public and role == "public":
            return PUBLIC_ROLE
        return self.names.role(str(role)).oid

    def _object(self, kind: str, subject: object) -> Securable | None:
        match kind:
            case "table" | "sequence":
                relation = self._relation(subject)
                if relation is None:
                    return None
                if kind == "sequence" and relation.sequence is None:
                    raise SqlError("42809", f'"{relation.name}" is not a sequence')
                return securable(relation)
            case "schema":
                return self._schema(subject)
            case "database":
                named = isinstance(subject, str)
                key = "name" if named else "oid"
                database = next((d for d in databases(self.state) if getattr(d, key) == subject), None)
                if database is None and named:
                    raise SqlError("3D000", f'database "{subject}" does not exist')
                return None if database is None else database_object(database.oid)
            case "function":
                return self._function(subject)
            case "type":
                oid = subject if isinstance(subject, int) else self.oid_of(REGTYPE, str(subject))
                known = next((t for t in self.state.types() if t.oid == oid), None)
                return Securable(1247, int(oid), "T") if known is None else securable(known)
            case "language":
                known_languages = {oid: name for name, oid in LANGUAGES.items()}
                if isinstance(subject, int):
                    return Securable(LANGUAGE, subject, "l") if subject in known_languages else None
                if str(subject) not in LANGUAGES:
                    raise SqlError("42704", f'language "{subject}" does not exist')
                return language(str(subject))
            case _:
                shown = kind.replace("_", "-") if kind == "foreign_data_wrapper" else kind
                raise SqlError("42704", f'{shown} "{subject}" does not exist')

    def _relation(self, subject: object) -> Relation | None:
        return self.relation(subject if isinstance(subject, int) else self.oid_of(REGCLASS, str(subject)))

    def _schema(self, subject: object) -> Securable | None:
        known = self.state.schemas()
        if isinstance(subject, int):
            return Securable(NAMESPACE, subject, "n") if subject in known.values() else None
        if str(subject) not in known:
            raise no_schema(str(subject))
        return Securable(NAMESPACE, known[str(subject)], "n")

    def _function(self, subject: object) -> Securable | None:
        """A user's function by its oid or signature; built-in ones everybody may call."""
        if isinstance(subject, int):
            found = next((r for r in self.state.routines() if r.oid == subject), None)
            return Securable(1255, subject, "f") if found is None else securable(found)
        name, _, rest = str(subject).partition("(")
        schema, base = split_name(name.strip())
        types = [t.strip() for t in rest.rstrip(") ").split(",") if t.strip()]
        oids = [self.oid_of(REGTYPE, t) for t in types]
        for routine in self.state.routines():
            made = routine.routine
            if made is None or made.name != base or schema not in (None, routine.schema_name):
                continue
            shown = routine.name.partition("(")[2].rstrip(")")
            if [self.oid_of(REGTYPE, t) for t in shown.split(",") if t] == oids:
                return securable(routine)
        raise SqlError("42883", f'function "{subject}" does not exist')

    def _on_columns(self, who: int, subject: object, column: object, privileges: str) -> bool | None:
        relation = self._relation(subject)
        if relation is None:
            return None
        whole = securable(relation)
        count = len(relation.columns)
        if column is None:
            return any(any_granted(self.names, who, whole.at(i + 1), privileges) for i in range(count))
        if isinstance(column, int):
            place = column
        else:
            names = [c.name for c in relation.columns]
            if column not in names:
                raise SqlError("42703", f'column "{column}" of relation "{relation.name}" does not exist')
            place = names.index(str(column)) + 1
        return any_granted(self.names, who, whole.at(place), privileges) if 1 <= place <= count else None
