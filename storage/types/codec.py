"""Datums ↔ words, and the byte encoding of interned values.

Datums (see ``planner/expr/scalar.py``): bool, int, float, Decimal, str, bytes; dates as int days and times as int µs
since 2000-01-01 (with ``NEGATIVE_INFINITY``, ``POSITIVE_INFINITY``); interval (months, days, µs); uuid as 16 bytes;
json and jsonb as their text (canonical but for json); types with a definition of their own
(``storage.types.definitions``) as that says; "char" as a str of at most one character with a code below 256; an array
as a tuple (nested for more dimensions); a row as a ``Row``. float4's datum is a double that a real can represent.

Bytes of interned types: strings and jsonb as UTF-8; bytea and uuid unchanged; interval as three big-endian int64
(months, days, µs); for numerics see ``storage.types.numeric``, for arrays ``storage.types.arrays``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ivm.rows import Mask, Vector, Words
from ivm.stops import poll, room
from ivm.words import Kind, SqlType, Storage
from storage.dictionary import Dictionary
from storage.long_values import LONG, decoded, encoded
from storage.types.arrays import Row, array_from_bytes, array_to_bytes, fields_from_bytes, fields_to_bytes
from storage.types.definitions import DEFINITIONS
from storage.types.numeric import (
    decode_direct,
    decode_numeric,
    encode_direct,
    encode_numeric,
    encode_numerics,
    numeric_text,
)

INTERVAL: Final = struct.Struct(">qqq")
_WORD: Final = struct.Struct(">q")
_DOUBLE: Final = struct.Struct("<d")
_LONG: Final = struct.Struct("<q")
_NAN_WORD: Final = 0x7FF8000000000000
_SIGN: Final = 2**63 - 1
_MANY: Final = 16
_LARGE: Final = 16 << 20
"""Bytes of many values together, from which on they are decoded one by one."""
_SHARED: Final = (Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR, Kind.JSON, Kind.BYTEA)
"""Kinds whose datums are strings or bytes."""
_FLOATS: Final = (Kind.FLOAT4, Kind.FLOAT8)
_TEXTS: Final = (
    Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR, Kind.NAME, Kind.UNKNOWN, Kind.JSONB, Kind.JSON,
)  # fmt: skip


def float_to_word(values: NDArray[np.float64]) -> Words:
    """Doubles as order-preserving words. Every NaN is one word, above infinity; -0.0 is just below 0.0."""
    bits = np.ascontiguousarray(values, np.float64).view(np.int64)
    words: Words = bits ^ ((bits >> np.int64(63)) & np.int64(_SIGN))
    nan = np.isnan(values)
    return np.where(nan, np.int64(_NAN_WORD), words) if np.count_nonzero(nan) else words


def word_to_float(words: Words) -> NDArray[np.float64]:
    """The inverse of ``float_to_word``, float64."""
    bits = words ^ ((words >> np.int64(63)) & np.int64(_SIGN))
    return bits.view(np.float64)


def _one_float_to_word(value: float) -> int:
    bits: int = _LONG.unpack(_DOUBLE.pack(value))[0] if value == value else _NAN_WORD  # noqa: PLR0124
    return bits if bits >= 0 else bits ^ _SIGN


def _one_word_to_float(word: int) -> float:
    value: float = _DOUBLE.unpack(_LONG.pack(word if word >= 0 else word ^ _SIGN))[0]
    return value


def to_bytes(type: SqlType, datum: Any) -> bytes:
    """Encodes a datum as bytes: what is interned or, for types that are not interned, its encoding inside an array."""
    match type.kind:
        case kind if kind in _TEXTS:
            return datum.encode() if len(datum) <= LONG else encoded(datum)
        case Kind.BYTEA:
            return bytes(datum)
        case Kind.RECORD:
            pairs = zip(type.fields, datum, strict=True)
            return fields_to_bytes([None if v is None else to_bytes(t, v) for (_, t), v in pairs])
        case Kind.INTERVAL:
            return INTERVAL.pack(*datum)
        case Kind.ARRAY:
            element = type.element
            assert element is not None
            return array_to_bytes(datum, lambda part: to_bytes(element, part), element.kind is Kind.INTERVAL)
        case Kind.NUMERIC:
            return numeric_text(datum).encode()
        case kind if (own := DEFINITIONS.get(kind)) is not None and own.pack is not None:
            return own.pack(type, datum, to_bytes)
        case _:
            return _WORD.pack(_direct_encoder(type)(datum))


def from_bytes(type: SqlType, data: bytes) -> Any:
    """The inverse of ``to_bytes``."""
    match type.kind:
        case kind if kind in _TEXTS:
            return data.decode() if len(data) <= LONG else decoded(data)
        case Kind.BYTEA:
            return data
        case Kind.RECORD:
            parts = zip(type.fields, fields_from_bytes(data), strict=True)
            return Row(None if part is None else from_bytes(t, part) for (_, t), part in parts)
        case Kind.INTERVAL:
            return INTERVAL.unpack(data)
        case Kind.ARRAY:
            element = type.element
            assert element is not None
            return array_from_bytes(data, lambda part: from_bytes(element, part))
        case Kind.NUMERIC:
            return Decimal(data.decode())
        case kind if (own := DEFINITIONS.get(kind)) is not None and own.unpack is not None:
            return own.unpack(type, data, from_bytes)
        case _:
            return _direct_decoder(type)(_WORD.unpack(data)[0])


def encode(type: SqlType, values: Sequence[object], dictionary: Dictionary) -> Vector:
    """Datums (None is NULL) → words."""
    nulls: Mask | None = None
    if None in values:
        nulls = np.array([v is None for v in values], np.bool_)
        present = [v for v in values if v is not None]
        words = np.zeros(len(values), np.int64)
        words[~nulls] = _encode_present(type, present, dictionary)
        return Vector(words, nulls)
    return Vector(_encode_present(type, values, dictionary))


def decode(type: SqlType, vector: Vector, dictionary: Dictionary) -> list[object]:
    """Words → datums (None is NULL); the inverse of ``encode``."""
    if vector.nulls is None:
        return _decode_present(type, vector.words, dictionary)
    out: list[object] = [None] * len(vector.words)
    rows = np.flatnonzero(~vector.nulls)
    for row, datum in zip(rows.tolist(), _decode_present(type, vector.words[rows], dictionary), strict=True):
        out[row] = datum
    return out


def encode_one(type: SqlType, datum: object, dictionary: Dictionary) -> int:
    """The word of one datum that is not None."""
    match type.storage:
        case Storage.INTERNED:
            return dictionary.intern_one(to_bytes(type, datum))
        case Storage.NUMERIC:
            return encode_numeric(datum, dictionary)  # type: ignore[arg-type]
        case _:
            return _direct_encoder(type)(datum)


def encoder_of(type: SqlType) -> Callable[[Any, Dictionary], int]:
    """``encode_one`` for many datums of one type."""
    if type.storage is not Storage.DIRECT:
        return partial(encode_one, type)
    direct = _direct_encoder(type)
    return lambda datum, _: direct(datum)


def encode_one_direct(type: SqlType, datum: Any) -> int:
    """The word of a datum of a DIRECT type."""
    return _direct_encoder(type)(datum)


def decode_one(type: SqlType, word: int, dictionary: Dictionary) -> Any:
    """The datum of one word that is not NULL's."""
    match type.storage:
        case Storage.INTERNED:
            return from_bytes(type, dictionary.lookup_one(word))
        case Storage.NUMERIC:
            return decode_numeric(word, dictionary)
        case _:
            return _direct_decoder(type)(word)


