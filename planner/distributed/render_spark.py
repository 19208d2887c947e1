"""Runs a physical plan on Spark: computes the contents of every arrangement without the server's engine.

The plan is cut where rows of one key must meet (``planner.distributed.fragment``). Each level is a stage: its frame of
blocks is partitioned by key, and each task runs the level's fragments with the engine's own operators, in a small
dataflow over its part (``planner.distributed.spark_work``). What traces hold is written to a folder that the executors
share with the server; the rest goes to later levels. One job runs all stages, unless there are loops: then a job runs
some of the steps (``planner.distributed.multi_step``), and frames wait in files for later ones. So there is one
implementation of each operator, and Spark does only the exchange.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from ivm.errors import SqlError
from ivm.graph import Arranged, Keyed, NodeId
from ivm.hydration.adopt import Contents, Standing
from ivm.specs import inputs
from ivm.time import unpack
from ivm.trace.batch import Block
from planner.distributed.fragment import FIRST, Cut, Fragment, cut
from planner.distributed.multi_step import Turns, ahead
from planner.distributed.rounds import Due, Rounds
from planner.distributed.spark_sources import Sources
from planner.distributed.spark_work import (
    FRAME,
    Environment,
    Work,
    output_folder,
    part_folder,
    told_folder,
    values_folder,
)
from planner.distributed.unfold import Unfolded, unfold
from planner.expr.context import Context
from planner.physical.nodes import Group, Plan, innermost_loops
from planner.physical.required_words import required_words
from storage.dictionary import Dictionary, Entries
from storage.load.paths import spark_path
from storage.spark.blocks import read_block, read_blocks
from storage.spark.errors import spark_error
from storage.spark.session import SparkSession, parallelism, steady

PART_ROWS: Final = 2_500_000
"""The most source updates, of four words, for each part: so the server has few runs to merge later."""
TASK_ROWS: Final = 100_000
"""The source updates from which a task of its own pays."""
LEAST_PARTS: Final = 2
MOST_PARTS: Final = 256

MOST_STAGES: Final = 16
"""The most steps of a loop in one job."""
FEW_UPDATES: Final = 1 << 18
"""If a job's steps receive at most this many updates, its own overhead dominates and the next job gets more steps."""
FEW_BYTES: Final = 1 << 22
"""The most bytes of frames that a job takes along although it may not use them."""

_LOOK_SECONDS: Final = 0.05

Progress = Callable[[str, int, int, int], None]
"""Called as a step begins: (what it is: a node, a round; the number of steps; this step's index; updates so far)."""


@dataclass(slots=True)
class Made:
    """The contents that Spark has left in its folder, by the plan's numbers.

    Blocks are sorted and consolidated, but must be added up; times are loop vectors.
    """

    folder: Path
    places: dict[NodeId, NodeId]
    traces: dict[NodeId, list[tuple[int, int]]]

    def arranged(self, node: NodeId) -> list[Contents]:
        """An arrangement's contents; for a reduce in a loop, followed by its errors by key."""
        found = self.traces.get(self.places[node], []) if node in self.places else []
        return [partial(_blocks, part_folder(self.folder, *trace, "*")) for trace in found]

    def output(self, node: NodeId) -> list[Contents]:
        """The plan's rows, or its errors."""
        return [partial(_blocks, output_folder(self.folder, self.places[node]))]


def _blocks(folder: Path) -> Iterator[Block]:
    for path in sorted(folder.parent.glob(f"{folder.name}/*.arrow")):
        yield read_block(path)


@dataclass(frozen=True, slots=True)
class Step:
    """A step of some fragments.

    ``what``: its description ("": not known yet); ``level``: the highest of their levels.
    """

    number: int
    what: str = ""
    level: int = 0


