"""The errors of a jsonpath that a predicate or ``silent`` suppresses."""

from __future__ import annotations

from ivm.errors import SqlError


class PathError(Exception):
    """Carries the error that is raised where it is not suppressed."""

    def __init__(self, error: SqlError) -> None:
        super().__init__(error.message)
        self.error = error


def failing(sqlstate: str, message: str, hint: str | None = None) -> PathError:
    """A suppressible error."""
    return PathError(SqlError(sqlstate, message, hint=hint))
