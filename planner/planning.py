"""What a session chooses of how its statements are planned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from planner.multiway import Joins


@dataclass(frozen=True, slots=True)
class Planning:
    """``joins``: how inner joins of three and more inputs are done; ``demanding``: recursions compute what is asked of
    them only. A materialized view keeps it, and is planned by it whenever that is."""

    joins: Joins = Joins.AUTO
    demanding: bool = True

    @property
    def set(self) -> tuple[str, ...]:
        """The settings that are not the default, as SET writes them."""
        joins = () if self.joins is Joins.AUTO else (f"join_implementation = {self.joins.value}",)
        return joins if self.demanding else (*joins, "recursion_demand = off")


DEFAULT: Final = Planning()
