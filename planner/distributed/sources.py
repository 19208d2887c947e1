"""Writes what a hydration by Spark begins with: rows of existing contents, and the values of ids.

Rows are written from the spines that hold them, a slice at a time; a large table is never copied whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ivm.graph import Arrange, NodeId, Project
from ivm.hydration.adopt import Standing
from ivm.rows import Words
from ivm.trace.batch import Block
from ivm.words import Storage
from planner.distributed.file_store import values_folder
from planner.distributed.stage import Slice
from planner.physical.nodes import Constants, Plan, Table
from storage.dictionary import Dictionary
from storage.spark.blocks import write_blocks

SLICE_ROWS: Final = 1 << 19


@dataclass(slots=True)
class Sources:
    """``slices``: what was written; ``updates``: how many updates in all; ``words``: how many words.

    ``check`` is called between slices and may raise to end the work.
    """

    plan: Plan
    dictionary: Dictionary
    folder: Path
    check: Callable[[], None]
    slices: list[Slice] = field(default_factory=list)
    updates: int = 0
    words: int = 0

    def write(self, source: NodeId, node: NodeId, standing: Standing, words: tuple[int, ...]) -> None:
        """Writes the contents of the plan's ``node`` as rows of ``source``.

        ``words``: those that are read, at least one.
        """
        width = self.plan.widths[node]
        found: list[Words] = []
        ids = [words.index(i) for i in id_columns(self.plan, node) if i in words]
        for k, whole in enumerate(standing.contents(SLICE_ROWS)):
            self.check()
            rows, times, diffs = whole.arrays()
            block = whole if len(words) == width else Block.of(rows[:, words], times, diffs)
            path = self.folder / "sources" / f"{source}-{k}.arrow"
            write_blocks(path, [block], durable=False)
            self.slices.append(Slice(source, path, words, width))
            found += [distinct(block.rows[: block.n, column]) for column in ids]
            self.updates += block.n
            self.words += block.n * (block.width + 1 + block.diff_width)
        self._write_values(f"source-{source}", found)

    def _write_values(self, name: str, found: Sequence[Words]) -> None:
        """Writes the values of all words that are ids. A number that happens to equal an id does no harm."""
        words = distinct(np.concatenate(found)) if found else np.zeros(0, np.int64)
        ids = words[self.dictionary.living(words)]
        if len(ids):
            path = values_folder(self.folder, 0) / f"{name}.arrow"
            write_blocks(path, [], (ids, *self.dictionary.packed(ids)), durable=False)


def id_columns(plan: Plan, node: NodeId) -> list[int]:
    """The words of a node that may be ids, as far as the schemas below it show; all words if they do not."""
    match plan.nodes[node]:
        case Table(schema=schema) | Constants(schema=schema):
            return [i for i, column in enumerate(schema) if column.type.storage is not Storage.DIRECT]
        case Arrange(input=source, gather=gather) | Project(input=source, gather=gather):
            below = set(id_columns(plan, source))
            return [i for i, word in enumerate(gather.words) if word in below]
    return [*range(plan.widths[node])]


def distinct(words: Words) -> Words:
    """Each odd word once: ids are odd."""
    return np.asarray(pc.unique(pa.array(words[(words & 1) == 1])).to_numpy(), np.int64)