def _encode_present(type: SqlType, values: Sequence[Any], dictionary: Dictionary) -> Words:
    match type.storage:
        case Storage.INTERNED:
            return dictionary.intern([to_bytes(type, v) for v in values])
        case Storage.NUMERIC:
            return np.array(encode_numerics(values, dictionary), np.int64)
        case _:
            if type.kind in _FLOATS:
                return float_to_word(np.array(values, np.float64))
            encoder = _direct_encoder(type)
            if encoder is int:
                return np.array(values, np.int64)
            return np.array([encoder(v) for v in values], np.int64)


def _decode_present(type: SqlType, words: Words, dictionary: Dictionary) -> list[Any]:
    match type.storage:
        case Storage.INTERNED:
            if len(words) > _MANY and (size := dictionary.size(words)) > _LARGE:
                return _decode_large(type, words, dictionary, size)
            return [from_bytes(type, v) for v in dictionary.lookup(words)]
        case Storage.NUMERIC:
            return [decode_numeric(w, dictionary) for w in words.tolist()]
        case _:
            if type.kind in _FLOATS:
                return list(word_to_float(words).tolist())
            decoder = _direct_decoder(type)
            return list(words.tolist()) if decoder is int else [decoder(w) for w in words.tolist()]


def _decode_large(type: SqlType, words: Words, dictionary: Dictionary, size: int) -> list[Any]:
    """The same where the values are large: rows with the same text share it. Raises Stopped (57014, 53200)."""
    shared = type.kind in _SHARED
    ids, place = np.unique(words, return_inverse=True) if shared else (words, np.arange(len(words)))
    room(2 * (dictionary.size(ids) if shared else size))
    values = []
    for ident in ids.tolist():
        poll()
        values.append(from_bytes(type, dictionary.lookup_one(ident)))
    return [values[i] for i in place.reshape(-1).tolist()]


def _char_to_word(value: str) -> int:
    return ord(value) & 255 if value else 0


def _word_to_char(word: int) -> str:
    return chr(word) if word else ""


def _direct_encoder(type: SqlType) -> Callable[[Any], int]:
    match type.kind:
        case Kind.FLOAT4 | Kind.FLOAT8:
            return _one_float_to_word
        case Kind.NUMERIC:
            return lambda value: encode_direct(value, type)
        case Kind.CHAR1:
            return _char_to_word
        case _:
            return int


def _direct_decoder(type: SqlType) -> Callable[[int], Any]:
    match type.kind:
        case Kind.BOOL:
            return bool
        case Kind.FLOAT4 | Kind.FLOAT8:
            return _one_word_to_float
        case Kind.NUMERIC:
            return lambda word: decode_direct(word, type)
        case Kind.CHAR1:
            return _word_to_char
        case _:
            return int
