"""Values of domains: values of the base type, checked against the domain's constraints."""

from __future__ import annotations

from collections.abc import Iterator

from ivm.errors import unsupported
from ivm.words import BOOL, TEXT
from planner.expr.functions.domains import DOMAIN_CHECK
from planner.expr.scalar import Call, Case, Column, Literal, Scalar
from planner.identifiers import quoted
from planner.logical.traversal import substitute
from sql.bind.environment import Environment
from sql.bind.namespace import Visible, one_table
from sql.bind.scope import NameScope
from sql.bind.volatile import is_volatile
from sql.catalog.catalog import Relation
from sql.parse import parse_expression

_CLAUSE = "check constraints"


def domain_value(env: Environment, domain: Relation, value: Scalar) -> Scalar:
    """A value of the base type, as it is if it meets the domain's constraints. It raises 23502, 23514 if not, for the
    domain below first. Raises 0A000 for a volatile value: the checks would compute another one."""
    if is_volatile(value):
        raise unsupported(f"a cast of a volatile value to domain {domain.name}", "Store the value in a table first.")
    checked = value
    for name, condition in reversed(list(_constraints(env, domain, value))):
        names = Literal(quoted(domain.name), TEXT), Literal(name, TEXT)
        met = Call(DOMAIN_CHECK, (condition, *names), BOOL, False)
        checked = Case(((met, checked),), Literal(None, value.type), value.type, True)
    return checked


def _constraints(env: Environment, domain: Relation, value: Scalar) -> Iterator[tuple[str | None, Scalar]]:
    """The conditions and their names: that of NOT NULL, which has none, and the others in order of their names."""
    if not_null(domain):
        yield None, Call("is not null", (value,), BOOL, False)
    yield from _conditions(env, domain, value)


def not_null(domain: Relation) -> bool:
    """Whether the domain, or one below it, is NOT NULL."""
    column = domain.columns[0]
    return not column.nullable or (column.domain is not None and not_null(column.domain))


def _conditions(env: Environment, domain: Relation, value: Scalar) -> Iterator[tuple[str, Scalar]]:
    column = domain.columns[0]
    if column.domain is not None:
        yield from _conditions(env, column.domain, value)
    seen = Visible("value", Column(0, column.type, True))
    scope = NameScope(one_table(domain.name, (seen,)), clause=_CLAUSE)
    for check in sorted(domain.checks, key=lambda c: c.name):
        condition = env.binder(scope, _CLAUSE).condition(parse_expression(check.text), "CHECK")
        yield check.name, substitute(condition, (value,))
