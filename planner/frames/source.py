"""Rows of partitions by their places: what frames and the functions over them read.

A *place* counts the rows of the source in the window's order, equal rows one by one; a frame is a range of places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ivm.rows import Vector, Words
from planner.frames.distance import Distance
from planner.frames.sums import Sums, Totals


class Source(Protocol):
    """``at`` int64[n]: the places of the rows that results are for, ascending; ``first`` and ``stop`` int64[n]: where
    each one's partition begins and ends; ``vals``: the rows, as arranged; ``columns``: their columns."""

    @property
    def at(self) -> Words: ...
    @property
    def first(self) -> Words: ...
    @property
    def stop(self) -> Words: ...
    @property
    def vals(self) -> Words: ...
    @property
    def columns(self) -> list[Vector]: ...

    def peers(self) -> tuple[Words, Words]:
        """Where the peers of each row begin and end."""
        ...

    def group(self, step: int) -> Words:
        """Where the group of peers ``step`` groups after each row's own begins: the partition's first place if there
        are not so many before it, its end if there are not so many after it."""
        ...

    def reach(self, distance: Distance, following: bool, end: bool) -> Words:
        """Where the rows begin that are not further before (``following``: not before) each row than ``distance``;
        ``end``: where those end that are not further after it."""
        ...

    def totals(self, sums: Sums, places: Words) -> Totals:
        """Sums over the rows before each place, from some place of its partition on."""
        ...

    def read(self, places: Words, columns: Sequence[int]) -> list[Vector]:
        """Columns of the rows at these places."""
        ...

    def present(self, column: int, places: Words) -> Words:
        """How many rows before each place have a value in the column, from some place of its partition on."""
        ...

    def nth(self, column: int, counts: Words) -> Words:
        """The places of the rows with a value in the column that ``counts`` such rows precede, as by ``present``."""
        ...

    def least(self, column: int, greatest: bool, low: Words, high: Words) -> Vector:
        """The least value of a column in each range of places that ascends; NULL if there is none."""
        ...

    def spread(self, low: Words, high: Words, columns: Sequence[int]) -> tuple[list[Vector], Words]:
        """(columns of the rows in all ranges of places, one after another; where each range begins, int64[n + 1])."""
        ...
