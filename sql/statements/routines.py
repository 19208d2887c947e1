"""Bound statements about user-defined functions and aggregates."""

from __future__ import annotations

from dataclasses import dataclass

from planner.expr.python_function import PythonFunction
from sql.catalog.catalog import Relation


@dataclass(frozen=True, slots=True)
class CreateFunction:
    """``relation``: complete but for its id. ``python``: an aggregate's Python function."""

    relation: Relation
    replace: bool = False
    python: PythonFunction | None = None

    @property
    def tag(self) -> str:
        return "CREATE FUNCTION" if self.python is None else "CREATE AGGREGATE"


@dataclass(frozen=True, slots=True)
class DropFunction:
    """``missing``: the notices of IF EXISTS for functions that do not exist."""

    functions: tuple[Relation, ...]
    missing: tuple[str, ...] = ()
    cascade: bool = False
    tag: str = "DROP FUNCTION"


RoutineStatement = CreateFunction | DropFunction
