"""The small layer of a spine: spilled between steps; what was published stays as it was."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from ivm.kernels.arrange import put_small
from ivm.trace.batch import Block
from ivm.trace.spine import ROOM, Spine
from ivm.trace.trace import Version

Held = Counter[tuple[int, ...]]


def published(version: Version, at: int) -> Held:
    rows, diffs = version.rows_at(at)
    return Counter({tuple(row): diff for row, diff in zip(rows.tolist(), diffs.tolist(), strict=True)})


@pytest.mark.parametrize("keys", [5, 3000, 1 << 40])
@pytest.mark.parametrize("width", [1, 3])
def test_a_step_finds_room_and_published_versions_stay(width: int, keys: int) -> None:
    """With few keys compaction, with some merging empties what it touches; with many each level fills up."""
    rng = random.Random(keys + width)
    spine = Spine(width, 1)
    held: Held = Counter()
    versions: list[tuple[Version, int, Held]] = []
    for at in range(1, 20 * ROOM):
        row = (rng.randrange(keys), *(k for k in range(1, width)))
        gone = rng.choice(list(held)) if at > 50 and rng.random() < 0.5 and len(held) < 200 else None
        updates = {row: 1} if gone is None or gone == row else dict(sorted({row: 1, gone: -held[gone]}.items()))
        for words, diff in updates.items():
            held[words] += diff
            if not held[words]:
                del held[words]
        block = Block.of(np.array(list(updates)), np.full(len(updates), at), np.array(list(updates.values())))
        assert put_small(spine.desc, block.d), "the layer has room for a step's updates"
        spine.placed()
        spine.since_word[0] = at - rng.randrange(2)
        if at % 97 == 0:
            versions.append((Version(spine, at), at, held.copy()))
    assert spine.merged > 0 or keys == 5
    for version, at, expected in versions:
        assert published(version, at) == expected
    for part in spine.parts:
        part.check()


def test_a_batch_that_mostly_cancels_out_keeps_no_room() -> None:
    spine = Spine(1, 1)
    for sign, upto in ((1, 1500), (-1, 1498)):
        for start in range(0, upto, 100):
            keys = np.arange(start, min(start + 100, upto))
            spine.insert(Block.of(keys[:, None], np.zeros(len(keys), np.int64), np.full(len(keys), sign)))
    spine.insert(Block.of(np.arange(5000, 5400)[:, None], np.zeros(400, np.int64), np.ones(400, np.int64)))
    assert spine.contents(0).arrays()[0][:, 0].tolist() == [1498, 1499, *range(5000, 5400)]
    assert spine.nbytes < 8 * 3 * 2 * ROOM + 8 * 5 * 400
