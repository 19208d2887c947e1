"""A scattered view's job: Spark applies a group of commits, or all contents of its tables, to the view's parts.

The job is one chain: the changes as records, level 0 over them, then for each level an exchange by place and a step at
each place that has records. A recursive view's job goes round by round (``planner.distributed.scatter_rounds``). Spark
decides what is exchanged, where a task runs and when it is retried. Only the DataFrame API is used. One report for each
touched part comes back; no rows do.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ivm.graph import NodeId
from ivm.rows import Words
from ivm.trace.batch import Block
from ivm.trace.shards import sorted_block
from planner.distributed.fragment import Cut, cut
from planner.distributed.scatter_rounds import run_rounds
from planner.distributed.scatter_step import Report, Scatter, once
from planner.expr.context import Context
from planner.expr.row_errors import first_error
from planner.peek.snapshot import Snapshot, table_rows
from planner.physical.nodes import Constants, Plan, Table, innermost_loops
from planner.render.dataflow import constant_rows
from storage.dictionary import Dictionary
from storage.spark.blocks import (
    ENTRIES,
    RECORDS,
    RECORDS_DDL,
    REPORT,
    encode_block,
    encode_entries,
    entries_of,
    joined,
    pieces,
    read_blocks,
    take_into,
)  # fmt: skip
from storage.spark.errors import spark_error
from storage.spark.manifest import Manifest
from storage.stored import History

_NO_PLACE: Final = -1
_GROUP_BYTES: Final = 1 << 22
"""The bytes of updates in a row group of a job's input."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A plan cut into fragments and parts. ``name``: identifies which plan a folder's files belong to."""

    plan: Plan
    cut: Cut
    parts: int
    name: str

    @classmethod
    def of(cls, plan: Plan, parts: int) -> Spread:
        """Cuts a plan, with ``parts`` parts for each fragment. 0A000: it cannot be cut."""
        found = cut(plan)
        return cls(plan, found, parts, hashlib.sha256(pickle.dumps((found, parts))).hexdigest())

    @property
    def tables(self) -> tuple[int, ...]:
        """The relations that the plan reads."""
        return tuple(node.relation for _, node in self.cut.sources if isinstance(node, Table))

    def empty(self) -> Manifest:
        """The manifest before the first job."""
        return Manifest(0, 0, self.name, self.parts)

    def constants(self, context: Context) -> dict[NodeId, Block]:
        """The rows of the plan's constants, once each, at time 1. Raises their errors."""
        found = {}
        for number, node in self.cut.sources:
            if isinstance(node, Constants):
                rows, errors = constant_rows(node.rows, node.schema, context)
                if len(errors):
                    raise first_error(errors, context.dictionary)
                found[number] = _block(rows, np.ones(len(rows), np.int64), np.ones(len(rows), np.int64))
        return found

    def source(self, relation: int) -> NodeId | None:
        """The source node of a relation; None: the plan does not read it."""
        return next((i for i, n in self.cut.sources if isinstance(n, Table) and n.relation == relation), None)


@dataclass(slots=True)
class Given:
    """A job's input: updates of the plan's sources at times 1, 2, …, which stand for ``epochs``."""

    epochs: Words
    blocks: dict[NodeId, Block] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """The number of updates."""
        return sum(block.n for block in self.blocks.values())


def given(spread: Spread, changes: Mapping[int, Sequence[History]], first: int | None = None) -> Given:
    """The changes of tables, by relation, as a job's input. ``first``: an earlier epoch that gets a time too."""
    histories = [history for some in changes.values() for history in some]
    begin = np.array([] if first is None else [first], np.int64)
    epochs = np.unique(np.concatenate([begin, *(history.epochs for history in histories)]))
    found = Given(epochs)
    for relation, some in changes.items():
        source = spread.source(relation)
        if source is None or not some:
            continue
        times = np.concatenate([np.searchsorted(epochs, history.epochs) + 1 for history in some])
        rows, diffs = (np.concatenate(parts) for parts in zip(*((h.rows, h.diffs) for h in some), strict=True))
        found.blocks[source] = _block(rows, times, diffs)
    return found


def _block(rows: Words, times: Words, diffs: Words) -> Block:
    return Block.of(rows, times, diffs.reshape(-1, 1))


@dataclass(frozen=True, slots=True)
class Applied:
    """A job's result: the new manifest, not yet in effect, and the reports."""

    manifest: Manifest
    reports: tuple[Report, ...]


