"""The options of EXPLAIN."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ivm.errors import SqlError
from sql.statements.statements import ExplainOptions
from sql.syntax.grammar.cursor import TokenCursor

_BOOLEAN: Final = ("analyze", "verbose", "costs", "settings", "buffers", "wal", "timing", "summary")
_VALUES: Final = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}
_FORMATS: Final = ("text", "json", "xml", "yaml")


def explain_option(cursor: TokenCursor, found: dict[str, str | bool]) -> None:
    """One option in parentheses, into ``found``. Raises 42601, 22023."""
    at = cursor.token.start
    option = cursor.label().replace("analyse", "analyze")
    value = None if cursor.is_symbol(",") or cursor.is_symbol(")") else cursor.advance().value.lower()
    if option == "format":
        if value not in _FORMATS:
            message = f'unrecognized value for EXPLAIN option "format": "{value or ""}"'
            raise SqlError("22023", message, position=at + 1)
        found[option] = value
    elif option not in _BOOLEAN:
        raise SqlError("42601", f'unrecognized EXPLAIN option "{option}"', position=at + 1)
    elif value is not None and value not in _VALUES:
        raise SqlError("42601", f"{option} requires a Boolean value")
    else:
        found[option] = value is None or _VALUES[value]


def explain_options(found: Mapping[str, str | bool]) -> ExplainOptions:
    """The options together; COSTS, BUFFERS and others have nothing to show. Raises 22023."""
    analyze = bool(found.get("analyze"))
    for option in ("wal", "timing"):
        if found.get(option) and not analyze:
            raise SqlError("22023", f"EXPLAIN option {option.upper()} requires ANALYZE")
    return ExplainOptions(
        str(found.get("format", "text")), analyze, bool(found.get("timing", analyze)),
        bool(found.get("summary", analyze)),
    )  # fmt: skip
