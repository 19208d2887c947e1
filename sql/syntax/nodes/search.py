"""The clauses SEARCH and CYCLE of a recursive query."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SearchClause:
    """``SEARCH BREADTH | DEPTH FIRST BY columns SET sequence``."""

    breadth: bool
    columns: tuple[str, ...]
    sequence: str
    at: int


@dataclass(frozen=True, slots=True)
class CycleClause:
    """``CYCLE columns SET mark … USING path``; the values of the mark stand in the query's node."""

    columns: tuple[str, ...]
    mark: str
    path: str
    at: int
