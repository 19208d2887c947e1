"""Hydration by Spark: fills a new view's nodes, which are made beside the running engine."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from ivm.graph import Errors, NodeId
from ivm.hydration.adopt import Contents, Standing, fill, keeping, standing
from ivm.hydration.detached import Detached
from ivm.rows import Words
from ivm.specs import inputs
from ivm.trace.batch import Block
from planner.distributed.render_spark import Hydration, Progress
from planner.expr.context import Context
from planner.physical.nodes import Constants, LoopVariable, Plan, reached
from planner.render.dataflow import Installed, constant_rows
from storage.spark.session import SparkSession


def hydrate_by_spark(
    flow: Detached, plan: Plan, installed: Installed, spark: SparkSession, context: Context,
    cancel: threading.Event, progress: Progress,
) -> None:  # fmt: skip
    """Replaces the first ``flow.run``. 57014, 53200; 58000: Spark is missing or fails; IdsClashError."""
    folder = Path(tempfile.mkdtemp(prefix="freshet-hydrate-", dir=spark.settings.shared))
    try:
        hydration = Hydration(spark, plan, context, folder, cancel, progress)
        border = Border(flow, plan, installed.places, context)
        border.find()
        hydration.take(border.given, border.absent)
        made = hydration.run()
        contents: dict[NodeId, list[Contents]] = {}
        for number, place in enumerate(installed.places):
            if place is not None and keeping(flow, place):
                contents[place] = made.arranged(NodeId(number))
        contents[installed.output] = made.output(plan.rows)
        if installed.errors is not None:
            assert plan.errors is not None
            contents[installed.errors] = made.output(plan.errors)
        fill(flow, contents)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(slots=True)
class Border:
    """The border of what must be computed.

    ``given``: nodes with existing contents; ``absent``: error collections that do not exist.
    """

    flow: Detached
    plan: Plan
    places: tuple[NodeId | None, ...]
    context: Context
    given: dict[NodeId, Standing] = field(default_factory=dict)
    absent: set[NodeId] = field(default_factory=set)

    def find(self) -> None:
        """Walks from the plan's roots to the border."""
        reached(self.plan, self._is_there)

    def _is_there(self, number: NodeId) -> bool:
        node, place = self.plan.nodes[number], self.places[number]
        if place is None:
            self.absent.add(number)
            return True
        constants = self.plan.nodes[node.input] if isinstance(node, Errors) else node
        if isinstance(constants, Constants):
            rows, errors = constant_rows(constants.rows, constants.schema, self.context)
            self.given[number] = Standing(partial(_once, errors if isinstance(node, Errors) else rows))
            return True
        found = standing(self.flow, place)
        if found is not None:
            self.given[number] = found
        assert found is not None or inputs(node) or isinstance(node, LoopVariable), "rows that nobody has"
        return found is not None


def _once(rows: Words, most: int) -> Iterator[Block]:
    for start in range(0, len(rows), most):
        some = rows[start : start + most]
        yield Block.of(some, np.zeros(len(some), np.int64), np.ones(len(some), np.int64))
