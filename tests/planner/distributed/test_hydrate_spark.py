"""Views hydrated by Spark equal the engine's own hydration, arrangement by arrangement, and stay maintained."""

from __future__ import annotations

import random
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from ivm.hydration.detached import Detached, detach
from ivm.inspect import nodes
from planner.distributed import file_store, runner
from planner.distributed.hydration import hydrate_by_spark
from planner.distributed.hydration_choice import searches_ranges, unsupported_by_spark
from planner.logical.nodes import Rel
from planner.lower.plan import lower
from planner.options import DEFAULT, Joins, Planning
from planner.physical.nodes import Plan
from planner.render.dataflow import Installed, Renderer
from planner.transform.pipeline import maintained
from tests.planner.test_views import changes
from tests.support.contents import Held, different, held
from tests.support.planner_bench import World
from tests.support.planner_queries import LOOPS, NESTED, PLAIN, TABLES
from tests.support.spark_fake import FakeSpark


def filled_world(seed: int, planning: Planning = DEFAULT, commits: int = 25) -> tuple[World, random.Random]:
    world, rnd = World(TABLES), random.Random(seed)
    world.planning = planning
    for _ in range(commits):
        world.commit(changes(world, rnd))
    return world, rnd


def beside(world: World, view: int, rel: Rel) -> tuple[Detached, Plan, Renderer, Installed]:
    plan = lower(maintained(rel), world.indexes(False))
    if searches_ranges(plan):
        linear = replace(world.planning, joins=Joins.LINEAR)
        plan = lower(maintained(rel), replace(world.indexes(False), planning=linear))

    def make(flow: Detached) -> tuple[Renderer, Installed]:
        renderer = world.renderer.beside(flow)
        return renderer, renderer.install(plan, view)

    flow, (renderer, installed) = detach(world.dataflow, make)
    return flow, plan, renderer, installed


def take_over(world: World, flow: Detached, renderer: Renderer, view: int, rel: Rel) -> None:
    flow.advance()
    flow.run()
    flow.attach()
    world.renderer.adopt(renderer, view)
    world.views[view] = rel


def both(world: World, spark: FakeSpark, view: int, rel: Rel) -> tuple[Held, Held, Detached, Renderer]:
    """The contents after the engine's hydration and after Spark's; the latter is not attached yet."""
    flow, plan, _, installed = beside(world, view, rel)
    flow.run()
    expected = held(flow, installed)
    flow.abandon()
    flow, plan, renderer, installed = beside(world, view, rel)
    hydrate_by_spark(
        flow,
        plan,
        installed,
        spark,
        world.context,
        threading.Event(),
        lambda *_: None,  # type: ignore[arg-type]
    )
    return expected, held(flow, installed), flow, renderer


@pytest.mark.parametrize(
    ("queries", "joins"),
    [(PLAIN, Joins.DELTA), (dict([*NESTED.items()][::3]), Joins.AUTO), (LOOPS, Joins.AUTO), (LOOPS, Joins.DELTA)],
    ids=["plain", "nested", "loops", "loops by delta joins"],
)
def test_contents_equal_the_engines_arrangement_by_arrangement(
    tmp_path: Path, queries: dict[str, Rel], joins: Joins
) -> None:
    """Each view builds on arrangements of the views before it; afterwards all are maintained."""
    world, rnd = filled_world(1, Planning(joins=joins))
    spark = FakeSpark(tmp_path)
    for i, (name, rel) in enumerate(queries.items()):
        if unsupported_by_spark(lower(maintained(rel), world.indexes(False))) is not None:
            continue
        expected, found, flow, renderer = both(world, spark, 100 + i, rel)
        assert different(found, expected) == [], name
        world.commit(changes(world, rnd))
        take_over(world, flow, renderer, 100 + i, rel)
    for _ in range(8):
        world.commit(changes(world, rnd))
        for view, rel in world.views.items():
            errors = world.errors(view)
            if errors is None or not len(errors[0]):
                assert world.view(view) == world.model(rel), view
    assert nodes(world.dataflow)


@pytest.mark.parametrize(("stages", "size", "words"), [(1, 1 << 22, 0), (3, 1 << 22, 1000), (16, 0, 1 << 22)])
def test_steps_are_the_same_however_many_a_job_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stages: int, size: int, words: int
) -> None:
    """``size``: the limit of frames that a job may carry; at 0 it ends where other steps come first. ``words``: how
    much of the traces an executor caches; at 0 it reads them from files each time."""
    monkeypatch.setattr(file_store, "CACHED_WORDS", words)
    monkeypatch.setattr(file_store, "MOST_STAGES", stages)
    monkeypatch.setattr(runner, "FEW_BYTES", size)
    world, _ = filled_world(2)
    spark = FakeSpark(tmp_path)
    for i, name in enumerate(list(LOOPS)[::3]):
        expected, found, flow, _ = both(world, spark, 100 + i, LOOPS[name])
        flow.abandon()
        assert different(found, expected) == [], name
