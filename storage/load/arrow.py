"""Arrow columns → words. The server and Spark's executors run the same code, so that both produce the same words.

A file's type must convert to the target's with no loss beyond that of Postgres's assignment casts (fractional digits of
a numeric, trailing spaces of a varchar). Anything else is an error that names the column: 42804 for types; 22003 for
ranges; 22001, 22008, 22021, 23502 as in Postgres.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ivm.errors import SqlError
from ivm.rows import Mask, Vector, Words
from ivm.words import Kind, Storage
from storage.dictionary import Dictionary
from storage.load.columns import LoadColumn, null_violation
from storage.load.nested import array_words, document_words, is_document, is_list
from storage.types import codec
from storage.types.calendar import DAY, END_TIMESTAMP, EPOCH_DAYS, MAX_DATE, MIN_DATE, MIN_TIMESTAMP
from storage.types.numeric import INLINE_LIMIT, POWERS, inline_words
from storage.types.text import parse_datum
from storage.types.text_number import fit_numeric
from storage.types.time_output import round_words
from storage.types.type_names import format_type

_EPOCH_2000: Final = EPOCH_DAYS * DAY
_LIMITS: Final = {
    Kind.INT2: (-(2**15), 2**15 - 1),
    Kind.INT4: (-(2**31), 2**31 - 1),
    Kind.INT8: (-(2**63), 2**63 - 1),
    Kind.OID: (0, 2**32 - 1),
}
_PER_UNIT: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}
_STRINGS: Final = (Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR, Kind.NAME)
_PARSED: Final = (Kind.UUID, Kind.JSON, Kind.JSONB, Kind.ENUM, Kind.ARRAY, Kind.INTERVAL)
"""Types that files store as strings, having none of their own for them."""


@dataclass(frozen=True, slots=True)
class _Source:
    """A converter's input: an array without NULLs, and its column."""

    array: pa.Array
    column: LoadColumn
    dictionary: Dictionary


_Converter = Callable[[_Source], Words]


def column_vector(array: pa.Array, column: LoadColumn, dictionary: Dictionary) -> Vector:
    """A column's values as words, int64[n], and its nulls. Strings are interned in the dictionary."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_string_view(array.type):  # Arrow lacks most functions for these
        array = array.cast(pa.large_string())
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    nulls = _nulls(array, column)
    convert = _converter(array.type, column)
    if convert is None:
        raise type_mismatch(array.type, column)
    if nulls is None:
        return Vector(convert(_Source(array, column, dictionary)))
    words = np.zeros(len(array), np.int64)
    words[~nulls] = convert(_Source(array.drop_null(), column, dictionary))
    return Vector(words, nulls)


def check_type(found: pa.DataType, column: LoadColumn) -> None:
    """Raises 42804 if a column of this Arrow type cannot be loaded. Values may still be out of range."""
    if pa.types.is_dictionary(found):
        found = found.value_type
    if isinstance(found, pa.BaseExtensionType):
        found = found.storage_type
    if not pa.types.is_null(found) and _converter(found, column) is None:
        raise type_mismatch(found, column)


def type_mismatch(found: pa.DataType, column: LoadColumn) -> SqlError:
    """42804, for a column whose type in the file does not convert to the target's."""
    return SqlError(
        "42804",
        f'column "{column.name}" is of type {format_type(column.type)} but the file\'s column is of type {found}',
        hint="Load it into a table with a column of a matching type, and INSERT ... SELECT with a cast from there.",
    )


def _nulls(array: pa.Array, column: LoadColumn) -> Mask | None:
    if not array.null_count:
        return None
    if not column.nullable:
        raise null_violation(column)
    nulls: Mask = array.is_null().to_numpy(zero_copy_only=False)
    return nulls


def _converter(found: pa.DataType, column: LoadColumn) -> _Converter | None:
    """The conversion from arrays of this Arrow type (without NULLs) to words; None if there is none."""
    kind, types = column.type.kind, pa.types
    if types.is_null(found):
        return lambda source: np.zeros(len(source.array), np.int64)
    if types.is_boolean(found):
        return _bools if kind is Kind.BOOL else None
    if types.is_integer(found) or (types.is_decimal(found) and found.scale == 0 and kind in _LIMITS):
        converters = {Kind.FLOAT4: _float4s, Kind.FLOAT8: _floats, Kind.NUMERIC: _numerics}
        return _integers if kind in _LIMITS else converters.get(kind)
    if types.is_floating(found) or types.is_decimal(found):
        return {Kind.FLOAT4: _float4s, Kind.FLOAT8: _floats, Kind.NUMERIC: _numerics}.get(kind)
    if types.is_string(found) or types.is_large_string(found) or types.is_string_view(found):
        return _strings if kind in _STRINGS else (_parsed if kind in _PARSED else None)
    if types.is_binary(found) or types.is_large_binary(found) or types.is_fixed_size_binary(found):
        uuid = kind is Kind.UUID and types.is_fixed_size_binary(found) and found.byte_width == 16
        return _bytes if kind is Kind.BYTEA or uuid else None
    if types.is_date(found):
        return {Kind.DATE: _dates, Kind.TIMESTAMP: _dates_as_timestamps}.get(kind)
    if types.is_timestamp(found):
        return _timestamps if kind is (Kind.TIMESTAMP if found.tz is None else Kind.TIMESTAMPTZ) else None
    if types.is_time(found):
        return _times if kind is Kind.TIME else None
    if types.is_duration(found):
        return _intervals if kind is Kind.INTERVAL else None
    if is_list(found) and kind is Kind.ARRAY:
        return _arrays if _converter(found.value_type, _element(column)) is not None else None
    return _documents if is_document(found) and kind in (Kind.JSON, Kind.JSONB) else None


