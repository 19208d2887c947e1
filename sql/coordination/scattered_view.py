"""One materialized view that Spark maintains: its pending changes, its jobs, and the rows that are served.

A job takes all waiting commits, so that a slow job is followed by a large one. Its result is valid as soon as the
manifest is written. Then the engine thread takes in the rows, and the readers that wait for them continue.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Words
from ivm.trace.batch import Block
from planner.distributed.layer_store import Report
from planner.distributed.partitioning import partition_number
from planner.distributed.scatter import JobInput, Spread, apply, job_input, read_output
from planner.expr.context import Context
from sql.catalog.catalog import Relation
from sql.coordination.scattered_changes import PendingChanges, Taken
from sql.engine.clock import timestamp_now, wall_clock
from sql.engine.persist import DEFAULT_RETAIN, Persistence
from sql.engine.retries import pause_after
from sql.engine.served import Served, ServedContents, ordinals_of
from sql.engine.snapshot import Published
from sql.engine.timeline import Timeline
from storage.dictionary import Dictionary
from storage.spark.blocks import take_into
from storage.spark.changes import read_changes, with_changes
from storage.spark.manifest import Manifest, clean, read_manifest, write_manifest
from storage.stored import History

KEPT_JOBS: Final = 100
FIRST_PAUSE: Final = 1.0
"""Seconds before a job that failed once is retried."""
TOLD_APART: Final = 60.0
"""For how many seconds the commits that a job covered remain readable (AS OF)."""

Follower = Callable[[History | None, int, Served], None]
"""Called with the changes of the rows, the epoch up to which everything is known, and the rows."""


@dataclass(frozen=True, slots=True)
class SparkJob:
    """A finished job, for freshet.spark_jobs. ``started``: µs since 2000. ``epoch``: of its last commit. ``held``: the
    number of non-empty parts after it."""

    number: int
    started: int
    seconds: float
    epoch: int
    commits: int
    updates: int
    reports: tuple[Report, ...] = ()
    held: int = 0
    error: SqlError | None = None


@dataclass(slots=True)
class JobOutput:
    """A job's rows on their way to the engine thread. ``epochs``: of their times 1, 2, …. ``served``: set if
    ``contents``, which is not shared yet, already has them."""

    blocks: list[Block]
    epochs: Words
    epoch: int
    contents: ServedContents
    served: Served | None = None

    @property
    def history(self) -> History:
        """The rows' updates at their epochs."""
        rows, times, diffs = self.blocks[0].arrays()
        return History(rows, self.epochs[times - 1], diffs[:, 0])


