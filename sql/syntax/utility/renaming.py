"""ALTER … RENAME, SWAP WITH, SET SCHEMA and OWNER TO, of every kind of object."""

from __future__ import annotations

from sql.statements.rename import Named, Rename, Renaming, SetOwner, SetSchema, Swap
from sql.syntax.grammar.cursor import TokenCursor
from sql.syntax.nodes.queries import TableName
from sql.syntax.utility.role_names import role_spec

_SWAPPED = ("table", "view", "materialized view")


def renaming(cursor: TokenCursor, kind: str, table: TableName, if_exists: bool) -> Renaming | None:
    """The rest of the statement after the name; None if another change is next."""
    target = Named(kind, table.schema_name, table.name, if_exists, table.only)
    if cursor.accept("rename"):
        return _rename(cursor, target)
    if kind in _SWAPPED and cursor.accept("swap", "with"):
        other = cursor.table_name()
        return Swap(target, Named(kind, other.schema_name, other.name))
    if kind != "index" and cursor.accept("set", "schema"):
        return SetSchema(target, cursor.name())
    if cursor.accept("owner", "to"):
        return SetOwner(target, role_spec(cursor))
    return None


def _rename(cursor: TokenCursor, target: Named) -> Rename:
    if cursor.accept("to"):
        return Rename(target, "relation", target.name, cursor.name())
    if target.kind in ("index", "sequence", "source", "sink"):
        raise cursor.error()
    part = "constraint" if target.kind == "table" and cursor.accept("constraint") else "column"
    if part == "column":
        cursor.accept("column")
    old = cursor.name()
    cursor.expect("to")
    return Rename(target, part, old, cursor.name())
