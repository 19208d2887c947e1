"""A reducer of any function of a key and its group, as in McSherry's *Differential dataflow* (2015): ``group``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ivm.graph import Reduced
from ivm.rows import Words

Value = tuple[int, ...]
Function = Callable[[Value, Sequence[tuple[Value, int]]], Iterable[Value]]


@dataclass(frozen=True, slots=True)
class GroupFunction:
    """``function(key, [(value, how often), …])``: the group's output rows, of ``out_width`` words each.

    Values come in the arrangement's order, each once, with positive counts; retracted values are left out, and the
    function is not called for empty groups. It must be pure; in a loop it may see groups that are not final. ``error``:
    the word of the group's error row if the function raises an error that a value may cause (ArithmeticError,
    LookupError, TypeError, ValueError); None: the exception propagates. Cost: the whole group, for each change in it.
    """

    function: Function
    out_width: int
    error: int | None = None

    @property
    def limit(self) -> int | None:
        return None

    def __call__(self, keys: Words, offsets: Words, vals: Words, diffs: Words, /) -> Reduced:
        rows: list[Value] = []
        segments: list[int] = []
        failed: list[int] = []
        values, counts, ends = vals.tolist(), diffs[:, 0].tolist(), offsets.tolist()
        for i, key in enumerate(keys.tolist()):
            part = zip(values[ends[i] : ends[i + 1]], counts[ends[i] : ends[i + 1]], strict=True)
            group = [(tuple(value), count) for value, count in part if count > 0]
            try:
                made = list(self.function(tuple(key), group)) if group else []
            except (ArithmeticError, LookupError, TypeError, ValueError):
                if self.error is None:
                    raise
                failed.append(i)
                continue
            rows += made
            segments += [i] * len(made)
        out = np.array(rows, np.int64).reshape(len(rows), self.out_width)
        errors = np.full((len(failed), 1), self.error or 0, np.int64)
        return Reduced(np.array(segments, np.int64), out, errors, np.array(failed, np.int64))
