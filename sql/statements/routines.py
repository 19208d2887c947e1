"""Bound statements about users' functions and aggregates."""

from __future__ import annotations

from dataclasses import dataclass

from planner.expr.python_function import PythonFunction
from sql.catalog.catalog import Relation


@dataclass(frozen=True, slots=True)
class CreateFunction:
    """``relation``: with all but its id. ``python``: what an aggregate calls."""

    relation: Relation
    replace: bool = False
    python: PythonFunction | None = None

    @property
    def tag(self) -> str:
        return "CREATE FUNCTION" if self.python is None else "CREATE AGGREGATE"


@dataclass(frozen=True, slots=True)
class DropFunction:
    """``missing``: what IF EXISTS says of the others."""

    functions: tuple[Relation, ...]
    missing: tuple[str, ...] = ()
    cascade: bool = False
    tag: str = "DROP FUNCTION"


RoutineStatement = CreateFunction | DropFunction
