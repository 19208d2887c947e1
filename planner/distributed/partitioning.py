"""Where rows belong: the part of their key's hash, the same on every machine."""

from __future__ import annotations

import numpy as np

from ivm.graph import Words


def parts_of(rows: Words, key_width: int, parts: int) -> Words:
    """For each row int64[n, width] the number of its part, int64[n] from 0 to ``parts`` - 1, by its first ``key_width``
    words; without any all rows are in part 0.

    Multiply and rotate, word by word, as FxHash does: any even spread serves. Its high bits count, which all words
    have a say in.
    """
    place = np.zeros(len(rows), np.uint64)
    for word in range(key_width):
        turned = (place << np.uint64(5)) | (place >> np.uint64(59))
        place = (turned ^ rows[:, word].astype(np.uint64)) * np.uint64(0x517CC1B727220A95)
    return np.asarray((place >> np.uint64(32)) % np.uint64(parts), np.int64)
