"""Values of domains: values of the base type, checked against the domain's constraints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ivm.words import BOOL, TEXT, SqlType
from planner.expr.functions.domains import DOMAIN_CHECK
from planner.expr.scalar import And, Call, Case, Checked, Column, Exists, Literal, Or, Quantified, Scalar
from planner.identifiers import quoted
from planner.logical.traversal import substitute
from sql.bind.environment import Environment
from sql.bind.namespace import Visible, one_table
from sql.bind.row_fields import fields_of
from sql.bind.scope import NameScope
from sql.catalog.catalog import Relation
from sql.catalog.composite import has_domains, without_domain
from sql.parse import parse_expression

_CLAUSE = "check constraints"


def domain_value(env: Environment, type_: SqlType, value: Scalar) -> Scalar:
    """A value of the type but for its domains, as the type. It raises 23502 and 23514 if it, a field or an element
    does not meet its domain's constraints, for the domain below first."""
    checks = tuple(_checks(env, type_, Column(0, without_domain(type_), True)))
    if not checks:
        return of_type(value, type_)
    return Checked(value, checks[0] if len(checks) == 1 else And(checks), type_)


def of_type(value: Scalar, type_: SqlType) -> Scalar:
    """The value with a type that is the same but for its domain."""
    if not isinstance(value, And | Or | Exists | Quantified):
        return replace(value, type=type_)
    return Call("cast", (value,), type_, value.nullable)


def _checks(env: Environment, type_: SqlType, value: Scalar) -> Iterator[Scalar]:
    """The checks of a value of a type: those of what is inside it come first. They are never false, but raise."""
    domain: Relation | None = type_.domain
    if type_.element is not None:
        yield from _element_checks(env, type_, value)
    if type_.fields:
        yield from _field_checks(env, type_, value)
    if domain is not None:
        for name, condition in _constraints(env, domain, value):
            names = Literal(quoted(domain.name), TEXT), Literal(name, TEXT)
            yield Call(DOMAIN_CHECK, (condition, *names), BOOL, False)


def _element_checks(env: Environment, array: SqlType, value: Scalar) -> Iterator[Scalar]:
    assert array.element is not None
    checks = tuple(_checks(env, array.element, Column(0, without_domain(array.element), True)))
    if checks:
        checked = Checked(value, checks[0] if len(checks) == 1 else And(checks), without_domain(array), True)
        yield Or((Call("is null", (checked,), BOOL, False), Literal(True, BOOL)))


def _field_checks(env: Environment, type_: SqlType, row: Scalar) -> Iterator[Scalar]:
    """The checks of a row's fields, which a NULL in place of the row passes."""
    absent = Call("is null", (row,), BOOL, False)
    for value, (_, field) in zip(fields_of(row), type_.fields, strict=True):
        if field.domain is not None or has_domains(field):
            for met in _checks(env, field, value):
                yield Case(((absent, Literal(True, BOOL)),), met, BOOL, False)


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
