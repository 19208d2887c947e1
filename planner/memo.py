"""Memoizes functions of what is frozen, plans above all, by its identity.

A plan used in several places is one object; walking it anew in each place would be exponential in the depth. Equality
cannot be the key, because hashing a plan walks it too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")
LIMIT: Final = 20_000
"""The most entries. Each keeps its plan alive, so that an id is not reused. At the limit all entries are dropped."""


_KNOWN: Final[list[dict[int, Any]]] = []
"""The entries of each function."""


def forget_large() -> None:
    """Drops all entries if they are many together, as after a long statement, whose plan they would keep."""
    if sum(map(len, _KNOWN)) > LIMIT:
        for known in _KNOWN:
            known.clear()


def by_identity(function: Callable[[_Argument], _Result]) -> Callable[[_Argument], _Result]:
    """The function, computed once for each argument object. Arguments must be immutable."""
    known: dict[int, tuple[_Argument, _Result]] = {}
    _KNOWN.append(known)

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