@dataclass(slots=True)
class Hydration:
    """One plan's hydration by Spark. ``cancel``, set from any thread, ends it with 57014."""

    spark: SparkSession
    plan: Plan
    context: Context
    folder: Path
    cancel: threading.Event = field(default_factory=threading.Event)
    progress: Progress = lambda what, number, done, updates: None
    _unfolded: Unfolded | None = None
    _cut: Cut | None = None
    _sources: Sources | None = None
    _parts: int = LEAST_PARTS
    _steps: int = 0
    _at: tuple[tuple[Step, ...], int] = ((), 0)
    _waiting: dict[Due, list[Path]] = field(default_factory=dict)

    def take(self, given: Mapping[NodeId, Standing], others: Collection[NodeId]) -> None:
        """Writes the sources: ``given`` nodes have these contents, ``others`` are empty."""
        unfolded = self._unfolded = unfold(self.plan, {*given, *others})
        found = {node: source for node, source in unfolded.sources.items() if node in given}
        weights = {source: given[node].diff_width for node, source in found.items()}
        self._cut = cut(unfolded.plan, unfolded.kept, weights)
        self._sources = Sources(self.plan, self.context.dictionary, self.folder, self.check)
        read = required_words(unfolded.plan, unfolded.kept)
        for node, source in found.items():
            self.progress("write", self._cut.levels - 1, 0, self._sources.updates)
            self._sources.write(source, node, given[node], tuple(sorted(read[source])) or (0,))
        self.check()

    def check(self) -> None:
        """Raises 57014 once the hydration is cancelled."""
        if self.cancel.is_set():
            raise SqlError("57014", "canceling statement due to user request")

    def run(self) -> Made:
        """Computes all contents. 57014; 58000: Spark is missing or fails; and what an operator raises.

        Afterwards new values are in the context's dictionary, under the ids that the contents use.
        """
        assert self._cut is not None
        assert self._unfolded is not None
        assert self._sources is not None
        if self._sources.slices:
            self.progress("wait for Spark", self._cut.levels - 1, 0, self._sources.updates)
            with self.spark as given:
                with _as_ours():
                    session = steady(given)
                    self._parts = parts(self._sources.words // 4, parallelism(session))
                with self._watched(session):
                    if self._unfolded.plan.scopes:
                        self._go_round(session, Rounds(self._unfolded.plan, self._cut))
                    else:
                        self._go_through(session)
            self.check()
        self._take_values()
        places = {old: new for new, old in self._unfolded.origin.items()}
        return Made(self.folder, places, self._traced())

    def _traced(self) -> dict[NodeId, list[tuple[int, int]]]:
        """For each arrangement, the traces (fragment, number) that have its contents."""
        assert self._cut is not None
        found: dict[NodeId, list[tuple[int, int]]] = {}
        for fragment in self._cut.fragments[1:-1]:
            mine: dict[NodeId, list[tuple[int, int]]] = {}
            for i, node in enumerate(traced(fragment, self._loops)):
                mine.setdefault(node, []).append((fragment.number, i))
            found = mine | found
        return found

    @contextmanager
    def _watched(self, session: Any) -> Iterator[None]:
        """While it is open, cancelling interrupts the running jobs, and progress is reported."""
        tag, ended = f"freshet-{uuid.uuid4().hex}", threading.Event()

        def watch() -> None:
            while not ended.wait(_LOOK_SECONDS):
                if self.cancel.is_set():
                    session.interruptTag(tag)
                    return
                self._tell()

        with _as_ours():
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
            with _as_ours():  # its JVM may have died
                session.removeTag(tag)

    def _begin(self, steps: Sequence[Step], updates: int) -> None:
        """Records the next job's steps, and the updates that earlier steps received."""
        self._at = tuple(steps), updates
        self._tell()

    def _tell(self) -> None:
        """Reports the last step of the job that has begun, and the updates received so far."""
        assert self._cut is not None
        steps, updates = self._at
        begun = [step for step in steps if told_folder(self.folder, step.number).exists()] or steps[:1]
        for step in begun:
            updates += told(told_folder(self.folder, step.number))
        known = (step if step.what else self._seen(step.number) for step in reversed(begun))
        for step in [*filter(None, known)][:1]:
            self.progress(step.what, self._cut.levels - 1, step.level, updates)

    def _seen(self, number: int) -> Step | None:
        """Describes a step by what one of its parts has reported; None: none has."""
        assert self._cut is not None
        done = next(told_folder(self.folder, number).glob("*-*"), None)
        if done is None:
            return None
        due = Due.parse(done.name.rsplit("-", 2)[0])
        fragment = self._cut.fragments[due.fragment]
        return Step(number, self._what((fragment,), [due]), fragment.level)

    def _go_through(self, session: Any) -> None:
        """Runs a plan without loops: one job, whose stages are the levels."""
        assert self._cut is not None
        assert self._sources is not None
        steps: list[Step] = []
        works: list[Work] = []
        for level in range(self._cut.output.level):
            fragments = tuple(f for f in self._cut.fragments if f.level == level)
            if fragments:
                steps.append(self._step(fragments, []))
                works.append(self._work(steps[-1].number, fragments))
        self._begin(steps, self._sources.updates)
        with _as_ours():
            frame = self._chained(self._slices_frame(session).mapInArrow(works[0], FRAME), works[1:])
            frame.write.format("noop").mode("overwrite").save()

    def _chained(self, frame: Any, works: Sequence[Work]) -> Any:
        """One ``Work`` after another, with an exchange by part before each."""
        for work in works:
            frame = frame.repartitionById(self._parts, "part").mapInArrow(work, FRAME)
        return frame

    def _go_round(self, session: Any, rounds: Rounds) -> None:
        """Runs a plan with loops: job after job, whose frames wait in files for the next ones.

        A job gets more steps if the one before had few updates.
        """
        assert self._cut is not None
        assert self._sources is not None
        first = self._cut.fragments[FIRST]
        self._begin([self._step((first,), [])], self._sources.updates)
        work = self._work(self._steps, (first,))
        self._run_job(lambda: self._slices_frame(session).mapInArrow(work, FRAME))
        stages = 1
        while self._waiting:
            self.check()
            before = self._at[1]
            used = self._go_on(session, rounds, stages)
            stages = min(2 * used, MOST_STAGES) if self._at[1] - before <= FEW_UPDATES else 1

    def _go_on(self, session: Any, rounds: Rounds, stages: int) -> int:
        """Runs a job of ``stages`` steps; returns in how many of them something was due."""
        assert self._cut is not None
        due = rounds.next(self._waiting)
        here = self._here(due, rounds, stages)
        paths = [path for d in here for path in self._waiting.pop(d)]
        keyed = self._cut.fragments[1:-1]
        fragments = keyed if stages > 1 else tuple(f for f in keyed if f.number in {d.fragment for d in due})
        steps = [self._step([self._cut.fragments[d.fragment] for d in due], due)]
        steps += [self._unknown_step() for _ in range(stages - 1)]
        first = Turns(rounds, frozenset(here), frozenset(self._waiting), 0, stages == 1)
        turns = (replace(first, stage=i, last=i == stages - 1) for i in range(stages))
        works = [self._work(step.number, fragments, one) for step, one in zip(steps, turns, strict=True)]
        self._begin(steps, self._at[1])
        self._run_job(lambda: self._chained(self._frame(session, paths), works))
        return sum(any(told_folder(self.folder, step.number).iterdir()) for step in steps)

    def _here(self, due: list[Due], rounds: Rounds, stages: int) -> list[Due]:
        """What a job has in its frames: what is due, and what its later steps will take, if that is little."""
        found, size = list(due), 0
        for one in ahead(rounds, self._waiting, stages)[len(due) :]:
            size += sum(file.stat().st_size for path in self._waiting[one] for file in path.iterdir())
            if size > FEW_BYTES:
                break
            found.append(one)
        return found

    def _run_job(self, frame: Callable[[], Any]) -> None:
        """Writes what a job's last step leaves, and records which frames wait for later jobs."""
        out = self.folder / "frames" / str(self._steps)
        with _as_ours():
            frame().write.partitionBy("due").parquet(out.as_uri())
        steps, updates = self._at
        self._begin((), updates + sum(told(told_folder(self.folder, step.number)) for step in steps))
        for folder in out.glob("due=*"):
            self._waiting.setdefault(Due.parse(folder.name.partition("=")[2]), []).append(folder)

    def _step(self, fragments: Sequence[Fragment], due: Sequence[Due]) -> Step:
        """The next step: its number, description and level."""
        self._steps += 1
        return Step(self._steps, self._what(fragments, due), max(f.level for f in fragments))

    def _unknown_step(self) -> Step:
        self._steps += 1
        return Step(self._steps)

    def _work(self, step: int, fragments: tuple[Fragment, ...], turns: Turns | None = None) -> Work:
        assert self._cut is not None
        assert self._sources is not None
        context = self.context
        environment = Environment(
            context.dictionary.secret, self.folder, context.parameters,
            context.now, context.statement_now, context.timezone, context.epoch, context.formats,
        )  # fmt: skip
        slices = tuple(self._sources.slices) if fragments[0].number == FIRST else ()
        traces = tuple(len(traced(f, self._loops)) if f.number else 0 for f in fragments)
        again = tuple(any(port.scope is not None for port in f.ports) for f in fragments)
        wanted = {trace for found in self._traced().values() for trace in found}
        kept = tuple(
            frozenset(i for i in range(count) if more or (f.number, i) in wanted)
            for f, count, more in zip(fragments, traces, again, strict=True)
        )
        output = self._cut.output.number
        return Work(
            fragments, self._parts, self.folder, step, environment, output, slices, traces, kept, again, turns
        )  # fmt: skip

    @property
    def _loops(self) -> list[int | None]:
        assert self._unfolded is not None
        return innermost_loops(self._unfolded.plan)

    def _what(self, fragments: Sequence[Fragment], due: Sequence[Due]) -> str:
        """Describes a step: its operators, and the rounds of the loops that contain it, outermost first."""
        if fragments[0].number == FIRST:
            return "read"
        kinds = dict.fromkeys(type(n).__name__ for f in fragments for _, n in f.nodes if isinstance(n, Keyed))
        what, loop = ", ".join(kinds) or "Arrange", self._loops[due[0].node] if due else None
        if loop is None:
            return what
        assert self._unfolded is not None
        rounds = unpack(due[0].vector, self._unfolded.plan.scopes[loop].shape)[1:]
        return f"{what}, round {'.'.join(map(str, rounds))}"

    def _slices_frame(self, session: Any) -> Any:
        assert self._sources is not None
        count = len(self._sources.slices)
        return session.range(0, count, 1, count)

    def _frame(self, session: Any, paths: Sequence[Path]) -> Any:
        return session.read.schema(FRAME).parquet(*[spark_path(path) for path in paths])

    def _take_values(self) -> None:
        """Takes over the values that executors have interned; ids follow the same rule here."""
        for number in range(1, self._steps + 1):
            for path in sorted(values_folder(self.folder, number).glob("*.arrow")):
                read_blocks(path, partial(take_values, self.context.dictionary))


def take_values(dictionary: Dictionary, entries: Entries) -> None:
    """Interns values from executors. IdsClashError: one of them has another id here."""
    ids, data, offsets = entries
    if not np.array_equal(dictionary.intern_packed(data, offsets), ids):
        raise IdsClashError


class IdsClashError(Exception):
    """An id that an executor proposed for a value belongs to another value: once in 2^63 pairs."""


def parts(rows: int, tasks: int) -> int:
    """The number of parts to hash keys into, for sources of ``rows`` rows and ``tasks`` concurrent tasks."""
    wanted = max(-(-rows // PART_ROWS), min(tasks, rows // TASK_ROWS))
    return min(max(LEAST_PARTS, wanted), MOST_PARTS)


def told(folder: Path) -> int:
    """The number of updates that a step's finished parts have received."""
    return sum(int(path.name.rpartition("-")[2]) for path in folder.glob("*-*"))


@contextmanager
def _as_ours() -> Iterator[None]:
    """Raises Spark's errors as SqlErrors."""
    try:
        yield
    except Exception as error:
        raise spark_error(error) from error


def traced(fragment: Fragment, loops: Sequence[int | None]) -> list[NodeId]:
    """The nodes whose contents a fragment's traces are, in order. ``loops``: the innermost loop of each node.

    A reduce in a loop has two traces; the second holds its errors.
    """
    found = [port.node for port in fragment.ports if fragment.keyed]
    read = {i for _, n in fragment.nodes if isinstance(n, Keyed) for i in inputs(n)}
    for number, node in fragment.nodes:
        if isinstance(node, Arranged) and (loops[number] is not None or number in read):
            found += [number] * (1 + (isinstance(node, Group) and loops[number] is not None))
    return found
