"""Physical plan → frames of words that Spark exchanges: the contents of every arrangement, without the engine.

The plan is cut where rows of one key must meet (``planner.fragment``). Each level is one job: its frame of blocks is
partitioned by key, and a task runs its fragments by the engine's own operators, in a small dataflow over its part
(``planner.spark_work``). What traces hold is written to a folder that the executors share with the server, and what
goes on to the next levels' frames. So nothing is computed twice in two ways, and nothing but exchange is Spark's.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow.parquet as pq

from ivm.batch import Block
from ivm.errors import SqlError
from ivm.fill import Standing
from ivm.graph import AsOf, Join, NodeId, Threshold
from planner.context import Context
from planner.fragment import FIRST, Cut, Fragment, cut
from planner.physical import Group, Plan, inputs
from planner.spark_work import FRAME, VALUES, Environment, Work, output_folder, pack_values, read_values, trace_folder
from planner.unfold import Unfolded, unfold
from storage.dictionary import Dictionary
from storage.load.paths import spark_path
from storage.spark.errors import spark_error
from storage.spark.runs import read_block, write_block
from storage.spark.session import SparkSession

PART_ROWS: Final = 500_000
"""Updates of the sources for each part."""
LEAST_PARTS: Final = 2
MOST_PARTS: Final = 256
SLICE_ROWS: Final = 1 << 19
_SEEN_AT_ONCE: Final = 1 << 20

Progress = Callable[[str, int, int, int], None]
"""Called as a step begins: what it is (a node, a round), how many there are, which one this is, updates so far."""


@dataclass(slots=True)
class Contents:
    """What Spark has left in its folder, by the plan's numbers."""

    folder: Path
    places: dict[NodeId, NodeId]

    def arranged(self, node: NodeId) -> Iterator[Block]:
        """An arrangement's contents: sorted, consolidated blocks, their sum. Times are loop vectors."""
        place = self.places.get(node)
        return iter(()) if place is None else _blocks(trace_folder(self.folder, place))

    def output(self, node: NodeId) -> Iterator[Block]:
        """The plan's rows, or its errors, as ``arranged`` has it."""
        return _blocks(output_folder(self.folder, self.places[node]))


def _blocks(folder: Path) -> Iterator[Block]:
    for path in sorted(folder.glob("*.words")):
        yield read_block(path)


