"""A scattered view's job: Spark applies a group of commits, or all contents of its tables, to the view's parts.

The updates go through the plan's fragments (``planner.distributed.runner``), and files are added to the parts that they
reach (``planner.distributed.layer_store``). One report for each step of a part comes back; no rows do.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import numpy as np

from ivm.distinct import distinct
from ivm.graph import NodeId
from ivm.rows import Words
from ivm.trace.batch import Block
from ivm.trace.shards import sorted_block
from planner.distributed.fragment import Cut, cut
from planner.distributed.layer_store import LayerStore, Report, decoded_reports, with_reports
from planner.distributed.progress import Steps
from planner.distributed.runner import Runner
from planner.distributed.stage import Slice
from planner.expr.context import Context
from planner.expr.row_errors import first_error
from planner.peek.snapshot import Snapshot, table_rows
from planner.physical.nodes import Constants, Plan, Table
from planner.render.dataflow import constant_rows
from storage.dictionary import Dictionary
from storage.spark.blocks import entries_of, joined, pieces, read_blocks, take_into, write_blocks
from storage.spark.manifest import Manifest
from storage.spark.session import parallelism, steady
from storage.stored import History

MANY_UPDATES: Final = 1 << 16
"""With more updates each part has a task of its own; with fewer most parts have nothing to do, and share tasks."""
LEAST_TASKS: Final = 16
"""How many tasks there are then, if there are as many parts; more if more run at once."""
_SLICE_BYTES: Final = 1 << 24
"""The bytes of updates that one task reads."""


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
        return cls(plan, found, parts, _digest((found, parts)))

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
class JobInput:
    """A job's input: updates of the plan's sources at times 1, 2, …, which stand for ``epochs``."""

    epochs: Words
    blocks: dict[NodeId, Block] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """The number of updates."""
        return sum(block.n for block in self.blocks.values())


def job_input(spread: Spread, changes: Mapping[int, Sequence[History]], first: int | None = None) -> JobInput:
    """The changes of tables, by relation, as a job's input. ``first``: an earlier epoch that gets a time too."""
    histories = [history for some in changes.values() for history in some]
    begin = np.array([] if first is None else [first], np.int64)
    epochs = distinct(np.concatenate([begin, *(history.epochs for history in histories)]))
    found = JobInput(epochs)
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


def apply(session: Any, folder: Path, spread: Spread, before: Manifest, epoch: int, changes: JobInput,
          dictionary: Dictionary, check: Callable[[], object] = lambda: None) -> Applied:  # fmt: skip
    """Runs a job in a Spark session. Nothing takes effect before the manifest is written.

    ``epoch``: the last one of the changes. ``check``: called between Spark's jobs for a recursive plan; it may raise to
    end the work. Raises what a fragment raises; 58000: Spark fails.
    """
    name = f"{before.number + 1:08}-{uuid4().hex[:8]}"
    job = folder / "jobs" / name
    plan, fragments = spread.plan, spread.cut
    store = LayerStore(folder, name, dictionary.secret, before.layers, fragments.output.number, bool(plan.scopes))
    (folder / "parts").mkdir(parents=True, exist_ok=True)
    steps = Steps(job, plan, fragments, lambda *_: None)
    few = changes.count <= MANY_UPDATES
    tasks = min(spread.parts, max(LEAST_TASKS, 4 * parallelism(session))) if few else spread.parts
    runner = Runner(steady(session), plan, fragments, spread.parts, tasks, job, store, steps, check)
    reports = decoded_reports(runner.run(_written(job / "sources", changes, dictionary), fragments.levels))
    manifest = replace(before, number=before.number + 1, epoch=epoch, layers=with_reports(before.layers, reports))
    return Applied(manifest, tuple(reports))


def compute(session: Any, folder: Path, spread: Spread, snapshot: Snapshot, context: Context,
            check: Callable[[], object] = lambda: None) -> tuple[Words, Words]:  # fmt: skip
    """The plan's rows and their diffs over a snapshot, computed from nothing in an empty folder.

    Raises what ``apply`` raises, and the least of the error rows.
    """
    changes = job_input(spread, {})
    for number, node in spread.cut.sources:
        if isinstance(node, Table):
            rows, diffs = table_rows(node, snapshot)
            changes.blocks[number] = _block(rows, np.ones(len(rows), np.int64), diffs)
    changes.blocks |= spread.constants(context)
    done = apply(session, folder, spread, spread.empty(), 0, changes, context.dictionary, check)
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


def _written(folder: Path, changes: JobInput, dictionary: Dictionary) -> list[Slice]:
    """Writes the changes to files, each with the values of its own ids."""
    found: list[Slice] = []
    for port, block in changes.blocks.items():
        for piece in pieces(block, _SLICE_BYTES):
            path = folder / f"{len(found)}.arrow"
            write_blocks(path, [piece], entries_of([piece], dictionary), durable=False)
            found.append(Slice(port, path, tuple(range(block.width)), block.width))
    return found


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


def _digest(what: object) -> str:
    """A digest of values. ``fast`` pickles what is shared as often as it occurs, so that it does not depend on which
    equal parts are one object: that differs between a plan and the same one after a restart."""
    out = io.BytesIO()
    pickler = pickle.Pickler(out)
    pickler.fast = True
    pickler.dump(what)
    return hashlib.sha256(out.getbuffer()).hexdigest()
