"""The arena's lock is held for a bounded number of values or words at a time, so that other writers wait little."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from ivm import arena as arenas
from ivm.arena import INTERNED_AT_ONCE, SEEN_AT_ONCE, Arena
from ivm.kernels import arena as kernels
from ivm.kernels import interning
from ivm.rows import Words

COUNT = 3 * INTERNED_AT_ONCE + 5


class _Holds:
    """A lock that notes how far each kernel came in each hold."""

    def __init__(self) -> None:
        self.reached: list[int] = []

    def __enter__(self) -> None:
        self.reached.append(0)

    def __exit__(self, *_: object) -> None:
        pass


def _watched(arena: Arena, kernel: str, monkeypatch: pytest.MonkeyPatch) -> _Holds:
    holds, before = _Holds(), getattr(interning, kernel)

    def noted(*given: Any) -> int:
        holds.reached[-1] = reached = int(before(*given))
        return reached

    monkeypatch.setattr(arena, "lock", holds)
    monkeypatch.setattr(interning, kernel, noted)
    monkeypatch.setattr(arenas, "BREATH", 0)
    return holds


def _values() -> tuple[Any, Words]:
    values = [b"%d" % (i % (COUNT - 10)) for i in range(COUNT)]
    return np.frombuffer(b"".join(values), np.uint8), np.cumsum([0, *map(len, values)])


def test_interning(monkeypatch: pytest.MonkeyPatch) -> None:
    arena, (data, offsets) = Arena(bytes(16)), _values()
    holds = _watched(arena, "intern_values", monkeypatch)
    ids = arena.intern(data, offsets)
    assert max(b - a for a, b in pairwise([0, *holds.reached])) <= INTERNED_AT_ONCE
    assert holds.reached[-1] == COUNT
    assert len(arena) == COUNT - 10
    found, bounds = arena.packed(ids)
    assert found.tobytes() == data.tobytes()
    np.testing.assert_array_equal(bounds, offsets)


def test_marking(monkeypatch: pytest.MonkeyPatch) -> None:
    arena, (data, offsets) = Arena(bytes(16)), _values()
    ids = arena.intern(data, offsets)
    arena.state[interning.COLOUR] ^= kernels.COLOUR_FLAG  # a sweep begins
    words = np.tile(ids, 1 + 2 * SEEN_AT_ONCE // COUNT)
    holds = _watched(arena, "see_words", monkeypatch)
    arena.see(words)
    assert max(b - a for a, b in pairwise([0, *holds.reached])) <= SEEN_AT_ONCE
    assert holds.reached[-1] == len(words)
    unseen = np.empty(COUNT, np.int64)
    assert interning.unseen(arena.descriptor, int(arena.state[interning.COLOUR]), ids, unseen) == 0


@pytest.mark.parametrize("kernel", ["intern_values", "see_words"])
def test_nothing_takes_no_lock(monkeypatch: pytest.MonkeyPatch, kernel: str) -> None:
    arena = Arena(bytes(16))
    holds = _watched(arena, kernel, monkeypatch)
    assert len(arena.intern(np.zeros(0, np.uint8), np.zeros(1, np.int64))) == 0
    arena.see(np.zeros(0, np.int64))
    assert holds.reached == []


def test_words_that_may_not_be_written_need_no_other_kernels(caplog: pytest.LogCaptureFixture) -> None:
    arena, (data, offsets) = Arena(bytes(16)), _values()
    ids = arena.intern(data, offsets)
    ids.flags.writeable = False
    for given in (ids, ids[::2]):
        assert len(arena.living(given)) == len(given)
        assert arena.size(given) == len(arena.packed(given)[0])
    assert arena.load(ids, data.copy(), offsets) is None
    assert not [record.message for record in caplog.records if record.name == "freshet.kernels"]
