"""What ALTER TABLE does not do to tables that inherit from one another."""

from __future__ import annotations

from typing import Final

from ivm.errors import SqlError, unsupported
from sql.catalog import Catalog
from sql.statements import AddCheck, AddColumn, AlterTable, Change, DropColumn, DropConstraint, SetNotNull, SetType

_SHARED: Final = (AddCheck, AddColumn, DropColumn, DropConstraint, SetNotNull, SetType)
"""What a table's children would have to be changed along with."""


def check_inherited(statement: AlterTable, catalog: Catalog) -> None:
    """Raises 0A000 for changes that others must share, 42P16 for those of what a table has inherited."""
    table = statement.table
    assert table is not None, "the caller has looked"
    if table.children and any(isinstance(c, _SHARED) for c in statement.changes):
        raise unsupported("ALTER TABLE of columns and checks that other tables inherit")
    parents = catalog.above(table)
    inherited = {c.name for p in parents for c in p.columns}
    checks = {c.name for p in parents for c in p.checks}
    for change in statement.changes:
        name = _column(change)
        if name in inherited:
            if isinstance(change, DropColumn):
                raise SqlError("42P16", f'cannot drop inherited column "{name}"')
            if isinstance(change, SetType):
                raise SqlError("42P16", f'cannot alter inherited column "{name}"')
            raise unsupported(f"ALTER TABLE of the inherited column {name}")
        if isinstance(change, DropConstraint) and change.name in checks:
            message = f'cannot drop inherited constraint "{change.name}" of relation "{table.name}"'
            raise SqlError("42P16", message)


def _column(change: Change) -> str | None:
    """The column that must stay as it is inherited."""
    match change:
        case DropColumn():
            return change.name
        case SetType():
            return change.column
        case SetNotNull(not_null=False):
            return change.column
        case _:
            return None
