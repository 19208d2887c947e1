"""Who may ask for the care of what needs none here: ANALYZE, CLUSTER and REINDEX."""

from __future__ import annotations

from ivm.errors import SqlError
from sql.catalog.catalog import Relation
from sql.catalog.search_path import SearchPathReader, no_schema
from sql.catalog.securables import securable
from sql.ddl.indexes import index_named
from sql.ddl.owned import check_owner, check_schema_owner
from sql.session.state import SessionState
from sql.statements.statements import Cared, NoOperation


def check_cared(session: SessionState, statement: NoOperation) -> None:
    """Raises 42P01, 3F000 and 3D000 for what does not exist, 42501 for what another role owns; ANALYZE warns of the
    latter, as in PostgreSQL."""
    catalog = session.catalog
    names = SearchPathReader(catalog, session.path(catalog))
    for cared in statement.cared:
        match cared.kind:
            case "table" | "index":
                owned = _relation(names, cared)
            case "schema":
                name = names.schema(cared.name)
                if not catalog.has_schema(name):
                    raise no_schema(cared.name)
                check_schema_owner(catalog, session.role, name)
                continue
            case _:
                _check_database(session, cared)
                continue
        if statement.tag != "ANALYZE":
            check_owner(catalog.access, session.role, owned)
        elif not any(
            catalog.access.owns(session.role, what) for what in (securable(owned), catalog.access.own_database)
        ):
            message = f'skipping "{owned.name}" --- only table or database owner can analyze it'
            session.notice(message, "WARNING", "01000")


def _relation(names: SearchPathReader, cared: Cared) -> Relation:
    """The relation, or that of the index."""
    found = names.resolve(cared.schema_name, cared.name)
    if cared.kind == "index":
        index = index_named(names, cared.schema_name, cared.name)
        if index is not None:
            return index[0]
        if found is not None:
            raise SqlError("42809", f'"{found.name}" is not an index')
    if found is None:
        shown = cared.name if cared.schema_name is None else f"{cared.schema_name}.{cared.name}"
        raise SqlError("42P01", f'relation "{shown}" does not exist')
    return found


def _check_database(session: SessionState, cared: Cared) -> None:
    if cared.name != session.database:
        raise SqlError("0A000", "can only reindex the currently open database")
    if not session.catalog.access.owns(session.role, session.catalog.access.own_database):
        raise SqlError("42501", f"must be owner of database {cared.name}")
