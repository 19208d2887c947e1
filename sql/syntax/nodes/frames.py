"""The syntax tree of the frames of window functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sql.syntax.nodes.queries import Expr


@dataclass(frozen=True, slots=True)
class FrameBound:
    """UNBOUNDED, an offset, or CURRENT ROW (neither). ``following``: on that side of the row; else preceding."""

    at: int
    following: bool = False
    unbounded: bool = False
    offset: Expr | None = None


@dataclass(frozen=True, slots=True)
class FrameClause:
    """``mode``: rows, range or groups. ``exclude``: no, current, group or ties. ``short``: written without
    BETWEEN, so that it ends at the current row."""

    mode: str
    start: FrameBound
    end: FrameBound
    exclude: str = "no"
    short: bool = False
