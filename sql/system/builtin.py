"""Rows of PostgreSQL 15's catalogs about built-in functions, operators and casts: those that are here too.

They are in ``rows/``, one file a relation, which ``python -m tests.answers.make_catalog`` writes: the first line names
the columns, the others are in the text format of COPY. Columns that the relation does not have say more about the
object: its description, and how functions about the catalog show it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ivm.words import Kind, SqlType
from sql.catalog.catalog import INTERNAL_SCHEMAS
from sql.catalog.system.definitions import Datums, definition
from sql.system.state import OWNER

_FOLDER: Final = Path(__file__).parent / "rows"
_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPED: Final = {"t": "\t", "n": "\n", "\\": "\\"}
_INTEGERS: Final = (Kind.INT2, Kind.INT4, Kind.INT8, Kind.OID, Kind.REGPROC)
_PLACES: Final = {
    "pg_proc": ("pronamespace", "proowner"), "pg_operator": ("oprnamespace", "oprowner"),
    "pg_ts_config": ("cfgnamespace", "cfgowner"), "pg_ts_dict": ("dictnamespace", "dictowner"),
    "pg_ts_parser": ("prsnamespace",), "pg_ts_template": ("tmplnamespace",),
    "pg_opfamily": ("opfnamespace", "opfowner"), "pg_opclass": ("opcnamespace", "opcowner"),
}  # fmt: skip
"""The columns with an object's schema and owner."""
COLLATIONS: Final = {100: "default", 950: "C", 951: "POSIX"}
DESCRIBED: Final = {"pg_proc": 1255, "pg_operator": 2617}
"""Catalogs whose files have descriptions, with their oids."""

BuiltinRow = MappingProxyType[str, str | None]


def _field(text: str) -> str | None:
    if text == "\\N":
        return None
    return _ESCAPE.sub(lambda found: _ESCAPED[found[1]], text) if "\\" in text else text


@cache
def builtin(relation: str) -> tuple[BuiltinRow, ...]:
    """The rows of a file, texts by the names of the columns."""
    head, *lines = (_FOLDER / f"{relation}.txt").read_text(encoding="utf-8").splitlines()
    columns = head.split("\t")
    return tuple(MappingProxyType(dict(zip(columns, map(_field, line.split("\t")), strict=True))) for line in lines)


@cache
def by_oid(relation: str) -> MappingProxyType[int, BuiltinRow]:
    """The same by the object's oid."""
    return MappingProxyType({int(row["oid"] or 0): row for row in builtin(relation)})


def numbers(text: str | None) -> tuple[int, ...]:
    """The numbers of an array's text."""
    inside = (text or "")[1:-1]
    return tuple(map(int, inside.split(","))) if inside else ()


def _parsed(type_: SqlType) -> Callable[[str], object]:
    """How a column's text is read."""
    if type_.kind is Kind.ARRAY:
        assert type_.element is not None
        one = _parsed(type_.element)
        return lambda text: tuple(one(part if part != '""' else "") for part in text[1:-1].split(",") if part)
    if type_.kind is Kind.BOOL:
        return lambda text: text == "t"
    if type_.kind in _INTEGERS:
        return int
    return float if type_.kind in (Kind.FLOAT4, Kind.FLOAT8) else str


@cache
def builtin_rows(relation: str) -> tuple[Datums, ...]:
    """The rows of a relation of pg_catalog."""
    whole = definition("pg_catalog", relation)
    parsers = {c.name: _parsed(c.type) for c in whole.relation.columns}
    places = dict(zip(_PLACES.get(relation, ()), (INTERNAL_SCHEMAS["pg_catalog"], OWNER), strict=False))
    return tuple(
        whole.row(**places, **{n: parsers[n](v) for n, v in row.items() if n in parsers and v is not None})
        for row in builtin(relation)
    )


@cache
def descriptions() -> MappingProxyType[tuple[int, int], str]:
    """The comments on built-in objects, by catalog and oid."""
    found = {
        (int(r["classoid"] or 0), int(r["objoid"] or 0)): r["description"] or "" for r in builtin("pg_description")
    }
    for relation, catalog in DESCRIBED.items():
        found |= {(catalog, oid): text for oid, row in by_oid(relation).items() if (text := row["description"])}
    return MappingProxyType(found)
