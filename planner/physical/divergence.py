"""Loops that reach no fixpoint within their limit: an error that names the limit and the rows still changing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from ivm.errors import SqlError
from ivm.graph import Gather, Overflow, Reduced, Reducer
from ivm.rows import Words
from ivm.words import Schema
from planner.expr.context import Context
from planner.expr.row_errors import error_words
from planner.physical.nodes import Builder, Flow
from planner.physical.row_programs import row_text

DEFAULT_LIMIT: Final = 1_000_000
"""The rounds of a WITH MUTUALLY RECURSIVE without a limit of its own."""
SHOWN: Final = 3
"""The rows that the error shows; it counts the others."""
_ENDLESS: Final = "did not end within"
_BLOCK: Final = "Raise the limit, or take the state that stands then with RETURN AT RECURSION LIMIT."
_QUERY: Final = "End it by a condition, UNION, CYCLE or LIMIT, or raise the setting recursion_limit."


@dataclass(frozen=True, slots=True)
class Diverging:
    """Turns a binding's changes in its loop's last round, as one group, into one error (54001) and no row.

    ``query``: the binding is a query of WITH RECURSIVE.
    """

    name: str
    limit: int
    schema: Schema
    query: bool = False
    out_width: ClassVar[int] = 1
    can_fail: ClassVar[bool] = True

    def bind(self, context: Context) -> Reducer:
        return DivergingReducer(self, context)


@dataclass(frozen=True, slots=True, eq=False)
class DivergingReducer:
    """``Diverging`` bound to its context. Equal folds in one context are equal."""

    fold: Diverging
    context: Context
    out_width: ClassVar[int] = 1
    limit: ClassVar[int | None] = None

    def __call__(self, keys: Words, offsets: Words, vals: Words, diffs: Words, /) -> Reduced:
        errors, shown = [], []
        for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            rows = ", ".join(self._change(vals[i : i + 1], diffs[i, 0]) for i in range(start, min(end, start + SHOWN)))
            more = end - start - SHOWN
            shown.append(f"{rows} and {more} more" if more > 0 else rows)
            errors.append(self._error(shown[-1]))
        words = error_words(errors, shown, self.context.dictionary)
        none = np.zeros(0, np.int64)
        return Reduced(none, np.zeros((0, 1), np.int64), words, np.arange(len(errors), dtype=np.int64))

    def _change(self, row: Words, diff: int) -> str:
        return f"{'+' if diff > 0 else '-'}{row_text(row, self.fold.schema, self.context)}"

    def _error(self, rows: str) -> SqlError:
        fold = self.fold
        what = f'recursive query "{fold.name}"' if fold.query else "recursion"
        return SqlError(
            "54001", f"{what} {_ENDLESS} {fold.limit} rounds",
            f'Rows of "{fold.name}" still changing: {rows}.', _QUERY if fold.query else _BLOCK,
        )  # fmt: skip

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DivergingReducer) and self.context is other.context and self.fold == other.fold

    def __hash__(self) -> int:
        return hash(self.fold)


def is_divergence(error: SqlError) -> bool:
    """Whether an error says that a loop did not end."""
    return error.sqlstate == "54001" and f" {_ENDLESS} " in error.message


def note_divergence(builder: Builder, variable: Flow, name: str, limit: int, query: bool = False) -> None:
    """Notes the error of a variable that still changes in the last round.

    Call it outside of the loop, once that is closed.
    """
    source = builder.force(variable)
    width = builder.widths[source]
    overflow = builder.add(Overflow(source), width)
    keyed = Gather((-1, *range(width)))
    arranged = builder.arrange(builder.raw(overflow), keyed, 1)
    builder.group(arranged, 1, Diverging(name, limit, variable.schema, query))
