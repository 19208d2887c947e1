"""What executors do for a hydration: run a plan's fragments over the parts that a task receives.

Spark calls it through ``mapInArrow``; executors need this package with the same Python and numpy. A record is a block
of updates for a port of a part of a fragment (``storage.spark.blocks``). What traces hold goes to files in a folder
that all share; a task that runs again writes the same under the same names.

``due`` says what a record waits for, as a folder name: a port at a loop vector (a negative port: what a node owes to
it). A record of no fragment is a note (``planner.distributed.multi_step``); its ``port`` is the stage after which
something waits for its ``due``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from ivm.errors import SqlError
from ivm.graph import NodeId
from ivm.trace.batch import Block
from ivm.trace.shards import sorted_block
from planner.distributed.fragment import FIRST, Fragment
from planner.distributed.fragment_run import Ran, Sent, run_fragment
from planner.distributed.multi_step import Turns
from planner.distributed.rounds import Due
from planner.distributed.spark_traces import Held
from planner.expr.context import Context
from storage.dictionary import Dictionary
from storage.spark.blocks import (
    encode_cells,
    encoded_words,
    joined,
    load_into,
    pieces,
    read_block,
    read_blocks,
    view_block,
    write_blocks,
)  # fmt: skip
from storage.spark.errors import marked
from storage.types.text_style import DEFAULT_FORMATS, DateFormats

FRAME: Final = "due string, fragment int, port int, part int, vector long, block binary"
FRAME_SCHEMA: Final = pa.schema(
    [
        ("due", pa.string()), ("fragment", pa.int32()), ("port", pa.int32()), ("part", pa.int32()),
        ("vector", pa.int64()), ("block", pa.binary()),
    ]
)  # fmt: skip
RECORD_BYTES: Final = 1 << 18
"""The approximate size of a record: Spark checks its memory only every hundred records."""
_BATCH_BYTES: Final = 1 << 23
held: Final = Held()
"""This process's cache of traces."""
NOTE: Final = -1
"""The fragment number of notes."""
_NOTHING: Final = Block(1, 1)
Arrived = dict[tuple[int, int], dict[NodeId, list[Block]]]
"""Updates received, by (fragment, part), then by port."""


class Record(NamedTuple):
    """A row of ``FRAME`` with its block not encoded yet.

    ``due`` is a folder name and not a column of the files in it.
    """

    due: str | None
    fragment: int
    port: int
    part: int
    vector: int
    block: Block


@dataclass(frozen=True, slots=True)
class Environment:
    """The data from which executors make a ``Context``. ``folder``: has the values of ids, step by step."""

    secret: bytes
    folder: Path
    parameters: tuple[object, ...] = ()
    now: int = 0
    statement_now: int = 0
    timezone: str = "UTC"
    epoch: int = 0
    formats: DateFormats = DEFAULT_FORMATS

    def context(self, step: int) -> Context:
        """A context with the dictionary as known before a step."""
        dictionary = _dictionary(self.secret, self.folder)
        for before in range(len(_taken), step):
            for path in sorted(values_folder(self.folder, before).glob("*.arrow")):
                dictionary.drain_new()
                read_blocks(path, load_into(dictionary))
            _taken.append(before)
        dictionary.drain_new()
        given = (self.parameters, self.now, self.statement_now, self.timezone, self.epoch)
        return Context(dictionary, *given, formats=self.formats)


@lru_cache(maxsize=1)
def _dictionary(secret: bytes, folder: Path) -> Dictionary:
    """The dictionary of a hydration; only the last hydration's is cached."""
    del folder
    _taken.clear()
    return Dictionary(secret)


_taken: Final[list[int]] = []
"""The steps whose values the dictionary has. Once a later step runs, nothing is added to them."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows for a port, in a file that has only the ``words`` that are read, out of ``width``; the others are 0."""

    port: NodeId
    path: Path
    words: tuple[int, ...]
    width: int

    def read(self) -> Block:
        """The rows at their full width."""
        block = read_block(self.path)
        if block.width == self.width:
            return block
        narrow, times, diffs = block.arrays()
        rows = np.zeros((block.n, self.width), np.int64)
        rows[:, self.words] = narrow
        return Block.of(rows, times, diffs)


