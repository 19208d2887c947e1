"""Nested values of files: lists become arrays; lists, structs and maps become jsonb. Cost: a Python object per part."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ivm.rows import Words
from ivm.words import SqlType
from storage.dictionary import Dictionary
from storage.types import codec
from storage.types.text_json import format_json
from storage.types.text_number import format_float8


def is_list(found: pa.DataType) -> bool:
    """Whether the type is a list of any kind."""
    types = pa.types
    return bool(types.is_list(found) or types.is_large_list(found) or types.is_fixed_size_list(found))


def is_document(found: pa.DataType) -> bool:
    """Whether values of the type are JSON arrays or objects."""
    return is_list(found) or pa.types.is_struct(found) or pa.types.is_map(found)


def array_words(lists: pa.Array, elements: Sequence[object], type_: SqlType, dictionary: Dictionary) -> Words:
    """Lists (none of them NULL) as words of arrays. ``elements``: the datums of all lists, concatenated."""
    ends = np.concatenate([[0], np.cumsum(pc.list_value_length(lists).to_numpy())])
    values = [tuple(elements[low:high]) for low, high in pairwise(ends.tolist())]
    return codec.encode(type_, values, dictionary).words


def document_words(array: pa.Array, type_: SqlType, dictionary: Dictionary) -> Words:
    """Documents (none of them NULL) as words of jsonb. Raises 22P05 for text that jsonb cannot hold."""
    exact = array.cast(_without_nanoseconds(array.type), safe=False)
    texts = [format_json(_json(value, exact.type)) for value in exact.to_pylist()]
    return codec.encode(type_, texts, dictionary).words


def _without_nanoseconds(found: pa.DataType) -> pa.DataType:
    """The type with nanoseconds reduced to microseconds, the finest that Python's values have; recursively."""
    types = pa.types
    if types.is_map(found):
        return pa.map_(_without_nanoseconds(found.key_type), _without_nanoseconds(found.item_type))
    if types.is_struct(found):
        return pa.struct([field.with_type(_without_nanoseconds(field.type)) for field in found])
    if is_list(found):
        return pa.large_list(_without_nanoseconds(found.value_type))
    if types.is_dictionary(found):
        return found.value_type
    if types.is_timestamp(found):
        return pa.timestamp("us", found.tz)
    return pa.time64("us") if types.is_time64(found) else found


def _json(value: Any, type_: pa.DataType) -> Any:
    """A value as ``format_json`` takes it. As in Postgres's to_jsonb, what JSON cannot represent becomes text."""
    if value is None or isinstance(value, bool | str):
        return value
    if pa.types.is_map(type_):
        return {_key(key, type_.key_type): _json(item, type_.item_type) for key, item in value}
    if pa.types.is_struct(type_):
        return {field.name: _json(value[field.name], field.type) for field in type_}
    if is_list(type_):
        return [_json(item, type_.value_type) for item in value]
    match value:
        case int():
            return Decimal(value)
        case float():
            return Decimal(repr(value)) if math.isfinite(value) else format_float8(value)
        case Decimal():
            return value
        case bytes():
            return "\\x" + value.hex()
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case _:
            return str(value)


def _key(value: Any, type_: pa.DataType) -> str:
    found = _json(value, type_)
    return found if isinstance(found, str) else format_json(found)
