"""W6 for the dictionary: ten million 64-bit values get ids by a 32-bit hash, some 10,000 of which collide; updates.

``python -m benchmarks.interning [values]`` prints seconds and nanoseconds of CPU for the load, updates per CPU second
at batches of 1 and 1,000 (update u = value u goes, value N+u comes), what a sweep costs and how long others wait for it
at most, and bytes per value. Checked: ids are unique, stable, and decode to the right multiset.
"""

from __future__ import annotations

import resource
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import rivals
from benchmarks.calibrate import factor
from benchmarks.report import MEGABYTES, RATE, SECONDS, Row, at_least, at_most
from ivm.rows import Words
from ivm.sweep import Sweep
from storage.dictionary import Dictionary

ID_BITS = 32
PART = 1 << 16
VALUES = 10_000_000


def intern(dictionary: Dictionary, values: Words) -> Words:
    """The values' ids; values int64[n] are eight bytes each."""
    return dictionary.intern_packed(values.view(np.uint8), np.arange(len(values) + 1) * 8)


def load(dictionary: Dictionary, count: int) -> tuple[Words, float]:
    """The ids of 0 … count-1, and CPU seconds; entries are drained as a commit's log record would."""
    ids = np.empty(count, np.int64)
    started = time.process_time()
    for start in range(0, count, PART):
        stop = min(start + PART, count)
        ids[start:stop] = intern(dictionary, np.arange(start, stop))
        dictionary.arena.drain_journal()
        if dictionary.arena.outgrown:
            Sweep(dictionary.arena).start_generation()  # as in the server
    return ids, time.process_time() - started


def update(dictionary: Dictionary, ids: Words, count: int, first: int, updates: int, batch: int) -> float:
    """Updates from ``first`` on, whose ids replace those removed; updates per CPU second."""
    started = time.process_time()
    for u in range(first, first + updates, batch):
        ids[u : u + batch] = intern(dictionary, np.arange(count + u, count + u + batch))
        dictionary.arena.drain_journal()
    return updates / (time.process_time() - started)


def sweep(dictionary: Dictionary, living: Words) -> tuple[float, float, int]:
    """CPU seconds of a whole sweep, the longest that an intern beside it took (s), and how many values left."""
    stop = threading.Event()
    waits = [0.0]

    def intern_beside() -> None:
        values = np.array([-1])
        while not stop.is_set():
            before = time.perf_counter()
            dictionary.arena.intern(values.view(np.uint8), np.array([0, 8]))
            waits.append(time.perf_counter() - before)
            time.sleep(0.001)

    thread = threading.Thread(target=intern_beside)
    started = time.process_time()
    work = Sweep(dictionary.arena)
    work.begin()
    dictionary.forget_recent()
    thread.start()
    work.see(living)
    left = 0
    while (dead := work.condemn(1 << 15)) is not None:
        left += len(dead)
    work.start_generation()
    assert work.released
    work.drop()
    work.start_generation()
    took = time.process_time() - started
    stop.set()
    thread.join()
    return took, max(waits), left


def check(dictionary: Dictionary, values: Words, ids: Words) -> None:
    """Ids are unique, stable, and of the right values."""
    assert len(np.unique(ids)) == len(ids), "two values have one id"
    for start in range(0, len(ids), PART):
        data, _ = dictionary.packed(ids[start : start + PART])
        assert (data.view(np.int64) == values[start : start + PART]).all(), "an id is another value's"
        assert (intern(dictionary, values[start : start + PART].copy()) == ids[start : start + PART]).all()


@dataclass(frozen=True, slots=True)
class Interned:
    """``load``: CPU seconds; ``peak``: MB of the resident set at its largest, without what it was before; ``held``:
    bytes a value; ``rates``: updates per CPU second by batch size; the sweep's CPU seconds, and the longest that an
    intern beside it took (s)."""

    count: int
    load: float
    peak: float
    held: float
    rates: dict[int, float]
    swept: float
    wait: float


def resident() -> float:
    """MB in use now. The peak would hide what a load adds below it."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def measure(count: int) -> Interned:
    """Load, update, sweep; AssertionError unless ids are unique, stable, and of the right multiset."""
    dictionary = Dictionary(b"freshet benchmark"[:16], id_bits=ID_BITS)
    warm = Dictionary(b"freshet benchmark"[:16], id_bits=ID_BITS)
    sweep(warm, load(warm, 10_000)[0])
    base = resident()
    ids, seconds = load(dictionary, count)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - base
    held = dictionary.arena.byte_size / count
    updates = min(count // 10, 200_000)
    rates = {batch: update(dictionary, ids, count, first, updates, batch) for batch, first in ((1, 0), (1000, updates))}
    swept, wait, left = sweep(dictionary, ids)
    assert left == 2 * updates, "what nobody names leaves"
    values = np.arange(count)
    values[: 2 * updates] += count
    check(dictionary, values, ids)
    return Interned(count, seconds, peak, held, rates, swept, wait)


def compare(found: Interned, factor: float) -> list[Row]:
    """Compares with the compiled system's figures and the aims."""
    share = found.count / VALUES
    theirs, memory = rivals.INTERNING_LOAD * share / factor, rivals.INTERNING_MB * share
    row = {"workload": "W6", "case": "load", "unit": SECONDS, "ours": found.load, "right": True}
    rows = [at_most({**row, "rivals": {rivals.COMPILED: theirs}}, found.load / theirs, 1.0, "theirs")]
    row = {"workload": "W6", "case": "memory", "unit": MEGABYTES, "ours": found.peak}
    aim = rivals.INTERNING_MEMORY
    rows.append(at_most({**row, "rivals": {rivals.COMPILED: memory}}, found.peak / memory, aim, "theirs"))
    for batch, rate in found.rates.items():
        theirs = rivals.INTERNING_RATES[batch] * factor
        row = {"workload": "W6", "case": f"batch {batch:,}", "unit": RATE, "ours": rate}
        rows.append(at_least({**row, "rivals": {rivals.COMPILED: theirs}}, rate / theirs, None))
    return [
        *rows,
        Row("W6", "bytes a value held", "B", found.held),
        Row("W6", "sweep of all values, CPU", SECONDS, found.swept),
        Row("W6", "longest intern beside it", SECONDS, found.wait),
    ]


def main() -> None:
    """Measure so many values, or ten million."""
    for row in compare(measure(int(sys.argv[1]) if len(sys.argv) > 1 else VALUES), factor()):
        print(row)


if __name__ == "__main__":
    main()
