"""COPY's options for bad rows: MAX REJECTS n, and Postgres's ON_ERROR ignore and REJECT_LIMIT n."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ivm.errors import SqlError, unsupported
from sql.statements.statements import CopyFormat
from sql.syntax.nodes.statements import OptionValue

MOST_REJECTS: Final = 10_000
"""A bound, since rejected rows are kept in memory and in the log record of the load's commit."""
OF_REJECTS: Final = ("max_rejects", "on_error", "reject_limit")


def most_rejects(given: Mapping[str, tuple[OptionValue, int]], format_: CopyFormat, to: bool) -> int | None:
    """The number of bad rows that may be skipped; None: the first one is an error. Raises 22023, 42601, 0A000."""
    named = [name for name in OF_REJECTS if name in given]
    if not named:
        return None
    shown, at = named[0].upper().replace("MAX_", "MAX "), given[named[0]][1]
    if to:
        raise SqlError("42601", f"COPY {shown} is for COPY FROM only", position=at + 1)
    ignored = _ignored(given)
    if "max_rejects" in given and len(named) > 1:
        hint = "MAX REJECTS n means ON_ERROR ignore, REJECT_LIMIT n."
        raise SqlError("42601", "conflicting or redundant options", hint=hint, position=at + 1)
    if "reject_limit" in given and not ignored:
        position = given["reject_limit"][1] + 1
        raise SqlError("22023", "COPY REJECT_LIMIT requires ON_ERROR to be set to IGNORE", position=position)
    if not ignored and "max_rejects" not in given:
        return None
    if format_ is CopyFormat.BINARY:
        raise unsupported(f"COPY {shown} in BINARY mode", position=at + 1)
    if "max_rejects" in given:
        return _count(*given["max_rejects"], "MAX REJECTS", 0)
    return _count(*given["reject_limit"], "REJECT_LIMIT", 1) if "reject_limit" in given else MOST_REJECTS


def _ignored(given: Mapping[str, tuple[OptionValue, int]]) -> bool:
    value, at = given.get("on_error", ("stop", 0))
    if not isinstance(value, str) or value.lower() not in ("stop", "ignore"):
        raise SqlError("22023", f'COPY ON_ERROR "{value}" not recognized', hint="Valid values are stop and ignore.",
                       position=at + 1)  # fmt: skip
    return value.lower() == "ignore"


def _count(value: OptionValue, at: int, name: str, least: int) -> int:
    if not isinstance(value, str) or not value.isascii() or not value.isdigit():
        raise SqlError("22023", f"{name} must be a number from {least} to {MOST_REJECTS}", position=at + 1)
    if not least <= int(value[:20]) <= MOST_REJECTS:
        raise SqlError("22023", f"{name} must be a number from {least} to {MOST_REJECTS}", position=at + 1)
    return int(value)
