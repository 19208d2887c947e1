"""The ids that keyvalue() gives objects: where they are in the binary form that PostgreSQL stores a jsonb in.

A container is a word of counts, a word for each key and value, and then their bytes: strings as they are, numbers and
containers at a multiple of four (``jsonb_util.c``, ``numeric.c``).
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from storage.types.numeric import scale_of
from storage.types.text_json import sorted_pairs


def offsets(document: Any) -> dict[int, int]:
    """The offsets of the document's objects and arrays, by their identity in Python."""
    found: dict[int, int] = {}
    if isinstance(document, dict | list):
        _place(document, 0, found)
    return found


def _place(value: Any, at: int, found: dict[int, int]) -> int:
    """Where a container at this offset ends."""
    found[id(value)] = at
    if isinstance(value, dict):
        pairs = sorted_pairs(value)
        at += 4 + 8 * len(pairs) + sum(len(key.encode()) for key, _ in pairs)
        items = [item for _, item in pairs]
    else:
        at += 4 + 4 * len(value)
        items = value
    for item in items:
        if isinstance(item, dict | list):
            at = _place(item, _aligned(at), found)
        elif isinstance(item, str):
            at += len(item.encode())
        elif isinstance(item, Decimal):
            at = _aligned(at) + _numeric_size(item)
    return at


def _aligned(at: int) -> int:
    return -(-at // 4) * 4


def _numeric_size(value: Decimal) -> int:
    """The bytes of a finite numeric: headers, and two for each digit of base 10000 but zeros at the ends."""
    scale = scale_of(value)
    places = -(-scale // 4) * 4
    digits = str(abs(int(value.scaleb(places))) if value else 0)
    digits = digits.zfill(-(-len(digits) // 4) * 4)
    groups = [digits[i : i + 4] for i in range(0, len(digits), 4)]
    while groups and groups[-1] == "0000":
        groups.pop()
    weight = (len(digits) - places) // 4 - 1
    is_short = scale <= 63 and -64 <= weight <= 63
    return (6 if is_short else 8) + 2 * len(groups)