def _bools(source: _Source) -> Words:
    return np.asarray(source.array.to_numpy(zero_copy_only=False), np.int64)


def _out_of_range(column: LoadColumn, value: object) -> SqlError:
    type_ = format_type(column.type)
    return SqlError("22003", f'value "{value}" of column "{column.name}" is out of range for type {type_}')


def _integers(source: _Source) -> Words:
    low, high = _LIMITS[source.column.type.kind]
    try:
        words = np.asarray(source.array.cast(pa.int64()).to_numpy(), np.int64)
    except pa.ArrowInvalid:
        raise _out_of_range(source.column, pc.max(source.array).as_py()) from None
    if source.column.type.kind is not Kind.INT8 and len(words):
        for extreme in (int(words.min()), int(words.max())):
            if not low <= extreme <= high:
                raise _out_of_range(source.column, extreme)
    return words


def _floats(source: _Source) -> Words:
    return codec.float_to_word(source.array.cast(pa.float64(), safe=False).to_numpy())


def _float4s(source: _Source) -> Words:
    doubles = source.array.cast(pa.float64(), safe=False).to_numpy()
    finite = np.isfinite(doubles)
    with np.errstate(over="ignore"):
        singles = doubles.astype(np.float32)
    overflown = finite & ~np.isfinite(singles)
    if overflown.any():
        raise _out_of_range(source.column, doubles[overflown][0])
    return codec.float_to_word(singles.astype(np.float64))


def _numerics(source: _Source) -> Words:
    if source.column.type.storage is Storage.DIRECT:
        words = _direct_numerics(source.array, source.column)
        if words is not None:
            return words
    elif pa.types.is_integer(source.array.type) and source.column.type.precision is None:
        found = source.array.cast(pa.int64(), safe=False).to_numpy()
        if not len(found) or (
            source.array.type != pa.uint64() and -INLINE_LIMIT <= found.min() <= found.max() < INLINE_LIMIT
        ):
            return inline_words(found, 0)
    encoded = source.array.dictionary_encode()
    values = [_numeric(value, source.column) for value in encoded.dictionary.to_pylist()]
    words = codec.encode(source.column.type, values, source.dictionary).words
    return words[encoded.indices.to_numpy()] if len(source.array) else words


def _direct_numerics(array: pa.Array, column: LoadColumn) -> Words | None:
    """The words of a DIRECT numeric(p, s) if no rounding is needed; None if values must be converted one by
    one."""
    precision, scale = column.type.precision or 0, column.type.scale or 0
    if pa.types.is_floating(array.type):
        return None
    try:
        exact = array.cast(pa.decimal128(38, scale))
    except pa.ArrowInvalid:
        return None
    halves = np.frombuffer(exact.buffers()[1], np.int64).reshape(-1, 2)[exact.offset : exact.offset + len(exact)]
    low, high = halves[:, 0], halves[:, 1]
    if ((low >> 63) != high).any() or (len(low) and max(int(low.max()), -int(low.min())) >= int(POWERS[precision])):
        return None
    return np.ascontiguousarray(low)


def _numeric(value: object, column: LoadColumn) -> Decimal:
    """A number as a value of the column, rounded to its scale half away from zero. 22003 past its precision."""
    text = f"{value:.15g}" if isinstance(value, float) else str(value)  # as Postgres casts a double
    number = value if isinstance(value, Decimal) else Decimal(text)
    try:
        return fit_numeric(number, column.type.precision, column.type.scale)
    except SqlError as error:
        detail = f"{(error.detail or '').removesuffix('.')}; it is {number:f}."
        raise SqlError("22003", f'{error.message} in column "{column.name}"', detail) from None


