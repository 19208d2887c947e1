"""How far a plan's steps on Spark are: executors write a file for each part that is done, and the driver looks.

The folder of a step exists once the step has begun. A file's name says what was taken (``Due``), the part, and the
number of updates received; its content is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ivm.graph import Keyed
from ivm.time import unpack
from planner.distributed.fragment import FIRST, Cut, Fragment
from planner.distributed.rounds import Due
from planner.physical.nodes import Plan, innermost_loops

Progress = Callable[[str, int, int, int], None]
"""Called as a step begins: (what it is: a node, a round; the number of steps; this step's index; updates so far)."""


def begin_step(folder: Path, step: int) -> None:
    """On an executor: a step has begun."""
    _folder(folder, step).mkdir(parents=True, exist_ok=True)


def end_part(folder: Path, step: int, due: Due, part: int, updates: int) -> None:
    """On an executor: a part has received so many updates and is done."""
    (_folder(folder, step) / f"{due}-{part}-{updates}").touch()


def received(folder: Path, step: int) -> int:
    """The number of updates that a step's finished parts have received."""
    return sum(int(path.name.rpartition("-")[2]) for path in _folder(folder, step).glob("*-*"))


def _folder(folder: Path, step: int) -> Path:
    return folder / "progress" / f"{step:06d}"


@dataclass(frozen=True, slots=True)
class Step:
    """A step of some fragments.

    ``what``: its description ("": not known yet); ``level``: the highest of their levels.
    """

    number: int
    what: str = ""
    level: int = 0


@dataclass(slots=True)
class Steps:
    """The driver's view: ``count`` steps so far, of which the last job's are running."""

    folder: Path
    plan: Plan
    cut: Cut
    progress: Progress
    count: int = 0
    running: tuple[tuple[Step, ...], int] = ((), 0)
    """The running job's steps, and how many updates there were before it: in the sources, and received by steps."""

    @property
    def updates(self) -> int:
        """The number of updates before the running job."""
        return self.running[1]

    def add(self, fragments: Sequence[Fragment] = (), due: Sequence[Due] = ()) -> Step:
        """The next step. Without ``fragments`` it is not known yet what it will run."""
        self.count += 1
        if not fragments:
            return Step(self.count)
        return Step(self.count, self._what(fragments, due), max(f.level for f in fragments))

    def begin(self, steps: Sequence[Step]) -> None:
        """A job of these steps begins."""
        self.running = tuple(steps), self.updates
        self.tell()

    def end(self) -> int:
        """The job has ended. Returns in how many of its steps something was due."""
        steps, updates = self.running
        counts = [received(self.folder, step.number) for step in steps]
        self.running = (), updates + sum(counts)
        return sum(any(_folder(self.folder, step.number).glob("*-*")) for step in steps)

    def tell(self) -> None:
        """Reports the last step of the running job that has begun, and the updates received so far."""
        steps, updates = self.running
        begun = [step for step in steps if _folder(self.folder, step.number).exists()] or steps[:1]
        updates += sum(received(self.folder, step.number) for step in begun)
        known = (step if step.what else self._seen(step.number) for step in reversed(begun))
        for step in [*filter(None, known)][:1]:
            self.progress(step.what, self.cut.levels - 1, step.level, updates)

    def _seen(self, number: int) -> Step | None:
        """Describes a step by what one of its parts has reported; None: none has."""
        done = next(_folder(self.folder, number).glob("*-*"), None)
        if done is None:
            return None
        due = Due.parse(done.name.rsplit("-", 2)[0])
        fragment = self.cut.fragments[due.fragment]
        return Step(number, self._what((fragment,), [due]), fragment.level)

    def _what(self, fragments: Sequence[Fragment], due: Sequence[Due]) -> str:
        """Describes a step: its operators, and the rounds of the loops that contain it, outermost first."""
        if fragments[0].number == FIRST:
            return "read"
        kinds = dict.fromkeys(type(n).__name__ for f in fragments for _, n in f.nodes if isinstance(n, Keyed))
        what, loop = ", ".join(kinds) or "Arrange", innermost_loops(self.plan)[due[0].node] if due else None
        if loop is None:
            return what
        rounds = unpack(due[0].vector, self.plan.scopes[loop].shape)[1:]
        return f"{what}, round {'.'.join(map(str, rounds))}"
