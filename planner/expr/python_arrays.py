"""The arguments of Python functions as objects and as pyarrow arrays, and the arrays that vectorised ones return.

Integers and doubles go from words to arrays and back without a Python object for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Vector
from ivm.words import Kind, SqlType
from planner.expr.python_function import PythonFunction
from planner.expr.python_values import OutOfRangeError, to_python
from storage.dictionary import Dictionary
from storage.types.codec import decode, encode, float_to_word, word_to_float

_INTEGERS: Final = {Kind.INT2: np.int16, Kind.INT4: np.int32, Kind.INT8: np.int64}
_FLOATS: Final = {Kind.FLOAT4: np.float32, Kind.FLOAT8: np.float64}


def python_arguments(function: PythonFunction, types: Sequence[SqlType], datums: Iterable[object]) -> list[object]:
    """The Python objects of arguments. Raises 22008 for values that Python has no object for."""
    try:
        return [None if d is None else to_python(t)(d) for t, d in zip(types, datums, strict=True)]
    except OutOfRangeError as error:
        raise SqlError("22008", f"function {function.name} cannot be given {error}") from None


def call_arrays(
    function: PythonFunction, types: Sequence[SqlType], vectors: Sequence[Vector], count: int, dictionary: Dictionary
) -> Any:
    """What a vectorised function returns for ``count`` rows, [] for none. Raises 38000, 22008."""
    if not count:
        return []
    return function.apply([_array(function, t, v, dictionary) for t, v in zip(types, vectors, strict=True)])


def _array(function: PythonFunction, type_: SqlType, vector: Vector, dictionary: Dictionary) -> Any:
    import pyarrow as pa

    if type_.kind in _INTEGERS:
        return pa.array(vector.words.astype(_INTEGERS[type_.kind]), mask=vector.nulls)
    if type_.kind in _FLOATS:
        return pa.array(word_to_float(vector.words).astype(_FLOATS[type_.kind]), mask=vector.nulls)
    datums = decode(type_, vector, dictionary)
    objects = [python_arguments(function, (type_,), (datum,))[0] for datum in datums]
    return pa.array(objects, _arrow_type(type_))


def _arrow_type(type_: SqlType) -> Any:
    """The pyarrow type of an argument; None: that of its values."""
    import pyarrow as pa

    match type_.kind:
        case Kind.BOOL:
            return pa.bool_()
        case Kind.TEXT | Kind.VARCHAR | Kind.BPCHAR:
            return pa.string()
        case Kind.BYTEA:
            return pa.binary()
        case Kind.DATE:
            return pa.date32()
        case Kind.TIMESTAMP:
            return pa.timestamp("us")
        case Kind.TIMESTAMPTZ:
            return pa.timestamp("us", "UTC")
        case Kind.TIME:
            return pa.time64("us")
        case _:
            return None


def array_results(function: PythonFunction, found: Any, count: int, dictionary: Dictionary) -> Vector:
    """The words of a returned array. Raises 22023 where it is not as long as the arguments, 22P02, 22003."""
    import pyarrow as pa

    try:
        made = found if isinstance(found, pa.Array | pa.ChunkedArray) else pa.array(found)
        made = made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError):
        raise SqlError("22P02", f"function {function.name} returned no array") from None
    if len(made) != count:
        raise SqlError("22023", f"function {function.name} returned {len(made)} values for {count} rows")
    kind = function.result.kind
    nulls = None if not made.null_count else np.asarray(made.is_null())
    if kind in _INTEGERS and pa.types.is_signed_integer(made.type):
        words = np.ascontiguousarray(made.fill_null(0).to_numpy(zero_copy_only=False), np.int64)
        out_of_range = np.flatnonzero(words.astype(_INTEGERS[kind]) != words)
        if len(out_of_range):
            function.datum(int(words[out_of_range[0]]))
        return Vector(words, nulls)
    if kind is Kind.FLOAT8 and pa.types.is_floating(made.type):
        values = np.ascontiguousarray(made.fill_null(0).to_numpy(zero_copy_only=False), np.float64)
        return Vector(float_to_word(values), nulls)
    return encode(function.result, [function.datum(value) for value in made.to_pylist()], dictionary)
