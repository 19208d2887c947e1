"""Room for results: what is longer than a value may be is refused, and memory is asked for before it is taken."""

from __future__ import annotations

from typing import Final

from ivm.errors import SqlError
from ivm.stops import room

MOST_CHARACTERS: Final = 2**28
"""Of one value. PostgreSQL allows a gigabyte."""
_SMALL: Final = 1 << 16


def requested(length: int) -> None:
    """Room for a text or bytes whose length a caller has asked for. Raises 54000, or Stopped (53200)."""
    if length > MOST_CHARACTERS:
        raise SqlError("54000", "requested length too large")
    if length > _SMALL:
        room(2 * length)


def joined(length: int) -> None:
    """The same for what is put together."""
    if length > MOST_CHARACTERS:
        detail = f"The result would have {length} characters, and may have {MOST_CHARACTERS}."
        raise SqlError("54000", "out of memory", detail)
    if length > _SMALL:
        room(2 * length)
