"""The codec of arrays. An array's bytes contain its elements' bytes, never ids, so that they are self-contained.

Layout, big-endian: u8 number of dimensions; u32 length of each; then the elements, innermost dimension fastest, each as
u32 byte length plus one (0 for NULL) and the bytes. The empty array has 0 dimensions. An array with lower bounds other
than 1 has 128 more in the first byte, and each dimension's bound as i32 behind the lengths.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from itertools import chain
from typing import Any, Final

from ivm.errors import SqlError
from ivm.stops import poll, polled, taken

_U32: Final = struct.Struct(">I")
_BOUNDED: Final = 0x80
_MOST: Final = 2**31 - 1
_MOST_DIMENSIONS: Final = 6
_ELEMENT_BYTES: Final = 100
"""What an element takes while an array is encoded."""
_FEW: Final = 10_000


class Row(tuple[Any, ...]):
    """A row's datum: those of its fields. An array's is a plain tuple."""

    __slots__ = ()


class Bounded(tuple[Any, ...]):
    """An array's datum with lower bounds other than 1, in ``lower``, one for each dimension. It equals only an array
    with the same; what is made of its parts is a plain tuple."""

    lower: tuple[int, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bounded) and self.lower == other.lower and tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((tuple.__hash__(self), self.lower))

    def __repr__(self) -> str:
        return f"{self.lower}={tuple.__repr__(self)}"


def is_array(value: object) -> bool:
    """Whether a datum is an array, or an interval."""
    return type(value) is tuple or isinstance(value, Bounded)


def bounded(value: tuple[Any, ...], lower: Iterable[int]) -> tuple[Any, ...]:
    """The array with these lower bounds. Raises 54000 where an upper bound is out of range."""
    bounds = tuple(lower)
    if not value or all(bound == 1 for bound in bounds):
        return tuple(value) if isinstance(value, Bounded) else value
    inner: Any = value
    for bound in bounds:
        if bound + len(inner) > _MOST:
            raise SqlError("54000", f"array lower bound is too large: {bound}")
        inner = inner[0]
    made = Bounded(value)
    made.lower = bounds
    return made


def check_dimensions(number: int) -> None:
    """Raises 54000 for more dimensions than Postgres's arrays have."""
    if number > _MOST_DIMENSIONS:
        message = f"number of array dimensions ({number}) exceeds the maximum allowed ({_MOST_DIMENSIONS})"
        raise SqlError("54000", message)


def lower_bounds(value: Any, dimensions: int) -> tuple[int, ...]:
    """The lower bounds of an array of so many dimensions."""
    return value.lower if isinstance(value, Bounded) else (1,) * dimensions


def shape(value: Any, scalar_tuple: bool = False) -> tuple[int, ...]:
    """The lengths of an array datum's dimensions, () for the empty array. ``scalar_tuple``: elements are themselves
    tuples (intervals)."""
    lengths: list[int] = []
    while is_array(value) and value:
        if scalar_tuple and not any(v is None or isinstance(v, tuple) for v in value):
            break
        lengths.append(len(value))
        value = next((v for v in value if v is not None), None)
    return tuple(lengths)


def elements(value: Any, depth: int) -> Iterator[Any]:
    """The elements of an array datum of ``depth`` dimensions, innermost dimension fastest."""
    for _ in range(depth - 1):
        value = chain.from_iterable(value)
    return iter(value)


def nest(items: list[Any], lengths: tuple[int, ...]) -> tuple[Any, ...]:
    """The array datum with these dimensions from its flat elements."""
    for length in reversed(lengths[1:]):
        items = [tuple(items[i : i + length]) for i in range(0, len(items), length)]
    return tuple(items)


def array_to_bytes(value: Any, element_bytes: Callable[[Any], bytes], scalar_tuple: bool = False) -> bytes:
    """Encodes an array datum."""
    lengths = shape(value, scalar_tuple)
    parts = [bytes([len(lengths)]), *(_U32.pack(n) for n in lengths)]
    if isinstance(value, Bounded):
        parts = [bytes([len(lengths) | _BOUNDED]), *parts[1:], struct.pack(f">{len(lengths)}i", *value.lower)]
    count = math.prod(lengths)
    with taken(_ELEMENT_BYTES * count) if count > _FEW else nullcontext():
        for item in polled(elements(value, len(lengths))):
            if item is None:
                parts.append(b"\0\0\0\0")
            else:
                data = element_bytes(item)
                parts += (_U32.pack(len(data) + 1), data)
        return b"".join(parts)


def array_from_bytes(data: bytes, element: Callable[[bytes], Any]) -> tuple[Any, ...]:
    """The inverse of ``array_to_bytes``."""
    dimensions = data[0] & ~_BOUNDED
    lengths = struct.unpack_from(f">{dimensions}I", data, 1)
    at = 1 + 4 * dimensions
    lower: tuple[int, ...] = ()
    if data[0] & _BOUNDED:
        lower = struct.unpack_from(f">{dimensions}i", data, at)
        at += 4 * dimensions
    items: list[Any] = []
    while at < len(data):
        size = _U32.unpack_from(data, at)[0]
        at += 4
        if not len(items) & 4095:
            poll()
        if size == 0:
            items.append(None)
        else:
            items.append(element(data[at : at + size - 1]))
            at += size - 1
    return bounded(nest(items, lengths), lower)


def fields_to_bytes(parts: list[bytes | None]) -> bytes:
    """Encodes a row's fields, in order: u32 byte length plus one (0 for NULL), and the bytes."""
    return b"".join(b"\0\0\0\0" if part is None else _U32.pack(len(part) + 1) + part for part in parts)


def fields_from_bytes(data: bytes) -> list[bytes | None]:
    """The inverse of ``fields_to_bytes``."""
    parts: list[bytes | None] = []
    at = 0
    while at < len(data):
        size = _U32.unpack_from(data, at)[0]
        at += 4
        parts.append(data[at : at + size - 1] if size else None)
        at += max(size - 1, 0)
    return parts
