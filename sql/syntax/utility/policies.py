"""CREATE, ALTER and DROP POLICY, and the row-level security of ALTER TABLE."""

from __future__ import annotations

from typing import Final

from ivm.errors import SqlError
from sql.catalog.policies import COMMANDS
from sql.statements.policies import DropPolicy, RenamePolicy, SetRowSecurity
from sql.statements.role_spec import RoleSpec
from sql.syntax.grammar.definitions import DefinitionGrammar
from sql.syntax.nodes.policies import AlterPolicyStatement, Condition, CreatePolicyStatement
from sql.syntax.nodes.queries import TableName
from sql.syntax.nodes.statements import Utility
from sql.syntax.utility.role_names import role_specs

_SECURITY: Final[tuple[tuple[str, bool | None, bool | None], ...]] = (
    ("enable", True, None), ("disable", False, None), ("force", None, True), ("no force", None, False),
)  # fmt: skip


def policy_statement(
    cursor: DefinitionGrammar,
) -> CreatePolicyStatement | AlterPolicyStatement | Utility | None:
    """The whole statement, None if another one is next."""
    if cursor.accept("create", "policy"):
        return _create(cursor)
    if cursor.accept("alter", "policy"):
        return _alter(cursor)
    if cursor.accept("drop", "policy"):
        exists = cursor.accept("if", "exists")
        name, table = _on_table(cursor)
        cursor.cascade()
        return Utility(DropPolicy(name, (table.schema_name, table.name), exists))
    return None


def _on_table(cursor: DefinitionGrammar) -> tuple[str, TableName]:
    name = cursor.name()
    cursor.expect("on")
    return name, cursor.table_name()


def _create(cursor: DefinitionGrammar) -> CreatePolicyStatement:
    name, table = _on_table(cursor)
    permissive = True
    if cursor.accept("as"):
        at, word = cursor.token.start, cursor.name()
        if word not in ("permissive", "restrictive"):
            hint = "Only PERMISSIVE or RESTRICTIVE policies are supported currently."
            raise SqlError("42601", f'unrecognized row security option "{word}"', hint=hint, position=at + 1)
        permissive = word == "permissive"
    command = "all"
    if cursor.accept("for"):
        found = cursor.accept_one_of(*COMMANDS)
        if found is None:
            raise cursor.error()
        command = found
    roles = role_specs(cursor) if cursor.accept("to") else (RoleSpec("", "public"),)
    using, check = _conditions(cursor)
    if command in ("select", "delete") and check is not None:
        raise SqlError("42601", "WITH CHECK cannot be applied to SELECT or DELETE")
    if command == "insert" and using is not None:
        raise SqlError("42601", "only WITH CHECK expression allowed for INSERT")
    return CreatePolicyStatement(name, table, permissive, command, roles, using, check)


def _alter(cursor: DefinitionGrammar) -> AlterPolicyStatement | Utility:
    exists = cursor.accept("if", "exists")
    name, table = _on_table(cursor)
    if cursor.accept("rename", "to"):
        return Utility(RenamePolicy(name, (table.schema_name, table.name), cursor.name(), exists))
    roles = role_specs(cursor) if cursor.accept("to") else None
    return AlterPolicyStatement(name, table, roles, *_conditions(cursor))


def _conditions(cursor: DefinitionGrammar) -> tuple[Condition | None, Condition | None]:
    using = _condition(cursor) if cursor.accept("using") else None
    return using, _condition(cursor) if cursor.accept("with", "check") else None


def _condition(cursor: DefinitionGrammar) -> Condition:
    cursor.expect_symbol("(")
    start = cursor.token.start
    expr = cursor.expression()
    condition = Condition(expr, cursor.source(start, cursor.index), start)
    cursor.expect_symbol(")")
    return condition


def row_security(cursor: DefinitionGrammar, table: TableName, if_exists: bool) -> SetRowSecurity | None:
    """ENABLE, DISABLE, FORCE or NO FORCE ROW LEVEL SECURITY of ALTER TABLE, None if another change is next."""
    for words, enabled, forced in _SECURITY:
        if cursor.accept(*words.split(), "row", "level", "security"):
            return SetRowSecurity((table.schema_name, table.name), enabled, forced, if_exists)
    return None
