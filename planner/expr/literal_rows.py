"""Many rows of constants, kept as columns of datums: with an expression for each, every walk of a plan takes long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from ivm.words import SqlType
from planner.expr.scalar import Literal, Scalar


@dataclass(frozen=True, slots=True, eq=False)
class LiteralRows(Sequence[tuple[Scalar, ...]]):
    """``columns``: the datums of each column (None is NULL), all of one length; ``types``: the columns' types.

    Read as a sequence, it gives rows of literals, made anew each time. Equality is theirs: 1.0 and 1.00 differ.
    """

    columns: tuple[tuple[object, ...], ...]
    types: tuple[SqlType, ...]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LiteralRows):
            return NotImplemented
        same = self is other or (self.types == other.types and self.columns == other.columns)
        return same and (self is other or repr(self.columns) == repr(other.columns))

    def __hash__(self) -> int:
        return hash((self.types, len(self)))

    def __len__(self) -> int:
        return len(self.columns[0])

    def __iter__(self) -> Iterator[tuple[Scalar, ...]]:
        for row in zip(*self.columns, strict=True):
            yield tuple(map(Literal, row, self.types))

    @overload
    def __getitem__(self, index: int) -> tuple[Scalar, ...]: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[Scalar, ...]]: ...

    def __getitem__(self, index: int | slice) -> tuple[Scalar, ...] | Sequence[tuple[Scalar, ...]]:
        if isinstance(index, slice):
            return tuple(self)[index]
        return tuple(Literal(column[index], type_) for column, type_ in zip(self.columns, self.types, strict=True))

    def taken(self, columns: Sequence[int]) -> LiteralRows:
        """The same rows with some of the columns, at least one."""
        return LiteralRows(tuple(self.columns[i] for i in columns), tuple(self.types[i] for i in columns))