@dataclass(frozen=True, slots=True)
class Work:
    """One step: takes what waits for some fragments and runs them.

    ``slices``: the first step's input, by task number. ``traces``: the number of traces of each of the ``fragments``;
    ``kept``: which of them are written. ``again``: whether later steps read what this one adds to the traces.
    ``output``: the number of the output fragment, which only stores the plan's rows. ``turns``: selects what is taken,
    at one loop vector; None: everything for the fragments, which are in no loop.
    """

    fragments: tuple[Fragment, ...]
    parts: int
    folder: Path
    step: int
    environment: Environment
    output: int
    slices: tuple[Slice, ...] = ()
    traces: tuple[int, ...] = ()
    kept: tuple[frozenset[int], ...] = ()
    again: tuple[bool, ...] = ()
    turns: Turns | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For ``mapInArrow``: records in, records out."""
        try:
            yield from _batches(self._records(batches))
        except SqlError as error:
            raise marked(error) from error

    def _records(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Record]:
        told = told_folder(self.folder, self.step)
        told.mkdir(parents=True, exist_ok=True)
        if self.turns is not None:
            yield from self._turn([*_decoded(batches)], self.turns, told)
            return
        arrived = _nothing_arrived()
        yield from self._take(batches, arrived)
        yield from self._go(arrived, 0, told)

    def _turn(self, records: Sequence[Record], turns: Turns, told: Path) -> Iterator[Record]:
        """Takes what is due, which is known only when all records have arrived, and passes on the rest."""
        notes = {(note.due, note.port, note.part): note for note in records if note.fragment == NOTE}
        due = turns.due([(stage, Due.parse(text)) for text, stage, _ in notes if text is not None])
        mine = {(one.fragment, one.port, one.vector) for one in due}
        arrived, left = _nothing_arrived(), set[str]()
        for record in records:
            if (record.fragment, record.port, record.vector) in mine:
                arrived[record.fragment, record.part][NodeId(record.port)].append(record.block)
            elif record.fragment != NOTE:
                yield record._replace(due=Due.text(record.fragment, record.port, record.vector))
        for record in self._go(arrived, due[0].vector if due else 0, told):
            if record.due is not None:
                left.add(record.due)
            yield record
        if not turns.last:
            yield from notes.values()
            for text in sorted(left):
                yield from (Record(text, NOTE, turns.stage, part, 0, _NOTHING) for part in range(self.parts))

    def _go(self, arrived: Arrived, vector: int, told: Path) -> Iterator[Record]:
        """Runs fragments over the parts that received something, and marks each as done in the folder ``told``."""
        context = self.environment.context(self.step)
        for (number, part), ports in sorted(arrived.items()):
            place = next(i for i, f in enumerate(self.fragments) if f.number == number)
            ran = self._run(place, part, ports, context, vector)
            name = f"{number}-{part}"
            for i, sent in enumerate(ran.sent):
                yield from self._sent(sent, f"{self.step}-{name}-{i}")
            for node, block in ran.owed:
                yield from _waiting(Sent(number, part, NodeId(-1 - node), block))
            for entries in context.dictionary.drain_new():
                path = values_folder(self.folder, self.step) / f"{name}.arrow"
                write_blocks(path, [], entries, durable=False)
            came = sum(block.n for blocks in ports.values() for block in blocks)
            (told / f"{Due.text(number, min(ports), vector)}-{part}-{came}").touch()

    def _run(self, place: int, part: int, ports: dict[NodeId, list[Block]], context: Context, vector: int) -> Ran:
        fragment = self.fragments[place]
        folders = [part_folder(self.folder, fragment.number, i, part) for i in range(self.traces[place])]
        before = partial(held.before, self.folder, step=self.step)
        traces = [before(folder) for folder in folders] if self.again[place] else []
        found = {port: joined(blocks) for port, blocks in ports.items()}
        arrived = {port: block for port, block in found.items() if port >= 0}
        owed = {NodeId(-1 - port): block for port, block in found.items() if port < 0}
        there = traces if any(traces) else None
        ran = run_fragment(fragment, context, there, arrived, self.parts, False, vector, owed)
        for i in sorted(self.kept[place]):
            held.add(self.folder, folders[i], self.step, ran.traces[i], self.again[place])
        return ran

    def _take(self, batches: Iterable[pa.RecordBatch], arrived: Arrived) -> Iterator[Record]:
        """Collects what arrived for the fragments; passes on records for others."""
        mine = {fragment.number for fragment in self.fragments}
        for number in (n for batch in batches for n in batch.column(0).to_pylist()) if self.slices else ():
            found = self.slices[number]
            arrived[FIRST, number][found.port].append(found.read())
        for record in () if self.slices else _decoded(batches):
            if record.fragment in mine:
                arrived[record.fragment, record.part][NodeId(record.port)].append(record.block)
            else:
                yield record

    def _sent(self, sent: Sent, name: str) -> Iterator[Record]:
        if sent.fragment == self.output:
            path = output_folder(self.folder, sent.port) / f"{name}.arrow"
            write_blocks(path, [sorted_block(sent.block)], durable=False)
        else:
            yield from _waiting(sent)


def _waiting(sent: Sent) -> Iterator[Record]:
    """Records of updates, one or more for each loop vector that they wait for."""
    rows, times, diffs = sent.block.arrays()
    for vector in np.unique(times).tolist():
        chosen = slice(None) if times[0] == times[-1] == vector and (times == vector).all() else times == vector
        for block in pieces(Block.of(rows[chosen], times[chosen], diffs[chosen]), RECORD_BYTES):
            due = Due.text(sent.fragment, sent.port, vector)
            yield Record(due, sent.fragment, sent.port, sent.part, vector, block)


def _decoded(batches: Iterable[pa.RecordBatch]) -> Iterator[Record]:
    for batch in batches:
        *heads, block = FRAME_SCHEMA.names
        columns = (batch.column(name).to_pylist() for name in heads)
        for (due, fragment, port, part, vector), cell in zip(
            zip(*columns, strict=True), batch.column(block), strict=True
        ):
            yield Record(due, fragment, port, part, vector, view_block(cell.as_buffer()))


def _nothing_arrived() -> Arrived:
    return defaultdict(lambda: defaultdict(list))


def values_folder(folder: Path, step: int) -> Path:
    """The values of ids that a step has interned; for step 0, those that the server has written."""
    return folder / "values" / f"{step:06d}"


def told_folder(folder: Path, step: int) -> Path:
    """Exists once a step has begun. Has a file for each finished part.

    The file's name: what was taken (``Due.text``), the part, and the number of updates received.
    """
    return folder / "told" / f"{step:06d}"


def part_folder(folder: Path, fragment: int, trace: int, part: int | str) -> Path:
    """A trace of a part: a file for each step that has added to it."""
    return folder / "traces" / f"{fragment}-{trace}" / str(part)


def output_folder(folder: Path, node: NodeId) -> Path:
    """The plan's rows, or its errors."""
    return folder / "output" / str(node)


def _batches(records: Iterable[Record]) -> Iterator[pa.RecordBatch]:
    """Records in batches of some megabytes."""
    some: list[Record] = []
    size = 0
    for record in records:
        some.append(record)
        size += 8 * encoded_words(record.block)
        if size >= _BATCH_BYTES:
            yield _batch(some)
            some, size = [], 0
    if some:
        yield _batch(some)


def _batch(records: list[Record]) -> pa.RecordBatch:
    *heads, blocks = zip(*records, strict=True)
    arrays = [pa.array(c, f.type) for c, f in zip(heads, FRAME_SCHEMA, strict=False)]
    return pa.RecordBatch.from_arrays([*arrays, encode_cells(blocks)], schema=FRAME_SCHEMA)
