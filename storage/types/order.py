"""Equality and order of single values: canonical datums, and sort keys that memcmp can compare.

``order_parts`` encodes a value's order in two parts: a prefix word, and bytes that break ties among equal prefixes. For
numerics the prefix is the nearest double's word (correct rounding is monotone), and the tie-breaker is the difference
from the shortest decimal that reads as this double, which is zero for values of up to 15 digits. For intervals it is
the total in µs, clamped to int64, then the excess. For other types it is the first eight bytes of the sort key, then
the whole key.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any, Final

from ivm.words import Kind, SqlType
from storage.types.arrays import Bounded, Row, bounded, elements, lower_bounds, nest, shape
from storage.types.calendar import DAY
from storage.types.codec import encode_one_direct, to_bytes
from storage.types.definitions import DEFINITIONS
from storage.types.numeric import WIDE
from storage.types.text_json import format_json, load_json

NOTHING: Final = b"\x80"
"""The tie-breaker of a value that its prefix determines."""
_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1
BYTE_ORDERED: Final = frozenset({Kind.TEXT, Kind.VARCHAR, Kind.NAME, Kind.UNKNOWN, Kind.BYTEA, Kind.JSON}) | {
    kind for kind, own in DEFINITIONS.items() if own.is_byte_ordered
}
"""Interned types whose bytes compare as the values do, and equal only themselves; json so only where SQL
sees no order."""
_FLOAT8: Final = SqlType(Kind.FLOAT8)


def interval_total(value: tuple[int, int, int]) -> int:
    """The value by which intervals compare: µs, with months of 30 days and days of 24 hours."""
    months, days, microseconds = value
    return (months * 30 + days) * DAY + microseconds


def canonical(type: SqlType, datum: Any) -> Any:
    """The representative of the datums that are equal to this one."""
    match type.kind:
        case Kind.NUMERIC:
            return canonical_numeric(datum)
        case Kind.FLOAT4 | Kind.FLOAT8:
            return datum + 0.0
        case Kind.BPCHAR:
            return datum.rstrip(" ")
        case Kind.INTERVAL:
            days, microseconds = divmod(interval_total(datum), DAY)
            return (*divmod(days, 30), microseconds)
        case Kind.JSONB:
            return format_json(_canonical_json(load_json(datum)))
        case Kind.ARRAY:
            element = type.element
            assert element is not None
            lengths = shape(datum, element.kind is Kind.INTERVAL)
            items = [None if e is None else canonical(element, e) for e in elements(datum, len(lengths))]
            return bounded(nest(items, lengths), lower_bounds(datum, len(lengths)))
        case Kind.RECORD:
            pairs = zip(type.fields, datum, strict=True)
            return Row(None if v is None else canonical(t, v) for (_, t), v in pairs)
        case kind if (own := DEFINITIONS.get(kind)) is not None and own.canonical is not None:
            return own.canonical(type, datum, canonical)
        case _:
            return datum


def canonical_numeric(value: Decimal) -> Decimal:
    """The value with as few fractional digits as possible."""
    if not value.is_finite():
        return value
    if value.is_zero():
        return Decimal(0)
    value = WIDE.create_decimal(value).normalize(WIDE)
    return WIDE.quantize(value, Decimal(1)) if int(value.as_tuple().exponent) > 0 else value


def _canonical_json(value: Any) -> Any:
    """A JSON value with its numbers canonical."""
    if isinstance(value, Decimal):
        return canonical_numeric(value)
    if isinstance(value, dict):
        return {key: _canonical_json(item) for key, item in value.items()}
    return [_canonical_json(item) for item in value] if isinstance(value, list) else value


def sort_key(type: SqlType, datum: Any) -> bytes:
    """Bytes that memcmp orders as the values compare; equal for equal values."""
    match type.kind:
        case Kind.NUMERIC | Kind.INTERVAL:
            prefix, rest = order_parts(type, datum)
            return _word(prefix) + rest
        case Kind.JSONB:
            return _json_key(load_json(datum), True)
        case Kind.ARRAY:
            return _array_key(type, datum)
        case Kind.RECORD:
            pairs = zip(type.fields, datum, strict=True)
            return b"".join(b"\x02" if v is None else b"\x01" + _delimited(sort_key(t, v)) for (_, t), v in pairs)
        case Kind.BPCHAR:
            return bytes(datum.rstrip(" ").encode())
        case kind if kind in BYTE_ORDERED:
            return to_bytes(type, datum)
        case kind if (own := DEFINITIONS.get(kind)) is not None and own.key is not None:
            return own.key(type, datum, sort_key)
        case _:
            return _word(encode_one_direct(type, canonical(type, datum)))


def order_parts(type: SqlType, datum: Any) -> tuple[int, bytes]:
    """The prefix word, and the bytes that break ties among equal prefixes."""
    if type.kind is Kind.NUMERIC:
        return numeric_parts(datum)
    if type.kind is Kind.INTERVAL:
        total = interval_total(datum)
        cut = min(max(total, _LEAST), _MOST)
        return cut, NOTHING if cut == total else _signed_key(Decimal(total - cut))
    key = sort_key(type, datum)
    return prefix_word(key), key


def prefix_word(key: bytes) -> int:
    """The first eight bytes as an order-preserving int64, which the arena stores for each value."""
    return int.from_bytes(key[:8].ljust(8, b"\0"), "big") - 2**63


def numeric_parts(value: Decimal) -> tuple[int, bytes]:
    """``order_parts`` of a numeric."""
    nearest = float(value) + 0.0
    prefix = encode_one_direct(_FLOAT8, nearest)
    if value.is_nan():
        return prefix, NOTHING
    if value.is_infinite():
        return prefix, b"\xff" if value > 0 else b"\x00"
    if nearest in (float("inf"), float("-inf")):
        return prefix, _signed_key(value)
    shortest = Decimal(repr(nearest))
    if value == shortest:
        return prefix, NOTHING
    return prefix, (b"\x81" if value > shortest else b"\x7f") + _signed_key(value)


def _signed_key(value: Decimal) -> bytes:
    """A finite value as a memcmp-able key: sign, exponent of the first digit, digits; complemented if negative."""
    if value.is_zero():
        return NOTHING
    digits = "".join(map(str, value.as_tuple().digits)).lstrip("0").rstrip("0")
    body = struct.pack(">I", value.adjusted() + 2**31) + digits.encode()
    if value > 0:
        return b"\x81" + body
    return b"\x7f" + bytes(255 - b for b in body) + b"\xff"


def _word(word: int) -> bytes:
    return struct.pack(">Q", word + 2**63)


def _delimited(key: bytes) -> bytes:
    """Escapes and terminates a key, so that it keeps its order when other keys follow."""
    return key.replace(b"\0", b"\0\xff") + b"\0\x01"


def _array_key(type: SqlType, datum: Any) -> bytes:
    """Element by element, NULL last, a shorter array first; then by dimensions and lower bounds, as Postgres's
    array_cmp."""
    element = type.element
    assert element is not None
    lengths = shape(datum, element.kind is Kind.INTERVAL)
    parts = [
        b"\x02" if item is None else b"\x01" + _delimited(sort_key(element, item))
        for item in elements(datum, len(lengths))
    ]
    key = b"".join(parts) + b"\x00" + struct.pack(f">{len(lengths) + 1}I", len(lengths), *lengths)
    if not isinstance(datum, Bounded):
        return key
    # The key of lower bounds of 1 ends here, and bounds below them have to be less than it.
    bounds = struct.pack(f">{len(lengths)}I", *(bound + 2**31 for bound in datum.lower))
    if datum.lower > (1,) * len(lengths):
        return key + bounds
    return key[:-4] + struct.pack(">I", lengths[-1] - 1) + b"\xff" * 4 * (len(lengths) + 1) + bounds


def _json_key(value: Any, top: bool = False) -> bytes:
    """Object > array > boolean > number > string > null; a smaller container first; an empty top-level array is
    least."""
    match value:
        case None:
            return b"\x10"
        case str():
            return b"\x20" + _delimited(value.encode())
        case bool():
            return b"\x41" if value else b"\x40"
        case Decimal():
            return b"\x30" + _delimited(sort_key(SqlType(Kind.NUMERIC), value))
        case list():
            if top and not value:
                return b"\x01"
            return b"\x50" + struct.pack(">I", len(value)) + b"".join(map(_json_key, value))
        case _:
            parts = [_delimited(k.encode()) + _json_key(v) for k, v in value.items()]
            return b"\x60" + struct.pack(">I", len(value)) + b"".join(parts)
