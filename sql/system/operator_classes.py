"""The operator classes that indexes and partition keys use: the default ones of their columns' types."""

from __future__ import annotations

from functools import cache
from typing import Final

from ivm.words import Kind, SqlType
from sql.system.builtin import builtin
from storage.types.type_names import type_oid

BTREE: Final = 403
_ANY: Final = {
    Kind.ARRAY: 2277, Kind.ENUM: 3500, Kind.RANGE: 3831, Kind.MULTIRANGE: 4537, Kind.RECORD: 2249, Kind.VARCHAR: 25,
    Kind.CIDR: 869,
}  # fmt: skip
"""The types whose classes values of these kinds use."""


@cache
def _defaults() -> dict[tuple[int, int], int]:
    """The default classes by access method and type."""
    rows = (row for row in builtin("pg_opclass") if row["opcdefault"] == "t")
    return {(int(r["opcmethod"] or 0), int(r["opcintype"] or 0)): int(r["oid"] or 0) for r in rows}


def default_class(method: int, type_: SqlType) -> int:
    """The oid of the class that an index of that access method uses for a type; 0 if it has none."""
    return _defaults().get((method, _ANY.get(type_.kind) or type_oid(type_)), 0)
