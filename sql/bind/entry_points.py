"""Where the recursion of SQL's grammar is tied: the upper layers, as ``Environment`` gives them to the lower ones."""

from __future__ import annotations

from typing import Final

from sql.bind.dml import bind_change
from sql.bind.environment import EntryPoints, Environment, Parameters
from sql.bind.expression import ExpressionBinder
from sql.bind.operator_calls import call_operator
from sql.bind.query import bind_query
from sql.catalog.catalog import Catalog, CatalogReader
from sql.catalog.search_path import SearchPathReader

ENTRY_POINTS: Final = EntryPoints(ExpressionBinder, bind_query, bind_change, call_operator)


def environment_of(catalog: CatalogReader) -> Environment:
    """The environment of an expression or a body that the catalog keeps, which has no parameters."""
    return Environment(catalog, Parameters(), ENTRY_POINTS)


def empty_environment() -> Environment:
    """The environment of an expression over the columns of one table, which reads no relations."""
    return environment_of(SearchPathReader(Catalog()))
