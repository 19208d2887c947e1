"""Values of domains: values of the base type, checked against the domain's constraints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ivm.errors import unsupported
from ivm.words import BOOL, TEXT
from planner.expr.functions.domains import DOMAIN_CHECK
from planner.expr.scalar import Call, Case, Column, Literal, Scalar
from planner.identifiers import quoted
from planner.logical.traversal import substitute
from sql.bind.environment import Environment
from sql.bind.namespace import Visible, one_table
from sql.bind.row_fields import fields_of
from sql.bind.scope import NameScope
from sql.bind.volatile import is_volatile
from sql.catalog.catalog import Relation
from sql.catalog.composite import has_domains
from sql.parse import parse_expression

_CLAUSE = "check constraints"


def domain_value(env: Environment, domain: Relation, value: Scalar) -> Scalar:
    """A value of the base type, as it is if it meets the domain's constraints. It raises 23502, 23514 if not, for the
    domain below first. Raises 0A000 for a volatile value: the checks would compute another one."""
    if is_volatile(value):
        raise unsupported(f"a cast of a volatile value to domain {domain.name}", "Store the value in a table first.")
    return _if_met(value, _checks(env, domain, value))


def with_checked_fields(env: Environment, value: Scalar) -> Scalar:
    """A value, as it is if the fields of rows inside it meet the constraints of their domains. Raises 23502, 23514,
    and 0A000 for an array of such rows and for a volatile value."""
    if not has_domains(value.type) or (isinstance(value, Literal) and value.value is None):
        return value
    if value.type.element is not None:
        raise unsupported("an array of rows with a field of a domain")
    if is_volatile(value):
        raise unsupported("a volatile value as a row with a field of a domain", "Store the value in a table first.")
    env.domains.extend(t.domain.name for _, t in value.type.fields if t.domain is not None)
    return _if_met(value, _field_checks(env, value))


def _if_met(value: Scalar, checks: Iterable[Scalar]) -> Scalar:
    """The value, if the checks do not raise, in their order."""
    found = value
    for met in reversed(list(checks)):
        found = Case(((met, found),), Literal(None, value.type), value.type, True)
    return found


def _field_checks(env: Environment, row: Scalar) -> Iterator[Scalar]:
    """The checks of a row's fields, which a NULL in place of the row passes."""
    absent = Call("is null", (row,), BOOL, False)
    for value, (_, type_) in zip(fields_of(row), row.type.fields, strict=True):
        checks = _field_checks(env, value) if type_.domain is None else _checks(env, type_.domain, value)
        for met in checks if has_domains(type_) or type_.domain is not None else ():
            yield Case(((absent, Literal(True, BOOL)),), met, BOOL, False)


def _checks(env: Environment, domain: Relation, value: Scalar) -> Iterator[Scalar]:
    """The checks of a domain's value: those of its fields come first."""
    if value.type.fields:
        yield from _field_checks(env, value)
    for name, condition in _constraints(env, domain, value):
        names = Literal(quoted(domain.name), TEXT), Literal(name, TEXT)
        yield Call(DOMAIN_CHECK, (condition, *names), BOOL, False)


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
