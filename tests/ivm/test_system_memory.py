"""What is given back to the system, and that nobody waits for it."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from ivm import system_memory
from tests.support.paths import ROOT

PROGRAM = """
import re
from pathlib import Path
from ivm.system_memory import bound_pools

bound_pools()
resident = lambda: int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) >> 10
before, held = resident(), []
for size in range(1, 30):
    large = b"x" * (size << 20)
    held.append(bytes(100_000))
    del large
print(resident() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's account of memory")
def test_what_is_freed_between_others_does_not_stay() -> None:
    """Without bounds, malloc serves the large ones from a pool that the small ones keep."""
    run = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(run.stdout) < 12


class Library:
    """The C library, which does not come back before the gate is open."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.gate = threading.Event()

    def malloc_trim(self, _: int) -> None:
        self.calls.append(threading.current_thread().name)
        assert self.gate.wait(60)

    def called(self, times: int) -> None:
        """Waits until it has been called so often."""
        until = time.monotonic() + 30
        while len(self.calls) < times:
            assert time.monotonic() < until
            time.sleep(0.01)


def test_giving_back_is_done_together_and_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    monkeypatch.setattr(system_memory, "_LIBRARY", library)
    system_memory.give_back()
    library.called(1)
    for _ in range(1000):
        system_memory.give_back()
    assert len(library.calls) == 1
    library.gate.set()
    library.called(2)
    time.sleep(2 * system_memory.DELAY_SECONDS)
    assert library.calls == ["returning"] * 2


def full_collections() -> int:
    return int(gc.get_stats()[2]["collections"])


def test_giving_back_collects_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without this, thousands of freed tuples keep a block of 1 MB each."""
    library = Library()
    library.gate.set()
    monkeypatch.setattr(system_memory, "_LIBRARY", library)
    monkeypatch.setattr(system_memory._Present, "returning", system_memory._Returning())
    before = full_collections()
    system_memory.give_back()
    library.called(1)
    assert full_collections() > before


def test_garbage_is_collected_again_after_many_times_of_what_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    collected: list[float] = []
    now = [100.0]

    def collect() -> None:
        collected.append(now[0])
        now[0] += 0.25

    monkeypatch.setattr(system_memory, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(system_memory, "gc", SimpleNamespace(isenabled=lambda: True, collect=collect))
    returning = system_memory._Returning()
    assert returning._collect_rarely()
    now[0] += 0.25 * system_memory.RARELY - 1
    assert not returning._collect_rarely()
    now[0] += 1
    assert returning._collect_rarely()
    assert collected == [100.0, 100.25 + 0.25 * system_memory.RARELY]


def test_garbage_that_is_not_collected_at_once_is_later(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    library.gate.set()
    monkeypatch.setattr(system_memory, "_LIBRARY", library)
    returning = system_memory._Returning()
    monkeypatch.setattr(system_memory._Present, "returning", returning)
    returning._collects_from = time.monotonic() + 2
    before = full_collections()
    system_memory.give_back()
    library.called(2)  # of these only the second collects
    assert full_collections() > before


def test_tuples_that_others_fill_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of all objects holds them too: growing them is a SystemError then."""
    monkeypatch.setattr(gc, "get_objects", lambda *_: pytest.fail("all objects are listed"))
    assert system_memory._Returning()._collect_rarely()
