"""The fields of a value that is a row."""

from __future__ import annotations

from dataclasses import replace

from ivm.words import INT4
from planner.expr.scalar import Call, Literal, Scalar


def fields_of(expr: Scalar) -> tuple[Scalar, ...]:
    """The fields of a row, as the types that its own type says."""
    if (
        isinstance(expr, Call)
        and expr.function == "row"
        and all(arg.type == type_ for arg, (_, type_) in zip(expr.args, expr.type.fields, strict=True))
    ):
        return expr.args
    types = (replace(type_, domain=None) for _, type_ in expr.type.fields)
    return tuple(Call("field of row", (expr, Literal(i, INT4)), type_, True) for i, type_ in enumerate(types))
