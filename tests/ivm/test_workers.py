"""Steps shared over threads: the same bits for any number of workers, errors as from one thread, no waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pytest

from ivm import workers
from ivm.graph import Gather
from ivm.kernels.blocks import NEXT, gather, transfer
from ivm.kernels.memory import FENCE
from ivm.kernels.merge import M_MIXED
from ivm.kernels.sort import sort_block
from ivm.operators.base import program
from ivm.trace.batch import Batch, Block
from ivm.trace.shards import copied, cuts_of_both, gathered, put_together, sort_into, sorted_block
from ivm.trace.spine import Merge, Spine
from ivm.workers import Workers
from tests.ivm.test_dataflow import run
from tests.ivm.test_kernels import test_spines_hold_what_was_inserted as spines_hold
from tests.support.ivm_random import Pair


@pytest.fixture(autouse=True)
def one_again() -> Iterator[None]:
    yield
    workers.use(1)


class Recorded(Pair):
    """A pair that records the exact bits that its outputs emit, and the kernels' counters."""

    def __init__(self, seed: int, prioritised: bool) -> None:
        super().__init__(seed, prioritised)
        self.bits: list[bytes] = []

    def check(self, ordinals: list[int]) -> None:
        changes = self.engine.changes

        def recorded(node: object) -> object:
            found = changes(node)  # type: ignore[arg-type]
            self.bits += [found.rows.tobytes(), found.times.tobytes(), found.diffs.tobytes()]
            return found

        self.engine.changes = recorded  # type: ignore[method-assign,assignment]
        super().check(ordinals)
        self.engine.changes = changes  # type: ignore[method-assign]
        counted = self.engine.counters
        # Not matches and seeks: a delta join that lacks room begins an update again.
        self.bits.append(str((counted.history, counted.segments)).encode())


def bits(seed: int, number: int, steps: int, loops: int) -> list[bytes]:
    """What a random graph's outputs emit with a number of workers; also checked against the oracle."""
    workers.use(number, 1)
    pair = Recorded(seed, prioritised=seed % 3 == 0)
    run(pair, steps, loops, negative=not loops and seed % 2 == 0, pausing=seed % 5 == 4)
    return pair.bits


@pytest.mark.parametrize("seed", range(30))
def test_any_number_of_workers_makes_the_same_bits(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Spine, "FUEL", 1 + seed % 9)
    alone = bits(seed, 1, 4, seed % 3)
    for number in (2, 3, 4):
        assert bits(seed, number, 4, seed % 3) == alone


def updates(rng: np.random.Generator, count: int, width: int, keys: int, diff_width: int = 1) -> Block:
    """Random updates in which many rows and times are equal."""
    rows = rng.integers(-keys, keys, (count, width))
    return Block.of(rows, rng.integers(0, 3, count), rng.integers(-2, 3, (count, diff_width)))


def same(a: Block, b: Block) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a.arrays(), b.arrays(), strict=True))


@pytest.mark.parametrize("number", [2, 3, 4, 7])
@pytest.mark.parametrize("seed", range(12))
def test_parts_of_blocks(seed: int, number: int) -> None:
    """Sorting, gathering and moving in parts, and cuts between the keys of two blocks."""
    rng = np.random.default_rng(seed)
    width = seed % 4
    given = updates(rng, int(rng.integers(1, 3000)), width, [1, 3, 1 << 60][seed % 3], 1 + seed % 2)
    rows, times, diffs = given.arrays()
    if seed % 5 == 4:
        given = Block.of(rows[:1].repeat(given.n, axis=0), times, diffs)
    alone = Block(width, given.diff_width, given.n)
    sort_block(given.d, alone.d, 0)
    alone.sync()
    workers.use(number, 1)
    for source in (given, alone):
        assert same(sorted_block(source), alone)
    for change, sign in ((0, 1), (NEXT, -1)):
        one, many = (put(given, given.n) for _ in range(2))
        transfer(given.d, one.d, sign, change, 1, 1)
        assert copied(given, many, sign, change, 1, 1) == one.sync() == many.sync() == 2 * given.n
        assert same(one, many)
    if width > 1:
        how = program(Gather((1, 0), (), ((0, 2),)), width, 0)
        one, many = (Block(2, given.diff_width, given.n) for _ in range(2))
        gather(given.d, one.d, how)
        assert gathered(given, many, how) == one.sync() == many.sync()
        assert same(one, many)
    other = sorted_block(updates(rng, int(rng.integers(0, 2000)), width, 3, 1))
    of_a, of_b = cuts_of_both(alone, other, width, 0, number)
    for block, places in ((alone, of_a), (other, of_b)):
        assert places == sorted(places)
        assert (places[0], places[-1], len(places)) == (0, block.n, number + 1)
    for at, there in zip(of_a[1:-1], of_b[1:-1], strict=True):
        below = [tuple(row) for block, end in ((alone, at), (other, there)) for row in block.rows[:end].tolist()]
        above = [tuple(r) for block, k in ((alone, at), (other, there)) for r in block.rows[k : block.n].tolist()]
        assert not below or not above or max(below) < min(above)


