"""Maps ordinals to epochs. The engine counts commits; users and the log identify them by epoch."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from ivm.rows import Words
from storage.stored import FEW


class Timeline:
    """Ordinals ``base`` … ``last`` and their epochs, in order. The engine thread appends, any thread looks up.

    Invariant: ordinals at or below ``base`` may stand for several commits (compacted, or from before a restart);
    ``base``'s own epoch is that of the newest of them.
    """

    def __init__(self, epoch: int) -> None:
        self._state: tuple[int, list[int]] = (0, [epoch])
        self.last = 0

    def append(self, epoch: int) -> int:
        """Add a commit; its ordinal."""
        base, epochs = self._state
        assert epoch > epochs[-1], "epochs rise"
        epochs.append(epoch)
        self.last = base + len(epochs) - 1
        return self.last

    def epoch(self, ordinal: int) -> int:
        """The epoch of an ordinal; that of ``base`` for older ones."""
        base, epochs = self._state
        return epochs[max(ordinal - base, 0)]

    def epochs(self, ordinals: Words) -> Words:
        """The epochs of many ordinals."""
        base, epochs = self._state
        if len(ordinals) <= FEW:
            return np.array([epochs[max(at - base, 0)] for at in ordinals.tolist()], np.int64)
        low = max(int(ordinals.min()) - base, 0)
        high = max(int(ordinals.max()) - base, 0)
        near = np.array(epochs[low : high + 1], np.int64)
        return np.asarray(near[np.maximum(ordinals - base, 0) - low])

    def ordinal(self, epoch: int) -> int | None:
        """The newest commit at or before an epoch; None if the epoch is older than ``base``."""
        base, epochs = self._state
        position = bisect_right(epochs, epoch)
        return base + position - 1 if position else None

    def forget(self, ordinal: int) -> None:
        """Make ``ordinal`` the base: nobody asks for older ones any more."""
        base, epochs = self._state
        if ordinal - base > 4096:
            self._state = (ordinal, epochs[ordinal - base :])
