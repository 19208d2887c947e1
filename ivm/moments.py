"""What time it was at each ordinal: the clock that ``Wait`` operators read.

A *moment* is an int64, in whatever unit the caller counts time. Ordinals and their moments only rise. One thread
appends; any thread looks up.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Final

import numpy as np

from ivm.rows import Words

NEVER: Final = 2**63 - 1
"""Later than every moment, and than every ordinal."""
_FEW: Final = 64
"""Up to this many moments are looked up one by one."""
_KEPT: Final = 4096
"""The entries before the since that are kept until they are dropped together."""


class Moments:
    """The moment of each ordinal at which it was set; it holds until the next one."""

    def __init__(self) -> None:
        self._state: tuple[list[int], list[int]] = [0], [-NEVER]

    @property
    def last(self) -> int:
        """The newest moment."""
        return self._state[1][-1]

    def set(self, ordinal: int, moment: int) -> None:
        """From this ordinal on it is at least that moment. The newest ordinal may be set again."""
        ordinals, moments = self._state
        assert ordinal >= ordinals[-1], "ordinals rise"
        moment = max(moment, moments[-1])
        if ordinal == ordinals[-1]:
            moments[-1] = moment
        elif moment > moments[-1]:
            moments.append(moment)
            ordinals.append(ordinal)  # last: other threads see it only with its moment

    def at(self, ordinal: int) -> int:
        """The moment at an ordinal."""
        ordinals, moments = self._state
        return moments[max(bisect_right(ordinals, ordinal) - 1, 0)]

    def reached(self, moments: Words, upto: int) -> Words:
        """The first ordinal at which each moment had come; NEVER where that is not before or at ordinal ``upto``."""
        ordinals, known = self._state
        if len(moments) <= _FEW:
            place = [bisect_left(known, moment) for moment in moments.tolist()]
            first = [ordinals[k] if k < len(ordinals) else NEVER for k in place]
            found = np.array(first, np.int64)
        else:
            count = len(ordinals)
            at = np.searchsorted(np.array(known[:count], np.int64), moments, "left")
            found = np.append(np.array(ordinals[:count], np.int64), NEVER)[at]
        found[found > upto] = NEVER
        return found

    def forget(self, since: int) -> None:
        """Ordinals below ``since`` need not be distinguished any more."""
        ordinals, moments = self._state
        if len(ordinals) > _KEPT and ordinals[_KEPT] <= since:
            first = bisect_right(ordinals, since) - 1
            self._state = ordinals[first:], moments[first:]
