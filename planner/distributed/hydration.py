"""Hydration by Spark: computes the contents of a new view's nodes, which are made beside the running engine."""

from __future__ import annotations

import shutil
import tempfile
import threading
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from ivm.errors import SqlError
from ivm.graph import Arranged, Errors, Keyed, NodeId
from ivm.hydration.adopt import Contents, Standing, fill, keeping, standing
from ivm.hydration.detached import Detached
from ivm.rows import Words
from ivm.specs import inputs
from ivm.trace.batch import Block
from planner.distributed.file_store import (
    FileStore,
    FragmentTraces,
    output_folder,
    part_folder,
    values_folder,
)
from planner.distributed.fragment import Cut, Fragment, cut
from planner.distributed.progress import Progress, Steps
from planner.distributed.runner import Runner
from planner.distributed.sources import Sources
from planner.distributed.unfold import Unfolded, unfold
from planner.expr.context import Context
from planner.physical.nodes import Constants, Group, LoopVariable, Plan, innermost_loops, reached
from planner.physical.required_words import required_words
from planner.render.dataflow import Installed, constant_rows
from storage.spark.blocks import read_block, read_blocks, take_into
from storage.spark.errors import spark_errors
from storage.spark.session import SparkSession, parallelism, steady

PART_ROWS: Final = 2_500_000
"""The most source updates, of four words, for each part: so the server has few runs to merge later."""
TASK_ROWS: Final = 100_000
"""The source updates from which a task of its own pays."""
LEAST_PARTS: Final = 2
MOST_PARTS: Final = 256

_LOOK_SECONDS: Final = 0.05
_SETTINGS: Final = ("parameters", "now", "statement_now", "timezone", "epoch", "formats")
"""The fields of a context that executors need, beside a dictionary."""


def hydrate_by_spark(
    flow: Detached, plan: Plan, installed: Installed, spark: SparkSession, context: Context,
    cancel: threading.Event, progress: Progress,
) -> None:  # fmt: skip
    """Replaces the first ``flow.run``. 57014, 53200; 58000: Spark is missing or fails; IdsClashError."""
    folder = Path(tempfile.mkdtemp(prefix="freshet-hydrate-", dir=spark.settings.shared))
    try:
        border = Border(flow, plan, installed.places, context)
        border.find()
        hydration = Hydration(spark, plan, context, folder, border.given, border.absent, cancel, progress)
        hydration.run()
        contents: dict[NodeId, list[Contents]] = {}
        for number, node in enumerate(installed.places):
            if node is not None and keeping(flow, node):
                contents[node] = hydration.arranged(NodeId(number))
        contents[installed.output] = hydration.output(plan.rows)
        if installed.errors is not None:
            assert plan.errors is not None
            contents[installed.errors] = hydration.output(plan.errors)
        fill(flow, contents)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(slots=True)
class Border:
    """The border of what must be computed.

    ``given``: nodes with existing contents; ``absent``: error collections that do not exist.
    """

    flow: Detached
    plan: Plan
    places: tuple[NodeId | None, ...]
    context: Context
    given: dict[NodeId, Standing] = field(default_factory=dict)
    absent: set[NodeId] = field(default_factory=set)

    def find(self) -> None:
        """Walks from the plan's roots to the border."""
        reached(self.plan, self._is_there)

    def _is_there(self, number: NodeId) -> bool:
        node, place = self.plan.nodes[number], self.places[number]
        if place is None:
            self.absent.add(number)
            return True
        constants = self.plan.nodes[node.input] if isinstance(node, Errors) else node
        if isinstance(constants, Constants):
            rows, errors = constant_rows(constants.rows, constants.schema, self.context)
            self.given[number] = Standing(partial(_once, errors if isinstance(node, Errors) else rows))
            return True
        found = standing(self.flow, place)
        if found is not None:
            self.given[number] = found
        assert found is not None or inputs(node) or isinstance(node, LoopVariable), "rows that nobody has"
        return found is not None


def _once(rows: Words, most: int) -> Iterator[Block]:
    for start in range(0, len(rows), most):
        some = rows[start : start + most]
        yield Block.of(some, np.zeros(len(some), np.int64), np.ones(len(some), np.int64))


