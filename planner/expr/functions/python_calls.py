"""Calls of users' functions in LANGUAGE python.

The first argument is the function as JSON text (``spec``), so that a plan holds all that another process needs; the
others are the function's own. A table function's are preceded by a NULL of the row type that it returns. The function
is called with one Python object for each argument, once for each row; ``vectorised`` ones are called with pyarrow
arrays of all rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Vector, Words
from ivm.words import TEXT, Kind, SqlType
from planner.expr.context import Context
from planner.expr.functions.expansion import add, each_row
from planner.expr.functions.table import ANY, CallSite, vectorised
from planner.expr.python_arrays import array_results, call_arrays, python_arguments
from planner.expr.python_function import PythonFunction
from storage.types.codec import decode, decode_one, encode

PYTHON_CALLS: Final = {"immutable": "python", "stable": "stable python", "volatile": "volatile python"}
"""The keys of calls that give one value, by volatility."""
PYTHON_ROWS: Final = "rows of python"
PYTHON_ROW: Final = f"row of {PYTHON_ROWS}"
"""Those of calls that give rows: as columns, and as one."""


def spec(function: PythonFunction, vectorised: bool, volatility: str) -> str:
    """The first argument of a call."""
    return json.dumps([function.name, volatility, function.entry, function.body, function.strict, vectorised])


def traits(text: str) -> tuple[str, str]:
    """The name of a ``spec``'s function, with its types, and its volatility."""
    name, volatility, *_ = json.loads(text)
    return name, volatility


@lru_cache(maxsize=256)
def function_of(text: str, result: SqlType) -> tuple[PythonFunction, bool]:
    """The function of a ``spec``, and whether it is vectorised."""
    name, _, entry, body, strict, vectorised = json.loads(text)
    return PythonFunction(name, entry, body, result, strict, "function"), vectorised


@vectorised(PYTHON_CALLS["volatile"], (ANY,), ANY, strict=False, variadic=True, internal=True, key_is_name=True,
            volatility="volatile")  # fmt: skip
@vectorised(PYTHON_CALLS["stable"], (ANY,), ANY, strict=False, variadic=True, internal=True, key_is_name=True,
            volatility="stable")  # fmt: skip
@vectorised(PYTHON_CALLS["immutable"], (ANY,), ANY, strict=False, variadic=True, internal=True, key_is_name=True)
def call_python(site: CallSite, text: Vector, *arguments: Vector) -> Vector:
    dictionary = site.context.dictionary
    function, at_once = function_of(decode_one(TEXT, int(text.words[0]), dictionary), site.result)
    rows = _called_rows(function, arguments, site.count)
    kept = [Vector(v.words[rows], None if v.nulls is None else v.nulls[rows]) for v in arguments]
    types = site.args[1:]
    errors: dict[int, SqlError] = {}
    if at_once:
        out = array_results(function, call_arrays(function, types, kept, len(rows), dictionary), len(rows), dictionary)
    else:
        columns = [decode(t, v, dictionary) for t, v in zip(types, kept, strict=True)]
        out = encode(site.result, _each(function, types, columns, rows, errors), dictionary)
    words, nulls = np.zeros(site.count, np.int64), np.ones(site.count, np.bool_)
    words[rows] = out.words
    nulls[rows] = False if out.nulls is None else out.nulls
    for row, error in errors.items():
        site.fail(np.array([row]), error.with_traceback(None))
    return Vector(np.where(nulls, 0, words), nulls if nulls.any() else None)


def _called_rows(function: PythonFunction, arguments: Sequence[Vector], count: int) -> Words:
    """The rows for which the function is called: if it is strict, those without a NULL."""
    present = np.ones(count, np.bool_)
    for vector in arguments if function.strict else ():
        if vector.nulls is not None:
            present &= ~vector.nulls
    return np.flatnonzero(present)


def _each(
    function: PythonFunction, types: Sequence[SqlType], columns: Sequence[Sequence[Any]], rows: Words,
    errors: dict[int, SqlError],
) -> list[object]:  # fmt: skip
    """The values row by row. Adds to ``errors``, by row."""
    values: list[object] = []
    for place, row in enumerate(rows.tolist()):
        try:
            given = [column[place] for column in columns]
            values.append(function.datum(function.apply(python_arguments(function, types, given))))
        except SqlError as error:
            errors[row] = error.with_traceback(None)
            values.append(None)
    return values


def _fields(types: Sequence[SqlType]) -> Sequence[SqlType]:
    return [type_ for _, type_ in types[0].fields]


def _rows(context: Context, types: tuple[SqlType, ...], row: Any, text: str, *datums: Any) -> list[tuple[Any, ...]]:
    function, _ = function_of(text, types[0])
    if function.strict and any(d is None for d in datums):
        return []
    found = function.apply(python_arguments(function, types[2:], datums))
    return function.rows(found, _fields(types))


add(PYTHON_ROWS, (SqlType(Kind.RECORD), TEXT, ANY), _fields, each_row(_fields, _rows, 1 << 16), nullable=True,
    key=PYTHON_ROWS, row=True)  # fmt: skip
