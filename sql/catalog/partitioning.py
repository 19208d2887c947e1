"""Partitioned tables in the catalog: a table's partition key, and each partition's bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

MINIMUM: Final = -1
VALUE: Final = 0
MAXIMUM: Final = 1

Edge = tuple[int, str]
"""One column of a range bound: MINIMUM or MAXIMUM, or VALUE with the value as text."""


@dataclass(frozen=True, slots=True)
class Partitioning:
    """PARTITION BY. ``strategy``: list or range. ``keys``: expressions as SQL text. ``columns``: for each key its
    column's name, "" if it is another expression."""

    strategy: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartitionBound:
    """The rows that a partition accepts. ``kind``: list, range or default. ``values``: of a list, as text (None: NULL).
    A range is from ``lower``, inclusive, to ``upper``, exclusive."""

    kind: str
    values: tuple[str | None, ...] = ()
    lower: tuple[Edge, ...] = ()
    upper: tuple[Edge, ...] = ()


@dataclass(frozen=True, slots=True)
class WrittenBound:
    """A bound as written: the texts of its expressions (minvalue and maxvalue among them)."""

    kind: str
    values: tuple[str, ...] = ()
    lower: tuple[str, ...] = ()
    upper: tuple[str, ...] = ()


def partitioning_to_json(found: Partitioning) -> dict[str, object]:
    """The inverse of ``partitioning_from_json``."""
    return asdict(found)


def partitioning_from_json(data: Mapping[str, Any]) -> Partitioning:
    return Partitioning(data["strategy"], tuple(data["keys"]), tuple(data["columns"]))


def bound_to_json(bound: PartitionBound) -> dict[str, object]:
    """The inverse of ``bound_from_json``."""
    return asdict(bound)


def bound_from_json(data: Mapping[str, Any]) -> PartitionBound:
    lower = tuple((kind, text) for kind, text in data["lower"])
    upper = tuple((kind, text) for kind, text in data["upper"])
    return PartitionBound(data["kind"], tuple(data["values"]), lower, upper)
