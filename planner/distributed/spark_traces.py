"""What parts' traces hold during a hydration: files in a folder shared by all executors.

There is one file for each step that has added something. The process that runs a part's step has often run its last
one, so it caches what it has read or written, and a round reads only what is new.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ivm.trace.batch import Block
from storage.spark.blocks import encoded_words, read_block, write_blocks

HELD_WORDS: Final = 1 << 24
"""The most words that a process caches: 128 MiB."""


@dataclass(slots=True)
class Held:
    """A cache of blocks by trace and step; least recently used traces are evicted first.

    A file never changes: a task that runs again writes the same.
    """

    hydration: Path | None = None
    words: int = 0
    read: int = 0
    """Updates read from files."""
    _traces: OrderedDict[Path, dict[int, Block]] = field(default_factory=OrderedDict)

    def before(self, hydration: Path, trace: Path, step: int) -> list[Block]:
        """What steps before ``step`` have added to a trace.

        Ignores files that a task which runs again, or a later step, has written since. The blocks are read-only.
        """
        steps = sorted(int(path.stem) for path in trace.glob("*.arrow"))
        return [self._block(hydration, trace, before) for before in steps if before < step]

    def _block(self, hydration: Path, trace: Path, step: int) -> Block:
        found = self._of(hydration, trace).get(step)
        if found is None:
            found = read_block(_file(trace, step))
            self.read += found.n
            self._keep(hydration, trace, step, found)
        return found

    def add(self, hydration: Path, trace: Path, step: int, block: Block, again: bool) -> None:
        """Writes what a step adds to a trace. ``again``: later steps may read it, so it is cached."""
        if block.n:
            write_blocks(_file(trace, step), [block], durable=False)
            if again:
                self._keep(hydration, trace, step, block)

    def _of(self, hydration: Path, trace: Path) -> dict[int, Block]:
        if hydration != self.hydration:
            self._traces.clear()
            self.hydration, self.words = hydration, 0
        found = self._traces.setdefault(trace, {})
        self._traces.move_to_end(trace)
        return found

    def _keep(self, hydration: Path, trace: Path, step: int, block: Block) -> None:
        mine = self._of(hydration, trace)
        self.words += encoded_words(block) - (encoded_words(mine[step]) if step in mine else 0)
        mine[step] = block
        while self.words > HELD_WORDS:
            _, blocks = self._traces.popitem(last=False)
            self.words -= sum(map(encoded_words, blocks.values()))


def _file(trace: Path, step: int) -> Path:
    return trace / f"{step:06d}.arrow"