def apply(session: Any, folder: Path, spread: Spread, before: Manifest, epoch: int, changes: Given,
          dictionary: Dictionary, stop: Callable[[], bool] = lambda: False) -> Applied:  # fmt: skip
    """Runs a job in a Spark session. Nothing takes effect before the manifest is written.

    ``epoch``: the last one of the changes. Raises what a fragment raises; 58000: Spark fails; 57014: ``stop`` was true
    between two steps of a recursive plan.
    """
    name = f"{before.number + 1:08}-{uuid4().hex[:8]}"
    loops = tuple(innermost_loops(spread.plan))
    scatter = Scatter(spread.cut, spread.parts, dictionary.secret, str(folder), name, before.layers, loops)
    (folder / "parts").mkdir(parents=True, exist_ok=True)
    given = folder / "jobs" / name / "given"
    _write_given(given, changes, dictionary)
    if spread.plan.scopes:
        reports = run_rounds(session, given, scatter, spread.plan, stop)
    else:
        reports = _run_levels(session, given, scatter)
    layers = dict(before.layers) | {report.place: report.layers for report in reports}
    manifest = replace(before, number=before.number + 1, epoch=epoch, layers=layers)
    return Applied(manifest, tuple(reports))


def compute(session: Any, folder: Path, spread: Spread, snapshot: Snapshot, context: Context,
            stop: Callable[[], bool] = lambda: False) -> tuple[Words, Words]:  # fmt: skip
    """The plan's rows and their diffs over a snapshot, computed from nothing in an empty folder.

    Raises what ``apply`` raises, and the least of the error rows.
    """
    changes = given(spread, {})
    for number, node in spread.cut.sources:
        if isinstance(node, Table):
            rows, diffs = table_rows(node, snapshot)
            changes.blocks[number] = _block(rows, np.ones(len(rows), np.int64), diffs)
    changes.blocks |= spread.constants(context)
    done = apply(session, folder, spread, spread.empty(), 0, changes, context.dictionary, stop)
    files = [report.delta for report in done.reports if report.delta is not None]
    found = read_output(folder, spread, files, context.dictionary)
    sums = []
    for block in found:
        rows, times, diffs = block.arrays()
        sums.append(sorted_block(_block(rows, np.zeros_like(times), diffs)).arrays())
    for errors, _, _ in sums[1:]:
        if len(errors):
            raise first_error(errors, context.dictionary)
    rows, _, diffs = sums[0]
    return rows, diffs[:, 0]


def _run_levels(session: Any, given: Path, scatter: Scatter) -> list[Report]:
    """Runs a plan without loops: one chain, each level once."""
    try:
        frame = _levels(session, given, scatter)
        found = frame.where(frame["port"] == REPORT).collect()
    except Exception as error:
        raise spark_error(error) from error
    return once([Report.of(bytes(record["data"])) for record in found])


def _levels(session: Any, written: Path, scatter: Scatter) -> Any:
    frame = session.read.schema(RECORDS_DDL).parquet(written.as_uri()).mapInArrow(scatter.first, RECORDS_DDL)
    for level in range(1, scatter.cut.levels):
        frame = frame.repartition(scatter.parts, "place").groupBy("place")
        frame = frame.applyInArrow(scatter.level(level), RECORDS_DDL)
    return frame


def _write_given(folder: Path, changes: Given, dictionary: Dictionary) -> None:
    """Writes the changes as records in a Parquet file. Each row group includes the values of its own ids."""
    folder.mkdir(parents=True)
    with pq.ParquetWriter(folder / "given.parquet", RECORDS, compression="lz4") as writer:
        for port, block in changes.blocks.items():
            for piece in pieces(block, _GROUP_BYTES):
                found: list[tuple[int, int, bytes]] = [(_NO_PLACE, port, encode_block(piece))]
                entries = entries_of([piece], dictionary)
                if entries is not None:
                    found.insert(0, (_NO_PLACE, ENTRIES, encode_entries(entries)))
                places, ports, data = zip(*found, strict=True)
                writer.write_table(pa.table([pa.array(places, pa.int64()), pa.array(ports, pa.int32()),
                                             pa.array(data, pa.binary())], schema=RECORDS))  # fmt: skip


def read_output(folder: Path, spread: Spread, files: Iterable[str], dictionary: Dictionary) -> list[Block]:
    """The updates in files of the output: one block of rows, and one of errors if any row can fail.

    Their values go into the server's dictionary.
    """
    take = take_into(dictionary)
    found = [[Block(port.width)] for port in spread.cut.output.ports]
    for file in files:
        for blocks, block in zip(found, read_blocks(folder / file, take), strict=True):
            blocks.append(block)
    return [joined(blocks) for blocks in found]
