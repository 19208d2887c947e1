"""DECLARE: the variables of a block that is entered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ivm.errors import SqlError
from ivm.words import TEXT, Kind, SqlType
from sql.bind.entry_points import ENTRY_POINTS
from sql.bind.environment import Environment, Parameters
from sql.catalog.catalog import CatalogReader, Relation
from sql.session.routines.plpgsql.frame import Frame
from sql.session.routines.plpgsql.scope import Scope, Variable
from sql.syntax.plpgsql.nodes import Declaration, DeclaredType

CURSOR = SqlType(Kind.TEXT)
"""What a cursor variable holds: the cursor's name."""


def declare(frame: Frame, declarations: Sequence[Declaration]) -> None:
    """Add a block's variables, each of which sees those before it. Raises what their defaults do."""
    running = frame.statement
    for declaration in declarations:
        frame.statement = f"line {declaration.line} during statement block local variable initialization"
        given = None if declaration.default is None else frame.value(declaration.default)
        variable = declared(frame.nested.names, frame.scope, declaration)
        if given is not None:
            frame.initialise(variable, *given)
        elif variable.domain is not None:
            frame.checked(None, variable.domain.columns[0].type, variable.domain)
    frame.statement = running


def declared(names: CatalogReader, scope: Scope, declaration: Declaration) -> Variable:
    """A declaration's variable without its value. Raises 42704, 42P01, 42703, 42601."""
    if declaration.alias is not None:
        found = scope.find(declaration.alias)
        if found is None or found[1]:
            raise SqlError("42704", f'variable "{".".join(declaration.alias)}" does not exist')
        scope.names[declaration.name] = found[0]
        return found[0]
    if declaration.type is None:
        return scope.add(Variable(declaration.name, TEXT, cursor=declaration))
    type_, record = variable_type(names, scope, declaration.type)
    return scope.add(of_type(declaration.name, type_, record, declaration.constant, declaration.not_null))


def of_type(name: str, type_: SqlType | None, record: bool, constant: bool = False, not_null: bool = False) -> Variable:
    """A variable of what ``variable_type`` gives."""
    plain, domain = (None, None) if type_ is None else (replace(type_, domain=None), type_.domain)
    return Variable(name, plain, None, constant, not_null, record, domain=domain)


def variable_type(names: CatalogReader, scope: Scope, declared_: DeclaredType) -> tuple[SqlType | None, bool]:
    """A variable's type (None: a record without a value), with its domain, and whether it is a record."""
    if declared_.row_of is not None:
        return row_type(_relation(names, declared_.row_of)), False
    if declared_.copied is not None:
        return _copied(names, scope, declared_.copied)
    name = declared_.name
    assert name is not None, "a type by name"
    if name.name == "record" and name.schema is None and not name.array:
        return None, True
    if name.name == "refcursor" and not name.array:
        return CURSOR, False
    env = Environment(names, Parameters(), ENTRY_POINTS)
    try:
        return env.field_type(name), False
    except SqlError as error:
        relation = names.resolve(name.schema, name.name) if error.sqlstate == "42704" and not name.array else None
        if relation is None:
            raise SqlError(error.sqlstate, error.message, error.detail, error.hint) from None
        return row_type(relation), False


def _copied(names: CatalogReader, scope: Scope, name: tuple[str, ...]) -> tuple[SqlType | None, bool]:
    """``variable%TYPE`` or ``table.column%TYPE``."""
    found = scope.find(name)
    if found is not None:
        variable, rest = found
        if rest:
            return variable.part(rest)[1], False
        return None if variable.type is None else replace(variable.type, domain=variable.domain), variable.record
    if len(name) == 1:
        raise SqlError("42601", 'syntax error at or near "%"')
    relation = _relation(names, name[:-1])
    column = next((c for c in relation.columns if c.name == name[-1]), None)
    if column is None:
        raise SqlError("42703", f'column "{name[-1]}" of relation "{relation.name}" does not exist')
    return replace(column.type, domain=column.domain), False


def _relation(names: CatalogReader, name: tuple[str, ...]) -> Relation:
    found = names.resolve(name[-2] if len(name) > 1 else None, name[-1])
    if found is None:
        raise SqlError("42P01", f'relation "{".".join(name)}" does not exist')
    return found


def row_type(relation: Relation) -> SqlType:
    """The type of a relation's rows."""
    return SqlType(Kind.RECORD, fields=tuple((c.name, c.type) for c in relation.columns))
