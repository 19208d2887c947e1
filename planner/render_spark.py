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
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow.parquet as pq

from ivm.batch import Block
from ivm.errors import SqlError
from ivm.fill import Contents, Standing
from ivm.graph import AsOf, Join, NodeId, Threshold
from ivm.time import unpack
from planner.context import Context
from planner.fragment import FIRST, Cut, Fragment, cut
from planner.physical import Group, Plan, innermost_loops, inputs
from planner.rounds import Due, Rounds
from planner.spark_work import FRAME, VALUES, Environment, Slice, Work, output_folder, part_folder, read_values
from planner.unfold import Unfolded, unfold
from planner.words_read import words_read
from storage.dictionary import Dictionary
from storage.load.paths import spark_path
from storage.spark.blocks import encode_entries, read_block, write_blocks
from storage.spark.errors import spark_error
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
class Made:
    """What Spark has left in its folder, by the plan's numbers. Blocks are sorted and consolidated, and to be added up;
    times are loop vectors."""

    folder: Path
    places: dict[NodeId, NodeId]
    traces: dict[NodeId, list[tuple[int, int]]]

    def arranged(self, node: NodeId) -> list[Contents]:
        """An arrangement's contents; behind them, of a reduce in a loop, its errors by key."""
        found = self.traces.get(self.places[node], []) if node in self.places else []
        return [partial(_blocks, part_folder(self.folder, *trace, "*")) for trace in found]

    def output(self, node: NodeId) -> list[Contents]:
        """The plan's rows, or its errors."""
        return [partial(_blocks, output_folder(self.folder, self.places[node]))]


