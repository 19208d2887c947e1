"""What a session chooses of how its statements are planned."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Joins(Enum):
    """How inner joins of three and more inputs are done; AUTO: as the planner finds best."""

    AUTO = "auto"
    LINEAR = "linear"
    DELTA = "delta"
    WCO = "wco"


class Late(Enum):
    """Whether the joins of maintained views keep a table's rows a second time (OFF), or its ids, by which the rows that
    have a match are fetched (ON); AUTO: where that saves enough (``planner.lower.late_materialization``)."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Planning:
    """``joins``: how inner joins of three and more inputs are done; ``demanding``: recursions compute what is asked of
    them only; ``late``: whether joins fetch rows by their ids. A materialized view keeps it, and is planned by it
    whenever that is."""

    joins: Joins = Joins.AUTO
    demanding: bool = True
    late: Late = Late.AUTO

    @property
    def set(self) -> tuple[str, ...]:
        """The settings that are not the default, as SET writes them."""
        told = (
            (f"join_implementation = {self.joins.value}", self.joins is not Joins.AUTO),
            ("recursion_demand = off", not self.demanding),
            (f"late_fetch = {self.late.value}", self.late is not Late.AUTO),
        )
        return tuple(setting for setting, is_set in told if is_set)


DEFAULT: Final = Planning()
