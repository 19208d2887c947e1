"""CREATE [OR REPLACE] FUNCTION, PROCEDURE and AGGREGATE, as changes of a writer's catalog."""

from __future__ import annotations

from dataclasses import replace

from ivm.errors import SqlError, unsupported
from sql.catalog.catalog import Relation, RelationKind
from sql.catalog.routine import Routine
from sql.catalog.search_path import SearchPathReader, check_creatable
from sql.catalog.user_types import signature_types
from sql.ddl.acting import Actor
from sql.ddl.create import Definer
from sql.ddl.owners import set_owner
from sql.ddl.routine_bodies import check_body
from sql.statements.results import Notice
from sql.statements.routines import AlterFunction, CreateFunction


def create_function(definer: Definer, statement: CreateFunction) -> None:
    """Create the routine, or replace the body of the one with this signature. Raises 42723, 42809, 42P13, and the
    errors of the body."""
    writer, made = definer.writer, statement.relation
    definer.check_schema(made.schema_name)
    catalog = writer.catalog
    for message in statement.warnings:
        definer.notify(Notice("WARNING", "42601", message))
    check_creatable(made.schema_name, made.name)
    old = catalog.names.get((made.schema_name, made.name))
    types = signature_types(catalog, made)
    dependencies = tuple(sorted({*(i for i in made.dependencies if i in catalog.relations), *types}))
    found = replace(made, dependencies=dependencies, id=0 if old is None else old.id)
    if old is None:
        created = definer.relation(made.schema_name, made.name, RelationKind.FUNCTION, made.columns)
        found = replace(found, id=created.id, created=created.created)
        writer.create(found, None)
    else:
        _check_replaced(old, made, statement.replace)
        definer.check_dependents(old)
        assert made.routine is not None, "a routine"
        if old.id in {i for d in dependencies for i in (d, *(r.id for r in catalog.dependents([old.id])))}:
            recursive = replace(made.routine, statements=True)  # through other functions
            found = replace(found, routine=recursive, dependencies=types, references=())
        found = replace(found, created=old.created)
        writer.redefine(found)
    if definer.settings.boolean("check_function_bodies"):
        checked = check_body(found, SearchPathReader(writer.catalog, definer.names.path))
        if checked is not found:
            writer.redefine(checked)


def alter_function(definer: Definer, statement: AlterFunction, actor: Actor) -> None:
    """ALTER FUNCTION. Raises 42723, 42704, and 0A000 where a view uses the function."""
    old, new, writer = statement.old, statement.new, definer.writer
    if statement.owner is not None:
        set_owner(writer, actor, old, statement.owner)
    if new == old:
        return
    if (new.schema_name, new.name) != (old.schema_name, old.name):
        check_creatable(new.schema_name, new.name)
        if (new.schema_name, new.name) in writer.catalog.names:
            shown = new.name.replace(",", ", ")
            message = f'function {shown} already exists in schema "{new.schema_name}"'
            raise SqlError("42723", message)
        if writer.catalog.dependents([old.id]):
            raise unsupported(f"renaming function {old.name}, which other objects use,")
    definer.check_dependents(old)
    writer.redefine(new)


def _check_replaced(old: Relation, made: Relation, replace: bool) -> None:
    """Whether a routine may take the place of the one with its signature."""
    before, after = old.routine, made.routine
    assert before is not None, "only functions have such names"
    assert after is not None, "a routine"
    if not replace:
        raise SqlError("42723", f'function "{before.name}" already exists with same argument types')
    if before.kind != after.kind:
        kind = {"aggregate": "an aggregate function"}.get(before.kind, f"a {before.kind}")
        raise SqlError("42809", "cannot change routine kind", f'"{before.name}" is {kind}.')
    hint = f"Use DROP {before.kind.upper()} {old.name} first."
    types = [[c.type for c in relation.columns] for relation in (old, made)]
    same = before.returns_set == after.returns_set and before.result == after.result
    if not same or (types[0] != types[1] and not after.record):
        detail = None
        if before.outputs and after.outputs and before.result == after.result:
            detail = "Row type defined by OUT parameters is different."
        message = "cannot change return type of existing function"
        if before.procedure and before.returns_nothing != after.returns_nothing:
            message = "cannot change whether a procedure has output parameters"
        raise SqlError("42P13", message, detail, hint)
    _check_parameters(before, after, hint)


def _check_parameters(before: Routine, after: Routine, hint: str) -> None:
    for old, new in zip(before.arguments, after.arguments, strict=True):
        if old.name is not None and old.name != new.name:
            raise SqlError("42P13", f'cannot change name of input parameter "{old.name}"', hint=hint)
    if before.optional > after.optional:
        raise SqlError("42P13", "cannot remove parameter defaults from existing function", hint=hint)
