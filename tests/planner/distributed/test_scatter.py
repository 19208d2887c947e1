"""A scattered view's jobs without Spark's frames: files, manifests, values, tasks that run twice, jobs that fail."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from ivm.errors import SqlError
from ivm.rows import RowSet
from ivm.words import TEXT
from planner.distributed import scatter
from planner.distributed.layer_store import SMALL_LAYERS, Report
from planner.distributed.scatter import Applied, Spread, apply, job_input, read_output
from planner.expr.scalar import Call
from planner.logical.nodes import Project, Rel, schema
from storage.dictionary import Dictionary
from storage.spark.manifest import Manifest, clean, read_manifest, write_manifest
from storage.stored import History
from tests.planner.distributed.test_fragment import LINEAR, planned
from tests.planner.test_views import changes
from tests.support.planner_bench import Row, World, decode, encode
from tests.support.planner_queries import LOOPS, NESTED, PLAIN, TABLES, U, c
from tests.support.profiles import scaled
from tests.support.spark_fake import FakeSession

QUERIES = {
    **{name: PLAIN[name] for name in ("left mixed", "group text", "top text", "global", "distinct", "full equal")},
    "scalar count": NESTED["scalar count"],
    "new text": Project(U, (c(0), Call("upper(text)", (c(2, TEXT),), TEXT))),
}

RECURSIVE = {name: LOOPS[name] for name in ("reach", "group in step", "not in step", "mutual")}


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Power failures are not tested here."""
    monkeypatch.setattr("os.fsync", lambda fd: None)


class Kept:
    """A scattered view and the engine's view of the same query."""

    def __init__(self, world: World, view: int, rel: Rel, folder: Path, parts: int = 3) -> None:
        self.world, self.view, self.rel, self.folder = world, view, rel, folder
        world.install(view, rel)
        self.spread = Spread.of(planned(world, rel), parts)
        self.manifest: Manifest = self.spread.empty()
        self.rows: Counter[tuple[int, ...]] = Counter()
        self.reports: list[Report] = []

    def job(self, made: list[list[tuple[int, Row, int]]], session: FakeSession) -> Applied:
        histories: dict[int, list[History]] = defaultdict(list)
        for epoch, commit in enumerate(made, 100 * self.manifest.number + 1):
            for table, row, diff in commit:
                words = encode([row], TABLES[table][0], self.world.dictionary)
                histories[table].append(History(words, np.array([epoch]), np.array([diff])))
        changed = job_input(self.spread, histories)
        if not self.manifest.number:
            changed.blocks |= self.spread.constants(self.world.context)
        epoch = 100 * self.manifest.number + 99
        return apply(session, self.folder, self.spread, self.manifest, epoch, changed, self.world.dictionary)

    def take(self, done: Applied) -> None:
        deltas = [report.delta for report in done.reports if report.delta is not None]
        self._add(deltas)
        write_manifest(self.folder, done.manifest)
        found = read_manifest(self.folder)
        assert found == done.manifest
        self.manifest, self.reports = found, list(done.reports)
        clean(self.folder, found)

    def _add(self, files: list[str]) -> None:
        block = read_output(self.folder, self.spread, files, self.world.dictionary)[0]
        for row, _, diff in zip(*(array.tolist() for array in block.arrays()), strict=True):
            self.rows[tuple(row)] += diff[0]

    def again(self) -> None:
        """Reads the contents from the folder alone, as at a restart."""
        self.rows.clear()
        self._add([layer.file for p, layers in self.manifest.layers.items() if self._is_output(p) for layer in layers])

    def _is_output(self, partition: int) -> bool:
        return partition // self.spread.parts == self.spread.cut.output.number

    @property
    def contents(self) -> Counter[Row]:
        held = {row: n for row, n in self.rows.items() if n}
        words = np.array(list(held), np.int64).reshape(len(held), self.spread.cut.rows.width)
        return Counter(
            dict(zip(decode(RowSet(words, schema(self.rel)), self.world.dictionary), held.values(), strict=True))
        )


def commits(world: World, rnd: random.Random) -> list[list[tuple[int, Row, int]]]:
    made = []
    for _ in range(3):
        made.append(changes(world, rnd))
        world.commit(made[-1])
    return made


