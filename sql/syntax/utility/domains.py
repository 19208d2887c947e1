"""CREATE, ALTER and DROP DOMAIN."""

from __future__ import annotations

from ivm.errors import SqlError, unsupported
from sql.statements.rename import Named
from sql.statements.roles import ChangeOwner
from sql.statements.types import (
    DomainDefault,
    DomainNotNull,
    DropDomainCheck,
    DropType,
    RenameDomainCheck,
    RenameType,
    ValidateDomainCheck,
)
from sql.syntax.grammar.columns import ColumnGrammar
from sql.syntax.nodes.constraints import CheckConstraint, ExcludeConstraint, ForeignKeyConstraint, KeyConstraint
from sql.syntax.nodes.domains import AddDomainCheck, AlterDomainStatement, CreateDomainStatement, SetDomainDefault
from sql.syntax.nodes.queries import Expr, TableName
from sql.syntax.nodes.statements import Statement, Utility
from sql.syntax.utility.role_names import role_spec


def domain_statement(cursor: ColumnGrammar) -> Statement | None:
    """The whole statement, None if another one is next. Raises 42601, 0A000."""
    if cursor.accept("create", "domain"):
        return _create(cursor)
    if cursor.accept("drop", "domain"):
        exists = cursor.accept("if", "exists")
        names = tuple((n.schema_name, n.name) for n in cursor.listed(cursor.table_name))
        return Utility(DropType(names, exists, cursor.cascade(), domains=True))
    return _alter(cursor) if cursor.accept("alter", "domain") else None


def _create(cursor: ColumnGrammar) -> CreateDomainStatement:
    name = cursor.table_name()
    cursor.accept("as")
    type_ = cursor.type_name()
    default: tuple[Expr, str] | None = None
    not_null: bool | None = None
    checks: list[CheckConstraint] = []
    while not cursor.at_end() and not cursor.is_symbol(";"):
        at = cursor.token.start
        if cursor.accept("collate"):
            cursor.table_name()
            continue
        named = cursor.constraint_name()
        if cursor.accept("default"):
            if default is not None:
                raise SqlError("42601", "multiple default expressions", position=at + 1)
            default = cursor.default()
        elif cursor.is_word("null") or cursor.is_word("not", "null"):
            given = cursor.accept("not")
            cursor.expect("null")
            if not_null not in (None, given):
                raise SqlError("42601", "conflicting NULL/NOT NULL constraints", position=at + 1)
            not_null = given
        else:
            checks.append(_check(cursor, named))
    return CreateDomainStatement(name, type_, default, bool(not_null), tuple(checks))


def _check(cursor: ColumnGrammar, name: str | None) -> CheckConstraint:
    """A CHECK. Raises 42601 for a constraint of another kind."""
    at = cursor.token.start
    found = cursor.column_constraint(name, (), at)
    match found:
        case CheckConstraint():
            if found.no_inherit:
                message = "check constraints for domains cannot be marked NO INHERIT"
                raise SqlError("42601", message, position=at + 1)
            return found
        case KeyConstraint():
            kind = "primary key" if found.primary else "unique"
        case ForeignKeyConstraint():
            kind = "foreign key"
        case ExcludeConstraint():
            kind = "exclusion"
        case None:
            raise cursor.error()
    raise SqlError("42601", f"{kind} constraints not possible for domains", position=at + 1)


def _alter(cursor: ColumnGrammar) -> Statement:
    name = cursor.table_name()
    at = cursor.token.start
    if cursor.accept("set", "default"):
        return AlterDomainStatement(name, SetDomainDefault(cursor.changed_default()))
    if cursor.accept("drop", "default"):
        return AlterDomainStatement(name, DomainDefault(None))
    if cursor.accept("set", "not", "null"):
        return AlterDomainStatement(name, DomainNotNull(True))
    if cursor.accept("drop", "not", "null"):
        return AlterDomainStatement(name, DomainNotNull(False))
    if cursor.accept("drop", "constraint"):
        exists = cursor.accept("if", "exists")
        constraint = cursor.name()
        cursor.cascade()
        return AlterDomainStatement(name, DropDomainCheck(constraint, exists))
    if cursor.accept("validate", "constraint"):
        return AlterDomainStatement(name, ValidateDomainCheck(cursor.name()))
    if cursor.accept("rename", "constraint"):
        old = cursor.name()
        cursor.expect("to")
        return AlterDomainStatement(name, RenameDomainCheck(old, cursor.name()))
    if cursor.accept("rename", "to"):
        return Utility(RenameType(name.schema_name, name.name, cursor.label(), domain=True))
    if cursor.accept("owner", "to"):
        return Utility(ChangeOwner(Named("domain", name.schema_name, name.name), role_spec(cursor)))
    if cursor.accept("add"):
        return _added(cursor, name)
    hint = "DEFAULT, NOT NULL, constraints, RENAME TO and OWNER TO are there."
    raise unsupported("such an ALTER DOMAIN", hint, at + 1)


def _added(cursor: ColumnGrammar, name: TableName) -> AlterDomainStatement:
    constraint = cursor.constraint_name()
    check = _check(cursor, constraint)
    return AlterDomainStatement(name, AddDomainCheck(check))
