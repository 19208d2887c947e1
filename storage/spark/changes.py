"""A scattered view's own updates, kept as files for those who follow it: subscriptions of the past, and sinks.

Each job leaves one file of what it has changed, at the epochs of the commits that did. A manifest names it, and from
which epoch on none is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from ivm.trace.batch import Block
from ivm.trace.shards import sorted_block
from storage.dictionary import Dictionary, Entries
from storage.spark.blocks import entries_of, read_blocks, write_blocks
from storage.spark.manifest import Changes, Manifest
from storage.stored import History


def told(
    manifest: Manifest, folder: Path, history: History, after: int, floor: int, dictionary: Dictionary
) -> Manifest:
    """The manifest with what its job has changed, which is written to a file; what nobody needs, up to ``floor``, is
    left out. ``after``: from which epoch on none is missing, for the first one."""
    kept = [changes for changes in manifest.changes if changes.upto > floor]
    gone = [changes.upto for changes in manifest.changes if changes.upto <= floor]
    since = max([manifest.since or after, *gone])
    if len(history.diffs):
        block = sorted_block(Block.of(history.rows, history.epochs, history.diffs.reshape(-1, 1)))
        file = f"changes/{manifest.number:08}-{manifest.epoch}.arrow"
        write_blocks(folder / file, [block], entries_of([block], dictionary))
        kept.append(Changes(file, manifest.epoch, block.n))
    return replace(manifest, changes=tuple(kept), since=since)


def read_changes(
    manifest: Manifest, folder: Path, after: int, upto: int, take: Callable[[Entries], object]
) -> Iterator[History]:
    """The updates with after < epoch <= upto, a part at a time, whole epochs in order. ``take`` gets the values of
    their ids before. FileNotFoundError: a later job has found that nobody needs them."""
    for changes in manifest.changes:
        if changes.upto <= after:
            continue
        (block,) = read_blocks(folder / changes.file, take)
        rows, epochs, diffs = block.arrays()
        chosen = (epochs > after) & (epochs <= upto)
        if chosen.any():
            yield History(rows[chosen], epochs[chosen], diffs[chosen, 0])
