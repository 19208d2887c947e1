"""What frozen objects that hold others of their kind keep of themselves: their hash and their parts.

Without it, looking up each part of a deep expression in a table would take time in the square of its depth, and each
rewrite of a plan would walk all of its expressions anew.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

T = TypeVar("T", bound=type)


class Hashed:
    """The base of such a dataclass, whose ``__post_init__`` keeps the hash: that of the parts is known then, so that no
    depth has to be searched for it.

    What is kept is no field: it is neither compared nor pickled, since the hash of a string differs from one process to
    another. ``below``: the parts of an object that has been walked, without itself; ``kinds``: their types, and its own
    (``planner.expr.parts``).
    """

    __slots__ = ("_hash", "below", "kinds")
    _hash: int
    below: tuple[Any, ...]
    kinds: frozenset[type]

    def __post_init__(self) -> None:
        raise NotImplementedError


KEEP: Final = Hashed.__dict__["_hash"].__set__
"""Called with an object and its hash. The object is frozen for others."""


def hashed_once(cls: T) -> T:
    """The class, a frozen dataclass over ``Hashed``, with the hash that its objects keep."""

    def kept(self: Hashed) -> int:
        try:
            return self._hash
        except AttributeError:  # it has been unpickled
            self.__post_init__()
            return self._hash

    cls.__hash__ = kept  # type: ignore[method-assign, assignment]
    return cls
