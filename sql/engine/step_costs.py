"""What steps have cost that took over changes of a table, to tell which commits may take long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LONG_NANOSECONDS: Final = 20_000_000
"""CPU time. A step that takes longer may be met by a cancel."""
UNKNOWN_ROWS: Final = 1_000
"""So many changed rows may take long as long as no step of nearly as many has shown what they cost."""
ALIKE: Final = 8
"""A step tells what one of up to so many times its rows costs, as many for each row."""


class StepCosts:
    """Invariant: ``_known[table]`` is the rows fed in one of the table's latest steps, and that step's CPU time in ns;
    steps of far fewer rows do not replace it unless they took longer."""

    def __init__(self) -> None:
        self._fed: dict[int, int] = {}
        self._known: dict[int, tuple[int, int]] = {}

    def fed(self, table: int, rows: int) -> None:
        """So many rows are in the next step."""
        self._fed[table] = self._fed.get(table, 0) + rows

    def skip(self) -> None:
        """The next step tells nothing: it undoes something, or has been cut."""
        self._fed.clear()

    def ended(self, nanoseconds: int) -> None:
        """The step has ended."""
        for table, rows in self._fed.items():
            known = self._known.get(table)
            if known is None or rows * ALIKE >= known[0] or nanoseconds > known[1]:
                self._known[table] = rows, nanoseconds
        self._fed.clear()

    def forget(self) -> None:
        """Views have come: nothing is known."""
        self._known.clear()

    def may_be_long(self, rows: Mapping[int, int]) -> bool:
        """Whether a step may take long that changes so many rows of each table."""
        expected = 0
        for table, count in rows.items():
            known = self._known.get(table)
            if known is None:
                return True
            if count <= ALIKE * known[0]:
                expected += known[1] * count // known[0]
            elif count >= UNKNOWN_ROWS:
                return True
        return expected > LONG_NANOSECONDS
