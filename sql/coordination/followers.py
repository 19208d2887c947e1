"""Who follows the changes of relations as they are committed: subscriptions.

The thread that publishes a group of commits hands it over once, however many followers there are. The event loop tells
them in rounds, a slice of time at a time, so that other clients are answered meanwhile; the groups that come during a
round are told together in the next. Followers that listen in the same form get the same bytes, written once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from itertools import count
from time import perf_counter
from typing import Final

import numpy as np

from sql.catalog.catalog import Catalog
from sql.engine.engine import Engine
from sql.engine.group import Delta
from sql.engine.snapshot import Published
from storage.stored import History

log = logging.getLogger("freshet.followers")

Follower = Callable[[Delta, Published, Published], None]
"""Called on the event loop with changes, and the published states before and after them."""
SLICE_SECONDS: Final = 0.0005
"""How long followers are told before others have their turn. A client takes some 10 µs."""
AGAIN_SECONDS: Final = 0.0005
MOST_BUSY_SECONDS: Final = 0.004
"""How long a round waits, at its beginning and between two slices, for the engine to be idle and clients to have their
answers."""
TURNS: Final = 3
"""How many turns of the event loop it takes from a message's arrival to its job, and from the job's end to the answer:
a future, what shields it, and the task that waits for that."""
MOST_FORMS: Final = 10_000
"""How many forms are known by number before numbering begins anew; those who listen keep theirs."""


@dataclass(frozen=True, slots=True)
class Written:
    """Changes as they are sent: ``data``, of which ``size`` bytes are of the ``rows`` themselves."""

    data: bytes
    rows: int
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class Listening:
    """A follower whose client waits for nothing but changes. It no longer listens once it has been told of some.

    ``write``: what is sent of changes, the same for all of one ``form``; None: each follower must be told. ``push``:
    sends it; False: this follower must be told. ``allowed``: whether it may get what others get, over a catalog.
    """

    form: int
    write: Callable[[Delta, Published], Written | None]
    push: Callable[[Written], bool]
    allowed: Callable[[Catalog], bool]


@dataclass(slots=True)
class _Told:
    """The newest state that a follower knows of; ``listening``, if it is: allowed over that state's catalog."""

    known: Published
    listening: Listening | None = None
    gone: bool = False


@dataclass(slots=True)
class _Round:
    """Groups that are told together, and the followers that are left."""

    groups: list[tuple[Delta, Published]]
    left: Iterator[tuple[Follower, _Told]]
    published: Published
    """The last group's."""
    _deltas: dict[int, Delta] = field(default_factory=dict)
    _written: dict[tuple[int, int], Written | None] = field(default_factory=dict)

    def first(self, after: Published) -> int:
        """The place of the first group after a state."""
        if self.groups[0][1].ordinal > after.ordinal:
            return 0
        return next(i for i, (_, published) in enumerate(self.groups) if published.ordinal > after.ordinal)

    def delta(self, first: int) -> Delta:
        """The changes of the groups from this one on."""
        if first not in self._deltas:
            self._deltas[first] = merged([delta for delta, _ in self.groups[first:]])
        return self._deltas[first]

    def written(self, first: int, listening: Listening) -> Written | None:
        """What is sent of them to a follower that listens; None: it must be told, also of an error in writing."""
        key = first, listening.form
        if key not in self._written:
            try:
                self._written[key] = listening.write(self.delta(first), self.published)
            except Exception:
                log.exception("changes could not be written for all that listen")
                self._written[key] = None
        return self._written[key]


