"""Memoizes functions of what is frozen, plans above all, by its identity.

A plan used in several places is one object; walking it anew in each place would be exponential in the depth. Equality
cannot be the key, because hashing a plan walks it too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from ivm.system_memory import give_back

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")
LIMIT: Final = 20_000
"""The most entries. Each keeps its plan alive, so that an id is not reused. At the limit all entries are dropped."""


LARGE: Final = 1 << 16
"""From so many characters on, nothing is kept of a statement that has ended."""
_KNOWN: Final[list[dict[int, Any]]] = []
"""The entries of each function."""


def forget_large(characters: int) -> None:
    """Drops all entries, which would keep the plan of a statement, if it has so many characters that it is large, or if
    they are many together. Gives back what is then free."""
    if characters >= LARGE or sum(map(len, _KNOWN)) > LIMIT:
        for known in _KNOWN:
            known.clear()
        give_back()


def entries() -> dict[int, Any]:
    """A dict that ``forget_large`` clears too: by the ids of plans, each of which its entry keeps alive."""
    known: dict[int, Any] = {}
    _KNOWN.append(known)
    return known


def by_identity(function: Callable[[_Argument], _Result]) -> Callable[[_Argument], _Result]:
    """The function, computed once for each argument object. Arguments must be immutable."""
    known: dict[int, tuple[_Argument, _Result]] = entries()

    def remembered(argument: _Argument) -> _Result:
        found = known.get(id(argument))
        if found is not None and found[0] is argument:
            return found[1]
        result = function(argument)
        if len(known) >= LIMIT:
            known.clear()
        known[id(argument)] = (argument, result)
        return result

    remembered.__doc__ = function.__doc__
    return remembered


def of_newest(function: Callable[[_Argument], _Result]) -> Callable[[_Argument], _Result]:
    """The function, remembered for the argument object of the last call only: for what is large."""
    newest: list[tuple[_Argument, _Result]] = []

    def remembered(argument: _Argument) -> _Result:
        for known, result in newest:
            if known is argument:
                return result
        found = function(argument)
        newest[:] = [(argument, found)]
        return found

    remembered.__doc__ = function.__doc__
    return remembered
