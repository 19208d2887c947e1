"""The store's settings, its tables, the names of columns of words, and what it says of relations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ivm.errors import SqlError

SETTINGS: Final = (
    "enable_external_access=false",
    "autoinstall_known_extensions=false",
    "autoload_known_extensions=false",
    "allow_community_extensions=false",
    "python_enable_replacements=false",
    "preserve_insertion_order=false",
    "checkpoint_threshold='1TB'",  # only checkpoint() checkpoints, so that stalls happen at a known place
    "allocator_background_threads=true",  # otherwise its malloc keeps what is free until it is called again
    "allocator_flush_threshold='16MB'",
    "lock_configuration=true",
)
TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS state"
    " (format BIGINT, secret BLOB, high_water BIGINT, log_sequence BIGINT, catalog BLOB)",
    "CREATE TABLE IF NOT EXISTS relations (id BIGINT, width BIGINT, since BIGINT, folded BIGINT)",
    "CREATE TABLE IF NOT EXISTS dictionary (id BIGINT, value BLOB)",
    "CREATE TABLE IF NOT EXISTS loads (load VARCHAR, epoch BIGINT)",
    "CREATE TABLE IF NOT EXISTS sequences (storage BIGINT, value BIGINT, called BOOLEAN)",
    "CREATE TABLE IF NOT EXISTS lagging (id BIGINT, epoch BIGINT, slow BOOLEAN)",
    "CREATE SCHEMA IF NOT EXISTS readable",
    'CREATE TABLE IF NOT EXISTS readable.names (relation BIGINT, name VARCHAR, "column" VARCHAR, column_name VARCHAR)',
)
FEW: Final = 1_000
"""Up to so many updates leave the history without a GROUP BY, which takes 0.4 s of CPU for 1,600 words of no rows."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What the store says of a relation."""

    width: int
    since: int
    folded: int


def word_names(width: int) -> list[str]:
    return [f"w{i}" for i in range(width)]


def separated(names: Sequence[str]) -> str:
    """Names with a trailing separator for a column list; a relation may have no columns at all."""
    return "".join(f"{name}, " for name in names)


def grouped_by(words: Sequence[str]) -> str:
    return f"GROUP BY {', '.join(words)}" if words else ""


def not_kept(relation: int) -> SqlError:
    return SqlError("42P01", f"the store does not keep relation {relation}")


def outside(relation: int, epoch: int, since: int, high_water: int) -> SqlError:
    return SqlError("22023", f"no history of relation {relation} at {epoch}",
                    detail=f"It can be read from {since} to {high_water}.")  # fmt: skip
