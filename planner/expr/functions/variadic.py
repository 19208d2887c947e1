"""Calls with VARIADIC: the functions whose last argument repeats, given one array of these arguments instead.

For each such function of the table there is one more, internal, whose last argument is an array. It calls the other
with the array's elements, those of all its dimensions. A NULL array gives NULL, but is no arguments to format.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from ivm.words import Kind, SqlType
from planner.expr.functions.table import ANYARRAY, FUNCTIONS, CallingConvention, CallSite, Function, register
from planner.expr.functions.text.concat import flatten

FORMS: Final[dict[str, Function]] = {}
"""By the key of the function whose last argument repeats."""


def _spread(function: Function) -> Callable[..., Any]:
    compute = function.implementation

    def call(site: CallSite, *args: Any) -> Any:
        *fixed, array = args
        if array is None and function.name != "format":
            return None
        type_ = site.args[-1]
        assert type_.element is not None, "the last argument is an array"
        values = flatten(array or (), type_.element.kind)
        if function.strict and None in (*fixed, *values):
            return None
        if not function.needs_site:
            return compute(*fixed, *values)
        return compute(site.with_args((*site.args[:-1], *[type_.element] * len(values))), *fixed, *values)

    return call


def add_forms() -> None:
    """Adds the forms of all functions of the table that clients can call."""
    for function in tuple(FUNCTIONS.values()):
        if not function.variadic or function.internal or function.key == function.name:
            continue
        if function.convention is not CallingConvention.PER_VALUE:
            continue
        last = function.args[-1]
        array = SqlType(Kind.ARRAY, element=last) if isinstance(last, SqlType) else ANYARRAY
        name = f"{function.name} variadic"
        FORMS[function.key] = form = replace(
            function, key=f"{function.key} variadic", name=name, args=(*function.args[:-1], array),
            implementation=_spread(function), needs_site=True, variadic=False, internal=True, makes_null=True,
            strict=False, formula=None, vector=None,
        )  # fmt: skip
        register(form)
