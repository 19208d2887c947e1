"""Views' errors, as reported to readers of the views."""

from __future__ import annotations

from ivm.errors import SqlError
from sql.catalog.catalog import Catalog
from sql.engine.snapshot import Published, first_of
from storage.dictionary import Dictionary


def standing_error(published: Published, relation: int, ordinal: int, dictionary: Dictionary) -> SqlError | None:
    """The first of a view's errors as of an ordinal."""
    return first_of(published.errors(relation), ordinal, dictionary)


def in_view(error: SqlError, catalog: Catalog, relation: int) -> SqlError:
    """An error with the name of its view, and a hint."""
    known = catalog.by_id(relation)
    hint = "SET ignore_view_errors = on reads the good rows."
    if known is None:  # a subscription's own query
        return SqlError(error.sqlstate, error.message, error.detail, error.hint or hint)
    message = f"{error.message} (in materialized view {known.name})"
    return SqlError(error.sqlstate, message, error.detail, error.hint or f"See freshet.view_errors; {hint}")