@dataclass(slots=True, eq=False)
class ScatteredView:
    """``add`` and ``serve`` are called on the threads that publish, ``run`` on that of the jobs, the rest on any.

    ``published``: the state in which the view began, whose tables the first job reads. It is dropped as soon as the
    folder has a manifest, because it keeps all of the engine's state of that moment.
    ``recovering``: the folder may have been written before the server's start.
    """

    relation: Relation
    spread: Spread
    folder: Path
    dictionary: Dictionary
    timeline: Timeline
    persistence: Persistence | None
    published: Published | None
    recovering: bool = False
    manifest: Manifest | None = None
    served: Served | None = None
    error: SqlError | None = None
    failures: int = 0
    followers: list[Follower] = field(default_factory=list)
    jobs: deque[SparkJob] = field(default_factory=lambda: deque(maxlen=KEPT_JOBS))
    gone: bool = False
    running: bool = False
    reading: bool = False
    """Whether it holds dictionary ids that are not in ``words``."""
    _contents: ServedContents | None = None
    pending: PendingChanges = field(init=False)
    _began: int = 0
    """The epoch of ``published``."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _again_at: float = 0.0
    _covered: deque[tuple[float, int]] = field(default_factory=deque)
    """(time, ordinal) of each recent job."""

    def __post_init__(self) -> None:
        assert self.published is not None
        self._began = self.published.epoch
        self.pending = PendingChanges(self.spread.tables, self._began, self.persistence is not None)

    # -- changes -------------------------------------------------------------------------------------------------

    def add(self, epoch: int, changes: dict[int, History]) -> None:
        """Record the changes of a published group."""
        with self._lock:
            self.pending.add(epoch, changes)

    @property
    def covered(self) -> int:
        """The epoch up to which the served rows are complete; 0 before there are any."""
        with self._lock:
            return self._covered_now()

    def _covered_now(self) -> int:
        """``covered``, for a caller that holds the lock."""
        return 0 if self.served is None else self.pending.covered

    @property
    def due(self) -> bool:
        """Whether a job must run, now or after ``pause`` seconds."""
        with self._lock:
            return (self.served is None or self.pending.waits) and not self.running and not self.gone

    @property
    def pause(self) -> float:
        """Seconds until a failed job may be tried again."""
        return max(0.0, self._again_at - time.monotonic())

    @property
    def waiting(self) -> int:
        """The number of updates that are not served yet."""
        with self._lock:
            return self.pending.count

    @property
    def size(self) -> int:
        """The bytes that the server holds: the view's rows, not the state from which they are computed."""
        return 0 if self._contents is None else self._contents.nbytes

    def words(self) -> list[Words]:
        """Words that include all dictionary ids that it needs. On the engine thread, while it is not ``reading``."""
        with self._lock:
            found = self.pending.words()
        return found + ([] if self._contents is None else self._contents.words())

    # -- a job ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Mark the view as running, until ``serve`` or until its job has failed."""
        with self._lock:
            self.running = True

    def run(self, session: Any) -> JobOutput | None:
        """Apply the pending changes, with a Spark session's context. None: the job failed, with ``error``, and must be
        retried."""
        began, started = time.monotonic(), timestamp_now()
        try:
            if self.manifest is None:
                self.manifest = self._prepared()
            if self.served is None and self.manifest.number:
                return self._again(self.manifest)
            return self._apply(session, self.manifest, self._take(), began, started)
        except SqlError as error:
            self._failed(error, began, started)
        except OSError as error:
            self._failed(SqlError("58030", f"the folder of {self.relation.name} fails", str(error)), began, started)
        return None

    def _prepared(self) -> Manifest:
        """The folder's manifest, as of the last job. If the folder is of another plan, or older than the store's
        history, it is replaced by an empty one."""
        found = read_manifest(self.folder) if self.recovering else None
        missed = None
        if found is not None and found.plan == self.spread.name:
            missed = self._missed(found.epoch, self._began)
        if found is None or missed is None:
            shutil.rmtree(self.folder, ignore_errors=True)
            return self.spread.empty()
        with self._lock:
            self.pending.add_before(missed)
        self.published = None
        return found

    def _missed(self, epoch: int, upto: int) -> dict[int, History] | None:
        """The tables' changes after an epoch, up to another one; None: the store no longer has them."""
        if self.persistence is None or epoch > upto:
            return None
        self.persistence.flush()
        store, found = self.persistence.store, {}
        upto = min(upto, store.high_water())
        for relation in self.spread.tables:
            if store.since(relation) > epoch or epoch > upto:
                return None
            history = store.range_updates(relation, epoch, upto)
            if len(history.diffs):
                found[relation] = history
        return found

    def _take(self) -> Taken:
        with self._lock:
            taken = self.pending.take()
        if not taken.spilled:
            return taken
        assert self.manifest is not None
        after = self.manifest.epoch if self.manifest.number else self._began
        missed = self._missed(after, taken.epoch)
        if missed is None:
            raise SqlError("58000", f"the history that {self.relation.name} is to be made of is gone",
                           hint="Drop the view and create it again.")  # fmt: skip
        taken.changes = {relation: [history] for relation, history in missed.items()}
        return taken

    def _apply(self, session: Any, before: Manifest, taken: Taken, began: float, started: int) -> JobOutput:
        changed = self._given(before, taken)
        with session as spark:
            done = apply(spark, self.folder, self.spread, before, taken.epoch, changed, self.dictionary, self._check)
        deltas = [report.delta for report in done.reports if report.delta is not None]
        self.reading = True
        made = self._made(read_output(self.folder, self.spread, deltas, self.dictionary), changed.epochs, taken.epoch)
        manifest = self._with_changes(before, done.manifest, made.history)
        write_manifest(self.folder, manifest)
        clean(self.folder, manifest)
        self.manifest, self.published, self.error, self.failures = manifest, None, None, 0
        held = sum(1 for layers in manifest.layers.values() if layers)
        seconds = time.monotonic() - began
        number = manifest.number
        commits = len(changed.epochs)
        self.jobs.append(SparkJob(number, started, seconds, taken.epoch, commits, changed.count, done.reports, held))
        return made

    def _check(self) -> None:
        if self.gone:
            raise SqlError("57014", "the view is gone")

    def _with_changes(self, before: Manifest, manifest: Manifest, history: History) -> Manifest:
        """The manifest, with its job's changes added. The view's first rows are not changes."""
        after = before.epoch if before.number else self._began
        later = history.epochs > after
        history = History(history.rows[later], history.epochs[later], history.diffs[later])
        if self.persistence is not None:
            floor = self.persistence.retention(self.relation.id)
        else:
            floor = wall_clock() - (self.relation.retain or DEFAULT_RETAIN)
        return with_changes(manifest, self.folder, history, after, floor, self.dictionary)

    def _given(self, before: Manifest, taken: Taken) -> JobInput:
        if before.number:
            return job_input(self.spread, taken.changes)
        assert self.published is not None, "nothing was applied yet"
        changes = {i: [_held(self.published, i), *taken.changes.get(i, [])] for i in self.spread.tables}
        changed = job_input(self.spread, changes, self._began)
        changed.blocks |= self.spread.constants(Context(self.dictionary))
        return changed

    def _again(self, manifest: Manifest) -> JobOutput:
        """The rows in the folder, to serve after a restart."""
        clean(self.folder, manifest)
        output, parts = self.spread.cut.output.number, self.spread.parts
        found = [manifest.layers.get(partition_number(output, part, parts), ()) for part in range(parts)]
        files = [layer.file for layers in found for layer in layers]
        self.reading = True
        blocks = [_timeless(block) for block in read_output(self.folder, self.spread, files, self.dictionary)]
        return self._made(blocks, np.zeros(0, np.int64), manifest.epoch)

    def _made(self, blocks: list[Block], epochs: Words, epoch: int) -> JobOutput:
        """The job's rows. The first ones are taken in at once, which may be slow, because nobody reads them yet."""
        if self._contents is not None:
            return JobOutput(blocks, epochs, epoch, self._contents)
        contents = ServedContents(self.dictionary, self.spread.cut.rows.width, self.spread.cut.errors is not None)
        made = JobOutput(blocks, epochs, epoch, contents)
        made.served = self._added(made, 0)
        return made

    def _added(self, made: JobOutput, keep: int) -> Served:
        least = max(made.contents.upper, self.timeline.ordinal(self.relation.created) or 0)
        upper = max(self.timeline.ordinal(made.epoch) or 0, least)
        return made.contents.add(made.blocks, ordinals_of(self.timeline, made.epochs, least), upper, keep)

    def _failed(self, error: SqlError, began: float, started: int) -> None:
        with self._lock:
            seen, updates = self.pending.seen, self.pending.count
            self.pending.give_back()
            self.running = self.reading = False
            self.failures += 1
            self.error = error
            self._again_at = time.monotonic() + pause_after(self.failures, FIRST_PAUSE)
        number = 0 if self.manifest is None else self.manifest.number
        self.jobs.append(SparkJob(number + 1, started, time.monotonic() - began, seen, 0, updates, error=error))

    def broke(self, error: SqlError) -> None:
        """A job has failed with an error that ``run`` does not expect."""
        self._failed(error, time.monotonic(), timestamp_now())

    def serve(self, made: JobOutput) -> None:
        """On the engine thread: serve the rows of a job."""
        served = made.served or self._added(made, self._keep())
        if made.served is not None and self.dictionary.guarded:
            for words in made.contents.words():
                self.dictionary.see(words)
        with self._lock:
            self.served, self._contents = served, made.contents
            self.pending.applied()
            self.running = self.reading = False
            for follower in self.followers:
                follower(made.history, self._covered_now(), served)
        self._covered.append((time.monotonic(), served.upper))

    # -- followers -----------------------------------------------------------------------------------------------

    def follow(self, follower: Follower) -> tuple[Served, int]:
        """The rows, and the epoch up to which they are complete. ``follower`` gets all later changes, in order.

        It is called on any thread with a lock held, and must not call the view. 55000: there are no rows yet.
        """
        with self._lock:
            if self.served is None:
                raise SqlError("55000", f"materialized view {self.relation.name} has no rows yet", hint="Try again.")
            self.followers.append(follower)
            return self.served, self._covered_now()

    def tell(self, follower: Follower, noted: int = 0, now: int = 0) -> None:
        """Tell followers the epoch up to which everything is known: ``now`` if nothing is missing up to ``noted``."""
        with self._lock:
            if self.served is not None:
                covered = self._covered_now()
                follower(None, max(covered, now) if covered >= noted else covered, self.served)

    @property
    def current(self) -> tuple[Served | None, int]:
        """The rows, and the epoch up to which they are complete."""
        with self._lock:
            return self.served, self._covered_now()

    @property
    def since(self) -> int:
        """The epoch after which all changes of the rows are kept."""
        return self._began if self.manifest is None else self.manifest.since

    def changes(self, after: int, upto: int) -> Iterator[History]:
        """The updates of the rows with after < epoch <= upto, in parts: whole epochs in order, each row once an epoch.

        The caller holds a generation of the dictionary. 22023: they are not kept, or no longer.
        """
        manifest = self.manifest
        lost = SqlError("22023", f"the changes of {self.relation.name} are kept only after {self.since}")
        if manifest is None or after < manifest.since:
            raise lost
        try:
            yield from read_changes(manifest, self.folder, after, upto, take_into(self.dictionary))
        except FileNotFoundError:
            raise lost from None

    def _keep(self) -> int:
        """The ordinal up to which ordinals need no longer be distinguished."""
        now = time.monotonic()
        while len(self._covered) > 1 and self._covered[1][0] < now - TOLD_APART:
            self._covered.popleft()
        return self._covered[0][1] if self._covered and self._covered[0][0] < now - TOLD_APART else 0

    @property
    def needs(self) -> int:
        """The epoch after which a restart would need the tables' updates."""
        if self.manifest is not None:
            return self.manifest.epoch
        return 0 if self.recovering else self._began

    def remove(self) -> None:
        """The view was dropped: remove its folder."""
        shutil.rmtree(self.folder, ignore_errors=True)
        with suppress(OSError):  # other views' folders are beside it
            self.folder.parent.rmdir()


def _held(published: Published, relation: int) -> History:
    """The rows of a table when the view began."""
    rows, diffs = published.rows(relation, published.ordinal)
    return History(rows, np.full(len(rows), published.epoch, np.int64), diffs)


def _timeless(block: Block) -> Block:
    rows, times, diffs = block.arrays()
    return Block.of(rows, np.zeros_like(times), diffs)