@dataclass(slots=True)
class Hydration:
    """One plan's hydration by Spark: ``given`` nodes have these contents, ``absent`` ones are empty.

    ``cancel``, set from any thread, ends it with 57014. ``folder``: shared with the executors; afterwards it has the
    contents, in sorted and consolidated blocks, whose times are loop vectors.
    """

    spark: SparkSession
    plan: Plan
    context: Context
    folder: Path
    given: Mapping[NodeId, Standing]
    absent: Collection[NodeId]
    cancel: threading.Event = field(default_factory=threading.Event)
    progress: Progress = lambda what, number, done, updates: None
    steps: Steps = field(init=False)
    _unfolded: Unfolded = field(init=False)
    _cut: Cut = field(init=False)
    _nodes: dict[NodeId, NodeId] = field(init=False)
    """The unfolded plan's node for each of the plan's."""
    _traces: dict[NodeId, list[tuple[int, int]]] = field(init=False)
    """The traces (fragment, number) that have an arrangement's contents, by the unfolded plan's nodes."""

    def __post_init__(self) -> None:
        unfolded = self._unfolded = unfold(self.plan, {*self.given, *self.absent})
        weights = {new: self.given[old].diff_width for old, new in unfolded.sources.items() if old in self.given}
        self._cut = cut(unfolded.plan, unfolded.kept, weights)
        self._nodes = {old: new for new, old in unfolded.origin.items()}
        self._traces = self._traced()
        self.steps = Steps(self.folder, unfolded.plan, self._cut, self.progress)

    def check(self) -> None:
        """Raises 57014 once the hydration is cancelled."""
        if self.cancel.is_set():
            raise SqlError("57014", "canceling statement due to user request")

    def run(self) -> None:
        """Computes all contents. 57014; 58000: Spark is missing or fails; and what an operator raises.

        Afterwards new values are in the context's dictionary, under the ids that the contents use. IdsClashError: an
        executor's id belongs to another value here.
        """
        sources = self._written()
        if sources.slices:
            self.progress("wait for Spark", self._cut.levels - 1, 0, sources.updates)
            with self.spark as given:
                with spark_errors():
                    session = steady(given)
                    count = parts(sources.words // 4, parallelism(session))
                with self._watched(session):
                    plan, output = self._unfolded.plan, self._cut.output
                    settings = {name: getattr(self.context, name) for name in _SETTINGS}
                    secret = self.context.dictionary.secret
                    store = FileStore(self.folder, secret, settings, self._fragments(), output.number)
                    runner = Runner(session, plan, self._cut, count, count, self.folder, store, self.steps, self.check)
                    runner.run(sources.slices, output.level)
            self.check()
        for step in range(1, self.steps.count + 1):
            for path in sorted(values_folder(self.folder, step).glob("*.arrow")):
                read_blocks(path, take_into(self.context.dictionary))

    def arranged(self, node: NodeId) -> list[Contents]:
        """An arrangement's contents; for a reduce in a loop, followed by its errors by key."""
        found = self._traces.get(self._nodes[node], []) if node in self._nodes else []
        return [partial(_blocks, part_folder(self.folder, *trace, "*")) for trace in found]

    def output(self, node: NodeId) -> list[Contents]:
        """The plan's rows, or its errors."""
        return [partial(_blocks, output_folder(self.folder, self._nodes[node]))]

    def _written(self) -> Sources:
        """Writes the rows of the sources."""
        unfolded = self._unfolded
        found = Sources(self.plan, self.context.dictionary, self.folder, self.check)
        read = required_words(unfolded.plan, unfolded.kept)
        for node, source in unfolded.sources.items():
            if node in self.given:
                self.progress("write", self._cut.levels - 1, 0, found.updates)
                found.write(source, node, self.given[node], tuple(sorted(read[source])) or (0,))
        self.check()
        self.steps.running = (), found.updates
        return found

    def _traced(self) -> dict[NodeId, list[tuple[int, int]]]:
        found: dict[NodeId, list[tuple[int, int]]] = {}
        for fragment in self._cut.fragments[1:-1]:
            mine: dict[NodeId, list[tuple[int, int]]] = {}
            for i, node in enumerate(traced(fragment, innermost_loops(self._unfolded.plan))):
                mine.setdefault(node, []).append((fragment.number, i))
            found = mine | found
        return found

    def _fragments(self) -> tuple[FragmentTraces, ...]:
        """What is written of each fragment's traces: what later steps read, and one trace for each arrangement."""
        wanted = {trace for traces in self._traces.values() for trace in traces}
        loops, found = innermost_loops(self._unfolded.plan), []
        for fragment in self._cut.fragments:
            count = len(traced(fragment, loops)) if fragment.keyed else 0
            again = any(port.scope is not None for port in fragment.ports)
            written = frozenset(i for i in range(count) if again or (fragment.number, i) in wanted)
            found.append(FragmentTraces(count, written, again))
        return tuple(found)

    @contextmanager
    def _watched(self, session: Any) -> Iterator[None]:
        """While it is open, cancelling interrupts the running jobs, and progress is reported."""
        tag, ended = f"freshet-{uuid.uuid4().hex}", threading.Event()

        def watch() -> None:
            while not ended.wait(_LOOK_SECONDS):
                if self.cancel.is_set():
                    session.interruptTag(tag)
                    return
                self.steps.tell()

        with spark_errors():
            session.addTag(tag)
        watcher = threading.Thread(target=watch, name="freshet-spark-watch", daemon=True)
        watcher.start()
        try:
            yield
        except SqlError:
            self.check()  # takes precedence over what an interrupted job reports
            raise
        finally:
            ended.set()
            watcher.join()
            with spark_errors():  # its JVM may have died
                session.removeTag(tag)


def parts(rows: int, tasks: int) -> int:
    """The number of parts to hash keys into, for sources of ``rows`` rows and ``tasks`` concurrent tasks."""
    wanted = max(-(-rows // PART_ROWS), min(tasks, rows // TASK_ROWS))
    return min(max(LEAST_PARTS, wanted), MOST_PARTS)


def traced(fragment: Fragment, loops: list[int | None]) -> list[NodeId]:
    """The nodes whose contents a fragment's traces are, in order. ``loops``: the innermost loop of each node.

    A reduce in a loop has two traces; the second holds its errors.
    """
    found = [port.node for port in fragment.ports if fragment.keyed]
    read = {i for _, n in fragment.nodes if isinstance(n, Keyed) for i in inputs(n)}
    for number, node in fragment.nodes:
        if isinstance(node, Arranged) and (loops[number] is not None or number in read):
            found += [number] * (1 + (isinstance(node, Group) and loops[number] is not None))
    return found


def _blocks(folder: Path) -> Iterator[Block]:
    for path in sorted(folder.parent.glob(f"{folder.name}/*.arrow")):
        yield read_block(path)
