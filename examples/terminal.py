"""What the examples print: steps with their time, one progress line, aligned tables."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

INTERACTIVE = sys.stdout.isatty()
BOLD, DIM, RESET = ("\x1b[1m", "\x1b[2m", "\x1b[0m") if INTERACTIVE else ("", "", "")


def title(text: str) -> None:
    """A heading."""
    print(f"\n{BOLD}{text}{RESET}", flush=True)


@dataclass(slots=True)
class Step:
    """What a step reports when it ends."""

    result: str = ""


@contextmanager
def step(text: str) -> Iterator[Step]:
    """One line for a piece of work: its name at the start, its result and time at the end."""
    print(f"  {text:<58}", end="", flush=True)
    started = time.perf_counter()
    outcome = Step()
    yield outcome
    print(f"{outcome.result:>22} {time.perf_counter() - started:8.2f} s", flush=True)


@dataclass(slots=True)
class Progress:
    """A line rewritten in place on a terminal, and printed ten times in all elsewhere."""

    total: int
    text: str
    started: float = field(default_factory=time.perf_counter)

    def at(self, done: int, note: str = "") -> None:
        """Show that ``done`` of the total is done."""
        if not INTERACTIVE and done % max(1, self.total // 10) and done != self.total:
            return
        rate = done / max(1e-9, time.perf_counter() - self.started)
        line = f"  {self.text} {done:>6,} of {self.total:,}  {rate:7.0f}/s  {note}"
        print(f"\r\x1b[K{line[:110]}" if INTERACTIVE else line, end="" if INTERACTIVE else "\n", flush=True)

    def end(self) -> None:
        """End the line."""
        if INTERACTIVE:
            print("\r\x1b[K", end="", flush=True)


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table with the first column to the left, the others to the right."""
    cells = [[f"{c:,}" if isinstance(c, int) else str(c) for c in row] for row in rows]
    widths = [max(len(r[i]) for r in [list(header), *cells]) for i in range(len(header))]
    for number, row in enumerate([list(header), *cells]):
        first, rest = row[0].ljust(widths[0]), "  ".join(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))
        print(f"  {DIM if number == 0 else ''}{first}  {rest}{RESET if number == 0 else ''}", flush=True)


def quantile(values: Sequence[float], q: float) -> float:
    """The value at rank ``q`` (0 to 1); 0 for none."""
    return sorted(values)[min(len(values) - 1, int(q * len(values)))] if values else 0.0
