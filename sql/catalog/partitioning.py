"""Partitioned tables in the catalog: a table's partition key, and each partition's bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MINIMUM: Final = -1
VALUE: Final = 0
MAXIMUM: Final = 1

Edge = tuple[int, str]
"""One column of a range bound: MINIMUM or MAXIMUM, or VALUE with the value as text."""


@dataclass(frozen=True, slots=True)
class Partitioning:
    """PARTITION BY. ``strategy``: list, range or hash. ``keys``: expressions as SQL text. ``columns``: for each key its
    column's name, "" if it is another expression."""

    strategy: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartitionBound:
    """The rows that a partition accepts. ``kind``: list, range, hash or default. ``values``: of a list, as text (None:
    NULL). A range is from ``lower``, inclusive, to ``upper``, exclusive. Of a hash: its ``modulus`` and
    ``remainder``."""

    kind: str
    values: tuple[str | None, ...] = ()
    lower: tuple[Edge, ...] = ()
    upper: tuple[Edge, ...] = ()
    modulus: int = 0
    remainder: int = 0


@dataclass(frozen=True, slots=True)
class WrittenBound:
    """A bound as written: the texts of its expressions (minvalue and maxvalue among them), or its modulus and
    remainder."""

    kind: str
    values: tuple[str, ...] = ()
    lower: tuple[str, ...] = ()
    upper: tuple[str, ...] = ()
    modulus: int = 0
    remainder: int = 0
