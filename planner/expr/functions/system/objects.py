"""What the catalog knows of an object by its catalog and oid, and lists of the session's and the catalog's things."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ivm.words import BOOL, CHAR1, INT4, INT8, OID, REGCLASS, REGTYPE, TEXT, Kind, SqlType
from planner.expr.context import Context, SessionFunctions
from planner.expr.functions.expansion import add, each_row
from planner.expr.functions.table import ArgumentType, CallSite, per_value, session_of

_TEXTS: Final = SqlType(Kind.ARRAY, element=TEXT)
_OBJECT: Final = (OID, OID, INT4)


@per_value("pg_describe_object", _OBJECT, TEXT, volatility="stable", needs_site=True)
def pg_describe_object(site: CallSite, catalog: int, oid: int, number: int) -> str | None:
    return session_of(site).described_object(catalog, oid, number).text


def _listed(
    name: str, args: tuple[ArgumentType, ...], columns: dict[str, SqlType],
    rows: Callable[..., Sequence[tuple[Any, ...]]], nulls: bool = False,
) -> None:  # fmt: skip
    """Adds a function that asks the session for rows. ``nulls``: it is one row, of NULLs for a NULL argument."""
    types = tuple(columns.values())

    def compute(context: Context, given: tuple[SqlType, ...], *datums: Any) -> Sequence[tuple[Any, ...]]:
        return [(None,) * len(types)] if None in datums else rows(context.asked(), *datums)

    made = each_row(lambda _: types, compute, strict=len(args) if nulls else 0)
    add(name, args, lambda _: types, made, nullable=True, names=tuple(columns), row=len(columns) > 1)


def _cut(option: object) -> tuple[str, str, str]:
    return str(option).partition("=")


def _identity(session: SessionFunctions, catalog: int, oid: int, number: int) -> Sequence[tuple[Any, ...]]:
    found = session.described_object(catalog, oid, number)
    return [(found.kind, found.schema, found.name, found.identity)]


def _address(session: SessionFunctions, catalog: int, oid: int, number: int) -> Sequence[tuple[Any, ...]]:
    found = session.described_object(catalog, oid, number)
    return [(found.kind, found.names, found.args)]


_listed(
    "pg_identify_object", _OBJECT, dict.fromkeys(("type", "schema", "name", "identity"), TEXT), _identity, nulls=True
)
_listed(
    "pg_identify_object_as_address", _OBJECT, {"type": TEXT, "object_names": _TEXTS, "object_args": _TEXTS}, _address,
    nulls=True,
)  # fmt: skip
_listed(
    "pg_partition_tree", (REGCLASS,), {"relid": REGCLASS, "parentrelid": REGCLASS, "isleaf": BOOL, "level": INT4},
    lambda session, oid: session.partition_tree(oid),
)  # fmt: skip
_listed(
    "pg_options_to_table", (_TEXTS,), {"option_name": TEXT, "option_value": TEXT},
    lambda session, options: [(name, value if equals else None) for name, equals, value in map(_cut, options)],
    nulls=False,
)  # fmt: skip
_listed("pg_listening_channels", (), {"pg_listening_channels": TEXT}, lambda s: [(c,) for c in s.listening_channels()])
_listed(
    "pg_get_keywords", (),
    {"word": TEXT, "catcode": CHAR1, "barelabel": BOOL, "catdesc": TEXT, "baredesc": TEXT},
    lambda session: session.keywords(),
)  # fmt: skip
_listed(
    "pg_sequence_parameters", (OID,),
    {
        "start_value": INT8, "minimum_value": INT8, "maximum_value": INT8, "increment": INT8, "cycle_option": BOOL,
        "cache_size": INT8, "data_type": OID,
    },
    lambda session, oid: [session.sequence_parameters(oid)], nulls=True,
)  # fmt: skip


_listed(
    "aclexplode", (_TEXTS,), {"grantor": OID, "grantee": OID, "privilege_type": TEXT, "is_grantable": BOOL},
    lambda session, items: session.exploded_acl(items),
)  # fmt: skip


@per_value("acldefault", (CHAR1, OID), _TEXTS, volatility="stable", needs_site=True)
def acldefault(site: CallSite, kind: str, owner: int) -> tuple[str, ...]:
    return session_of(site).default_acl(kind, owner)


@per_value("pg_partition_root", (REGCLASS,), REGCLASS, volatility="stable", needs_site=True)
def pg_partition_root(site: CallSite, oid: int) -> int | None:
    ancestors = session_of(site).partition_ancestors(oid)
    return ancestors[-1] if ancestors else None


@per_value("pg_basetype", (REGTYPE,), REGTYPE, volatility="stable", needs_site=True)
def pg_basetype(site: CallSite, oid: int) -> int | None:
    """The type below all domains; NULL for no type."""
    return session_of(site).base_type(oid)
