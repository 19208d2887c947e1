"""Statements about roles, privileges and owners: which module runs each."""

from __future__ import annotations

from sql.catalog.search_path import SearchPathReader
from sql.ddl.acting import Actor
from sql.ddl.audited import note
from sql.ddl.drop_owned import drop_owned
from sql.ddl.grants import Granter
from sql.ddl.owners import change_owner, reassign
from sql.ddl.roles import NOTHING_ELSEWHERE, Elsewhere, RoleDefiner
from sql.engine.writer import Writer
from sql.statements.results import Notify
from sql.statements.roles import AlterDefaults, ChangeOwner, DropOwned, Grant, ReassignOwned, RoleStatement


def run_role_statement(
    writer: Writer, names: SearchPathReader, notify: Notify, actor: Actor, statement: RoleStatement,
    elsewhere: Elsewhere = NOTHING_ELSEWHERE,
) -> str:  # fmt: skip
    """Run one statement and note it; its tag. Raises what the modules above raise."""
    tag = _run(writer, names, notify, actor, statement, elsewhere)
    note(actor, tag, statement)
    return tag


def _run(
    writer: Writer, names: SearchPathReader, notify: Notify, actor: Actor, statement: RoleStatement,
    elsewhere: Elsewhere,
) -> str:  # fmt: skip
    match statement:
        case Grant():
            return Granter(writer, names, notify, actor).run(statement)
        case AlterDefaults():
            return Granter(writer, names, notify, actor).defaults(statement)
        case ChangeOwner():
            return change_owner(writer, names, actor, statement)
        case ReassignOwned():
            reassign(writer, names, actor, statement)
            return "REASSIGN OWNED"
        case DropOwned():
            drop_owned(writer, names, notify, actor, statement)
            return "DROP OWNED"
        case _:
            return RoleDefiner(writer, names, notify, actor, elsewhere).run(statement)
