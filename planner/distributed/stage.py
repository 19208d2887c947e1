"""What executors do for a step of a plan's fragments: run what is due over the parts that a task receives.

Spark calls a stage through ``mapInArrow``, after an exchange by part; executors need this package with the same Python
and numpy. A *store* says where a part's earlier traces come from and where what is added goes
(``planner.distributed.file_store``, ``planner.distributed.layer_store``). A task may run twice, or continue after Spark
has given it up: it writes the same under the same names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa

from ivm.distinct import distinct
from ivm.errors import SqlError
from ivm.graph import NodeId
from ivm.partial import Layers
from ivm.time import all_bits
from ivm.trace.batch import Block
from planner.distributed.fragment import FIRST, Cut, Fragment
from planner.distributed.fragment_run import Ran, Sent, run_fragment
from planner.distributed.multi_step import StageAgenda
from planner.distributed.progress import begin_step, end_part
from planner.distributed.records import RECORD_BYTES, Record, decoded, encoded
from planner.distributed.rounds import Due
from planner.expr.context import Context
from storage.spark.blocks import decode_entries, joined, load_into, pieces, read_blocks
from storage.spark.errors import marked


@dataclass(frozen=True, slots=True)
class PartStep:
    """A step of one part of ``parts``.

    ``arrived``: the updates received, by port; those at ports in loops are at one loop ``vector``, as is what nodes
    ``owed``.
    """

    fragment: Fragment
    part: int
    parts: int
    step: int
    context: Context
    arrived: Mapping[NodeId, Block]
    owed: Mapping[NodeId, Block] = field(default_factory=dict)
    vector: int = 0

    @property
    def updates(self) -> int:
        """The number of updates received."""
        return sum(block.n for found in (self.arrived, self.owed) for block in found.values())

    def run(self, traces: Sequence[Layers] | None, now: Sequence[Layers] | None = None, timed: bool = False) -> Ran:
        """As ``run_fragment``."""
        return run_fragment(self.fragment, self.context, traces, self.arrived, self.parts, self.vector, self.owed, now,
                            timed)  # fmt: skip


class Store(Protocol):
    """Where traces and values are kept. It is sent to executors."""

    def context(self, step: int) -> Context:
        """A context for a part's step."""

    def run(self, at: PartStep) -> tuple[Ran, list[Record]]:
        """Runs a part's step on what the part holds, and keeps what is added. Returns reports, and what goes on."""

    def values(self, block: Block, context: Context) -> bytes | None:
        """The values that must travel with a block."""

    def after(self, reports: Sequence[bytes]) -> Store:
        """The store as it is after a job."""

    @property
    def most_stages(self) -> int:
        """The most steps of a loop in one job."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows for a port, in a file that has only the ``words`` that are read, out of ``width``; the others are 0."""

    port: NodeId
    path: Path
    words: tuple[int, ...]
    width: int

    def read(self, context: Context) -> Block:
        """The rows at their full width. Their values, if the file has any, go into the context's dictionary."""
        (block,) = read_blocks(self.path, load_into(context.dictionary))
        if block.width == self.width:
            return block
        narrow, times, diffs = block.arrays()
        rows = np.zeros((block.n, self.width), np.int64)
        rows[:, self.words] = narrow
        return Block.of(rows, times, diffs)


@dataclass(slots=True)
class _Arrived:
    """What has arrived at a part: blocks by port, and the values of their ids."""

    blocks: dict[NodeId, list[Block]] = field(default_factory=lambda: defaultdict(list))
    values: list[bytes] = field(default_factory=list)

    def add(self, record: Record) -> None:
        self.blocks[NodeId(record.port)].append(record.block)
        if record.attached is not None:
            self.values.append(record.attached)


