"""Text as the input of a type that a text names."""

from __future__ import annotations

from ivm.errors import SqlError
from ivm.words import UNKNOWN
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import constant
from planner.expr.scalar import Literal
from sql.bind.coerce import cast
from sql.bind.entry_points import environment_of
from sql.catalog.catalog import CatalogReader
from sql.parse import parse_type_name
from storage.types.type_names import typmod


def input_error(names: CatalogReader, context: Context, text: str, type_: str) -> SqlError | None:
    """Why the type's input function, or its domain's constraints, refuse the text; None: they take it. Raises 42601 and
    42704 for a name that is no type's."""
    env, name = environment_of(names), parse_type_name(type_)
    wanted = env.field_type(name)
    try:
        constant(cast(env, Literal(text, UNKNOWN), wanted, "assignment", 0), context)
    except SqlError as error:
        return error
    return None


def modifier(names: CatalogReader, type_: str) -> int | None:
    """A type name's modifier, -1 without any; None if there is no such type. Raises 42601."""
    env, name = environment_of(names), parse_type_name(type_)
    try:
        return -1 if env.domain(name) is not None else typmod(env.type(name))
    except SqlError as error:
        if error.sqlstate == "42704":
            return None
        raise
