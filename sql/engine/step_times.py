"""The cost of the latest steps, for freshet.steps."""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.rows import Words

WINDOWS: Final = (100, 1_000, 10_000)


class StepTimes:
    """A ring buffer of the latest steps' CPU time in ns, measured on the stepping thread.

    The stepping thread writes, any thread reads: a reader may see one step too many or too few.
    """

    def __init__(self) -> None:
        self._ring: Words = np.zeros(WINDOWS[-1], np.int64)
        self._begun = 0
        self.steps = 0
        self.last = 0
        """That of the last one."""

    def went_on(self, nanoseconds: int, ended: bool) -> None:
        """Add a step, or a part of one: the parts of one step are added up."""
        self._begun += nanoseconds
        if ended:
            self._ring[self.steps % len(self._ring)] = self.last = self._begun
            self.steps += 1
            self._begun = 0

    def latest(self, window: int) -> Words:
        """The latest ``window`` steps, or all if there were fewer, in no order."""
        steps = self.steps
        if steps < window:
            return self._ring[:steps].copy()
        return self._ring[np.arange(steps - window, steps) % len(self._ring)]

    def rows(self) -> list[tuple[int, int, float, float, float]]:
        """For each window that is full (for all steps if none is): its steps, all steps, and p50, p99 and maximum in
        µs."""
        windows = [w for w in WINDOWS if w <= self.steps] or ([self.steps] if self.steps else [])
        found = []
        for window in windows:
            p50, p99, longest = np.percentile(self.latest(window), (50, 99, 100)) / 1000
            found.append((window, self.steps, round(float(p50), 1), round(float(p99), 1), round(float(longest), 1)))
        return found
