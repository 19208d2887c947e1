"""One key's rows in order, at one time: searched by rank, without reading the rest of the group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ivm.kernels.memory import B_ROWS, HEAD, L_COUNT, LAYER_WORDS
from ivm.kernels.ordered import layer_rows, ranks_of, rows_of, side_of, spots_of, starts_of, total_of
from ivm.rows import Words
from ivm.trace.batch import Batch, Block
from ivm.trace.spine import Spine


@dataclass(frozen=True, slots=True)
class Spot:
    """Where ranks fall. ``rank`` int64[n]: the rank of the row that each falls on; ``count`` int64[n]: how often that
    row occurs, 0 past the last; ``places`` int64[n, layers]: the first row of each layer that is not less."""

    rank: Words
    count: Words
    places: Words


class Ordered:
    """The rows of the key of a delta's updates, without the updates later than ``time``. Ranks count equal rows one by
    one. Valid until the trace changes.

    Cost: a search in each layer; its methods cost O(layers · log²) for each rank or row, plus the rows read.
    """

    def __init__(
        self, spine: Spine, nothing: Words, delta: Block, first: int, stop: int, time: int, stats: Words
    ) -> None:  # fmt: skip
        self._spine = spine
        self._trace = spine.desc
        self._delta = delta
        self._first = first
        self._stats = stats
        self._copy = np.empty((spine.width + 1) * (stop - first), np.int64)
        self._side = side_of(self._trace, nothing, delta.d, first, stop, time, self._copy)
        self.size = int(total_of(*self._side))
        self.key_width = spine.key_width
        self.width = spine.width - spine.key_width
        self._key = delta.rows[first, : spine.key_width]

    @property
    def layers(self) -> list[Batch | None]:
        """The batch of each layer; None for one that changes in place or is made for this view."""
        desc = self._trace
        parts: list[Batch | None] = [None, *self._spine.parts]
        full = [p for k, p in enumerate(parts) if desc[HEAD + LAYER_WORDS * k + L_COUNT]]
        return [*full, None]

    @property
    def starts(self) -> Words:
        """Where the key's rows begin in each layer."""
        table, count, work, _ = self._side
        out = np.zeros(count, np.int64)
        starts_of(table, count, work, out)
        return out

    def layer(self, k: int, first: int, last: int) -> tuple[Words, Words]:
        """(values int64[n, width], diffs int64[n]) of a layer's rows first … last-1."""
        rows = np.empty((last - first, self._spine.width), np.int64)
        diffs = np.empty(last - first, np.int64)
        layer_rows(self._trace, self._side[0], k, first, last, rows.reshape(-1), diffs, self._stats)
        return rows[:, self.key_width :], diffs

    def ranks(self, probes: Words, behind: bool) -> Words:
        """How many rows are less than each probe (int64[n, words], a value's first words), or not greater
        (``behind``)."""
        words = self.key_width + probes.shape[1]
        whole = np.concatenate([np.broadcast_to(self._key, (len(probes), self.key_width)), probes], axis=1)
        out = np.empty(len(probes), np.int64)
        flat = np.ascontiguousarray(whole, np.int64).reshape(-1)
        ranks_of(self._trace, *self._side, flat, words, words, behind, out, self._stats)
        return out

    def rows(self, first: int, last: int) -> tuple[Words, Words, int]:
        """(values int64[m, width], counts int64[m], the rank of the first): the distinct rows that have a rank in
        first … last-1."""
        room = max(last - first, 0)
        rows = np.empty((room, self._spine.width), np.int64)
        counts = np.empty(room, np.int64)
        if not room or first >= self.size:
            return rows[:0, self.key_width :], counts[:0], first
        key = int(self._delta.d[B_ROWS]) + 8 * self._spine.width * self._first
        found, begin = rows_of(
            self._trace, *self._side, key, first, last, rows.reshape(-1), counts, self._stats
        )  # fmt: skip
        return rows[:found, self.key_width :], counts[:found], int(begin)

    def spots(self, ranks: Words) -> Spot:
        """Where ranks fall."""
        table, count, work, sums = self._side
        out = np.empty((len(ranks), 2 + count), np.int64)
        given = np.ascontiguousarray(ranks, np.int64)
        spots_of(self._trace, table, count, work, sums, given, out.reshape(-1), self._stats)
        return Spot(out[:, 0], out[:, 1], out[:, 2:])
