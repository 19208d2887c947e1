"""Users' aggregates of a state function in SQL (CREATE AGGREGATE … SFUNC): folds a group's rows (nodeAgg.c).

The state function is an expression over the state and the arguments, evaluated once for each row, so a fold costs what
calling it as often costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ivm.rows import Vector
from ivm.words import SqlType
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import evaluate
from planner.expr.scalar import Scalar
from storage.types import codec


@dataclass(frozen=True, slots=True)
class StateFold:
    """An aggregate with the types of one call.

    ``transition``: the next state, over the state (column 0) and the arguments. ``strict``: rows with a NULL argument
    do not count; where there is no ``initial`` state, ``first`` makes the first row's argument the state. ``final``:
    the result, over the state; () for the state itself; ``final_strict``: NULL for a NULL state. Each of the three is a
    tuple of one expression.
    """

    name: str
    types: tuple[SqlType, ...]
    state: SqlType
    transition: tuple[Scalar, ...]
    strict: bool
    initial: object
    first: tuple[Scalar, ...]
    final: tuple[Scalar, ...]
    final_strict: bool
    result: SqlType

    def fold(self, columns: Sequence[Sequence[object]], count: int, context: Context) -> object:
        """The aggregate of ``count`` rows, in their order: a datum. ``columns``: the arguments' datums. Raises the
        SqlError of the state or final function."""
        if context.dictionary.arena.parent is None:
            context = replace(context, dictionary=context.dictionary.scratch())
        vectors = [codec.encode(t, list(c), context.dictionary) for t, c in zip(self.types, columns, strict=True)]
        state = codec.encode(self.state, [self.initial], context.dictionary)
        started = self.initial is not None
        for row in range(count):
            args = [_row(v, row) for v in vectors]
            if self.strict and any(_is_null(a) for a in args):
                continue
            if self.strict and not started:
                state, started = _value(self.first, [state, *args], context), True
            elif not (self.strict and _is_null(state)):
                state = _value(self.transition, [state, *args], context)
        if self.final and self.final_strict and _is_null(state):
            return None
        if self.final:
            state = _value(self.final, [state], context)
        return codec.decode(self.result, state, context.dictionary)[0]


def _value(exprs: tuple[Scalar, ...], columns: list[Vector], context: Context) -> Vector:
    (found,), failures = evaluate(exprs, columns, 1, context)
    if failures is not None:
        raise failures.errors[0]
    return found


def _row(vector: Vector, row: int) -> Vector:
    nulls = None if vector.nulls is None or not vector.nulls[row] else np.ones(1, np.bool_)
    return Vector(vector.words[row : row + 1], nulls)


def _is_null(vector: Vector) -> bool:
    return vector.nulls is not None and bool(vector.nulls[0])
