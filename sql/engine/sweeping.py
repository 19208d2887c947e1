"""The engine's part in a sweep of the dictionary; docs/decisions/0004-sweep.md argues why it is correct.

``compact``, ``begin``, ``condemn``, ``conclude`` and ``end`` are short jobs of the engine thread; ``catch_up``,
``mark``, ``drop`` and ``forget`` run on a thread beside it.
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
"""Slots of the dictionary examined in one job."""
UPDATES: Final = 1 << 13
"""Updates rewritten in one job, so that those which cancel are removed."""


class Sweeping:
    """One sweep. ``full``: large arrangements are rewritten too, each in one go, so that they keep no values alive
    needlessly."""

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
        """Compact history in memory as far as the store has it, and drop unretained history from the store."""
        persistence = self.engine.persistence
        if persistence is not None:
            persistence.flush()
            persistence.forget()

    def compact(self) -> bool:
        """Rewrite some arrangements whose updates may cancel; False when all are done."""
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
        """Keep everything held now and everything added from now on. False: not possible now, a view is being hydrated
        beside the engine."""
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
        """Mark the words that were held in memory, then those in the store, which has every commit by now."""
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
        """Declare unmarked values dead in some more slots; False when all slots were examined."""
        dead = self._sweep.condemn(SLOTS)
        if dead is not None and len(dead):
            self.found += len(dead)
            self.engine.entries.leaving.append(dead)
        return dead is not None

    def conclude(self) -> None:
        """Remove the dead values from the store with a commit of its own. Existing holders of words keep an earlier
        generation."""
        if self.found:
            self.engine.commit([], self.engine.catalog, [])
        self.start_generation()

    @property
    def released(self) -> bool:
        """Whether nobody holds words from before ``conclude``."""
        return self._sweep.released

    def drop(self) -> None:
        """Free the dead values' memory, except what readers of the dictionary's tables may still access."""
        if self.engine.dictionary.arena.dead:
            self._sweep.drop()

    def end(self) -> None:
        """Free the remaining memory, when those readers are gone."""
        dictionary = self.engine.dictionary
        dictionary.forget_recent()
        self.start_generation()
        dictionary.guarded = dictionary.arena.dead > 0

    def forget(self) -> None:
        """Return freed memory to the system; beside the engine, because it takes time."""
        self._sweep.forget()

    def start_generation(self) -> None:
        """Publish a root that holds a new generation. Outgrown tables are freed when their last readers are gone."""
        engine = self.engine
        engine.dataflow.refresh_arena()
        self._sweep.start_generation()
        engine.dataflow.refresh_arena()
        engine.published = replace(engine.published, hold=engine.dictionary.generation)
