"""A collection whose definition may be exchanged while its readers stay."""

from __future__ import annotations

from collections.abc import Collection
from typing import Self

from ivm.graph import Switch
from ivm.kernels.blocks import SAME
from ivm.operators.base import UnaryOperator
from ivm.rows import Words
from ivm.runtime.context import FlowContext
from ivm.runtime.operator import Held, Operator, Scope
from ivm.trace.batch import Block
from ivm.trace.shards import copied


class SwitchOperator(UnaryOperator):
    """Passes its source on. When that is exchanged it emits, once, what turns the old one's contents into the new
    one's."""

    __slots__ = ("_difference",)

    SPEC = Switch
    LINEAR = True

    def __init__(self, context: FlowContext, scope: Scope, source: Operator) -> None:
        assert scope.depth == 0, "a view's collection"
        super().__init__(context, scope, source.width, source, source.diff_width)
        self._difference: Block | None = None

    def owe(self, difference: Block) -> None:
        """In the next step it emits this too: its source is another one now."""
        assert self._difference is None, "one exchange a step"
        if difference.n:
            self._difference = difference
            self.wake()

    def run(self, vector: int) -> bool:
        given, difference = self.source.out, self._difference
        out = self.out
        out.reserve(given.n + (0 if difference is None else difference.n))
        if difference is not None:
            out.n = copied(difference, out, 1, SAME, 0, 0)
            self._difference = None
        out.n = copied(given, out, 1, SAME, 0, 0)
        return out.n > 0

    def read_running(self, held: Held, new: Collection[int]) -> list[Operator]:
        """None: one that is new to a running source has no readers yet, which know what the source holds."""
        return []

    def twin(self) -> Self:
        twin = super().twin()
        twin._difference = None
        return twin

    def words(self) -> list[Words]:
        found = super().words()
        return found if self._difference is None else [*found, self._difference.rows[: self._difference.n].copy()]
