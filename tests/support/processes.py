"""The processes of this machine, for tests that kill some of them: their ancestry and CPU use."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LOOK_SECONDS: Final = 0.05
LOOKS: Final = 10
LEAST_TICKS: Final = 3
"""In hundredths of a second, over ``LOOKS`` looks: an idle Java process uses less."""


@dataclass(frozen=True, slots=True)
class Process:
    """``ticks``: the CPU time used."""

    pid: int
    words: tuple[str, ...]
    ticks: int

    @property
    def is_java(self) -> bool:
        return bool(self.words) and self.words[0].endswith("java")

    @property
    def is_executor(self) -> bool:
        """Whether it is the Java process of a standalone cluster's executor."""
        return self.is_java and any(word.endswith("CoarseGrainedExecutorBackend") for word in self.words)

    @property
    def is_worker(self) -> bool:
        """Whether it is one of Spark's Python workers, or the process that forks them."""
        return "pyspark.daemon" in self.words


def below(pid: int) -> list[Process]:
    """The descendants of a process."""
    children: dict[int, list[tuple[int, int]]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            fields = path.joinpath("stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append((int(path.name), int(fields[11]) + int(fields[12])))
    found: list[Process] = []
    waiting = list(children.get(pid, ()))
    while waiting:
        child, ticks = waiting.pop()
        waiting += children.get(child, ())
        try:
            words = tuple(Path(f"/proc/{child}/cmdline").read_text().split("\0"))
        except OSError:
            continue
        found.append(Process(child, words, ticks))
    return found


def executors(workers: Iterable[int]) -> list[int]:
    """The executors below a cluster's workers."""
    return [process.pid for worker in workers for process in below(worker) if process.is_executor]


def busiest(pids: Iterable[int], with_children: bool = True) -> int | None:
    """The process that uses the most CPU, with all its descendants; None if all of them are idle."""
    before = {pid: _used(pid, with_children) for pid in pids}
    for _ in range(LOOKS if before else 0):
        time.sleep(LOOK_SECONDS)
        used = {pid: _used(pid, with_children) - ticks for pid, ticks in before.items()}
        best = max(used, key=lambda pid: used[pid])
        if used[best] >= LEAST_TICKS:
            return best
    return None


def _used(pid: int, with_children: bool) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    below_it = sum(process.ticks for process in below(pid)) if with_children else 0
    return int(fields[11]) + int(fields[12]) + below_it
