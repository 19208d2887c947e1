"""One level of a scattered view's job on Spark's executors.

Records arrive by place; a part's fragment runs; records go on, and files of the part's traces are written.

Spark groups records by place and calls a step for each place that has records, so only parts that receive updates are
read and written. A record for a later level passes through. Tasks may be run twice, or continue after Spark has given
them up: what they write takes effect only when a manifest names it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa

from ivm.errors import SqlError
from ivm.graph import NodeId
from ivm.trace.batch import Block
from ivm.trace.shards import sorted_block
from planner.distributed.fragment import FIRST, Cut, Fragment
from planner.distributed.fragment_run import Sent, run_fragment
from planner.expr.context import Context
from storage.dictionary import Dictionary
from storage.spark.blocks import (
    ENTRIES,
    REPORT,
    decode_block,
    decode_entries,
    encode_block,
    encode_entries,
    entries_of,
    joined,
    load_into,
    pieces,
    read_blocks,
    records,
    write_blocks,
)  # fmt: skip
from storage.spark.errors import marked
from storage.spark.manifest import Layer

LAYERS: Final = 8
"""The number of files of a part at which all of it is rewritten into one."""

_RECORD_BYTES: Final = 1 << 18
T = TypeVar("T")
Found = tuple[int, int, bytes]
"""A record: place, port, bytes."""


@dataclass(frozen=True, slots=True)
class Report:
    """What happened to one part.

    ``arrived``: updates received; ``read``: updates that its traces held, in files of ``read_bytes`` bytes. ``layers``:
    the files that the part consists of now; ``written`` and ``written_bytes``: updates and bytes of the new ones.
    ``delta``: the output's file of what arrived.
    """

    place: int
    fragment: int
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
        told = json.loads(data)
        return cls(**told | {"layers": tuple(Layer(**layer) for layer in told["layers"])})


def once(reports: list[Report]) -> list[Report]:
    """The reports, checked to be one for each place: Spark takes one result even if several tasks ran the part."""
    found = {report.place: report for report in reports}
    assert len(found) == len(reports), "a place that was touched twice in one step"
    return list(found.values())


@dataclass(frozen=True, slots=True)
class Scatter:
    """What every task of a job knows.

    ``layers``: the files of each part before the job. ``name``: the job's, part of its files' names. ``secret``: the
    dictionary's. ``loops``: the innermost loop of each node of the plan.

    In a job that goes round by round, ``step`` is the number of the step and ``vector`` its loop vector.
    """

    cut: Cut
    parts: int
    secret: bytes
    folder: str
    name: str
    layers: Mapping[int, tuple[Layer, ...]]
    loops: tuple[int | None, ...] = ()
    step: int = 0
    vector: int = 0

    def place(self, fragment: int, part: int) -> int:
        """The place to which a part's records go."""
        return fragment * self.parts + part

    def first(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Runs level 0 over sources' rows, which belong to no part, for ``mapInArrow``.

        Values precede the ids that use them.
        """
        dictionary = Dictionary(self.secret)
        for batch in batches:
            yield guarded(partial(self._run_first, found_in(batch), dictionary))

    def level(self, level: int) -> Callable[[pa.Table], pa.Table]:
        """A level's work at one place, for ``applyInArrow``."""

        def step(table: pa.Table) -> pa.Table:
            return self._step(level, table)

        return step

    def _step(self, level: int, table: pa.Table) -> pa.Table:
        place = int(table.column("place")[0].as_py())
        fragment = self.cut.fragments[place // self.parts]
        if fragment.level != level:
            return table
        found = [record for batch in table.to_batches() for record in found_in(batch)]
        if all(port == REPORT for _, port, _ in found):
            return table
        made = guarded(partial(self._run, fragment, place, found))
        return pa.Table.from_batches([made])

    def _run_first(self, found: list[Found], dictionary: Dictionary) -> pa.RecordBatch:
        arrived, _ = arrivals(found, dictionary)
        ran = run_fragment(self.cut.fragments[FIRST], Context(dictionary), None, arrived, self.parts)
        return records(self._outgoing(ran.sent, dictionary))

    def _run(self, fragment: Fragment, place: int, found: list[Found]) -> pa.RecordBatch:
        context = Context(Dictionary(self.secret))
        arrived, passing = arrivals(found, context.dictionary)
        run = self.keep if fragment.number == self.cut.output.number else self._apply
        return records(passing + run(fragment, place, context, arrived))

    def _apply(
        self, fragment: Fragment, place: int, context: Context, arrived: Mapping[NodeId, Block]
    ) -> list[Found]:  # fmt: skip
        """Reads a part's traces, runs its fragment, and writes the traces again."""
        held = self.layers.get(place, ())
        files = [read_blocks(Path(self.folder, layer.file), load_into(context.dictionary)) for layer in held]
        traces = [list(layers) for layers in zip(*files, strict=True)] if files else None
        arriving = sum(block.n for block in arrived.values())
        whole = is_due(held, arriving)
        ran = run_fragment(fragment, context, traces, arrived, self.parts, whole)
        layer = self.write(place, list(ran.traces), context.dictionary)
        report = self.report(place, fragment, arriving, ran.read, held, () if whole else held, layer)
        return [*self._outgoing(ran.sent, context.dictionary), report]

    def keep(self, fragment: Fragment, place: int, context: Context, arrived: Mapping[NodeId, Block]) -> list[Found]:
        """The output: writes what arrived, at its times, to a file.

        Reads the earlier rows only to merge all of them.
        """
        held = self.layers.get(place, ())
        width = {port.node: port.width for port in fragment.ports}
        came = [sorted_block(arrived.get(port.node, Block(width[port.node]))) for port in fragment.ports]
        arriving = sum(block.n for block in came)
        delta = self.write(place, came, context.dictionary)
        if not is_due(held, arriving):
            return [self.report(place, fragment, arriving, 0, (), held, delta, delta=delta.file)]
        files = [read_blocks(Path(self.folder, layer.file), load_into(context.dictionary)) for layer in held]
        read = sum(block.n for blocks in files for block in blocks)
        all_of_it = [_timeless(joined(list(layers))) for layers in zip(came, *files, strict=True)]
        layer = self.write(place, all_of_it, context.dictionary, "-whole")
        return [self.report(place, fragment, arriving, read, held, (), layer, delta=delta.file)]

    def write(
        self, place: int, blocks: list[Block], dictionary: Dictionary, suffix: str = "", before: bool = False
    ) -> Layer:
        """Writes a file of a part. ``before``: its contents are from before the job."""
        file = f"parts/{'before-' * before}{self.name}-{self.step}-{place}{suffix}.arrow"
        size = write_blocks(Path(self.folder, file), blocks, entries_of(blocks, dictionary))
        return Layer(file, sum(block.n for block in blocks), size)

    def report(
        self, place: int, fragment: Fragment, arrived: int, read: int, held: tuple[Layer, ...],
        kept: tuple[Layer, ...], *new: Layer, delta: str | None = None,
    ) -> Found:  # fmt: skip
        """A report's record. ``held``: the files read; ``kept`` and ``new``: those that the part consists of now."""
        size = sum(one.size for one in held)
        written = sum(one.rows for one in new), sum(one.size for one in new)
        report = Report(place, fragment.number, arrived, read, size, (*kept, *new), *written, delta)
        return self.place(self.cut.output.number, 0), REPORT, json.dumps(asdict(report)).encode()

    def _outgoing(self, sent: Iterable[Sent], dictionary: Dictionary) -> list[Found]:
        by_place: dict[int, list[Sent]] = {}
        for one in sent:
            by_place.setdefault(self.place(one.fragment, one.part), []).append(one)
        found: list[Found] = []
        for place, some in by_place.items():
            found += [(place, *one) for one in packed([(one.port, one.block) for one in some], dictionary)]
        return found


def packed(blocks: Sequence[tuple[int, Block]], dictionary: Dictionary) -> Iterator[tuple[int, bytes]]:
    """(port, bytes) of records with these blocks, after one with the values of their ids."""
    entries = entries_of([block for _, block in blocks], dictionary)
    if entries is not None:
        yield ENTRIES, encode_entries(entries)
    for port, block in blocks:
        for piece in pieces(block, _RECORD_BYTES):
            yield port, encode_block(piece)


def is_due(held: tuple[Layer, ...], arriving: int) -> bool:
    """Whether to rewrite a part whole: it is new, has many files, or its small ones exceed half of the first.

    The arriving updates count as a small file. So each update is rewritten only a few times, and a large part is not
    rewritten for a small change.
    """
    return not held or len(held) >= LAYERS or sum(layer.rows for layer in held[1:]) + arriving > held[0].rows // 2


def arrivals(found: Iterable[Found], dictionary: Dictionary) -> tuple[dict[NodeId, Block], list[Found]]:
    """(updates received, by port; reports, which pass through).

    Values go into the dictionary, after its new entries have been drained.
    """
    blocks: dict[NodeId, list[Block]] = {}
    passing = []
    dictionary.drain_new()
    for record in found:
        _, port, data = record
        if port == ENTRIES:
            dictionary.load(*decode_entries(data))
        elif port == REPORT:
            passing.append(record)
        else:
            blocks.setdefault(NodeId(port), []).append(decode_block(data))
    return {port: joined(some) for port, some in blocks.items()}, passing


def _timeless(block: Block) -> Block:
    rows, times, diffs = block.arrays()
    return sorted_block(Block.of(rows, np.zeros_like(times), diffs))


def found_in(batch: pa.RecordBatch) -> list[Found]:
    places, ports = batch.column(0).to_pylist(), batch.column(1).to_pylist()
    return list(zip(places, ports, (value.as_py() for value in batch.column(2)), strict=True))


def guarded(work: Callable[[], T]) -> T:
    """Marks a SqlError, so that the driver recognises it."""
    try:
        return work()
    except SqlError as error:
        raise marked(error) from error
