"""The one exception type that users see; it carries a SQLSTATE."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Subject:
    """The names of the objects of a violated constraint, for clients that parse errors."""

    schema: str
    table: str
    column: str | None = None
    constraint: str | None = None


@dataclass(eq=False, slots=True)
class SqlError(Exception):
    """An error for the client.

    ``sqlstate`` is Postgres's five-character code, ``position`` the 1-based character
    position in the statement's text (None when it points nowhere), or in ``query``, a
    statement that the client's one has run. ``context``: the calls around it, a line each. ``of_row``: of a row
    that a query has read, which the detail may show and not everybody may see.
    """

    sqlstate: str
    message: str
    detail: str | None = None
    hint: str | None = None
    position: int | None = None
    subject: Subject | None = None
    context: str | None = None
    query: str | None = None
    of_row: bool = False

    def within(self, line: str) -> None:
        """Add the next call outwards."""
        self.context = line if self.context is None else f"{self.context}\n{line}"

    def __str__(self) -> str:
        return f"{self.message} ({self.sqlstate})"


def too_deep() -> SqlError:
    """For RecursionError: a statement nested, or chained, deeper than can be walked."""
    return SqlError("54001", "stack depth limit exceeded")


def unsupported(what: str, hint: str | None = None, position: int | None = None) -> SqlError:
    """The error for a feature that is named but not built: always 0A000, never a wrong answer."""
    verb = "are" if what.endswith("s") and not what.endswith(("ss", "us", "is")) and what[0].islower() else "is"
    return SqlError("0A000", f"{what} {verb} not supported", hint=hint, position=position)
