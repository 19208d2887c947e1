"""Views' errors, as reported to readers of the views."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ivm.errors import SqlError
from planner.expr.row_errors import failure_among, least_error
from sql.catalog.catalog import Catalog, Relation
from sql.catalog.securables import securable, sees_below
from sql.engine.persist import Persistence
from sql.engine.snapshot import Published, first_of
from storage.dictionary import Dictionary
from storage.duck import Store


@dataclass(frozen=True, slots=True)
class BrokenView:
    """A view that has an error at a read point. ``down``: as a whole, so that it has no good rows either."""

    relation: int
    error: SqlError
    down: bool = False


def broken_view(published: Published, ordinal: int, relation: int, dictionary: Dictionary) -> BrokenView | None:
    """A relation's error as of an ordinal."""
    failure = published.failures.get(relation)
    if failure is not None:
        return BrokenView(relation, failure, down=True)
    error = standing_error(published, relation, ordinal, dictionary)
    return None if error is None else BrokenView(relation, error)


def broken_then(store: Store, epoch: int, view: Relation, dictionary: Dictionary) -> BrokenView | None:
    """A view's error at an epoch that the store remembers. 22023: it is not known that far back."""
    texts = errors_then(store, epoch, view, dictionary)
    failure = failure_among(texts)
    if failure is not None:
        return BrokenView(view.id, failure, down=True)
    return BrokenView(view.id, least_error(texts)) if texts else None


def errors_then(store: Store, epoch: int, view: Relation, dictionary: Dictionary) -> list[bytes]:
    """A view's error rows at an epoch that the store remembers. 22023: they are not known that far back."""
    try:
        return dictionary.lookup(store.errors(view.id, epoch))
    except SqlError as error:
        if error.sqlstate != "22023":
            raise
        message = f"whether materialized view {view.name} had errors at {epoch} is not known"
        hint = "SET ignore_view_errors = on reads the good rows of that time."
        raise SqlError("22023", message, error.detail, hint) from None


def store_at(epoch: int, persistence: Persistence | None) -> Store:
    """The store, once it has an epoch that memory does not distinguish any more. Blocks."""
    assert persistence is not None, "history is kept in the store"
    if max(epoch, persistence.returned) > persistence.applied_epoch:
        persistence.flush()
    return persistence.store


def standing_error(published: Published, relation: int, ordinal: int, dictionary: Dictionary) -> SqlError | None:
    """The first of a view's errors as of an ordinal."""
    return first_of(published.errors(relation), ordinal, dictionary)


def in_view(error: SqlError, catalog: Catalog, relation: int, role: int) -> SqlError:
    """An error with the name of its view, and a hint, as a role may know it."""
    known = catalog.by_id(relation)
    if type(error) is not SqlError:  # ParkedError says by its type more than is shown
        error = SqlError(error.sqlstate, error.message, error.detail, error.hint, of_row=error.of_row)
    hint = "SET ignore_view_errors = on reads the good rows."
    if known is None:  # a subscription's own query
        return replace(error, hint=error.hint or hint)
    if not error.of_row:  # the view is down as a whole
        message = f"{error.message} (in materialized view {known.name})"
        return replace(error, message=message, hint=error.hint or f"See freshet.view_errors; {hint}")
    if not may_know(catalog, role, known):
        message = f"an expression in materialized view {known.name} fails for one of its rows"
        return SqlError(error.sqlstate, message, hint=f"Its owner can see why. {hint}")
    message = f"{error.message} (in materialized view {known.name})"
    shown = replace(error, message=message, hint=error.hint or f"See freshet.view_errors; {hint}")
    return shown if sees_below(catalog, role, known) else replace(shown, detail=None, of_row=False)


def may_know(catalog: Catalog, role: int, view: Relation) -> bool:
    """Whether a role may know which values a view's expressions fail for."""
    return catalog.access.owns(role, securable(view)) or sees_below(catalog, role, view)
