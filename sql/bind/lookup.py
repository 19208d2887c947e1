"""The relation that a name in a statement means."""

from __future__ import annotations

import difflib
from dataclasses import replace

from ivm.errors import SqlError
from sql.bind.environment import Environment
from sql.catalog.catalog import Relation, RelationKind
from sql.catalog.search_path import Recorder, SearchPathReader
from sql.syntax.nodes import queries as nodes


def lookup(env: Environment, ref: nodes.TableName) -> Relation:
    """The relation of this name. Raises 42P01; 42809 for a sink."""
    try:
        relation = env.catalog.resolve(ref.schema_name, ref.name)
    except SqlError as error:
        raise replace(error, position=ref.at + 1) from None
    if relation is None or relation.signed:
        shown = f"{ref.schema_name}.{ref.name}" if ref.schema_name else ref.name
        message, hint = f'relation "{shown}" does not exist', _nearest(env, ref.name)
        raise SqlError("42P01", message, hint=hint, position=ref.at + 1)
    if relation.kind is RelationKind.SINK:
        hint = "A sink cannot be read. freshet.sinks shows its progress."
        raise SqlError("42809", f'"{relation.name}" is a sink', hint=hint, position=ref.at + 1)
    if isinstance(env.catalog, Recorder):
        env.catalog.record(ref.schema_name, ref.name, ref.at)
    return relation


def lookup_in_schema(env: Environment, ref: nodes.TableName) -> Relation:
    """The same, but 3F000 where the name is qualified with a schema that does not exist."""
    if ref.schema_name is not None and env.catalog.resolve(ref.schema_name, ref.name) is None:
        try:
            env.catalog.home(ref.schema_name, False)
        except SqlError as error:
            if error.sqlstate == "3F000":
                raise
    return lookup(env, ref)


def _nearest(env: Environment, name: str) -> str | None:
    """A hint at the relation of the most similar name."""
    reader = env.catalog.catalog if isinstance(env.catalog, Recorder) else env.catalog
    known = (
        [n for s, n in reader.catalog.names if s in reader.path.places] if isinstance(reader, SearchPathReader) else []
    )
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f'Perhaps you meant to reference the relation "{close[0]}".' if close else None
