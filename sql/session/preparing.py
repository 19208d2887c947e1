"""A session's prepared statements: binding texts, finding statements by name, and the columns of their results."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Final

from ivm.errors import SqlError
from ivm.words import BYTEA, INT8, TEXT, SqlType
from sql.catalog.catalog import Catalog
from sql.coordination.planning import is_long
from sql.coordination.prepared import Prepared
from sql.parse import StatementText, parse
from sql.session.portal import NamedStatement
from sql.session.state import SessionState
from sql.session.subscription import subscribe_columns
from sql.session.transactions import aborted, ends_failed_block
from sql.statements import statements as bound
from sql.statements.queries import OutputColumn, Query
from sql.statements.routines import CallProcedure
from sql.syntax.nodes.statements import Utility
from storage.types.type_names import type_oid

VERIFY_DICTIONARY_COLUMNS = (OutputColumn("problem", TEXT), OutputColumn("id", INT8), OutputColumn("value", BYTEA))


TRANSACTION_CONTROL: Final = bound.Begin, bound.Commit, bound.Rollback, bound.PrepareTransaction, bound.Savepoint
"""The statements that begin and end transactions and savepoints."""


def prepare(session: SessionState, statement: StatementText, types: tuple[SqlType | None, ...] = ()) -> Prepared:
    """Parse and bind a statement, or find it in the shared cache. ``types``: of its parameters, None to infer.

    Raises SqlError, whose position counts from the start of the query string.
    """
    if session.failed:
        tree = parse(statement)
        if not (isinstance(tree, Utility) and ends_failed_block(tree.statement)):
            raise aborted()
    return prepare_over(session, statement, session.catalog, types)


def prepare_over(
    session: SessionState, statement: StatementText, catalog: Catalog, types: tuple[SqlType | None, ...] = ()
) -> Prepared:
    """The same over a catalog other than that of the session's transaction."""
    cache = session.coordinator.statements
    try:
        return cache.prepare(statement, catalog, session.path(catalog), types, session.settings)
    except SqlError as error:
        if error.position is None or not statement.offset:
            raise
        shifted = error.position + statement.offset
        raise SqlError(error.sqlstate, error.message, error.detail, error.hint, shifted) from None


def prepare_once(session: SessionState, statement: StatementText) -> tuple[Prepared, tuple[object, ...]]:
    """A statement that is run once, with the parameters that its constants may have become. Raises as ``prepare``."""
    if _usual(session):
        catalog, coordinator = session.catalog, session.coordinator
        with suppress(SqlError):  # it is reported as the statement is prepared
            path, published = session.path(catalog), coordinator.engine.published
            found = coordinator.shapes.find(statement, catalog, path, session.settings, published)
            if found is not None:
                return found
    return prepare(session, statement), ()


def takes_long(session: SessionState, statement: StatementText) -> bool:
    """Whether ``prepare_once``, of a statement that has not been prepared before, keeps its thread busy."""
    if is_long(statement.text) or not _usual(session):
        return is_long(statement.text)
    catalog = session.catalog
    return session.coordinator.shapes.learns(statement, catalog, session.path(catalog), session.settings)


def prepared_before(session: SessionState, statement: StatementText) -> tuple[Prepared, tuple[object, ...]] | None:
    """What ``prepare_once`` gives, if nothing needs to be bound for it."""
    if not _usual(session):
        return None
    catalog, coordinator = session.catalog, session.coordinator
    path, settings = session.path(catalog), session.settings
    found = coordinator.shapes.known(statement, catalog, path, settings)
    if found is not None:
        return found
    prepared = coordinator.statements.known(statement, catalog, path, settings)
    return None if prepared is None or prepared.bound.parameters else (prepared, ())


def statement_named(session: SessionState, name: str) -> NamedStatement:
    """A prepared statement as it was prepared. 26000: there is none of this name."""
    found = session.statements.get(name)
    if found is None:
        shown = f'prepared statement "{name}"' if name else "unnamed prepared statement"
        raise SqlError("26000", f"{shown} does not exist")
    return found


