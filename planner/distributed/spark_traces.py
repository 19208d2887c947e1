"""What parts' traces hold, as the executors of a hydration hand it on from step to step: in files of a folder that all
share, one for each step that has added something.

The process that runs a part's step has often run its last one. So what it has read or written before it keeps, and a
round reads what is new.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ivm.trace.batch import Block
from storage.spark.blocks import encoded_words, read_block, write_blocks

HELD_WORDS: Final = 1 << 24
"""What a process keeps at most: 128 MiB."""


@dataclass(slots=True)
class Held:
    """The blocks of files, by trace and step, those of the trace that was used last at the end. A file never changes: a
    task that runs again writes the same."""

    hydration: Path | None = None
    words: int = 0
    read: int = 0
    """Updates read from files."""
    _traces: OrderedDict[Path, dict[int, Block]] = field(default_factory=OrderedDict)

    def before(self, hydration: Path, trace: Path, step: int) -> list[Block]:
        """What steps before this one have left in a trace, whatever a task that ran twice has written since. Nobody may
        write to it."""
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
        """Writes what a step adds to a trace. ``again``: later steps may ask for it."""
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
