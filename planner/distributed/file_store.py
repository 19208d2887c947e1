"""What parts' traces hold during a hydration, and the values of ids: files in a folder shared by all executors.

There is one file for each step that has added something to a trace. The process that runs a part's step has often run
its last one, so it caches what it has read or written, and a round reads only what is new. Values are written once for
each part's step, and every process loads those of earlier steps, since sorting out which values a block needs would
take longer than moving it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from ivm.trace.batch import Block
from ivm.trace.shards import sorted_block
from planner.distributed.fragment_run import Ran
from planner.distributed.records import Record
from planner.distributed.stage import PartStep
from planner.expr.context import Context
from storage.dictionary import Dictionary
from storage.spark.blocks import encoded_words, load_into, read_block, read_blocks, write_blocks

MOST_STAGES: Final = 16
"""The most steps of a loop in one job."""
CACHED_WORDS: Final = 1 << 24
"""The most words that a process caches: 128 MiB."""


@dataclass(slots=True)
class TraceCache:
    """A cache of files of traces; least recently used ones are evicted first.

    A file never changes: a task that runs again writes the same.
    """

    words: int = 0
    read: int = 0
    """Updates read from files."""
    _blocks: OrderedDict[Path, Block] = field(default_factory=OrderedDict)

    def before(self, trace: Path, step: int) -> list[Block]:
        """What steps before ``step`` have added to a trace.

        Ignores files that a task which runs again, or a later step, has written since. The blocks are read-only.
        """
        return [self._block(path) for path in sorted(trace.glob("*.arrow")) if int(path.stem) < step]

    def _block(self, path: Path) -> Block:
        found = self._blocks.get(path)
        if found is None:
            found = read_block(path)
            self.read += found.n
        self._keep(path, found)
        return found

    def add(self, trace: Path, step: int, block: Block, again: bool) -> None:
        """Writes what a step adds to a trace. ``again``: later steps may read it, so it is cached."""
        if block.n:
            path = trace / f"{step:06d}.arrow"
            write_blocks(path, [block], durable=False)
            if again:
                self._keep(path, block)

    def _keep(self, path: Path, block: Block) -> None:
        replaced = self._blocks.pop(path, None)
        self._blocks[path] = block
        self.words += encoded_words(block) - (0 if replaced is None else encoded_words(replaced))
        while self.words > CACHED_WORDS:
            self.words -= encoded_words(self._blocks.popitem(last=False)[1])


cache: Final = TraceCache()
"""This process's."""


@lru_cache(maxsize=1)
def _dictionary(secret: bytes, folder: Path) -> Dictionary:
    """The dictionary of a hydration; only the last hydration's is cached."""
    del folder
    _taken.clear()
    return Dictionary(secret)


_taken: Final[list[int]] = []
"""The steps whose values the dictionary has. Once a later step runs, nothing is added to them."""


@dataclass(frozen=True, slots=True)
class FragmentTraces:
    """A fragment's traces: how many there are, and which are ``written``. ``again``: whether later steps read them."""

    count: int
    written: frozenset[int]
    again: bool


@dataclass(frozen=True, slots=True)
class FileStore:
    """The files of a hydration (``planner.distributed.stage.Store``).

    ``secret``: the dictionary's; ``settings``: the other fields of a ``Context``. ``fragments``: by number; ``output``:
    the number of the output fragment, which nothing is sent to: it is written by those who make it.
    """

    folder: Path
    secret: bytes
    settings: Mapping[str, Any]
    fragments: tuple[FragmentTraces, ...]
    output: int

    def context(self, step: int) -> Context:
        """With the values of all earlier steps."""
        dictionary = _dictionary(self.secret, self.folder)
        for before in range(len(_taken), step):
            for path in sorted(values_folder(self.folder, before).glob("*.arrow")):
                dictionary.drain_new()
                read_blocks(path, load_into(dictionary))
            _taken.append(before)
        dictionary.drain_new()
        return Context(dictionary, **self.settings)

    def run(self, at: PartStep) -> tuple[Ran, list[Record]]:
        """Reads the files of earlier steps if any may have been meant for this one, and writes those of this step."""
        number = at.fragment.number
        mine = self.fragments[number]
        folders = [part_folder(self.folder, number, i, at.part) for i in range(mine.count)]
        held = [cache.before(folder, at.step) for folder in folders] if mine.again else []
        ran = at.run(held if any(held) else None)
        for i in sorted(mine.written):
            cache.add(folders[i], at.step, ran.traces[i], mine.again)
        name = f"{number}-{at.part}"
        for entries in at.context.dictionary.drain_new():
            write_blocks(values_folder(self.folder, at.step) / f"{name}.arrow", [], entries, durable=False)
        for i, sent in enumerate(ran.sent):
            if sent.fragment == self.output:
                path = output_folder(self.folder, sent.port) / f"{at.step}-{name}-{i}.arrow"
                write_blocks(path, [sorted_block(sent.block)], durable=False)
        return replace(ran, sent=tuple(sent for sent in ran.sent if sent.fragment != self.output)), []

    def values(self, block: Block, context: Context) -> None:
        """They are in files."""

    def after(self, reports: Sequence[bytes]) -> FileStore:
        """Nothing is reported."""
        return self

    @property
    def most_stages(self) -> int:
        """Files of earlier steps are found in the folder."""
        return MOST_STAGES


def values_folder(folder: Path, step: int) -> Path:
    """The values of ids that a step has interned; for step 0, those that the server has written."""
    return folder / "values" / f"{step:06d}"


def part_folder(folder: Path, fragment: int, trace: int, part: int | str) -> Path:
    """A trace of a part: a file for each step that has added to it."""
    return folder / "traces" / f"{fragment}-{trace}" / str(part)


def output_folder(folder: Path, node: int) -> Path:
    """The plan's rows, or its errors."""
    return folder / "output" / str(node)