def _strings(source: _Source) -> Words:
    large = source.array.cast(pa.large_string())
    try:
        large.validate(full=True)
    except pa.ArrowInvalid:
        raise SqlError("22021", f'invalid byte sequence for encoding "UTF8" in column "{source.column.name}"') from None
    limit = source.column.type.precision
    if source.column.type.kind is not Kind.NAME and (source.column.type.kind is not Kind.BPCHAR or limit is None):
        longest = pc.max(pc.utf8_length(large)).as_py() or 0 if limit is not None else 0
        if limit is None or longest <= limit:
            data, offsets = _packed(large)
            if len(data) and not data.all():
                raise SqlError(
                    "22021", f'invalid byte sequence for encoding "UTF8": 0x00 in column "{source.column.name}"'
                )
            return source.dictionary.intern_packed(data, offsets)
    return _parsed(_Source(large, source.column, source.dictionary))


def _parsed(source: _Source) -> Words:
    """Converts strings by Postgres's input function, once per distinct string."""
    encoded = source.array.dictionary_encode()
    try:
        values = [parse_datum(source.column.type, text) for text in encoded.dictionary.to_pylist()]
    except SqlError as error:
        raise _of_column(error, source.column) from error
    words = codec.encode(source.column.type, values, source.dictionary).words
    return words[encoded.indices.to_numpy()] if len(source.array) else words


def _of_column(error: SqlError, column: LoadColumn) -> SqlError:
    """A value's error, with the column's name added."""
    context = f'column "{column.name}"'
    detail = f"{error.detail} ({context})" if error.detail else f"It is in {context} of the file."
    return SqlError(error.sqlstate, error.message, detail, error.hint)


def _packed(array: pa.Array) -> tuple[np.ndarray[tuple[int], np.dtype[np.uint8]], Words]:
    """The bytes of a large string or binary array without NULLs, and their offsets, int64[n + 1]."""
    if not len(array):
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return content[ends[0] : ends[-1]], ends - ends[0]


def _bytes(source: _Source) -> Words:
    return source.dictionary.intern_packed(*_packed(source.array.cast(pa.large_binary())))


def _days(array: pa.Array) -> Words:
    """Days since 1970."""
    return np.asarray(array.cast(pa.date32()).cast(pa.int32()).to_numpy(), np.int64)


def _dates(source: _Source) -> Words:
    days = _days(source.array) - EPOCH_DAYS
    if len(days) and not MIN_DATE <= days.min() <= days.max() <= MAX_DATE:
        raise SqlError("22008", f'date out of range in column "{source.column.name}"')
    return days


def _dates_as_timestamps(source: _Source) -> Words:
    return round_words(_since_2000(_days(source.array), DAY, source.column), source.column.type.precision)


def _timestamps(source: _Source) -> Words:
    found, unit = np.asarray(source.array.cast(pa.int64()).to_numpy(), np.int64), source.array.type.unit
    if unit == "ns":
        stamps = found // 1000 + (found % 1000 >= 500) - _EPOCH_2000
    else:
        stamps = _since_2000(found, _PER_UNIT[unit], source.column)
    return round_words(stamps, source.column.type.precision)


def _since_2000(units: Words, per: int, column: LoadColumn) -> Words:
    """Converts units of ``per`` µs since 1970 to µs since 2000. 22008 outside Postgres's range."""
    if len(units):
        for extreme in (int(units.min()), int(units.max())):  # Python's integers: numpy's would wrap
            if not MIN_TIMESTAMP <= extreme * per - _EPOCH_2000 < END_TIMESTAMP:
                raise SqlError("22008", f'timestamp out of range in column "{column.name}"')
    return units * np.int64(per) - _EPOCH_2000


def _times(source: _Source) -> Words:
    integers = pa.int32() if pa.types.is_time32(source.array.type) else pa.int64()
    found = np.asarray(source.array.cast(integers).to_numpy(), np.int64)
    if source.array.type.unit == "ns":
        return round_words(found // 1000 + (found % 1000 >= 500), source.column.type.precision)
    return round_words(found * np.int64(_PER_UNIT[source.array.type.unit]), source.column.type.precision)


def _intervals(source: _Source) -> Words:
    array = source.array
    if array.type.unit == "ns":
        array = array.cast(pa.duration("us"), safe=False)
    per = _PER_UNIT[array.type.unit]
    micros = [per * units for units in array.cast(pa.int64()).to_pylist()]
    if any(not -(2**63) <= each < 2**63 for each in micros):
        raise SqlError("22008", f'interval out of range in column "{source.column.name}"')
    values = [(0, 0, each) for each in micros]
    return codec.encode(source.column.type, values, source.dictionary).words


def _element(column: LoadColumn) -> LoadColumn:
    """The column that an array's elements are loaded as."""
    assert column.type.element is not None, "an array has an element's type"
    return LoadColumn(column.name, column.type.element)


def _arrays(source: _Source) -> Words:
    scratch = source.dictionary.scratch()
    element = _element(source.column)
    elements = codec.decode(element.type, column_vector(source.array.flatten(), element, scratch), scratch)
    return array_words(source.array, elements, source.column.type, source.dictionary)


def _documents(source: _Source) -> Words:
    try:
        return document_words(source.array, source.column.type, source.dictionary)
    except SqlError as error:
        raise _of_column(error, source.column) from error
