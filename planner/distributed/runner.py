"""Runs a plan's fragments on Spark: the driver's side.

The plan is cut where rows of one key must meet (``planner.distributed.fragment``). Each task runs fragments with the
engine's own operators, in a small dataflow over its part (``planner.distributed.stage``), so there is one
implementation of each operator, and Spark does only the exchange, scheduling and retries. Without loops one job runs
all levels, one after the other. With loops a job runs some steps of the agenda (``planner.distributed.multi_step``),
and frames wait in files for later ones. Only the DataFrame API is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from planner.distributed.fragment import FIRST, Cut
from planner.distributed.multi_step import StageAgenda, ahead
from planner.distributed.progress import Steps
from planner.distributed.records import FRAME, REPORTS
from planner.distributed.rounds import Due, Rounds
from planner.distributed.stage import Slice, Stage, Store
from planner.physical.nodes import Plan, innermost_loops
from storage.load.paths import spark_path
from storage.spark.errors import spark_errors

FEW_UPDATES: Final = 1 << 18
"""If a job's steps receive at most this many updates, its own overhead dominates and the next job gets more steps."""
FEW_BYTES: Final = 1 << 22
"""The most bytes of frames that a job takes along although it may not use them."""


@dataclass(slots=True)
class Runner:
    """Runs a plan in ``parts`` parts, which ``tasks`` tasks of each stage share.

    ``folder``: of this run, shared with the executors. ``check``: called between jobs; it may raise to end the run.
    """

    session: Any
    plan: Plan
    cut: Cut
    parts: int
    tasks: int
    folder: Path
    store: Store
    steps: Steps
    check: Callable[[], object]
    reports: list[bytes] = field(default_factory=list)
    _waiting: dict[Due, list[Path]] = field(default_factory=dict)

    def run(self, slices: Sequence[Slice], levels: int) -> list[bytes]:
        """Runs the plan over its sources' rows. Returns what parts have reported, step by step.

        ``levels``: how many there are to run, without loops. 58000: Spark fails; and what an operator raises.
        """
        if not slices:
            return []
        if self.plan.scopes:
            self._run_rounds(slices)
        else:
            self._run_levels(slices, levels)
        return self.reports

    def _run_levels(self, slices: Sequence[Slice], levels: int) -> None:
        """Runs a plan without loops: one job, whose stages are the levels."""
        steps, stages = [], []
        for level in range(levels):
            fragments = [fragment for fragment in self.cut.fragments if fragment.level == level]
            if fragments:
                steps.append(self.steps.add(fragments))
                stages.append(self._stage(steps[-1].number, level))
        self.steps.begin(steps)
        with spark_errors():
            found = self._chained(self._first(stages[0], slices), stages[1:]).collect()
        self._take_reports(bytes(row["attached"]) for row in found)

    def _run_rounds(self, slices: Sequence[Slice]) -> None:
        """Runs a plan with loops: job after job, whose frames wait in files for the next ones.

        A job gets more steps if the one before had few updates.
        """
        rounds = Rounds(self.plan, self.cut)
        step = self.steps.add([self.cut.fragments[FIRST]])
        self.steps.begin([step])
        self._run_job(lambda: self._first(self._stage(step.number, 0), slices))
        stages = 1
        while self._waiting:
            self.check()
            before = self.steps.updates
            used = self._run_steps(rounds, stages)
            few = self.steps.updates - before <= FEW_UPDATES
            stages = min(2 * used, self.store.most_stages) if few else 1

    def _run_steps(self, rounds: Rounds, count: int) -> int:
        """Runs a job of ``count`` steps; returns in how many of them something was due."""
        due = rounds.next(self._waiting)
        here = self._here(due, rounds, count)
        paths = [path for d in here for path in self._waiting.pop(d)]
        steps = [self.steps.add([self.cut.fragments[d.fragment] for d in due], due)]
        steps += [self.steps.add() for _ in range(count - 1)]
        first = StageAgenda(rounds, frozenset(here), frozenset(self._waiting), 0, count == 1)
        agendas = (replace(first, stage=i, last=i == count - 1) for i in range(count))
        stages = [self._stage(step.number, agenda) for step, agenda in zip(steps, agendas, strict=True)]
        self.steps.begin(steps)
        return self._run_job(lambda: self._chained(self._frame(paths), stages))

    def _here(self, due: list[Due], rounds: Rounds, stages: int) -> list[Due]:
        """What a job has in its frames: what is due, and what its later steps will take, if that is little."""
        found, size = list(due), 0
        for one in ahead(rounds, self._waiting, stages)[len(due) :]:
            size += sum(file.stat().st_size for path in self._waiting[one] for file in path.iterdir())
            if size > FEW_BYTES:
                break
            found.append(one)
        return found

    def _run_job(self, frame: Callable[[], Any]) -> int:
        """Writes what a job's last step leaves, and records which frames wait for later jobs."""
        out = self.folder / "frames" / str(self.steps.count)
        with spark_errors():
            frame().write.partitionBy("due").parquet(out.as_uri())
        for folder in sorted(out.glob("due=*")):
            name = folder.name.partition("=")[2]
            if name == REPORTS:
                files = sorted(folder.glob("*.parquet"))
                tables = (pq.read_table(file, columns=["attached"], partitioning=None) for file in files)
                self._take_reports(cell.as_py() for table in tables for cell in table["attached"])
            else:
                self._waiting.setdefault(Due.parse(name), []).append(folder)
        return self.steps.end()

    def _take_reports(self, reports: Iterable[bytes]) -> None:
        found = list(reports)
        self.reports += found
        self.store = self.store.after(found)

    def _stage(self, step: int, takes: int | StageAgenda) -> Stage:
        loops = tuple(innermost_loops(self.plan))
        return Stage(self.cut, loops, self.parts, self.tasks, self.folder, self.store, step, takes)

    def _first(self, stage: Stage, slices: Sequence[Slice]) -> Any:
        """The frame of level 0: a task for each slice."""
        count = len(slices)
        return self.session.range(0, count, 1, count).mapInArrow(replace(stage, slices=tuple(slices)), FRAME)

    def _chained(self, frame: Any, stages: Sequence[Stage]) -> Any:
        """One stage after another, with an exchange by part before each."""
        for stage in stages:
            frame = frame.repartitionById(self.tasks, "part").mapInArrow(stage, FRAME)
        return frame

    def _frame(self, paths: Sequence[Path]) -> Any:
        return self.session.read.schema(FRAME).parquet(*[spark_path(path) for path in paths])
