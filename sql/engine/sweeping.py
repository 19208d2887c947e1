"""A sweep of the dictionary as the engine takes part in it: docs/decisions/0004-sweep.md says why it is right.

``compact``, ``begin``, ``condemn``, ``conclude`` and ``end`` are jobs of the engine thread, each short; ``catch_up``,
``mark``, ``drop`` and ``forget`` are for a thread beside it.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Final

from ivm import contents
from ivm.rows import Words
from ivm.sweep import Sweep
from ivm.trace.spine import Spine
from sql.engine.engine import Engine

SLOTS: Final = 1 << 15
"""Slots of the dictionary looked through in one job."""
UPDATES: Final = 1 << 13
"""Updates rewritten in one job, so that those which cancel go."""


class Sweeping:
    """One sweep. ``full``: large arrangements are rewritten too, each in one go: nothing stays for their sake."""

    def __init__(self, engine: Engine, full: bool = False) -> None:
        self.engine = engine
        self.full = full
        self.stop = threading.Event()
        self.found = 0
        """Values declared dead."""
        self._sweep = Sweep(engine.dictionary.arena)
        self._spines: list[Spine] | None = None
        self._words: list[Words] = []

    def catch_up(self) -> None:
        """History in memory goes as far as the store has it, and what nobody retains leaves the store."""
        persistence = self.engine.persistence
        if persistence is not None:
            persistence.flush()
            persistence.forget()

    def compact(self) -> bool:
        """Rewrites some arrangements whose updates may cancel; False when all have been."""
        engine = self.engine
        engine.flush()
        if self._spines is None:
            if engine.persistence is not None:
                engine.compact_to(engine.persistence.applied_epoch)
            self._spines = contents.spines(engine.dataflow)
        left = UPDATES
        while self._spines and left > 0:
            spine = self._spines.pop()
            if spine.count <= left or spine.count <= UPDATES or self.full:
                left -= spine.count
                spine.compact()
        return bool(self._spines)

    def begin(self) -> bool:
        """What is held now, and what comes from now on, stays. False: not now, a view is being made beside."""
        engine = self.engine
        beside = [tell() for tell in engine.kept_beside]
        if engine.dataflow.held or None in beside:
            return False
        engine.dictionary.guarded = True
        self._sweep.begin()
        engine.dictionary.forget_recent()
        self._words = contents.words(engine.dataflow) + [words for some in beside for words in some or ()]
        return True

    def mark(self) -> None:
        """Sees what was held in memory, then what the store has, which has everything committed by now."""
        while self._words and not self.stop.is_set():
            self._sweep.see(self._words.pop())
        persistence = self.engine.persistence
        if persistence is None:
            return
        persistence.flush()
        for relation in persistence.store.relations():
            for words in persistence.store.words(relation):
                if self.stop.is_set():
                    return
                self._sweep.see(words)

    def condemn(self) -> bool:
        """Declares dead what was not seen, in some more slots; False when all were looked through."""
        dead = self._sweep.condemn(SLOTS)
        if dead is not None and len(dead):
            self.found += len(dead)
            self.engine.entries.leaving.append(dead)
        return dead is not None

    def conclude(self) -> None:
        """What is dead leaves the store with a commit of its own; who holds words holds them from before now."""
        if self.found:
            self.engine.commit([], self.engine.catalog, [])
        self._turn()

    @property
    def released(self) -> bool:
        """Whether nobody holds words from before ``conclude``."""
        return self._sweep.released

    def drop(self) -> None:
        """Gives the dead values' memory back, but for what readers of the tables may still look at."""
        if self.engine.dictionary.arena.dead:
            self._sweep.drop()

    def end(self) -> None:
        """The last of the memory goes with those readers."""
        dictionary = self.engine.dictionary
        dictionary.forget_recent()
        self._turn()
        dictionary.guarded = dictionary.arena.dead > 0

    def forget(self) -> None:
        """Gives the memory back to the system; beside the engine, since that takes its time."""
        self._sweep.forget()

    def let_go(self) -> None:
        """Without a sweep: tables that were outgrown go with those who may still look at them."""
        self._turn()

    def _turn(self) -> None:
        engine = self.engine
        engine.dataflow.refresh_arena()
        self._sweep.turn()
        engine.dataflow.refresh_arena()
        engine.published = replace(engine.published, hold=engine.dictionary.generation)
