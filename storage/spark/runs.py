"""Updates as Spark sees them: a record of a frame is a block of many, as bytes; and as files of a shared folder.

A row of words as a row of Spark's would cost more to hand from Java to Python and back than all that is done with it;
a block costs next to nothing, and Spark still exchanges, keeps and retries it. Its bytes are int64 words: how many
updates, the width of a row and of a diff, then the rows, the times and the diffs, one array after another.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from ivm.batch import Block
from ivm.rows import Words

RECORD_BYTES: Final = 1 << 18
"""Of one record, about: Spark looks at what it holds a hundred records at a time."""
_HEAD: Final = 3


def pieces(block: Block) -> Iterator[Block]:
    """The block cut into such as records hold."""
    rows, times, diffs = block.arrays()
    step = max(1, RECORD_BYTES // (8 * (block.width + 1 + block.diff_width)))
    for start in range(0, block.n, step):
        stop = start + step
        yield Block.of(rows[start:stop], times[start:stop], diffs[start:stop])


def packed(block: Block) -> bytes:
    """A block as bytes."""
    head = np.array([block.n, block.width, block.diff_width], np.int64)
    return b"".join(np.ascontiguousarray(part).tobytes() for part in (head, *block.arrays()))


def unpacked(data: bytes | memoryview) -> Block:
    """The block that these bytes are; it reads them where they are and is not to be written to."""
    return _of_words(np.frombuffer(data, np.int64))


def write_block(path: Path, block: Block) -> None:
    """A file with the block, whole or not at all; a second attempt at it writes the same."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    with scratch.open("wb") as file:
        np.array([block.n, block.width, block.diff_width], np.int64).tofile(file)
        for part in block.arrays():
            np.ascontiguousarray(part).tofile(file)
    scratch.replace(path)


def read_block(path: Path) -> Block:
    """The block of a file."""
    return _of_words(np.fromfile(path, np.int64))


def count_of(path: Path) -> int:
    """How many updates a file's block has."""
    return int(np.fromfile(path, np.int64, 1)[0])


def together(blocks: list[Block]) -> Block:
    """The updates of several blocks of one width, one after another."""
    if len(blocks) == 1:
        return blocks[0]
    return Block.of(*(np.concatenate(parts) for parts in zip(*(b.arrays() for b in blocks), strict=True)))


def _of_words(words: Words) -> Block:
    n, width, diff_width = (int(w) for w in words[:_HEAD])
    ends = np.cumsum([_HEAD, n * width, n, n * diff_width]).tolist()
    rows, times, diffs = (words[a:b] for a, b in pairwise(ends))
    assert len(words) == ends[-1], "a block that is cut off"
    return Block.of(rows.reshape(n, width), times, diffs.reshape(n, diff_width))
