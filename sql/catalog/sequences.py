"""The positions of sequences. Any thread may draw numbers; they take effect at once and are never rolled back.

Positions are logged ahead, as in Postgres: a log record marks a position ``AHEAD`` numbers further on, so that only one
number in so many costs a record. A crash skips the numbers that were logged but not drawn. Before the engine
acknowledges a commit that may contain a drawn number, it drains the marks that cover it into the log.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Words
from sql.catalog.catalog import Relation, Sequence
from storage.record import SequenceMark

AHEAD: Final = 32


@dataclass(slots=True)
class _State:
    """``value``: the last number drawn, or the next one if not ``called`` yet. ``ahead``: how many more numbers the log
    covers."""

    value: int
    called: bool
    ahead: int = 0


class Sequences:
    """The positions by ``Sequence.storage``. A sequence not used yet is at its definition's initial position."""

    def __init__(self) -> None:
        self._states: dict[int, _State] = {}
        self._marks: dict[int, SequenceMark] = {}
        self._lock = threading.Lock()

    @property
    def unmarked(self) -> bool:
        """Whether numbers were drawn that the log does not cover yet."""
        return bool(self._marks)

    def next(self, relation: Relation, count: int) -> Words:
        """Draws the next ``count`` numbers, int64. Raises 2200H at the end of a sequence that does not cycle."""
        sequence = relation.sequence
        assert sequence is not None, "a sequence"
        with self._lock:
            state = self._state(sequence)
            first = state.value + sequence.increment if state.called else state.value
            last = first + (count - 1) * sequence.increment
            if count and sequence.minimum <= first <= sequence.maximum and sequence.minimum <= last <= sequence.maximum:
                self._advance(sequence, state, last, count)
                if count == 1:
                    return np.array([first], np.int64)
                return np.arange(count, dtype=np.int64) * sequence.increment + first
            return np.array([self._one(relation, sequence, state) for _ in range(count)], np.int64)

    def _one(self, relation: Relation, sequence: Sequence, state: _State) -> int:
        value = state.value + sequence.increment if state.called else state.value
        if not sequence.minimum <= value <= sequence.maximum:
            up = sequence.increment > 0
            if not sequence.cycle:
                what, bound = ("maximum", sequence.maximum) if up else ("minimum", sequence.minimum)
                message = f'nextval: reached {what} value of sequence "{relation.name}" ({bound})'
                raise SqlError("2200H", message)
            value = sequence.minimum if up else sequence.maximum
            state.ahead = 0
        self._advance(sequence, state, value, 1)
        return value

    def _advance(self, sequence: Sequence, state: _State, value: int, count: int) -> None:
        state.value, state.called = value, True
        state.ahead -= count
        if state.ahead < 0:
            end = sequence.maximum if sequence.increment > 0 else sequence.minimum
            state.ahead = min(AHEAD, (end - value) // sequence.increment)
            mark = value + state.ahead * sequence.increment
            self._marks[sequence.storage] = SequenceMark(sequence.storage, mark, True)

    def set(self, relation: Relation, value: int, called: bool) -> None:
        """setval. Raises 22003."""
        sequence = relation.sequence
        assert sequence is not None, "a sequence"
        if not sequence.minimum <= value <= sequence.maximum:
            bounds = f'for sequence "{relation.name}" ({sequence.minimum}..{sequence.maximum})'
            raise SqlError("22003", f"setval: value {value} is out of bounds {bounds}")
        with self._lock:
            self._states[sequence.storage] = _State(value, called)
            self._marks[sequence.storage] = SequenceMark(sequence.storage, value, called)

    def peek(self, sequence: Sequence) -> tuple[int, int, bool]:
        """last_value, log_cnt, is_called."""
        with self._lock:
            state = self._state(sequence)
            return state.value, state.ahead, state.called

    def drain(self) -> tuple[SequenceMark, ...]:
        """Takes the marks that must be logged now."""
        if not self._marks:
            return ()
        with self._lock:
            marks, self._marks = tuple(self._marks.values()), {}
        return marks

    def load(self, marks: Iterable[SequenceMark]) -> None:
        """Restores marks from the store or a log record."""
        for mark in marks:
            self._states[mark.storage] = _State(mark.value, mark.called)

    def rest(self) -> None:
        """Marks the actual positions of sequences, where the logged ones are ahead."""
        for storage, state in self._states.items():
            if state.ahead:
                state.ahead = 0
                self._marks[storage] = SequenceMark(storage, state.value, state.called)

    def _state(self, sequence: Sequence) -> _State:
        state = self._states.get(sequence.storage)
        if state is None:
            state = self._states[sequence.storage] = _State(sequence.initial, sequence.called)
        return state
