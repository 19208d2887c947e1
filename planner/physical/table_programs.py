"""Table functions as row programs: each row beside the rows that the function returns for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ivm.graph import Mapped
from ivm.rows import Vector, Words, pack, unpack
from ivm.words import Kind, Schema, SqlType
from planner import gathers
from planner.expr.context import Context
from planner.expr.functions.lockstep import implementation
from planner.expr.functions.table_functions import Expansion
from planner.expr.functions.text.concat import flatten
from planner.expr.scalar import Call, Coalesce, Literal, Parameter, Scalar
from planner.physical.row_programs import RunState, Stage
from storage.types.codec import encode


@dataclass(frozen=True, slots=True)
class Expand:
    """[row | function's columns | ordinality]; ``output`` is their schema."""

    schema: Schema
    function: str
    args: tuple[Scalar, ...]
    columns: Schema
    ordinality: bool
    output: Schema
    computed: Stage = field(init=False, compare=False, repr=False)
    diff_width: ClassVar[int] = 1
    can_fail: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "computed", Stage.of(self.args))

    @property
    def out_width(self) -> int:
        return gathers.width(self.output)

    def run(self, rows: Words, context: Context) -> Mapped:
        work = RunState(rows, self.schema, context)
        given = given_arrays(self.args, context) if self.function == "unnest" and len(rows) == 1 else None
        if given is None:
            arguments = work.evaluate(self.computed)
            types = tuple(a.type for a in self.args)
            count = len(work.rows)
            expansion = implementation(self.function)(arguments, types, count, context)
        else:
            expansion = spread(given, tuple(c.type for c in self.columns), context)
        if expansion.failures is not None:
            work.fail(expansion.failures.rows, expansion.failures.errors)
        at = expansion.source
        own = [_taken(v, at) for v in unpack(work.rows, self.schema)]
        extra = [Vector(_numbers(at))] if self.ordinality else []
        out = pack([*own, *expansion.columns, *extra], self.output, len(at))
        source = at if work.source is None else work.source[at]
        errors, error_source = work.errors()
        return Mapped(out, source.astype(np.int64), None, errors, error_source)


def given_arrays(args: tuple[Scalar, ...], context: Context) -> list[Sequence[object]] | None:
    """The arrays of ``unnest($1, $2::bigint[], …)`` as the client gave them; None for any other arguments.

    The elements become words directly, instead of by way of an interned array.
    """
    found: list[Sequence[object]] = []
    for arg in args:
        array = given_array(arg, context)
        if array is None:
            return None
        found.append(array)
    return found


def given_array(arg: Scalar, context: Context) -> Sequence[object] | None:
    """One such array, or that of a literal, or None. ANY and ALL pass ``COALESCE($1, a constant)``."""
    datum: object = ()
    match arg:
        case Coalesce(args=(first, Literal(value=value))):
            arg, datum = first, value
        case _:
            pass
    if isinstance(arg, Call) and arg.function == "cast" and _widens(arg.args[0].type, arg.type):
        arg = arg.args[0]
    if isinstance(arg, Literal) and isinstance(arg.value, tuple) and arg.type.element is not None:
        return flatten(arg.value, arg.type.element.kind)
    if not isinstance(arg, Parameter) or arg.type.element is None:
        return None
    given = context.parameters[arg.index - 1]
    if given is not None:
        datum = given
    return flatten(datum, arg.type.element.kind) if isinstance(datum, list | tuple) else None


def _widens(source: SqlType, target: SqlType) -> bool:
    """Whether a cast between integer array types leaves every element unchanged."""
    return source.element is not None and target.element is not None and widens(source.element, target.element)


def widens(source: SqlType, target: SqlType) -> bool:
    """Whether a cast between integer types leaves every value unchanged."""
    kinds = (Kind.INT2, Kind.INT4, Kind.INT8)
    have, want = source.kind, target.kind
    return have in kinds and want in kinds and kinds.index(have) <= kinds.index(want)


def spread(arrays: Sequence[Sequence[object]], types: tuple[SqlType, ...], context: Context) -> Expansion:
    """One row's expansion: the arrays side by side, shorter ones padded with NULLs."""
    size = max(map(len, arrays))
    columns = []
    for array, type_ in zip(arrays, types, strict=True):
        datums = array if len(array) == size else (*array, *([None] * (size - len(array))))
        columns.append(encode(type_, datums, context.dictionary))
    return Expansion(np.zeros(size, np.int64), columns)


def _taken(vector: Vector, at: Words) -> Vector:
    return Vector(vector.words[at], None if vector.nulls is None else vector.nulls[at])


def _numbers(source: Words) -> Words:
    """1, 2, … within each run of equal sources."""
    if not len(source):
        return np.zeros(0, np.int64)
    starts = np.flatnonzero(np.concatenate([[True], source[1:] != source[:-1]]))
    lengths = np.diff(np.concatenate([starts, [len(source)]]))
    return np.arange(len(source), dtype=np.int64) - np.repeat(starts, lengths) + 1