@pytest.mark.parametrize("seed", range(6))
def test_merges_in_parts(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spines with random fuel hold what was inserted, and searches use the filters and fences of merges in parts."""
    workers.use(2 + seed % 3, 1)
    spines_hold(seed, monkeypatch)


@pytest.mark.parametrize("seed", range(8))
def test_a_merge_in_parts_is_the_merge(seed: int) -> None:
    """Whatever the fuel. Snapshots of two times merge to a batch of mixed times, though a part may have one time."""
    rng = np.random.default_rng(seed)
    fuel = int(rng.integers(1, 3000))
    if seed % 2:
        sides = [snapshot(range(1000), 1), snapshot(range(500 * (seed % 3), 500 * (seed % 3) + 1000), 1 + seed // 4)]
    else:
        sides = [sorted_block(updates(rng, 2000, 2, [5, 1000][seed // 2 % 2])) for _ in range(2)]
    head = Spine(2, 1).desc
    made = []
    for number in (1, 2, 3, 4):
        workers.use(number, 1)
        both = [Batch(put(block, 0), True) for block in sides]
        merge = Merge(*both, head, 0, True, True, True)
        reads = 0
        while not merge.done:
            reads += merge.work(fuel)
        assert reads == sides[0].n + sides[1].n
        n = merge.block.sync()
        fence = merge.fence[: (n + FENCE - 1) // FENCE]
        assert merge.ranks is not None
        assert merge.peaks is not None
        sums = (kept[: n // FENCE + 1] for kept in (merge.ranks, merge.peaks))
        made.append([a.tobytes() for a in (*merge.block.arrays(), merge.bits, fence, *sums)])
        made[-1].append(bytes([int(merge.state[M_MIXED])]))
    assert made[1:] == made[:1] * 3


def snapshot(keys: range, time: int) -> Block:
    """One row of each key, at one time."""
    rows = np.stack([np.array(keys), np.array(keys)], axis=1)
    return Block.of(rows, np.full(len(keys), time), np.ones((len(keys), 1), np.int64))


def put(block: Block, room: int) -> Block:
    """A copy with room for more."""
    copy = Block(block.width, block.diff_width, block.n + room)
    put_together([block], copy)
    return copy


def test_a_sort_takes_several_threads() -> None:
    seen: set[str] = set()
    present = Workers(3, 1)

    def work(both: threading.Barrier) -> None:
        both.wait(30)
        seen.add(threading.current_thread().name)

    barrier = threading.Barrier(3)
    present.run([partial(work, barrier)] * 3)
    assert len(seen) <= 3
    assert "worker" in seen
    present.end()


def failing(error: BaseException | None) -> Callable[[], int]:
    def call() -> int:
        if error is not None:
            raise error
        return 1

    return call


def test_the_first_error_is_raised_when_all_have_ended() -> None:
    present = Workers(2, 1)
    for _ in range(100):
        assert present.run([failing(None)] * 5) == [1] * 5
        with pytest.raises(ZeroDivisionError, match="second"):
            present.run([failing(None), failing(ZeroDivisionError("second")), failing(MemoryError("third"))])
    present.end()


def test_a_failing_part_fails_the_step_as_one_thread_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel's error in a worker fails everything downstream of the operator, and the next step runs."""
    workers.use(2, 1)

    def refused(*_: object) -> int:
        raise MemoryError

    pair = Pair(5)
    out = pair.output(pair.distinct(pair.input()))
    pair.engine.hydrate()
    monkeypatch.setattr("ivm.operators.threshold.threshold_total", refused)
    pair.engine.feed(pair.inputs[0], np.array([[1, 2], [3, 4]]), 1, np.array([1, 1]))
    pair.engine.step()
    failure = pair.engine.failure(out)
    assert failure is not None
    assert failure.sqlstate == "53200"
    pair.engine.feed(pair.inputs[0], np.array([[5, 6]]), 2, np.array([1]))
    pair.engine.step()


def test_who_finds_the_workers_busy_works_alone() -> None:
    """Jobs inside jobs, and jobs of several threads at once, end: none waits for another."""
    present = Workers(2, 1)

    def inner() -> int:
        return sum(present.run([failing(None)] * 3))

    found: list[list[int]] = []
    threads = [threading.Thread(target=lambda: found.append(present.run([inner] * 4))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == [[3] * 4] * 8
    present.end()
    assert present.run([failing(None)] * 2) == [1, 1]


def test_ended_workers_leave_no_threads() -> None:
    before = set(threading.enumerate())
    present = Workers(4, 1)
    present.run([failing(None)] * 4)
    present.end()
    for thread in set(threading.enumerate()) - before:
        if thread.name == "worker":
            thread.join(30)
    assert [t for t in set(threading.enumerate()) - before if t.name == "worker"] == []
    assert (
        sort_into(Block.of(np.zeros((1, 1), np.int64), np.zeros(1, np.int64), np.ones(1, np.int64)), Block(1), 0) == 1
    )


@pytest.mark.parametrize("number", [2, 3, 4])
def test_parts_that_cancel_out_are_nothing(number: int) -> None:
    workers.use(number, 1)
    rows = np.repeat(np.arange(6), 2)[:, None]
    assert sorted_block(Block.of(rows, np.ones(12, np.int64), np.tile([[1], [-1]], (6, 1)))).n == 0