_Parts = dict[tuple[int, int], _Arrived]
"""By (fragment, part)."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One step: takes what is due and runs its fragments.

    ``takes``: a level, whose fragments take all that is sent to them; or the agenda of a plan with loops. Level 0 reads
    ``slices``, by task number. ``loops``: the innermost loop of each of the plan's nodes. ``parts``: of each fragment;
    part i goes to task i modulo ``tasks``. ``folder``: for progress.
    """

    cut: Cut
    loops: tuple[int | None, ...]
    parts: int
    tasks: int
    folder: Path
    store: Store
    step: int
    takes: int | StageAgenda
    slices: tuple[Slice, ...] = ()

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For ``mapInArrow``: records in, records out."""
        try:
            yield from encoded(self._records(batches))
        except SqlError as error:
            raise marked(error) from error

    def _records(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Record]:
        begin_step(self.folder, self.step)
        match self.takes:
            case 0:
                for number in (n for batch in batches for n in batch.column(0).to_pylist()):
                    context, found = self.store.context(self.step), self.slices[number]
                    first, arrived = self.cut.fragments[FIRST], {found.port: found.read(context)}
                    yield from self._run(PartStep(first, number, self.parts, self.step, context, arrived))
            case int() as level:
                yield from self._take_level(level, decoded(batches))
            case StageAgenda() as agenda:
                yield from self._take_due(agenda, [*decoded(batches)])

    def _take_level(self, level: int, records: Iterable[Record]) -> Iterator[Record]:
        mine = {fragment.number for fragment in self.cut.fragments if fragment.level == level}
        parts: _Parts = defaultdict(_Arrived)
        for record in records:
            if record.fragment in mine:
                parts[record.fragment, record.part].add(record)
            else:
                yield record
        yield from self._run_parts(parts, 0)

    def _take_due(self, agenda: StageAgenda, records: Sequence[Record]) -> Iterator[Record]:
        """Takes what is due, which is known only when all records have arrived, and passes on the rest."""
        notes = {(note.port, note.attached): note for note in records if note.is_note}
        due = agenda.due([(stage, Due.parse(text.decode())) for stage, text in notes if text is not None])
        mine = {(one.fragment, one.port, one.vector) for one in due}
        parts: _Parts = defaultdict(_Arrived)
        for record in records:
            if (record.fragment, record.port, record.vector) in mine:
                parts[record.fragment, record.part].add(record)
            elif not record.is_note:
                yield record
        left = set[Due]()
        for record in self._run_parts(parts, due[0].vector if due else 0):
            if not record.is_report:
                left.add(record.due)
            yield record
        if not agenda.last:
            yield from notes.values()
            for one in sorted(left, key=str):
                yield from (Record.note(agenda.stage, one, task) for task in range(self.tasks))

    def _run_parts(self, parts: _Parts, vector: int) -> Iterator[Record]:
        for (number, part), found in sorted(parts.items(), key=lambda item: item[0]):
            context = self.store.context(self.step)
            for values in found.values:
                context.dictionary.load(*decode_entries(values))
            blocks = {Due.of(number, port, vector): joined(some) for port, some in found.blocks.items()}
            arrived = {due.node: block for due, block in blocks.items() if not due.owed}
            owed = {due.node: block for due, block in blocks.items() if due.owed}
            yield from self._run(
                PartStep(self.cut.fragments[number], part, self.parts, self.step, context, arrived, owed, vector)
            )

    def _run(self, at: PartStep) -> Iterator[Record]:
        """Runs a part's step, and marks the part as done."""
        ran, reports = self.store.run(at)
        yield from reports
        for sent in ran.sent:
            yield from self._sent(sent, at.context)
        for node, block in ran.owed:
            yield from self._sent(Sent(at.fragment.number, at.part, node, block), at.context, owed=True)
        due = Due(at.fragment.number, min([*at.arrived, *at.owed]), at.vector)
        end_part(self.folder, self.step, due, at.part, at.updates)

    def _sent(self, sent: Sent, context: Context, owed: bool = False) -> Iterator[Record]:
        """Records of updates, one or more for each loop vector that they wait for."""
        for vector, block in self._by_vector(sent):
            due = Due(sent.fragment, sent.port, vector, owed)
            values = self.store.values(block, context)
            for piece in pieces(block, RECORD_BYTES):
                yield Record(sent.fragment, due.port, sent.part, vector, piece, values)
                values = None

    def _by_vector(self, sent: Sent) -> Iterator[tuple[int, Block]]:
        loop = self.loops[sent.port]
        if loop is None or sent.fragment == self.cut.output.number:
            yield 0, sent.block
            return
        rows, times, diffs = sent.block.arrays()
        vectors = times & ((1 << all_bits(self.cut.fragments[sent.fragment].loops.scopes[loop].shape)) - 1)
        found = distinct(vectors).tolist()
        for vector in found:
            chosen = slice(None) if len(found) == 1 else vectors == vector
            yield vector, Block.of(rows[chosen], times[chosen], diffs[chosen])
