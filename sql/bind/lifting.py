"""What the forms of a chain read of a row: computed once for it, however many operands there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ivm.words import SqlType
from planner.expr.literal_rows import LiteralRows
from planner.expr.scalar import And, Case, Coalesce, Column, Form, Literal, Or, Scalar, children, with_children
from planner.logical.fallibility import can_raise
from planner.logical.traversal import columns_of, renumber

FIRST: Final = 1 << 40
"""The constants' columns count from here while a form is bound."""
ONE_BY_ONE: Final = (And, Or, Case, Coalesce)
"""Not all arguments of these are computed for each row."""


@dataclass(frozen=True, slots=True)
class BoundForm:
    """``expr``: an operand, with ``Column(FIRST + i)`` for the constants in column i."""

    expr: Scalar
    columns: tuple[tuple[object, ...], ...]
    types: tuple[SqlType, ...]


def reads_constants(expr: Scalar) -> bool:
    """Whether it reads constants in which operands differ."""
    return any(i >= FIRST for i in columns_of(expr))


def lifted(forms: Sequence[BoundForm]) -> tuple[tuple[Scalar, ...], tuple[Form, ...]]:
    """What the forms read of a row, and the forms over that and their constants. The first operand is of the first."""
    lifting = _Lifting()
    bodies = [lifting.lift(form.expr, not number) for number, form in enumerate(forms)]
    count = len(lifting.args)

    def placed(index: int) -> int:
        return index - FIRST + count if index >= FIRST else -1 - index

    made = [Form(renumber(body, placed), LiteralRows(f.columns, f.types) if f.columns else None)
            for body, f in zip(bodies, forms, strict=True)]  # fmt: skip
    return tuple(lifting.args), tuple(made)


class _Lifting:
    """``args``: what is read of a row, each with its number."""

    def __init__(self) -> None:
        self.args: dict[Scalar, int] = {}

    def lift(self, part: Scalar, sure: bool) -> Scalar:
        """``sure``: it is computed of every row. What is not stays where it is if it can fail."""
        if isinstance(part, Literal) or (isinstance(part, Column) and part.index >= FIRST):
            return part
        if not reads_constants(part) and (sure or not can_raise(part)):
            return Column(-1 - self.args.setdefault(part, len(self.args)), part.type, part.nullable)
        ordered = isinstance(part, ONE_BY_ONE)
        inner = [self.lift(c, sure and (not ordered or not i)) for i, c in enumerate(children(part))]
        return with_children(part, tuple(inner))
