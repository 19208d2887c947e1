"""CREATE and ALTER OPERATOR, as changes of a writer's catalog (pg_operator.c)."""

from __future__ import annotations

from dataclasses import replace

from ivm.errors import SqlError, unsupported
from sql.bind.routine_resolution import argument_type_name
from sql.catalog.catalog import Relation, RelationKind
from sql.catalog.operators import Operator, operator_name
from sql.catalog.search_path import check_creatable
from sql.catalog.user_types import types_inside
from sql.ddl.acting import Actor
from sql.ddl.create import Definer
from sql.ddl.owners import set_owner
from sql.statements.results import Notice
from sql.statements.routines import AlterOperator, CreateOperator

OtherName = tuple[str | None, str]


def create_operator(definer: Definer, statement: CreateOperator) -> None:
    """Create the operator, or fill the shell of it; its commutator and negator become shells where they are missing,
    and are linked back. Raises 42723, 42P13, 42501, 0A000."""
    made, writer = statement.relation, definer.writer
    for message in statement.warnings:
        definer.notify(Notice("WARNING", "42601", message))
    check_creatable(made.schema_name, made.name)
    if made.temporary:
        raise unsupported("a temporary operator")
    assert made.operator is not None, "an operator"
    old = writer.catalog.names.get((made.schema_name, made.name))
    if old is not None and old.operator is not None and not old.operator.shell:
        raise SqlError("42723", f"operator {made.operator.symbol} already exists")
    if old is None:
        old = definer.relation(made.schema_name, made.name, RelationKind.OPERATOR, ())
        writer.create(old, None)
    types = types_inside(writer.catalog, made.operator.args)
    dependencies = tuple(sorted({*made.dependencies, *types}))
    new = replace(made, id=old.id, created=old.created, dependencies=dependencies)
    before = made.operator if old.operator is None else old.operator
    operator = replace(made.operator, commutator=before.commutator, negator=before.negator)
    writer.redefine(replace(new, operator=operator))
    operands = operator.args
    if statement.commutator is not None:
        other = _other(definer, statement.commutator, new, operands[::-1])
        operator = replace(operator, commutator=other.id)
    if statement.negator is not None:
        other = _other(definer, statement.negator, new, operands)
        if other.id == new.id:
            raise SqlError("42P13", "operator cannot be its own negator or sort operator")
        operator = replace(operator, negator=other.id)
    writer.redefine(replace(new, operator=operator))
    _link(definer, operator, new.id)


def _other(definer: Definer, name: OtherName, made: Relation, operands: tuple[object, ...]) -> Relation:
    """The commutator or negator of this name, as a shell if it is not there yet."""
    writer, names = definer.writer, replace(definer.names, catalog=definer.writer.catalog)
    schema_name, symbol = name
    left, right = operands if len(operands) > 1 else (None, operands[0])
    before, after = names.operators(schema_name, symbol)
    for relation in (*before, *after):
        if relation.operator is not None and (relation.operator.left, relation.operator.right) == (left, right):
            return relation
    shell = Operator(symbol, left, right)  # type: ignore[arg-type]
    place = names.home(schema_name, False)
    check_creatable(place, symbol)
    shown = operator_name(symbol, [argument_type_name(t) for t in shell.args])
    found = definer.relation(place, shown, RelationKind.OPERATOR, ())
    types = types_inside(writer.catalog, shell.args)
    found = replace(found, operator=shell, dependencies=tuple(sorted(types)))
    writer.create(found, None)
    return found


def _link(definer: Definer, operator: Operator, made: int) -> None:
    """The links back, where the others have none yet."""
    writer = definer.writer
    known = writer.catalog.relations
    other = known.get(operator.commutator)
    if other is not None and other.operator is not None and other.operator.commutator not in known:
        writer.redefine(replace(other, operator=replace(other.operator, commutator=made)))
    other = writer.catalog.relations.get(operator.negator)
    if other is not None and other.operator is not None and other.operator.negator not in known:
        writer.redefine(replace(other, operator=replace(other.operator, negator=made)))


def alter_operator(definer: Definer, statement: AlterOperator, actor: Actor) -> None:
    """ALTER OPERATOR. Raises 42704, 42723, 42501; 0A000 where another object uses one that changes its schema."""
    old, new, writer = statement.old, statement.new, definer.writer
    if statement.owner is not None:
        set_owner(writer, actor, old, statement.owner)
    if new == old:
        return
    if new.schema_name != old.schema_name:
        check_creatable(new.schema_name, new.name)
        if (new.schema_name, new.name) in writer.catalog.names:
            raise SqlError("42723", f'{new.name} already exists in schema "{new.schema_name}"')
        if writer.catalog.dependents([old.id]):
            raise unsupported(f"moving {old.name}, which other objects use,")
    writer.redefine(new)
