"""A scattered view's own updates, kept as files for subscriptions of the past and for sinks.

Each job leaves one file of its changes, at the epochs of the commits that caused them. A manifest names it, and the
epoch from which on the files are complete.
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


def with_changes(
    manifest: Manifest, folder: Path, history: History, after: int, floor: int, dictionary: Dictionary
) -> Manifest:
    """Writes a job's changes to a file and returns the manifest that names it, without the files up to ``floor``, which
    nobody needs. ``after``: for the first file, the epoch from which on changes are complete."""
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
    """The updates with after < epoch <= upto, in chunks of whole epochs, in order. ``take`` receives the dictionary
    entries of each chunk before it. FileNotFoundError: a later job has removed the file as not needed."""
    for changes in manifest.changes:
        if changes.upto <= after:
            continue
        (block,) = read_blocks(folder / changes.file, take)
        rows, epochs, diffs = block.arrays()
        chosen = (epochs > after) & (epochs <= upto)
        if chosen.any():
            yield History(rows[chosen], epochs[chosen], diffs[chosen, 0])
