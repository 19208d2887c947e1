"""Random statements over the whole grammar; none may fail internally, end a session or hang.

    python -m tests.programs.fuzz --count 1000000 --seed 1

Statements are drawn from the grammar (``tests.support.statements``) and made from those of the tests and the
documentation by changes of a few tokens (``tests.support.mutations``). They run in sessions of one server in this
process, which begins anew now and then. A finding is an error of class XX or a Python exception, named by where it
arose, or a statement that runs far beyond ``statement_timeout``.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import random
import re
import sys
import tempfile
import time
import traceback
from collections import Counter
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ivm.errors import SqlError
from tests.support.mutations import Mutations
from tests.support.sessions import Client, Server
from tests.support.statements import SETUP, Statements, filling

PATIENCE: Final = 60.0
"""Seconds after which a statement hangs."""
LONG: Final = 12.0
"""Seconds after which a statement has run too far beyond its timeout."""
SESSION: Final = 40
"""Statements of a session."""
LIFE: Final = 2000
"""Statements of a server."""
TIMEOUT: Final = "SET statement_timeout = '3s'"
_FRAME: Final = re.compile(r'File ".*?/((?:sql|planner|storage|ivm)/[^"]+)", line (\d+), in (\S+)')


@dataclass
class Found:
    """What a run has seen: outcomes by SQLSTATE, and the first statement of each class of finding."""

    done: int = 0
    states: Counter[str] = field(default_factory=Counter)
    classes: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, text: str, trace: str) -> None:
        self.classes[kind] += 1
        if kind not in self.first or len(text) < len(self.first[kind]):
            self.first[kind] = text
        if self.classes[kind] == 1:
            print(f"-- {kind}\n{text}\n{trace}", flush=True)


def place(trace: str) -> str:
    """An exception's class: its last line's type, and the product's last line in the traceback."""
    frames = _FRAME.findall(trace)
    last = [line for line in trace.splitlines() if line.strip()][-1:] or [""]
    error = last[0].partition(":")[0]
    return f"{error} in {frames[-1][0]}:{frames[-1][1]} {frames[-1][2]}" if frames else error


class Life:
    """A server from its set-up to its end."""

    def __init__(self, folder: Path, found: Found) -> None:
        self.found = found
        self.server = Server(folder, patience=PATIENCE)
        self.client = self.server.client()
        for text in (*SETUP, *filling()):
            self.client.run(text)
        self.client.run(TIMEOUT)

    def turn(self) -> None:
        """The next session."""
        self.client.close()
        self.client = self.server.client()
        self.client.run(TIMEOUT)

    def play(self, text: str) -> bool:
        """Run a text; whether the server can go on."""
        begun = time.monotonic()
        errors = io.StringIO()
        state = "00000"
        with contextlib.redirect_stderr(errors):
            try:
                _answer(self.client, text)
            except SqlError as error:
                state = error.sqlstate
                if state[:2] in ("XX", "58"):
                    trace = errors.getvalue() or "".join(traceback.format_exception(error))
                    self.found.add(place(trace), text, trace)
            except FutureTimeoutError:
                self.found.add("hangs", text, "")
                return False
            except RecursionError:
                state = "54001"
            except Exception as error:
                trace = "".join(traceback.format_exception(error))
                self.found.add(place(trace), text, trace)
                self.server.run(self.client.session.fail())
        took = time.monotonic() - begun
        if took > LONG:
            self.found.add("runs long", f"{text}\n-- {took:.0f} s", "")
        self.found.done += 1
        self.found.states[state] += 1
        return True


def _answer(client: Client, text: str) -> None:
    """Run a text to its end; COPY TO is read, and subscriptions for a moment."""
    try:
        client.results(text, b"1\tx\n\\.\n")
    except SqlError:
        if client.session.transaction_status == "E":
            client.run("ROLLBACK")
        raise


def run(count: int, seed: int, found: Found | None = None, seconds: float | None = None) -> Found:
    """Run that many statements, or for that long."""
    found = found or Found()
    rng = random.Random(seed)
    statements, mutations = Statements(rng), Mutations(rng)
    begun = time.monotonic()
    logging.disable(logging.CRITICAL)

    def goes_on() -> bool:
        return found.done < count and (seconds is None or time.monotonic() - begun < seconds)

    while goes_on():
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            life, end = Life(Path(folder) / "data", found), found.done + LIFE
            usable = True
            while usable and found.done < end and goes_on():
                if found.done % SESSION == 0:
                    life.turn()
                text = mutations.statement(statements) if rng.random() < 0.35 else statements.statement()
                usable = life.play(text)
            if usable:
                life.server.close()
        if count > LIFE:
            print(
                f"{found.done} statements, {sum(found.classes.values())} failures of {len(found.classes)} classes, "
                f"{found.states['00000'] * 100 // max(found.done, 1)} % succeed, {time.monotonic() - begun:.0f} s",
                flush=True,
            )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float)
    options = parser.parse_args()
    found = run(options.count, options.seed, seconds=options.seconds)
    for kind, times in found.classes.most_common():
        print(f"{times}x {kind}\n    {found.first[kind]}")
    print(found.states.most_common(12))
    return 1 if found.classes else 0


if __name__ == "__main__":
    sys.exit(main())
