"""One materialized view that Spark maintains: what waits to be applied, its jobs, and what is served of it.

A job takes every commit that waits, so that a slow one is followed by a large one. What it makes counts from the moment
that the manifest is written; then the engine thread takes the rows in, and who waits for a time that is covered reads.
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
from planner.distributed.scatter import Given, Spread, apply, given, read_output
from planner.distributed.scatter_step import Report
from planner.expr.context import Context
from sql.catalog.catalog import Relation
from sql.engine.clock import POSTGRES_EPOCH, wall_clock
from sql.engine.persist import DEFAULT_RETAIN, Persistence
from sql.engine.retries import pause_after
from sql.engine.served import Contents, Served, ordinals_of
from sql.engine.snapshot import Published
from sql.engine.timeline import Timeline
from storage.dictionary import Dictionary
from storage.spark.blocks import take_into
from storage.spark.changes import read_changes, told
from storage.spark.manifest import Manifest, clean, read_manifest, write_manifest
from storage.stored import History

KEPT_JOBS: Final = 100
FIRST_PAUSE: Final = 1.0
"""Seconds before a job that failed once is tried again."""
MOST_WAITING: Final = 2_000_000
"""Updates that wait in memory; more of them are read from the store when their job begins."""
TOLD_APART: Final = 60.0
"""For how many seconds the commits that a job covered can be told apart: a transaction may read them as of then."""

Changes = dict[int, list[History]]
Follower = Callable[[History | None, int, Served], None]
"""Gets what the rows have changed by, up to which epoch everything is known now, and the rows."""


@dataclass(frozen=True, slots=True)
class Job:
    """What became of a job, for people. ``started``: µs since 2000; ``epoch``: up to which commits it went; ``held``:
    how many parts hold something after it."""

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
class Made:
    """A job's rows on their way to the engine's thread. ``epochs``: what their times 1, 2, … stand for. ``served``:
    they are taken in already, into ``contents`` that nobody else knows yet."""

    blocks: list[Block]
    epochs: Words
    epoch: int
    contents: Contents
    served: Served | None = None

    @property
    def history(self) -> History:
        """The rows' updates at their epochs."""
        rows, times, diffs = self.blocks[0].arrays()
        return History(rows, self.epochs[times - 1], diffs[:, 0])


@dataclass(slots=True)
class _Taken:
    """What a job is to apply: all changes up to ``epoch``."""

    changes: Changes
    epoch: int
    first: int | None


