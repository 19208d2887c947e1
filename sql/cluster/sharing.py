"""What a database takes over of what all share, and what it says of a role that is to be dropped."""

from __future__ import annotations

from ivm.errors import unsupported
from sql.catalog.catalog import Catalog, RelationKind
from sql.catalog.databases import Shared
from sql.catalog.search_path import DEFAULT_PATH, SearchPathReader
from sql.ddl.owned import dependency_lines
from sql.engine.engine import Engine


def adopt(engine: Engine, shared: Shared, database: int) -> None:
    """Have another database, given by its oid, take over what is shared, unless it has the same already. Raises
    BlockedError. Cost: not that of writing its catalog, which may be large, for every role."""
    known = engine.catalog.access
    same = (known.roles, known.memberships, known.shared.databases) == (
        shared.roles, shared.memberships, shared.databases
    )  # fmt: skip
    if known.shared is shared or (same and known.database == database):
        return
    engine.adopt_access(known.changed(shared=shared, database=database))


def elsewhere(catalog: Catalog, role: str, database: str) -> list[str]:
    """What a role owns and holds in another database: their number."""
    known = catalog.access.named(role)
    if known is None:
        return []
    lines = dependency_lines(SearchPathReader(catalog, DEFAULT_PATH), known.oid)
    return [f"{len(lines)} object{'' if len(lines) == 1 else 's'} in database {database}"] if lines else []


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
