"""Hash partitioning: the part of a row by its key, the same on every machine; and the numbers of partitions."""

from __future__ import annotations

import numpy as np

from ivm.rows import Words


def parts_of(rows: Words, key_width: int, parts: int) -> Words:
    """The part number of each row, int64[n] in [0, ``parts``), by its first ``key_width`` words.

    ``rows``: int64[n, width]. Without key words all rows are in part 0. The hash multiplies and rotates word by word,
    as FxHash does; any even spread would do. Its high bits count, because they depend on all words.
    """
    hashed = np.zeros(len(rows), np.uint64)
    for word in range(key_width):
        rotated = (hashed << np.uint64(5)) | (hashed >> np.uint64(59))
        hashed = (rotated ^ rows[:, word].astype(np.uint64)) * np.uint64(0x517CC1B727220A95)
    return np.asarray((hashed >> np.uint64(32)) % np.uint64(parts), np.int64)


def partition_number(fragment: int, part: int, parts: int) -> int:
    """A part's number among the ``parts`` parts of each fragment."""
    return fragment * parts + part
