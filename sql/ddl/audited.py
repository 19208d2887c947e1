"""What the audit log says of a change of roles or privileges: the statement as it was bound, but for passwords."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

from sql.admission import audit
from sql.catalog.catalog import Relation
from sql.ddl.acting import Actor
from sql.statements.policies import PolicyStatement
from sql.statements.role_spec import RoleSpec
from sql.statements.roles import RoleStatement


def note(actor: Actor, tag: str, statement: RoleStatement | PolicyStatement) -> None:
    """Note a statement that was run."""
    names = actor.roles
    audit.changed(names.name(actor.session), names.name(actor.role), tag, _plain(statement))


def _plain(value: object) -> object:
    """A value as JSON knows it; what is empty or false is left out."""
    match value:
        case RoleSpec():
            return value.name or value.kind
        case Relation():
            return value.name
        case ("password", secret):
            return ["password", None if secret is None else "***"]
        case tuple():
            return [_plain(item) for item in value]
        case None | bool() | int() | str():
            return value
    if is_dataclass(value):
        shown = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        return {name: item for name, item in shown.items() if item not in (None, False, "", [])}
    return str(value)
