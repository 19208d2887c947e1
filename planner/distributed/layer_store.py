"""What parts of a scattered view hold: *layers*, immutable files that the view's manifest names for each part.

Only parts that receive updates are read and written. What a step adds is a new file, which counts only once the
manifest names it. Until then reports tell the driver which files a part consists of, so each step of a loop is a job:
sharing one makes small changes no faster (docs/decisions/0010-fragments.md). Values of ids travel with the
rows, and are in the files that need them, so a task knows no others.

All commits of a group go through together, each at its own ordinal. In a plan with loops, what a step adds keeps its
ordinals until the job ends; of what was there before the job, only the rounds count.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from ivm.trace.batch import Block
from ivm.trace.shards import sorted_block
from planner.distributed.fragment import FIRST
from planner.distributed.fragment_run import Ran, settled
from planner.distributed.partitioning import partition_number
from planner.distributed.records import Record
from planner.distributed.stage import PartStep
from planner.expr.context import Context
from storage.dictionary import Dictionary
from storage.spark.blocks import encode_entries, entries_of, joined, load_into, read_blocks, write_blocks
from storage.spark.manifest import Layer

SMALL_LAYERS: Final = 4
"""The number of files beside a part's first one at which they are merged into one."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a step has done to one part.

    ``arrived``: updates received; ``read``: updates that its traces held, in files of ``read_bytes`` bytes. ``layers``:
    the files that the part consists of now; ``written`` and ``written_bytes``: updates and bytes of the new ones.
    ``delta``: the output's file of what arrived.
    """

    partition: int
    step: int
    arrived: int
    read: int
    read_bytes: int
    layers: tuple[Layer, ...]
    written: int
    written_bytes: int
    delta: str | None = None

    @classmethod
    def of(cls, data: bytes) -> Report:
        """Decodes a record's bytes."""
        found = json.loads(data)
        return cls(**found | {"layers": tuple(Layer(**layer) for layer in found["layers"])})


def decoded_reports(found: Iterable[bytes]) -> list[Report]:
    """The reports by step, checked to be one for each part and step: Spark takes one result if several tasks ran it."""
    reports = sorted(map(Report.of, found), key=lambda report: report.step)
    assert len({(report.partition, report.step) for report in reports}) == len(reports), "a part ran twice in a step"
    return reports


def with_reports(layers: Mapping[int, tuple[Layer, ...]], reports: Sequence[Report]) -> dict[int, tuple[Layer, ...]]:
    """The files of each part after these steps, in order."""
    return dict(layers) | {report.partition: report.layers for report in reports}