@dataclass(slots=True)
class Hydration:
    """One plan on its way through Spark. ``given``: the contents of nodes that are there already, and of those whose
    rows no other node makes; ``cancel``, set from any thread, ends it with 57014."""

    spark: SparkSession
    plan: Plan
    context: Context
    folder: Path
    cancel: threading.Event = field(default_factory=threading.Event)
    progress: Progress = lambda what, number, done, updates: None
    _unfolded: Unfolded | None = None
    _cut: Cut | None = None
    _step: int = 0
    _updates: int = 0
    _slices: list[tuple[NodeId, Path]] = field(default_factory=list)
    _values: list[Path] = field(default_factory=list)
    _due: dict[int, list[Path]] = field(default_factory=dict)

    def take(self, given: Mapping[NodeId, Standing], others: Collection[NodeId]) -> None:
        """Writes what comes from outside: ``given`` nodes' contents; ``others`` are empty."""
        unfolded = self._unfolded = unfold(self.plan, {*given, *others})
        found = {unfolded.sources[node]: standing for node, standing in given.items() if node in unfolded.sources}
        weights = {source: standing.diff_width for source, standing in found.items()}
        self._cut = cut(unfolded.plan, unfolded.kept, weights)
        for source, standing in found.items():
            self._write_source(source, standing.contents())
        self.check()

    def _write_source(self, source: NodeId, block: Block) -> None:
        rows, _, diffs = block.arrays()
        self._write_values(source, rows)
        for k, start in enumerate(range(0, block.n, SLICE_ROWS)):
            self.check()
            stop = min(start + SLICE_ROWS, block.n)
            path = self.folder / "sources" / f"{source}-{k}.words"
            write_block(path, Block.of(rows[start:stop], np.zeros(stop - start, np.int64), diffs[start:stop]))
            self._slices.append((source, path))
        self._updates += block.n

    def _write_values(self, source: NodeId, rows: Any) -> None:
        """The values of all words that are ids. A number that happens to be one too does no harm."""
        dictionary = self.context.dictionary
        words: Any = np.zeros(0, np.int64)
        for column in range(rows.shape[1]):
            for start in range(0, len(rows), _SEEN_AT_ONCE):
                self.check()
                some = np.unique(rows[start : start + _SEEN_AT_ONCE, column])
                words = np.union1d(words, some[dictionary.living(some)])
        if len(words):
            path = self.folder / "values" / f"{source}.values"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(pack_values((words, *dictionary.packed(words))))
            self._values.append(path)

    def check(self) -> None:
        """Raises 57014 once it is cancelled."""
        if self.cancel.is_set():
            raise SqlError("57014", "canceling statement due to user request")

    def run(self) -> Contents:
        """All contents. 57014; 58000 where Spark is missing or fails, and what an operator raises.

        New values are in the context's dictionary afterwards, under the ids that contents have for them.
        """
        assert self._cut is not None
        assert self._unfolded is not None
        with self.spark as session, self._cancelled(session):
            for level in range(self._cut.levels - 1):
                self.check()
                self._run_level(session, level)
        self._take_values()
        return Contents(self.folder, {old: new for new, old in self._unfolded.origin.items()})

    @contextmanager
    def _cancelled(self, session: Any) -> Iterator[None]:
        """Lets a cancel end the jobs that run."""
        tag, ended = f"freshet-{uuid.uuid4().hex}", threading.Event()

        def watch() -> None:
            while not ended.wait(0.05):
                if self.cancel.is_set():
                    session.interruptTag(tag)
                    return

        session.addTag(tag)
        watcher = threading.Thread(target=watch, name="freshet-spark-cancel", daemon=True)
        watcher.start()
        try:
            yield
        except SqlError:
            self.check()  # whatever an interrupted job says of itself
            raise
        finally:
            ended.set()
            watcher.join()
            session.removeTag(tag)

    @property
    def parts(self) -> int:
        """Into how many parts keys are hashed."""
        rows = sum(path.stat().st_size // 8 for _, path in self._slices) // 4
        return min(max(LEAST_PARTS, -(-rows // PART_ROWS)), MOST_PARTS)

    def _run_level(self, session: Any, level: int) -> None:
        assert self._cut is not None
        fragments = tuple(f for f in self._cut.fragments[:-1] if f.level == level)
        paths = self._due.pop(level, [])
        if (level and not paths) or (not level and not self._slices):
            return
        self.progress(_what(fragments), self._cut.levels - 1, level, self._updates)
        work = self._work(fragments)
        out = self.folder / "frames" / str(self._step)
        try:
            frame = self._slices_frame(session) if not level else self._frame(session, paths)
            frame.mapInArrow(work, FRAME).write.partitionBy("due").parquet(out.as_uri())
        except Exception as error:
            raise spark_error(error) from error
        self._step += 1
        self._file(out)

    def _work(self, fragments: tuple[Fragment, ...]) -> Work:
        assert self._cut is not None
        context = self.context
        environment = Environment(
            context.dictionary.secret, tuple(self._values), context.parameters,
            context.now, context.statement_now, context.timezone, context.epoch, context.formats,
        )  # fmt: skip
        levels = (*(f.level for f in self._cut.fragments[:-1]), -1)
        slices = tuple(self._slices) if fragments[0].number == FIRST else ()
        kept = tuple(self._kept(f) for f in fragments)
        return Work(fragments, self.parts, self.folder, self._step, environment, slices, kept, levels)

    def _kept(self, fragment: Fragment) -> tuple[tuple[int, NodeId], ...]:
        """Which of a fragment's traces are wanted; an arrangement that several have is the first one's."""
        assert self._cut is not None
        if fragment.number == FIRST:
            return ()
        before = {n for f in self._cut.fragments[1 : fragment.number] for n in traced(f)}
        return tuple((i, n) for i, n in enumerate(traced(fragment)) if n not in before)

    def _slices_frame(self, session: Any) -> Any:
        count = len(self._slices)
        return session.range(0, count, 1, count)

    def _frame(self, session: Any, paths: Sequence[Path]) -> Any:
        frame = session.read.schema(FRAME).parquet(*[spark_path(path) for path in paths])
        return frame.repartitionById(self.parts, "part")

    def _file(self, out: Path) -> None:
        """Notes what a step has left: frames for later levels, and values."""
        for folder in sorted(out.glob("due=*")):
            due = folder.name.partition("=")[2]
            if due == VALUES:
                self._values += sorted(folder.glob("*.parquet"))
                continue
            self._due.setdefault(int(due), []).append(folder)
            for path in folder.glob("*.parquet"):
                counts = pq.read_table(path, columns=["rows"], partitioning=None)["rows"].to_numpy()
                self._updates += int(counts.sum())

    def _take_values(self) -> None:
        """The values that executors have interned, which have their ids from the same rule as here."""
        for path in self._values:
            if path.suffix == ".parquet":
                take_values(self.context.dictionary, path)


def take_values(dictionary: Dictionary, path: Path) -> None:
    """Interns a file's values. IdsClashError: one of them has another id here."""
    for ids, data, offsets in read_values(path):
        if not np.array_equal(dictionary.intern_packed(data, offsets), ids):
            raise IdsClashError


class IdsClashError(Exception):
    """An id that an executor proposed for a value is another's already: once in 2^63 pairs."""


def traced(fragment: Fragment) -> list[NodeId]:
    """The nodes whose contents a fragment's traces are, in their order."""
    found = [port.node for port in fragment.ports]
    read = {i for _, n in fragment.nodes if isinstance(n, Join | AsOf | Group | Threshold) for i in inputs(n)}
    return found + [i for i, n in fragment.nodes if isinstance(n, Group | Threshold) and i in read]


def _what(fragments: Sequence[Fragment]) -> str:
    """A step in a few words: what its operators are."""
    if fragments[0].number == FIRST:
        return "read"
    kinds = dict.fromkeys(type(n).__name__ for f in fragments for _, n in f.nodes if isinstance(n, _SHOWN))
    return ", ".join(kinds) or "Arrange"


_SHOWN: Final = (Join, AsOf, Group, Threshold)
