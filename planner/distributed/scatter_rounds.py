"""A recursive view's job: the changes go through its fragments round by round, as records that wait for their turn.

Each step is a Spark job for what is due (``planner.distributed.rounds``): an exchange by place, and a call for each
place that something waits for. So only parts that receive updates in some round are read and written. All commits of a
group go through together, each at its own ordinal. What a step adds to a part's traces keeps its ordinals until the job
ends; of what was there before only the rounds count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ivm.errors import SqlError
from ivm.graph import NodeId
from ivm.time import all_bits
from ivm.trace.batch import Block
from planner.distributed.fragment import FIRST, Fragment
from planner.distributed.fragment_run import Sent, run_fragment, settled
from planner.distributed.rounds import Due, Rounds
from planner.distributed.scatter_step import Found, Report, Scatter, arrivals, found_in, guarded, once, packed
from planner.expr.context import Context
from planner.physical.nodes import Plan
from storage.dictionary import Dictionary
from storage.load.paths import spark_path
from storage.spark.blocks import RECORDS_DDL, REPORT, load_into, read_blocks
from storage.spark.errors import spark_error
from storage.spark.manifest import Layer

SMALL_LAYERS: Final = 4
"""The number of files beside a part's first one at which they are merged into one."""
_OWED: Final = REPORT - 1
"""The port number of what is owed to node 0; the following nodes count down from it."""
_REPORTS: Final = "report"
_DUE: Final = pa.schema([("due", pa.string()), ("place", pa.int64()), ("port", pa.int32()), ("data", pa.binary())])
_DUE_DDL: Final = f"due string, {RECORDS_DDL}"

Waiting = tuple[str, int, int, bytes]
"""A record with what it waits for: ("fragment.port.vector", place, port, bytes)."""