@dataclass(frozen=True, slots=True)
class LayerStore:
    """The files of a view's parts (``planner.distributed.stage.Store``).

    ``name``: the job's, part of its files' names. ``secret``: the dictionary's. ``layers``: the files of each part, by
    partition number. ``output``: the number of the output fragment. ``timed``: the plan has loops.
    """

    folder: Path
    name: str
    secret: bytes
    layers: Mapping[int, tuple[Layer, ...]]
    output: int
    timed: bool

    def context(self, step: int) -> Context:
        """Without any values."""
        return Context(Dictionary(self.secret))

    def run(self, at: PartStep) -> tuple[Ran, list[Record]]:
        """Reads a part's files, merges some of them if the job has not touched the part yet, and writes one more."""
        if at.fragment.number == FIRST:
            return at.run(None), []
        if at.fragment.number == self.output:
            return Ran((), (), 0), [self._run_output(at)]
        found = self._layers(at)
        held, now = [x for x in found if not self._is_mine(x)], [x for x in found if self._is_mine(x)]
        before = [self._read(layer, at.context) for layer in held]
        kept, new = held, tuple[Layer, ...]()
        first = _to_merge(held) if not now else None
        if first is not None:
            whole = settled(at.fragment, at.context, _by_trace(before[first:]))
            kept, new = held[:first], self._write(at, whole, before=True)
            before = [*before[:first], whole]
        ran = at.run(_by_trace(before), _by_trace([self._read(layer, at.context) for layer in now]), self.timed)
        new = (*new, *self._write(at, ran.traces))
        return ran, [self._report(at, ran.read, sum(layer.size for layer in found), (*kept, *now), new)]

    def _run_output(self, at: PartStep) -> Record:
        """Writes what arrived, at its times, to a file. The earlier rows are read only to merge their files."""
        held, merged = list(self._layers(at)), tuple[Layer, ...]()
        first = _to_merge(held)
        old = [] if first is None else held[first:]
        if old:
            files = [self._read(layer, at.context) for layer in old]
            merged = self._write(at, [_timeless(joined(blocks)) for blocks in zip(*files, strict=True)], before=True)
        ports = at.fragment.ports
        delta = self._write(at, [sorted_block(at.arrived.get(port.node, Block(port.width))) for port in ports])
        read, size = sum(layer.rows for layer in old), sum(layer.size for layer in old)
        return self._report(at, read, size, held[:first], (*merged, *delta), delta[0].file if delta else None)

    def values(self, block: Block, context: Context) -> bytes | None:
        """Those of the block's ids."""
        entries = entries_of([block], context.dictionary)
        return None if entries is None else encode_entries(entries)

    def after(self, reports: Sequence[bytes]) -> LayerStore:
        """With the files that these reports name."""
        return replace(self, layers=with_reports(self.layers, decoded_reports(reports)))

    @property
    def most_stages(self) -> int:
        """Later steps need the reports of earlier ones."""
        return 1

    def _layers(self, at: PartStep) -> tuple[Layer, ...]:
        """The files of a part before the step."""
        return self.layers.get(self._partition(at), ())

    def _read(self, layer: Layer, context: Context) -> list[Block]:
        """A file's blocks; its values go into the context's dictionary."""
        return read_blocks(self.folder / layer.file, load_into(context.dictionary))

    def _write(self, at: PartStep, blocks: Sequence[Block], before: bool = False) -> tuple[Layer, ...]:
        """Writes a file of a part, unless there is nothing. ``before``: its contents are from before the job."""
        rows = sum(block.n for block in blocks)
        if not rows:
            return ()
        file = f"parts/{'before-' * before}{self.name}-{at.step}-{self._partition(at)}.arrow"
        return (Layer(file, rows, write_blocks(self.folder / file, blocks, entries_of(blocks, at.context.dictionary))),)

    def _report(self, at: PartStep, read: int, size: int, kept: Sequence[Layer], new: Sequence[Layer],
               delta: str | None = None) -> Record:  # fmt: skip
        """A report's record. ``read``, ``size``: updates and bytes read; the part now consists of ``kept``, ``new``."""
        written = sum(layer.rows for layer in new), sum(layer.size for layer in new)
        report = Report(self._partition(at), at.step, at.updates, read, size, (*kept, *new), *written, delta)
        return Record.report(at.fragment.number, at.part, at.step, json.dumps(asdict(report)).encode())

    def _partition(self, at: PartStep) -> int:
        return partition_number(at.fragment.number, at.part, at.parts)

    def _is_mine(self, layer: Layer) -> bool:
        """Whether a step of this job has added it."""
        return layer.file.startswith(f"parts/{self.name}-")


def _to_merge(held: Sequence[Layer]) -> int | None:
    """From which of a part's files on to merge; None: not at all.

    All, if the small files add up to more than half of the first, so that each update is rewritten only a few times;
    those after the first, if they are many.
    """
    small = sum(layer.rows for layer in held[1:])
    if small > (held[0].rows if held else 0) // 2:
        return 0
    return 1 if len(held) > SMALL_LAYERS else None


def _by_trace(files: Sequence[Sequence[Block]]) -> list[list[Block]] | None:
    return [list(layers) for layers in zip(*files, strict=True)] or None


def _timeless(block: Block) -> Block:
    rows, times, diffs = block.arrays()
    return sorted_block(Block.of(rows, np.zeros_like(times), diffs))
