"""The change of one row as a formula over the row and the statement's parameters, for one call of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ivm.kernels.one_row import apply_to_row
from ivm.rows import Words
from ivm.words import ColumnType, Schema, null_words, row_width
from planner.expr.context import Context
from planner.expr.parts import PARAMETERS, rebuild, walk
from planner.expr.scalar import Column, Parameter, Scalar
from planner.physical.row_formulas import row_formula
from storage.dictionary import Dictionary
from storage.types.codec import encoder_of

MOST_COLUMNS: Final = 64
"""Columns and parameters have their null bits in one word."""


@dataclass(frozen=True, slots=True)
class RowFormula:
    """``given``: the places of the parameters that it reads, which come after the row's ``width`` columns, and what
    encodes each."""

    formula: Words
    given: tuple[tuple[int, Callable[[Any, Dictionary], int]], ...]
    width: int
    out_width: int

    def run(self, row: list[int], parameters: tuple[object, ...], dictionary: Dictionary) -> list[int] | None:
        """The new row in the same layout, [] if a condition is not met; None: the formula does not cover this."""
        words, width = row[: self.width], self.width
        nulls = row[width] if len(row) > width else 0
        for i, (place, encode) in enumerate(self.given):
            datum = parameters[place]
            if datum is None:
                nulls |= 1 << (width + i)
                words.append(0)
            else:
                words.append(encode(datum, dictionary))
        words.append(nulls)
        out = np.empty(self.out_width, np.int64)
        kept = apply_to_row(self.formula, np.array(words, np.int64), out)
        return None if kept < 0 else out.tolist() if kept else []


def one_row_formula(
    schema: Schema, predicates: tuple[Scalar, ...], exprs: tuple[Scalar, ...], context: Context
) -> RowFormula | None:
    """The formula of a row of the same schema for each row that meets the conditions; None if there is none."""
    found = {p.index: p for e in (*predicates, *exprs) for p in walk(e) if isinstance(p, Parameter)}
    given = tuple(found[index] for index in sorted(found))
    width = len(schema)
    if width + len(given) >= MOST_COLUMNS or not null_words(schema):
        return None
    places = {p.index: width + i for i, p in enumerate(given)}

    def as_column(part: Parameter) -> Scalar:
        return Column(places[part.index], part.type, True)

    whole = (*schema, *(ColumnType(p.type, True) for p in given))
    tests, new = (tuple(rebuild(e, PARAMETERS, as_column) for e in each) for each in (predicates, exprs))
    formula = row_formula(whole, tests, new, schema, context)
    if formula is None:
        return None
    return RowFormula(formula, tuple((p.index - 1, encoder_of(p.type)) for p in given), width, row_width(schema))