@dataclass(slots=True, eq=False)
class ScatteredView:
    """``note`` and ``take_in`` are for the threads that publish, ``run`` for the jobs' one, everything else for any.

    ``published``: what stood when it began, until the folder has a manifest: the first job starts with what the tables
    held then. Kept longer it would keep all of the engine's state of that moment.
    ``recovering``: the folder may be of an earlier life of the server.
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
    jobs: deque[Job] = field(default_factory=lambda: deque(maxlen=KEPT_JOBS))
    gone: bool = False
    running: bool = False
    reading: bool = False
    """Whether it has ids of the dictionary that ``words`` does not tell."""
    _contents: Contents | None = None
    _began: int = 0
    """The epoch of what stood when it began."""
    _seen: int = 0
    _pending: Changes = field(default_factory=dict)
    _count: int = 0
    """How many updates are pending."""
    _first: int | None = None
    """The epoch of the oldest change that waits."""
    _spilled: bool = False
    """Whether what waits is to be read from the store."""
    _taken: _Taken | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _again_at: float = 0.0
    _covered: deque[tuple[float, int]] = field(default_factory=deque)
    """When which ordinal was covered."""

    def __post_init__(self) -> None:
        assert self.published is not None
        self._began = self._seen = self.published.epoch

    # -- what comes ----------------------------------------------------------------------------------------------

    def note(self, epoch: int, changes: dict[int, History]) -> None:
        """A published group: what it has changed of the tables that the view reads."""
        with self._lock:
            for relation in self.spread.tables:
                history = changes.get(relation)
                if history is not None and len(history.diffs):
                    self._pending.setdefault(relation, []).append(history)
                    self._count += len(history.diffs)
                    oldest = int(history.epochs.min())
                    self._first = oldest if self._first is None else min(self._first, oldest)
            self._seen = epoch
            self._spill()

    def _spill(self) -> None:
        """Keeps no more in memory than may wait there; with the lock."""
        if self.persistence is not None and (self._spilled or self._count > MOST_WAITING):
            self._pending, self._count, self._spilled = {}, 0, True

    @property
    def covered(self) -> int:
        """The epoch up to which the served rows are right; 0 before there are any."""
        with self._lock:
            return self._covered_now()

    def _covered_now(self) -> int:
        """With the lock."""
        if self.served is None:
            return 0
        missing = [self._first, None if self._taken is None else self._taken.first]
        return min((first - 1 for first in missing if first is not None), default=self._seen)

    @property
    def due(self) -> bool:
        """Whether a job is to run, now or after ``pause`` seconds."""
        with self._lock:
            waits = self.served is None or bool(self._pending) or self._spilled
            return waits and not self.running and not self.gone

    @property
    def pause(self) -> float:
        """Seconds until what failed may be tried again."""
        return max(0.0, self._again_at - time.monotonic())

    @property
    def waiting(self) -> int:
        """How many updates are not served yet."""
        with self._lock:
            return self._count + (0 if self._taken is None else _updates(self._taken.changes))

    @property
    def size(self) -> int:
        """Bytes that the server holds of it: its rows, never what they are computed from."""
        return 0 if self._contents is None else self._contents.nbytes

    def words(self) -> list[Words]:
        """Ids of the dictionary that it needs are among these; on the engine's thread, while it is not ``reading``."""
        with self._lock:
            parts = [self._pending, {} if self._taken is None else self._taken.changes]
            found = [h.rows for changes in parts for some in changes.values() for h in some]
        return found + ([] if self._contents is None else self._contents.words())

    # -- a job ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """A job begins: nothing else runs it until ``take_in``, or until it has failed."""
        with self._lock:
            self.running = True

    def run(self, session: Any) -> Made | None:
        """Applies what waits; None: it failed, which ``error`` tells, and is to be tried again. ``session``: the
        context of a Spark session."""
        began, started = time.monotonic(), wall_clock() - POSTGRES_EPOCH
        try:
            if self.manifest is None:
                self.manifest = self._prepared()
            if self.served is None and self.manifest.number:
                return self._again(self.manifest)
            self._take()
            return self._apply(session, self.manifest, began, started)
        except SqlError as error:
            self._failed(error, began, started)
        except OSError as error:
            self._failed(SqlError("58030", f"the folder of {self.relation.name} fails", str(error)), began, started)
        return None

    def _prepared(self) -> Manifest:
        """The folder as the last job has left it; one of another plan, or one that the store's history does not reach
        back to, is made anew."""
        found = read_manifest(self.folder) if self.recovering else None
        missed = None
        if found is not None and found.plan == self.spread.name:
            missed = self._missed(found.epoch, self._began)
        if found is None or missed is None:
            shutil.rmtree(self.folder, ignore_errors=True)
            return self.spread.empty()
        with self._lock:
            for relation, history in missed.items():
                self._pending[relation] = [history, *self._pending.get(relation, [])]
                self._count += len(history.diffs)
                oldest = int(history.epochs.min())
                self._first = oldest if self._first is None else min(self._first, oldest)
        self.published = None
        return found

    def _missed(self, epoch: int, upto: int) -> dict[int, History] | None:
        """What the tables have changed by after an epoch, up to another one; None: nobody knows any more."""
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

    def _take(self) -> None:
        with self._lock:
            taken = self._taken = _Taken(self._pending, self._seen, self._first)
            spilled, self._spilled = self._spilled, False
            self._pending, self._count, self._first = {}, 0, None
        if not spilled:
            return
        assert self.manifest is not None
        after = self.manifest.epoch if self.manifest.number else self._began
        missed = self._missed(after, taken.epoch)
        if missed is None:
            raise SqlError("58000", f"the history that {self.relation.name} is to be made of is gone",
                           hint="Drop the view and create it again.")  # fmt: skip
        taken.changes = {relation: [history] for relation, history in missed.items()}

    def _apply(self, session: Any, before: Manifest, began: float, started: int) -> Made:
        taken = self._taken
        assert taken is not None
        changed = self._given(before, taken)
        with session as spark:
            done = apply(
                spark, self.folder, self.spread, before, taken.epoch, changed, self.dictionary, lambda: self.gone
            )
        deltas = [report.delta for report in done.reports if report.delta is not None]
        self.reading = True
        made = self._made(read_output(self.folder, self.spread, deltas, self.dictionary), changed.epochs, taken.epoch)
        manifest = self._told(before, done.manifest, made.history)
        write_manifest(self.folder, manifest)
        clean(self.folder, manifest)
        self.manifest, self.published, self.error, self.failures = manifest, None, None, 0
        held = sum(1 for layers in manifest.layers.values() if layers)
        seconds = time.monotonic() - began
        number = manifest.number
        commits = len(changed.epochs)
        self.jobs.append(Job(number, started, seconds, taken.epoch, commits, changed.count, done.reports, held))
        return made

    def _told(self, before: Manifest, manifest: Manifest, history: History) -> Manifest:
        """With what its job has changed. What the view began with is no change of it."""
        after = before.epoch if before.number else self._began
        later = history.epochs > after
        history = History(history.rows[later], history.epochs[later], history.diffs[later])
        if self.persistence is not None:
            floor = self.persistence.retention(self.relation.id)
        else:
            floor = wall_clock() - (self.relation.retain or DEFAULT_RETAIN)
        return told(manifest, self.folder, history, after, floor, self.dictionary)

    def _given(self, before: Manifest, taken: _Taken) -> Given:
        if before.number:
            return given(self.spread, taken.changes)
        assert self.published is not None, "nothing was applied yet"
        changes = {i: [_held(self.published, i), *taken.changes.get(i, [])] for i in self.spread.tables}
        changed = given(self.spread, changes, self._began)
        changed.blocks |= self.spread.constants(Context(self.dictionary))
        return changed

    def _again(self, manifest: Manifest) -> Made:
        """What the folder has, to be served once more."""
        clean(self.folder, manifest)
        first = self.spread.cut.output.number * self.spread.parts
        places = range(first, first + self.spread.parts)
        files = [layer.file for place in places for layer in manifest.layers.get(place, ())]
        self.reading = True
        blocks = [_timeless(block) for block in read_output(self.folder, self.spread, files, self.dictionary)]
        return self._made(blocks, np.zeros(0, np.int64), manifest.epoch)

    def _made(self, blocks: list[Block], epochs: Words, epoch: int) -> Made:
        """The rows, taken in at once where they are the first: that may take long, and nobody reads them yet."""
        if self._contents is not None:
            return Made(blocks, epochs, epoch, self._contents)
        contents = Contents(self.dictionary, self.spread.cut.rows.width, self.spread.cut.errors is not None)
        made = Made(blocks, epochs, epoch, contents)
        made.served = self._added(made, 0)
        return made

    def _added(self, made: Made, keep: int) -> Served:
        least = max(made.contents.upper, self.timeline.ordinal(self.relation.created) or 0)
        upper = max(self.timeline.ordinal(made.epoch) or 0, least)
        return made.contents.add(made.blocks, ordinals_of(self.timeline, made.epochs, least), upper, keep)

    def _failed(self, error: SqlError, began: float, started: int) -> None:
        seen, updates = self._seen, self.waiting
        with self._lock:
            taken, self._taken = self._taken, None
            if taken is not None:
                for relation, histories in taken.changes.items():
                    self._pending[relation] = [*histories, *self._pending.get(relation, [])]
                self._count += _updates(taken.changes)
                self._first = self._first if taken.first is None else taken.first
                self._spilled |= taken.first is not None and not taken.changes
                self._spill()
            self.running = self.reading = False
            self.failures += 1
            self.error = error
            self._again_at = time.monotonic() + pause_after(self.failures, FIRST_PAUSE)
        number = 0 if self.manifest is None else self.manifest.number
        self.jobs.append(Job(number + 1, started, time.monotonic() - began, seen, 0, updates, error=error))

    def broke(self, error: SqlError) -> None:
        """A job has ended in another way than ``run`` knows."""
        self._failed(error, time.monotonic(), wall_clock() - POSTGRES_EPOCH)

    def take_in(self, made: Made) -> None:
        """Serves what a job has made, on the engine's thread."""
        served = made.served or self._added(made, self._keep())
        if made.served is not None and self.dictionary.guarded:
            for words in made.contents.words():
                self.dictionary.see(words)
        with self._lock:
            self.served, self._contents, self._taken = served, made.contents, None
            self.running = self.reading = False
            for follower in self.followers:
                follower(made.history, self._covered_now(), served)
        self._covered.append((time.monotonic(), served.upper))

    # -- who follows it ------------------------------------------------------------------------------------------

    def follow(self, follower: Follower) -> tuple[Served, int]:
        """The rows, and the epoch that they are right up to; the follower gets all that comes after, in order. On any
        thread; it is called with a lock held, and must not ask back. 42P01, 55000: there are none."""
        with self._lock:
            if self.served is None:
                raise SqlError("55000", f"materialized view {self.relation.name} has no rows yet", hint="Try again.")
            self.followers.append(follower)
            return self.served, self._covered_now()

    def tell(self, follower: Follower, noted: int = 0, now: int = 0) -> None:
        """Tells up to which epoch everything is known: up to ``now`` if nothing is missing up to ``noted``."""
        with self._lock:
            if self.served is not None:
                covered = self._covered_now()
                follower(None, max(covered, now) if covered >= noted else covered, self.served)

    @property
    def standing(self) -> tuple[Served | None, int]:
        """The rows, and the epoch that they are right up to."""
        with self._lock:
            return self.served, self._covered_now()

    @property
    def since(self) -> int:
        """The epoch after which all changes of the rows are kept."""
        return self._began if self.manifest is None else self.manifest.since

    def changes(self, after: int, upto: int) -> Iterator[History]:
        """The updates of the rows with after < epoch <= upto, each row once for an epoch, a part at a time and whole
        epochs in order; the caller keeps a generation of the dictionary. 22023: they are not kept (any more)."""
        manifest = self.manifest
        lost = SqlError("22023", f"the changes of {self.relation.name} are kept only after {self.since}")
        if manifest is None or after < manifest.since:
            raise lost
        try:
            yield from read_changes(manifest, self.folder, after, upto, take_into(self.dictionary))
        except FileNotFoundError:
            raise lost from None

    def _keep(self) -> int:
        """The ordinal up to which nothing needs to be told apart any more."""
        now = time.monotonic()
        while len(self._covered) > 1 and self._covered[1][0] < now - TOLD_APART:
            self._covered.popleft()
        return self._covered[0][1] if self._covered and self._covered[0][0] < now - TOLD_APART else 0

    @property
    def needs(self) -> int:
        """From which epoch on a restart would need its tables' updates."""
        if self.manifest is not None:
            return self.manifest.epoch
        return 0 if self.recovering else self._began

    def remove(self) -> None:
        """The view is gone, and its folder goes."""
        shutil.rmtree(self.folder, ignore_errors=True)
        with suppress(OSError):  # other views have theirs beside it
            self.folder.parent.rmdir()


def _held(published: Published, relation: int) -> History:
    """What a table held when the view began."""
    rows, diffs = published.rows(relation, published.ordinal)
    return History(rows, np.full(len(rows), published.epoch, np.int64), diffs)


def _updates(changes: Changes) -> int:
    return sum(len(h.diffs) for some in changes.values() for h in some)


def _timeless(block: Block) -> Block:
    rows, times, diffs = block.arrays()
    return Block.of(rows, np.zeros_like(times), diffs)
