"""Functions of frozen plans, remembered by the plan's identity.

A plan used at several places is one object, and walking it anew at each would cost a power of two in the depth.
Equality will not do as the key: hashing a plan walks it too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")
LIMIT: Final = 20_000
"""Entries; each keeps its plan alive, so that an id stays its own. Past it all are forgotten."""


def by_identity(function: Callable[[_Argument], _Result]) -> Callable[[_Argument], _Result]:
    """The function, computed once for each argument object. The argument must be immutable."""
    known: dict[int, tuple[_Argument, _Result]] = {}

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