@dataclass(frozen=True, slots=True)
class Round:
    """One step as it runs on executors."""

    scatter: Scatter

    def first(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Runs level 0 over the sources' rows, for ``mapInArrow``."""
        dictionary = Dictionary(self.scatter.secret)
        for batch in batches:
            yield guarded(partial(self._run_first, found_in(batch), dictionary))

    def by_place(self) -> Callable[[pa.Table], pa.Table]:
        """The work at one place, for ``applyInArrow``, which would count a bound method's self as an argument."""

        def step(table: pa.Table) -> pa.Table:
            return self._step(table)

        return step

    def _step(self, table: pa.Table) -> pa.Table:
        place = int(table.column("place")[0].as_py())
        found = [record for batch in table.to_batches() for record in found_in(batch)]
        return pa.Table.from_batches([guarded(partial(self._run, place, found))])

    def _run_first(self, found: list[Found], dictionary: Dictionary) -> pa.RecordBatch:
        arrived, _ = arrivals(found, dictionary)
        first = self.scatter.cut.fragments[FIRST]
        ran = run_fragment(first, Context(dictionary), None, arrived, self.scatter.parts)
        return _records(self._waiting(((sent, sent.port) for sent in ran.sent), dictionary))

    def _run(self, place: int, found: list[Found]) -> pa.RecordBatch:
        scatter = self.scatter
        fragment = scatter.cut.fragments[place // scatter.parts]
        context = Context(Dictionary(scatter.secret))
        arrived, _ = arrivals(found, context.dictionary)
        if fragment.number == scatter.cut.output.number:
            made = scatter.keep(fragment, place, context, arrived)
            return _records([(_REPORTS, *record) for record in made])
        return _records(self._apply(fragment, place, context, arrived))

    def _apply(
        self, fragment: Fragment, place: int, context: Context, arrived: Mapping[NodeId, Block]
    ) -> list[Waiting]:  # fmt: skip
        scatter = self.scatter
        held, now = self._held(place)
        before = [self._read(layer, context) for layer in held]
        kept, made, before = self._merged(fragment, place, context, held, before, fresh=not now)
        came = {port: block for port, block in arrived.items() if port > _OWED}
        owed = {NodeId(_OWED - port): block for port, block in arrived.items() if port <= _OWED}
        so_far = [self._read(layer, context) for layer in now]
        ran = run_fragment(fragment, context, _by_trace(before), came, scatter.parts, False, scatter.vector, owed,
                           _by_trace(so_far), timed=True)  # fmt: skip
        layer = scatter.write(place, list(ran.traces), context.dictionary)
        arriving = sum(block.n for block in arrived.values())
        new = [*made, *([layer] if layer.rows else [])]
        report = scatter.report(place, fragment, arriving, ran.read, (*held, *now), (*kept, *now), *new)
        later = [(Sent(fragment.number, place % scatter.parts, node, block), _OWED - node) for node, block in ran.owed]
        sent = [(one, int(one.port)) for one in ran.sent]
        return [(_REPORTS, *report), *self._waiting([*sent, *later], context.dictionary)]

    def _held(self, place: int) -> tuple[list[Layer], list[Layer]]:
        """The part's files from before the job, and those from steps of this job."""
        layers = self.scatter.layers.get(place, ())
        mine = f"parts/{self.scatter.name}-"
        return [x for x in layers if not x.file.startswith(mine)], [x for x in layers if x.file.startswith(mine)]

    def _read(self, layer: Layer, context: Context) -> list[Block]:
        return read_blocks(Path(self.scatter.folder, layer.file), load_into(context.dictionary))

    def _merged(
        self, fragment: Fragment, place: int, context: Context, held: list[Layer], blocks: list[list[Block]],
        fresh: bool,
    ) -> tuple[list[Layer], list[Layer], list[list[Block]]]:  # fmt: skip
        """Merges some of a part's files when a job first touches it.

        Returns (the old files that stay, the new one if any, the contents of all of these).
        """
        first = _to_merge(held) if fresh else None
        if first is None:
            return held, [], blocks
        whole = settled(fragment, context, _by_trace(blocks[first:]))
        layer = self.scatter.write(place, whole, context.dictionary, before=True)
        return held[:first], [layer], [*blocks[:first], whole]

    def _waiting(self, sent: Iterable[tuple[Sent, int]], dictionary: Dictionary) -> list[Waiting]:
        """Packs updates into records by what they wait for. ``sent``: (updates, the records' port)."""
        found: dict[tuple[str, int], list[tuple[int, Block]]] = {}
        for one, port in sent:
            place = self.scatter.place(one.fragment, one.part)
            for vector, block in self._by_vector(one):
                found.setdefault((f"{one.fragment}.{port}.{vector}", place), []).append((port, block))
        return [(*at, *record) for at, blocks in found.items() for record in packed(blocks, dictionary)]

    def _by_vector(self, sent: Sent) -> Iterator[tuple[int, Block]]:
        scatter, loop = self.scatter, self.scatter.loops[sent.port]
        if loop is None or sent.fragment == scatter.cut.output.number:
            yield 0, sent.block
            return
        scopes = scatter.cut.fragments[sent.fragment].loops.scopes
        rows, times, diffs = sent.block.arrays()
        vectors = times & ((1 << all_bits(scopes[loop].shape)) - 1)
        for vector in np.unique(vectors).tolist():
            chosen = vectors == vector
            yield vector, Block.of(rows[chosen], times[chosen], diffs[chosen])


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


def _records(found: Sequence[Waiting]) -> pa.RecordBatch:
    columns = zip(*found, strict=True) if found else ((), (), (), ())
    arrays = [pa.array(column, f.type) for column, f in zip(columns, _DUE, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_DUE)


@dataclass(slots=True)
class _Run:
    """A job on the driver. ``waiting``: the files that wait for each ``Due``."""

    session: Any
    scatter: Scatter
    folder: Path
    rounds: Rounds
    waiting: dict[Due, list[str]] = field(default_factory=dict)
    reports: list[Report] = field(default_factory=list)

    def first(self, given: Path) -> None:
        """Runs the step that reads the job's input."""
        self._write([spark_path(given)], lambda frame: frame.mapInArrow(Round(self.scatter).first, _DUE_DDL))

    def step(self) -> None:
        """Runs what is due first. The output comes when nothing else is due."""
        output = self.scatter.cut.output.number
        inner = [due for due in self.waiting if due.fragment != output]
        dues = self.rounds.next(inner) if inner else list(self.waiting)
        paths = [path for due in dues for path in self.waiting.pop(due)]
        self.scatter = replace(self.scatter, step=self.scatter.step + 1, vector=dues[0].vector)
        scatter = self.scatter

        def place_by_place(frame: Any) -> Any:
            groups = frame.repartition(scatter.parts, "place").groupBy("place")
            return groups.applyInArrow(Round(scatter).by_place(), _DUE_DDL)

        self._write(paths, place_by_place)

    def _write(self, paths: Sequence[str], work: Callable[[Any], Any]) -> None:
        out = self.folder / str(self.scatter.step)
        try:
            frame = work(self.session.read.schema(RECORDS_DDL).parquet(*paths))
            frame.write.partitionBy("due").parquet(out.as_uri())
        except Exception as error:
            raise spark_error(error) from error
        for folder in sorted(out.glob("due=*")):
            due = folder.name.partition("=")[2]
            if due == _REPORTS:
                self._take(folder)
                continue
            fragment, port, vector = map(int, due.split("."))
            node, owed = (NodeId(port), False) if port > _OWED else (NodeId(_OWED - port), True)
            self.waiting.setdefault(Due(fragment, node, vector, owed), []).append(spark_path(folder))

    def _take(self, folder: Path) -> None:
        files = [pq.read_table(path, columns=["data"], partitioning=None) for path in sorted(folder.glob("*.parquet"))]
        told = once([Report.of(cell.as_py()) for file in files for cell in file["data"]])
        self.reports += told
        layers = dict(self.scatter.layers) | {report.place: report.layers for report in told}
        self.scatter = replace(self.scatter, layers=layers)


def run_rounds(session: Any, given: Path, scatter: Scatter, plan: Plan, stop: Callable[[], bool]) -> list[Report]:
    """Runs all steps and returns their reports in order; a place's last report says which files it consists of.

    57014: ``stop`` was true. Otherwise raises like ``planner.distributed.scatter.apply``.
    """
    run = _Run(session, scatter, given.parent, Rounds(plan, scatter.cut))
    run.first(given)
    while run.waiting:
        if stop():
            raise SqlError("57014", "the view is gone")
        run.step()
    return run.reports