class Followers:
    """Made on the event loop."""

    def __init__(self, engine: Engine, busy: Callable[[], bool] = lambda: False) -> None:
        """``busy``: whether other clients wait for the engine, which then has the processor to itself for a while."""
        self._engine, self._busy = engine, busy
        self._left_off = 0.0
        self._due = False
        """Whether some are to be told at the next opportunity."""
        self._turns = 0
        """How many turns of the event loop others still have first."""
        self._loop = asyncio.get_running_loop()
        self._followers: dict[Follower, _Told] = {}
        self._groups: deque[tuple[Delta, Published]] = deque()
        """Published, and not told of yet. The publishing thread adds to it."""
        self._round: _Round | None = None
        self._forms: dict[Hashable, int] = {}
        self._numbers = count()
        engine.listeners.append(self._published)

    def __len__(self) -> int:
        return len(self._followers)

    @property
    def telling(self) -> bool:
        """Whether some have not been told yet of what has been published."""
        return self._round is not None or len(self._groups) > 0

    def add(self, follower: Follower) -> None:
        """Tell a follower of all groups after the published one. On the thread that owns the engine."""
        self._followers[follower] = _Told(self._engine.published)

    def remove(self, follower: Follower) -> bool:
        """Tell it nothing more; whether it was told until now. On any thread."""
        told = self._followers.pop(follower, None)
        if told is not None:
            told.gone = True
        return told is not None

    def form(self, meaning: Hashable) -> int:
        """A number for all that decides what is written of changes: numbers are compared faster."""
        if len(self._forms) > MOST_FORMS:
            self._forms.clear()
        known = self._forms.get(meaning)
        if known is None:
            known = self._forms[meaning] = next(self._numbers)
        return known

    def listen(self, follower: Follower, listening: Listening | None) -> None:
        """Let a follower get what is written, as long as that goes, instead of being told; None: no longer."""
        told = self._followers.get(follower)
        if told is not None:
            allowed = listening is not None and listening.allowed(told.known.catalog)
            told.listening = listening if allowed else None

    def catch_up(self, follower: Follower) -> None:
        """Tell a follower now of all that has been published."""
        told, groups = self._followers.get(follower), list(self._groups)
        if told is None:
            return
        if self._round is not None:
            self._tell(follower, told, self._round)
        if groups:
            self._tell(follower, told, _Round(groups, iter(()), groups[-1][1]))

    def _published(self, delta: Delta, published: Published) -> None:
        if self._followers:
            self._groups.append((delta, published))
            self._loop.call_soon_threadsafe(self._arrived)

    def give_way(self) -> None:
        """Let what a client waits for be done before the next slice: its statement has come, or its job has ended."""
        self._turns = TURNS

    def _arrived(self) -> None:
        if not self._due:
            self._due, self._left_off = True, perf_counter()
            self._resume()

    def _resume(self) -> None:
        if perf_counter() < self._left_off + MOST_BUSY_SECONDS:
            if self._busy():
                self._loop.call_later(AGAIN_SECONDS, self._resume)
                return
            if self._turns:
                self._turns -= 1
                self._loop.call_later(0, self._resume)
                return
        self._go_on()

    def _go_on(self) -> None:
        """Tell followers until the slice of time is over, then leave the rest to the next turn of the event loop."""
        until = perf_counter() + SLICE_SECONDS
        while self._round is not None or self._groups:
            if self._round is None:
                groups = [self._groups.popleft() for _ in range(len(self._groups))]
                self._round = _Round(groups, iter(tuple(self._followers.items())), groups[-1][1])
            for follower, told in self._round.left:
                try:
                    self._tell(follower, told, self._round)
                except Exception:
                    log.exception("a follower of changes failed")
                if perf_counter() > until:
                    self._left_off = perf_counter()
                    self._loop.call_later(0, self._resume)  # behind what has come meanwhile, as call_soon is not
                    return
            self._round = None
        self._due = False

    def _tell(self, follower: Follower, told: _Told, around: _Round) -> None:
        """Cost: of a thousand calls in a commit each is some µs, so those that listen are sent the same bytes by as few
        calls as can be."""
        before, published = told.known, around.published
        if told.gone or before.ordinal >= published.ordinal:
            return
        told.known, listening = published, told.listening
        first = around.first(before)
        if listening is not None:
            written = around.written(first, listening)
            allowed = before.catalog is published.catalog or listening.allowed(published.catalog)
            if allowed and written is not None and (not written.rows or listening.push(written)):
                return
            told.listening = None
        follower(around.delta(first), before, published)


def merged(deltas: list[Delta]) -> Delta:
    """The changes of several groups, in their order, as one."""
    if len(deltas) == 1:
        return deltas[0]
    parts: dict[int, list[History]] = {}
    for delta in deltas:
        for relation, history in delta.changes.items():
            parts.setdefault(relation, []).append(history)
    changes = {
        relation: History(*(np.concatenate(column) for column in zip(*histories, strict=True)))
        for relation, histories in parts.items()
    }
    return Delta(deltas[-1].epoch, changes)
