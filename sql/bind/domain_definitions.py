"""CREATE DOMAIN and ALTER DOMAIN: the base type, the DEFAULT and the conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from ivm.errors import SqlError
from planner.expr.scalar import Column
from planner.logical.traversal import has_subquery
from sql.bind.ddl import default_expression, home, is_pseudo
from sql.bind.entry_points import empty_environment
from sql.bind.environment import Environment
from sql.bind.namespace import Visible, one_table
from sql.bind.scope import NameScope
from sql.catalog.catalog import TableColumn
from sql.statements import types as bound
from sql.syntax.nodes import domains as nodes
from sql.syntax.nodes.constraints import CheckConstraint
from sql.syntax.nodes.queries import Expr
from storage.types.type_names import format_type

_CLAUSE = "check constraints"


def create_domain(env: Environment, node: nodes.CreateDomainStatement) -> bound.CreateDomain:
    """CREATE DOMAIN. Raises 42704, 3F000, 42601, 0A000, and the errors of the expressions."""
    schema_name = home(env, node.name, temporary=False)
    below = env.domain(node.type)
    type_ = env.type(node.type) if below is None else below.columns[0].type
    if is_pseudo(type_):
        message = f'"{format_type(type_)}" is not a valid base type for a domain'
        raise SqlError("42804", message, position=node.type.at + 1)
    text = None if below is None else below.columns[0].default
    value = TableColumn("value", type_, not node.not_null, text, domain=below)
    if node.default is not None:
        text = _default(env, value, *node.default)
    value = TableColumn("value", type_, not node.not_null, text, domain=below)
    checks = tuple(_check(value, c) for c in node.checks)
    return bound.CreateDomain(schema_name, node.name.name, value, checks)


def alter_domain(env: Environment, node: nodes.AlterDomainStatement) -> bound.AlterDomain:
    """ALTER DOMAIN. Raises 42704, 42809, and the errors of the expressions."""
    name, change = node.name, node.change
    found = env.catalog.type(name.schema_name, name.name)
    if found is None:
        shown = name.name if name.schema_name is None else f"{name.schema_name}.{name.name}"
        raise SqlError("42704", f'type "{shown}" does not exist')
    if not found.domain:
        raise SqlError("42809", f"{found.name} is not a domain")
    (value,) = found.columns
    match change:
        case nodes.SetDomainDefault():
            made: bound.DomainChange = bound.DomainDefault(_default(env, value, *change.default))
        case nodes.AddDomainCheck():
            made = _check(value, change.check)
        case (
            bound.DomainDefault() | bound.DomainNotNull() | bound.DomainCheck() | bound.DropDomainCheck()
            | bound.RenameDomainCheck() | bound.ValidateDomainCheck()
        ):  # fmt: skip
            made = change
        case _:
            assert_never(change)
    return bound.AlterDomain(name.schema_name, name.name, made)


def _default(env: Environment, value: TableColumn, node: Expr, text: str) -> str:
    default_expression(env, node, value.type, value.name)
    return text


def _check(value: TableColumn, node: CheckConstraint) -> bound.DomainCheck:
    visible: Sequence[Visible] = (Visible("value", Column(0, value.type, True)),)
    scope = NameScope(one_table("", tuple(visible)), clause=_CLAUSE)
    condition = empty_environment().binder(scope, _CLAUSE).condition(node.condition, "CHECK")
    if has_subquery(condition):
        raise SqlError("0A000", "cannot use subquery in check constraint", position=node.condition.at + 1)
    return bound.DomainCheck(node.name, node.text, node.valid)
