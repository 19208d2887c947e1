"""What a database takes over of what all share, and what it says of a role that is to be dropped."""

from __future__ import annotations

from ivm.errors import unsupported
from sql.catalog.catalog import Catalog, RelationKind
from sql.catalog.databases import Shared
from sql.catalog.search_path import DEFAULT_PATH, SearchPathReader
from sql.ddl.owned import dependency_lines
from sql.ddl.roles import counted
from sql.engine.engine import Engine
from sql.engine.writer import Writer


def adopt(engine: Engine, shared: Shared, database: int) -> None:
    """Commit what is shared to the catalog of another database, given by its oid, unless it has the same already."""
    known = engine.catalog.access
    same = (known.roles, known.memberships, known.shared.databases) == (
        shared.roles, shared.memberships, shared.databases
    )  # fmt: skip
    if known.shared is shared or (same and known.database == database):
        return
    writer = Writer.begin(engine)
    writer.set_access(known.changed(shared=shared, database=database))
    writer.commit()


def elsewhere(catalog: Catalog, role: str, database: str, here: bool) -> list[str]:
    """What a role owns and holds in a database: a line each ``here``, else their number."""
    known = catalog.access.named(role)
    if known is None:
        return []
    lines = dependency_lines(SearchPathReader(catalog, DEFAULT_PATH), known.oid)
    return lines if here else counted(lines, database)


def has_nothing(catalog: Catalog) -> bool:
    """Whether a catalog has nothing but what every new database has."""
    access, new = catalog.access, Catalog()
    return not (catalog.relations or catalog.comments or access.owners or access.acls or access.defaults) and dict(
        catalog.schemas
    ) == dict(new.schemas)


def check_copied(catalog: Catalog, name: str) -> None:
    """Raises 0A000 where a copy would do again outside of the server what the database does."""
    for relation in catalog.relations.values():
        if relation.kind in (RelationKind.SINK, RelationKind.SOURCE) or relation.parts:
            raise unsupported(f"a copy of database {name}, which has {relation.kind.name.lower()} {relation.name},")
