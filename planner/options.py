"""The session settings that change how statements are planned."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Joins(Enum):
    """How inner joins of three or more inputs are implemented. AUTO: the planner chooses."""

    AUTO = "auto"
    LINEAR = "linear"
    DELTA = "delta"
    WCO = "wco"


class Late(Enum):
    """Whether joins of maintained views use late materialization.

    OFF: they keep a second copy of a table's rows. ON: they keep ids, and fetch matching rows by them. AUTO: where that
    saves enough memory (``planner.lower.late_materialization``).
    """

    AUTO = "auto"
    ON = "on"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Planning:
    """The planning settings. A materialized view stores them and is always planned with them.

    ``joins``: how inner joins of three or more inputs are implemented. ``demanding``: recursions compute only what the
    query demands. ``late``: late materialization. ``rounds``: after how many a WITH RECURSIVE of a query that runs once
    fails, 0 for any number; no view stores it.
    """

    joins: Joins = Joins.AUTO
    demanding: bool = True
    late: Late = Late.AUTO
    rounds: int = 0

    @property
    def set(self) -> tuple[str, ...]:
        """The settings that differ from the default, as arguments of SET."""
        settings = (
            (f"join_implementation = {self.joins.value}", self.joins is not Joins.AUTO),
            ("recursion_demand = off", not self.demanding),
            (f"late_fetch = {self.late.value}", self.late is not Late.AUTO),
        )
        return tuple(setting for setting, is_set in settings if is_set)


DEFAULT: Final = Planning()