def _blocks(folder: Path) -> Iterator[Block]:
    for path in sorted(folder.parent.glob(f"{folder.name}/*.arrow")):
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
    _given_words: int = 0
    _slices: list[Slice] = field(default_factory=list)
    _values: list[Path] = field(default_factory=list)
    _waiting: dict[Due, list[Path]] = field(default_factory=dict)

    def take(self, given: Mapping[NodeId, Standing], others: Collection[NodeId]) -> None:
        """Writes what comes from outside: ``given`` nodes' contents; ``others`` are empty."""
        unfolded = self._unfolded = unfold(self.plan, {*given, *others})
        found = {unfolded.sources[node]: standing for node, standing in given.items() if node in unfolded.sources}
        weights = {source: standing.diff_width for source, standing in found.items()}
        self._cut = cut(unfolded.plan, unfolded.kept, weights)
        read = words_read(unfolded.plan, unfolded.kept)
        for source, standing in found.items():
            self._write_source(source, standing.contents(), tuple(sorted(read[source])) or (0,))
        self.check()

    def _write_source(self, source: NodeId, block: Block, words: tuple[int, ...]) -> None:
        """``words``: those of its rows that are read; at least one."""
        whole, _, diffs = block.arrays()
        rows = whole if len(words) == block.width else np.ascontiguousarray(whole[:, words])
        self._write_values(source, rows)
        for k, start in enumerate(range(0, block.n, SLICE_ROWS)):
            self.check()
            stop = min(start + SLICE_ROWS, block.n)
            path = self.folder / "sources" / f"{source}-{k}.arrow"
            piece = Block.of(rows[start:stop], np.zeros(stop - start, np.int64), diffs[start:stop])
            write_blocks(path, [piece], durable=False)
            self._slices.append(Slice(source, path, words, block.width))
        self._updates += block.n
        self._given_words += rows.size + block.n + diffs.size

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
            path.write_bytes(encode_entries((words, *dictionary.packed(words))))
            self._values.append(path)

    def check(self) -> None:
        """Raises 57014 once it is cancelled."""
        if self.cancel.is_set():
            raise SqlError("57014", "canceling statement due to user request")

    def run(self) -> Made:
        """All contents. 57014; 58000 where Spark is missing or fails, and what an operator raises.

        New values are in the context's dictionary afterwards, under the ids that contents have for them.
        """
        assert self._cut is not None
        assert self._unfolded is not None
        rounds = Rounds(self._unfolded.plan, self._cut)
        if self._slices:
            with self.spark as session, self._cancelled(session):
                self._run_step(session, [])
                while self._waiting:
                    self.check()
                    self._run_step(session, rounds.next(self._waiting))
        self._take_values()
        places = {old: new for new, old in self._unfolded.origin.items()}
        return Made(self.folder, places, self._traced())

    def _traced(self) -> dict[NodeId, list[tuple[int, int]]]:
        """For each arrangement the traces (fragment, number) that have its contents."""
        assert self._cut is not None
        found: dict[NodeId, list[tuple[int, int]]] = {}
        for fragment in self._cut.fragments[1:-1]:
            mine: dict[NodeId, list[tuple[int, int]]] = {}
            for i, node in enumerate(traced(fragment, self._loops)):
                mine.setdefault(node, []).append((fragment.number, i))
            found = mine | found
        return found

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
        rows = self._given_words // 4
        return min(max(LEAST_PARTS, -(-rows // PART_ROWS)), MOST_PARTS)

    def _run_step(self, session: Any, due: Sequence[Due]) -> None:
        """One job: what is due, none of it for the first one, which reads the slices."""
        assert self._cut is not None
        numbers = {d.fragment for d in due} or {FIRST}
        fragments = tuple(f for f in self._cut.fragments if f.number in numbers)
        paths = [path for d in due for path in self._waiting.pop(d)]
        vector = due[0].vector if due else 0
        level = max(f.level for f in fragments)
        self.progress(self._what(fragments, due), self._cut.levels - 1, level, self._updates)
        work = self._work(fragments, vector)
        out = self.folder / "frames" / str(self._step)
        try:
            frame = self._frame(session, paths) if due else self._slices_frame(session)
            frame.mapInArrow(work, FRAME).write.partitionBy("due").parquet(out.as_uri())
        except Exception as error:
            raise spark_error(error) from error
        self._step += 1
        self._file(out)

    def _work(self, fragments: tuple[Fragment, ...], vector: int) -> Work:
        assert self._cut is not None
        context = self.context
        environment = Environment(
            context.dictionary.secret, tuple(self._values), context.parameters,
            context.now, context.statement_now, context.timezone, context.epoch, context.formats,
        )  # fmt: skip
        slices = tuple(self._slices) if fragments[0].number == FIRST else ()
        traces = tuple(len(traced(f, self._loops)) if f.number else 0 for f in fragments)
        again = tuple(any(port.scope is not None for port in f.ports) for f in fragments)
        wanted = {trace for found in self._traced().values() for trace in found}
        kept = tuple(
            frozenset(i for i in range(count) if more or (f.number, i) in wanted)
            for f, count, more in zip(fragments, traces, again, strict=True)
        )
        output = self._cut.output.number
        return Work(
            fragments, self.parts, self.folder, self._step, environment, output, slices, traces, kept, again, vector
        )

    @property
    def _loops(self) -> list[int | None]:
        assert self._unfolded is not None
        return innermost_loops(self._unfolded.plan)

    def _what(self, fragments: Sequence[Fragment], due: Sequence[Due]) -> str:
        """A step in a few words: what its operators are, and the rounds of the loops that it is in, outermost first."""
        if not due:
            return "read"
        kinds = dict.fromkeys(type(n).__name__ for f in fragments for _, n in f.nodes if isinstance(n, _SHOWN))
        what, loop = ", ".join(kinds) or "Arrange", self._loops[due[0].node]
        if loop is None:
            return what
        assert self._unfolded is not None
        rounds = unpack(due[0].vector, self._unfolded.plan.scopes[loop].shape)[1:]
        return f"{what}, round {'.'.join(map(str, rounds))}"

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
            fragment, port, vector = map(int, due.split("."))
            node, owed = NodeId(port if port >= 0 else -1 - port), port < 0
            self._waiting.setdefault(Due(fragment, node, vector, owed), []).append(folder)
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


def traced(fragment: Fragment, loops: Sequence[int | None]) -> list[NodeId]:
    """The nodes whose contents a fragment's traces are, in their order: a reduce in a loop has two, the second of its
    errors. ``loops``: in which each node of the plan is."""
    found = [port.node for port in fragment.ports if fragment.keyed]
    read = {i for _, n in fragment.nodes if isinstance(n, Join | AsOf | Group | Threshold) for i in inputs(n)}
    for number, node in fragment.nodes:
        if isinstance(node, Group | Threshold) and (loops[number] is not None or number in read):
            found += [number] * (1 + (isinstance(node, Group) and loops[number] is not None))
    return found


_SHOWN: Final = (Join, AsOf, Group, Threshold)