@pytest.mark.parametrize(
    ("queries", "jobs", "parts"),
    [(QUERIES, scaled(6), 3), (RECURSIVE, scaled(5), 3), (RECURSIVE, 2, 6)],
    ids=["plain", "recursive", "parts that share tasks"],
)
def test_jobs_give_what_the_engine_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queries: dict[str, Rel], jobs: int, parts: int
) -> None:
    """Each task runs twice, but its output counts once. A restart reads the same from the folder."""
    monkeypatch.setattr(scatter, "LEAST_TASKS", 2)
    world = World(TABLES)
    world.planning = LINEAR
    kept = [Kept(world, 100 + i, rel, tmp_path / name, parts) for i, (name, rel) in enumerate(queries.items())]
    rnd = random.Random(3)
    for step in range(jobs):
        made = commits(world, rnd)
        for one in kept:
            one.take(one.job(made, FakeSession(runs=2)))
            if step % 5 == 4:
                one.again()
            assert one.contents == world.view(one.view), one.folder
            assert {f"parts/{p.name}" for p in (one.folder / "parts").iterdir()} == one.manifest.files
            if not one.spread.plan.scopes:
                assert all(len(layers) <= SMALL_LAYERS + 2 for layers in one.manifest.layers.values())


def test_a_job_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """A job fails after some tasks; the next one applies the same commits from the last manifest on."""
    world = World(TABLES)
    world.planning = LINEAR
    one = Kept(world, 100, QUERIES["left mixed"], tmp_path)
    rnd = random.Random(4)
    one.take(one.job(commits(world, rnd), FakeSession(runs=2)))
    for fails in range(6):
        made = commits(world, rnd)
        with pytest.raises(SqlError, match="Spark failed") as failed:
            one.job(made, FakeSession(fails, 2))
        assert failed.value.sqlstate == "58000"
        assert read_manifest(tmp_path) == one.manifest
        one.take(one.job(made, FakeSession(runs=2)))
        assert one.contents == world.view(100)
        assert {f"parts/{p.name}" for p in (tmp_path / "parts").iterdir()} == one.manifest.files


@pytest.mark.parametrize("size", [500, 5_000, 50_000])
def test_work_follows_the_parts_that_are_touched(tmp_path: Path, size: int) -> None:
    """One new row in a join under a group: one part of each fragment is read, and a few updates are written."""
    world = World(TABLES)
    world.planning = LINEAR
    one = Kept(world, 100, PLAIN["left equal"], tmp_path, parts=16)
    first = [(1, (i % (size // 2), i % 7), 1) for i in range(size)]
    world.commit(first)
    one.take(one.job([first], FakeSession(runs=2)))
    change = [(1, (3, 3), 1)]
    world.commit(change)
    one.take(one.job([change], FakeSession(runs=2)))
    fragments = [report.partition // 16 for report in one.reports]
    assert len(fragments) == len(set(fragments)) <= len(one.spread.cut.fragments)
    held = sum(layers[0].rows for layers in one.manifest.layers.values())
    assert 0 < sum(report.read for report in one.reports) < held / 4
    assert sum(report.written for report in one.reports) < 12
    assert one.contents == world.view(100)


def test_a_damaged_folder_is_told(tmp_path: Path) -> None:
    world = World(TABLES)
    world.planning = LINEAR
    one = Kept(world, 100, PLAIN["distinct"], tmp_path)
    one.take(one.job([[(1, (1, 2), 1)]], FakeSession(runs=2)))
    gone = sorted(one.manifest.files)[0]
    (tmp_path / gone).unlink()
    with pytest.raises(SqlError, match="is damaged") as told:
        read_manifest(tmp_path)
    assert (told.value.sqlstate, told.value.detail) == ("XX001", f"{gone} is missing in {tmp_path}")
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(SqlError, match="manifest is damaged"):
        read_manifest(tmp_path)


def test_values_come_with_the_rows_that_name_them(tmp_path: Path) -> None:
    """Executors begin with an empty dictionary; the values that they make enter the server's under the same ids."""
    world = World(TABLES)
    world.planning = LINEAR
    one = Kept(world, 100, QUERIES["new text"], tmp_path)
    change = [(2, (i, i, f"värde {i}"), 1) for i in range(50)]
    one.take(one.job([change], FakeSession(runs=2)))
    other = World(TABLES)
    other.dictionary = Dictionary(world.dictionary.secret)
    one.world = other
    one.again()
    assert one.contents == Counter({(i, f"VÄRDE {i}"): 1 for i in range(50)})
