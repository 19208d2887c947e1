"""Hashes of frozen objects that hold others of their kind, computed once for each object.

Without it, looking up each part of a deep expression in a table would take time in the square of its depth.
"""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T", bound=type)


class Hashed:
    """The base of such a dataclass. The hash is no field: it is neither compared nor pickled, since that of a string
    differs from one process to another."""

    __slots__ = ("_hash",)
    _hash: int


def hashed_once(cls: T) -> T:
    """The class, a frozen dataclass over ``Hashed``, with objects that remember their hash."""
    computed = cls.__hash__

    def remembered(self: Hashed) -> int:
        try:
            return self._hash
        except AttributeError:
            found = computed(self)  # type: ignore[call-arg]
            object.__setattr__(self, "_hash", found)
            return found

    cls.__hash__ = remembered  # type: ignore[method-assign, assignment]
    return cls