def new_statement(session: SessionState, named: NamedStatement) -> NamedStatement:
    """The statement, which has been bound now."""
    if named.prepared is not None and _usual(session):
        named.asked = session.catalog.version, session.settings.changes, None
    return named


def current(session: SessionState, named: NamedStatement) -> NamedStatement:
    """A prepared statement, bound to the present catalog. 0A000: the types of its columns have changed."""
    known = known_current(session, named)
    if known is not None:
        return known
    version, changes = session.catalog.version, session.settings.changes
    found = _bound_again(session, named)
    if _usual(session):
        named.asked = version, changes, None if found is named else found
    return found


def known_current(session: SessionState, named: NamedStatement) -> NamedStatement | None:
    """What ``current`` gives, if nothing needs to be bound for it."""
    if named.prepared is None:
        return named
    asked = named.asked
    if not _usual(session) or asked is None or asked[0] != session.catalog.version:
        return None
    return (asked[2] or named) if asked[1] == session.settings.changes else None


def _usual(session: SessionState) -> bool:
    """Whether what a statement means depends on the catalog and the settings alone."""
    return not (session.failed or session.acting or session.creating)


def _bound_again(session: SessionState, named: NamedStatement) -> NamedStatement:
    assert named.prepared is not None, "an empty statement is always current"
    prepared = prepare(session, StatementText(named.text), named.types)
    if prepared is named.prepared:
        return named
    before = output_columns(session, named.prepared.bound.statement)
    after = output_columns(session, prepared.bound.statement)
    if (before is None) != (after is None) or _shapes(before) != _shapes(after):
        raise SqlError("0A000", "cached plan must not change result type")
    return replace(named, prepared=prepared, constants=(), asked=None)


def _shapes(columns: tuple[OutputColumn, ...] | None) -> list[SqlType | int]:
    """What clients know of the columns' types: of a row type its oid, whatever its fields are now."""
    return [type_oid(c.type) if (c.type.element or c.type).named else c.type for c in columns or ()]


def output_columns(session: SessionState, statement: bound.Statement) -> tuple[OutputColumn, ...] | None:
    """The columns of a statement's rows; None if it returns no rows. Runs nothing."""
    match statement:
        case Query():
            return statement.columns
        case bound.Insert() | bound.Update() | bound.Delete() | bound.Merge():
            return None if statement.returning is None else statement.columns
        case CallProcedure():
            return statement.columns
        case bound.Compound():
            return output_columns(session, statement.main)
        case bound.Explain():
            return statement.columns
        case bound.Verify():
            return verify_columns(statement)
        case bound.VerifyDictionary():
            return VERIFY_DICTIONARY_COLUMNS
        case bound.Show():
            return show_columns(session, statement)
        case bound.Subscribe():
            return subscribe_columns(statement)
        case bound.Execute():
            prepared = current(session, statement_named(session, statement.name)).prepared
            return None if prepared is None else output_columns(session, prepared.bound.statement)
        case bound.Fetch():
            return None if statement.move else session.cursor(statement.name).columns
        case _:
            return None


def executed(session: SessionState, statement: bound.Statement) -> bound.Statement:
    """What EXECUTE of a statement that controls transactions runs; any other statement itself. Only the protocol can
    prepare such a statement."""
    if not isinstance(statement, bound.Execute):
        return statement
    named = session.statements.get(statement.name)
    inner = None if named is None or named.prepared is None else named.prepared.bound.statement
    return inner if isinstance(inner, TRANSACTION_CONTROL) else statement


def show_columns(session: SessionState, statement: bound.Show) -> tuple[OutputColumn, ...]:
    """The columns of SHOW."""
    if statement.name.lower() == "all":
        return tuple(OutputColumn(name, TEXT) for name in ("name", "setting", "description"))
    return (OutputColumn(session.settings.label(statement.name), TEXT),)


def verify_columns(statement: bound.Verify) -> tuple[OutputColumn, ...]:
    """The columns of VERIFY MATERIALIZED VIEW: the view's, and diff."""
    return (*(OutputColumn(c.name, c.type) for c in statement.view.columns), OutputColumn("diff", INT8))
