"""int2vector and oidvector in a result: text with spaces between the elements (``1 2``), as clients parse it.

Within queries they are arrays.
"""

from __future__ import annotations

from dataclasses import replace

from ivm.words import TEXT
from planner.expr.scalar import Call, Column, Literal, Scalar
from planner.logical.nodes import schema
from sql.catalog.system.definitions import is_vector
from sql.statements.queries import OutputColumn, Query

_AS_TEXT = "array_to_string(anyarray,text)"


def shown(query: Query) -> Query:
    """A statement's query whose vector columns become text when the rows are sent."""
    arrays = [(i, c) for i, c in enumerate(query.columns) if c.type.element is not None]
    places = {i for i, c in arrays if c.table and is_vector(c.table, c.attribute)}
    if not places or query.finishing.project is not None:
        return query
    exprs: list[Scalar] = []
    for i, column in enumerate(schema(query.rel)[: len(query.columns)]):
        value = Column(i, column.type, column.nullable)
        exprs.append(Call(_AS_TEXT, (value, Literal(" ", TEXT)), TEXT, column.nullable) if i in places else value)
    columns = tuple(
        OutputColumn(c.name, TEXT, c.table, c.attribute) if i in places else c for i, c in enumerate(query.columns)
    )
    return replace(query, columns=columns, finishing=replace(query.finishing, project=tuple(exprs)))
