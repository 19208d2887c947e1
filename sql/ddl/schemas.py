"""ALTER SCHEMA, as a change of the catalog."""

from __future__ import annotations

from dataclasses import replace

from ivm.errors import SqlError, unsupported
from sql.bind.renamed import renamed_text
from sql.catalog.catalog import INTERNAL_SCHEMAS, Relation, RelationKind
from sql.catalog.search_path import no_schema
from sql.ddl.acting import Actor
from sql.ddl.owners import set_schema_owner
from sql.engine.writer import Writer
from sql.statements.definitions import AlterSchema


def alter_schema(writer: Writer, statement: AlterSchema, actor: Actor) -> None:
    """Rename a schema, or give it to its owner. Views keep their meaning, since they know relations by their ids.

    Raises 3F000, 42P06, 42939, 42501, 42704; 0A000 if a function or a type of the schema is used by its name.
    """
    catalog, name, new = writer.catalog, statement.name, statement.new
    if name in INTERNAL_SCHEMAS:
        raise SqlError("42501", f"must be owner of schema {name}")
    if name not in catalog.schemas:
        raise no_schema(name)
    if statement.owner is not None:
        set_schema_owner(writer, actor, name, statement.owner)
    if new is None:
        return
    if catalog.has_schema(new):
        raise SqlError("42P06", f'schema "{new}" already exists')
    if new.startswith("pg_"):
        detail = 'The prefix "pg_" is reserved for system schemas.'
        raise SqlError("42939", f'unacceptable schema name "{new}"', detail)
    inside = catalog.inside([name])
    if any(r.kind in (RelationKind.FUNCTION, RelationKind.OPERATOR, RelationKind.TYPE) for r in inside):
        _check_names(list(catalog.relations.values()), name)
    schemas = {new if n == name else n: oid for n, oid in catalog.schemas.items()}
    writer.catalog = replace(catalog, schemas=schemas, version=writer.engine.next_version())
    for relation in inside:
        writer.redefine(replace(writer.catalog.relations[relation.id], schema_name=new))


def _check_names(relations: list[Relation], name: str) -> None:
    """0A000 if the text of a default, a check, an index or a body has the schema's name before a dot."""
    for relation in relations:
        texts = [t for c in relation.columns for t in (c.default, c.expression)]
        texts += [c.text for c in relation.checks] + [t for i in relation.indexes for t in (*i.expressions, i.where)]
        texts += [relation.definition] if relation.routine is not None else []
        if any(t is not None and renamed_text(t, name, f"{name}?", table=True) != t for t in texts):
            raise unsupported(f"renaming schema {name}, which {relation.name} mentions")
