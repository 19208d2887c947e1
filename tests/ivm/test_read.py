"""Published versions, one-shot reads over them, ordered arrangements, vector diffs, and how work grows."""

from __future__ import annotations

import random
import threading
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest

from ivm.dataflow import Dataflow
from ivm.errors import SqlError
from ivm.graph import (
    Arrange,
    Errors,
    FlatMap,
    Gather,
    Input,
    Join,
    Keep,
    Mapped,
    NodeId,
    Order,
    Output,
    Reduce,
    Reduced,
    Rows,
    Scan,
    Static,
    Threshold,
)
from ivm.rows import Words
from storage.dictionary import Dictionary
from tests.support.ivm_model import Count, Least

SAME = Gather((0, 1))


def feed(flow: Dataflow, node: NodeId, at: int, rows: list[tuple[int, ...]], diff: int = 1) -> None:
    flow.feed(node, np.array(rows, np.int64), np.full(len(rows), at), np.full(len(rows), diff))


def table(count: int = 500) -> tuple[Dataflow, NodeId, NodeId]:
    flow = Dataflow()
    given = flow.add(Input(2))
    arranged = flow.add(Arrange(given, SAME, 1))
    flow.retain(arranged)
    flow.hydrate()
    feed(flow, given, 1, [(i % 50, i) for i in range(count)])
    flow.step()
    return flow, given, arranged


def test_a_version_does_not_change() -> None:
    flow, given, arranged = table()
    version = flow.publish()[arranged]
    for at in range(2, 200):
        feed(flow, given, at, [(at % 50, at)], -1)
        flow.step()
        flow.allow_compaction(at)
    rows, diffs = version.rows_at(1)
    assert len(rows) == 500
    assert (diffs == 1).all()
    assert len(flow.publish()[arranged].rows_at(200)[0]) == 302
    rows, diffs, index = version.lookup(np.array([[3], [99], [0]]), 1)
    assert sorted(rows[index == 0][:, 1].tolist()) == list(range(3, 500, 50))
    assert len(rows[index == 1]) == 0
    assert len(rows[index == 2]) == 10


def test_the_row_of_one_key_is_what_a_lookup_finds() -> None:
    rng = random.Random(5)
    flow = Dataflow()
    given = flow.add(Input(3))
    arranged = flow.add(Arrange(given, Gather((0, 1, 2)), 1))
    flow.retain(arranged)
    flow.hydrate()
    found = Counter[int]()
    held: Counter[tuple[int, ...]] = Counter()
    for at in range(1, 120):
        for _ in range(rng.choice([1, 3, 40])):
            row = rng.choice([-(2**63), -1, 0, 1, 2**63 - 1, *range(5, 25)]), rng.choice([0, 7]), rng.choice([0, -1])
            diff = -1 if held[row] and rng.random() < 0.6 else 1
            held[row] += diff
            feed(flow, given, at, [row], diff)
        flow.step()
        version = flow.publish()[arranged]
        for key in (-(2**63), -1, 0, 1, 2, 2**63 - 1, *range(5, 26)):
            for then in (at, max(at - 1, version.since)):
                rows, diffs, _ = version.lookup(np.array([[key], [key + (-1 if key > 0 else 1)]]), then)
                rows, diffs = rows[rows[:, 0] == key], diffs[rows[:, 0] == key]
                one = version.lookup_one(key, then)
                found[-1 if one is None else len(one)] += 1
                if one is not None:
                    assert (rows.tolist(), diffs.tolist()) == (one.tolist(), [1] * len(one))
                elif not (len(rows) != 1 or diffs.tolist() != [1]):
                    assert sum(abs(d) for d in held.values()) > 4, "left to the other only among many updates"
    assert min(found[-1], found[0], found[1]) > 200, found


def test_an_unchanged_arrangement_is_published_once() -> None:
    flow, given, arranged = table()
    other = flow.add(Input(2))
    quiet = flow.add(Output(other))
    flow.hydrate()
    first = flow.publish()
    feed(flow, given, 2, [(1, 1)])
    flow.step()
    second = flow.publish()
    assert first[quiet] is second[quiet]
    assert first[arranged] is not second[arranged]
    assert second.upper == 2


@pytest.mark.parametrize("at", [1, 2])
def test_one_shot_reads(at: int) -> None:
    flow, given, arranged = table()
    feed(flow, given, 2, [(7, 7), (7, 57)], -1)
    flow.step()
    version = flow.publish()[arranged]
    query = Dataflow()
    wanted = query.add(Rows(np.array([[7, 1], [8, 2]]), np.array([1, 1])))
    joined = query.add(Join(query.add(Arrange(wanted, SAME, 1)), query.add(Static(version, at)), Gather((1, 2))))
    looked_up = query.add(Output(joined))
    scanned = query.add(Output(query.add(Reduce(query.add(Arrange(query.add(Scan(version, at)), SAME, 1)), Least()))))
    query.hydrate()
    found = query.changes(looked_up)
    expected = [(1, i) for i in range(7, 500, 50)] + [(2, i) for i in range(8, 500, 50)]
    if at == 2:
        expected = [pair for pair in expected if pair not in {(1, 7), (1, 57)}]
    assert list(map(tuple, found.rows.tolist())) == expected
    least = dict(query.changes(scanned).rows.tolist())
    assert least == {k: k if (k, at) != (7, 2) else 107 for k in range(50)}


def test_readers_need_no_lock() -> None:
    """Other threads read versions while the engine moves on; no version changes."""
    flow, given, arranged = table(3000)
    wrong: list[int] = []
    done = threading.Event()
    root = [flow.publish()]

    def read() -> None:
        while not done.is_set():
            version = root[0][arranged]
            rows, diffs = version.rows_at(version.upper)
            if len(rows) != 3000 or int(diffs.sum()) != 3000:
                wrong.append(len(rows))

    thread = threading.Thread(target=read)
    thread.start()
    for at in range(2, 1500):
        feed(flow, given, at, [((at - 2) % 50, at - 2)], -1)
        feed(flow, given, at, [((at + 2998) % 50, at + 2998)])
        flow.step()
        flow.allow_compaction(at)
        root[0] = flow.publish()
    done.set()
    thread.join()
    assert not wrong


def test_order_by_bytes() -> None:
    dictionary = Dictionary(b"x" * 16)
    words = [b"pear", b"apple", b"fig", b"apples", b"banana and more", b"banana and less", b""]
    ids = dictionary.intern(words)
    flow = Dataflow(dictionary.arena)
    given = flow.add(Input(2))
    up = flow.add(Arrange(given, SAME, 1, (Order.WORD, Order.BYTES)))
    down = flow.add(Arrange(given, SAME, 1, (Order.WORD, Order.BYTES_DESCENDING)))
    least, most = (flow.add(Output(flow.add(Reduce(a, Least())))) for a in (up, down))
    flow.retain(up)
    flow.hydrate()
    feed(flow, given, 1, [(1, int(word)) for word in ids])
    flow.step()

    def names(version_rows: Words) -> list[bytes]:
        return dictionary.lookup(np.ascontiguousarray(version_rows[:, 1]))

    root = flow.publish()
    assert names(root[up].rows_at(1)[0]) == sorted(words)
    assert names(root[least].rows_at(1)[0]) == [b""]
    assert names(root[most].rows_at(1)[0]) == [b"pear"]
    more = dictionary.intern([b"quince %d" % i for i in range(300)])
    feed(flow, given, 2, [(1, int(word)) for word in more] + [(1, int(more[0]))])
    feed(flow, given, 2, [(1, int(ids[-1]))], -1)
    flow.step()
    root = flow.publish()
    assert names(root[up].rows_at(2)[0]) == sorted([*words[:-1], *(b"quince %d" % i for i in range(300))])
    assert names(root[least].rows_at(2)[0]) == [b"apple"]
    assert names(root[most].rows_at(2)[0]) == [b"quince 99"]


@dataclass(frozen=True)
class Weigh:
    """A row's second word and 1 as diffs."""

    out_width: int = 1
    diff_width: int = 2

    def __call__(self, rows: Words) -> Mapped:
        return Mapped(rows[:, :1].copy(), None, np.stack([rows[:, 1], rows[:, 0] * 0 + 1], axis=1))


@dataclass(frozen=True)
class Sum:
    """The sum of a group, an error when there are four rows or more; nothing for groups of no rows."""

    out_width: int = 2
    limit: int | None = None

    def __call__(self, keys: Words, offsets: Words, vals: Words, diffs: Words) -> Reduced:
        assert vals.shape[1] == 0
        total = diffs[offsets[:-1]]
        good = np.nonzero((total[:, 1] > 0) & (total[:, 1] < 4))[0]
        bad = np.nonzero(total[:, 1] >= 4)[0]
        return Reduced(good, total[good], total[bad, 1:], bad)


def test_vector_diffs() -> None:
    rng = np.random.default_rng(3)
    flow = Dataflow()
    given = flow.add(Input(2))
    reduced = flow.add(Reduce(flow.add(Arrange(flow.add(FlatMap(given, Weigh())), Gather((0,)), 1)), Sum()))
    sums, errors = flow.add(Output(reduced)), flow.add(Output(flow.add(Errors(reduced))))
    flow.hydrate()
    held: Counter[tuple[int, int]] = Counter()
    for at in range(1, 120):
        row = (int(rng.integers(4)), int(rng.integers(-50, 50)))
        feed(flow, given, at, [row])
        held[row] += 1
        if rng.random() < 0.6:
            gone = sorted(held.elements())[int(rng.integers(held.total()))]
            feed(flow, given, at, [gone], -1)
            held[gone] -= 1
        if at % 3 == 0:
            flow.step()
            flow.allow_compaction(at)
            groups = {k: [v for (g, v), n in held.items() for _ in range(n) if g == k] for k in range(4)}
            root = flow.publish()
            good = [[k, sum(v), len(v)] for k, v in groups.items() if 0 < len(v) < 4]
            assert root[sums].rows_at(at)[0].tolist() == good
            wrong, counts = root[errors].rows_at(at)
            expected = Counter(len(v) for v in groups.values() if len(v) >= 4)
            assert dict(zip(wrong[:, 0].tolist(), counts.tolist(), strict=True)) == expected


def work(count: int) -> list[int]:
    """The most that a one-row change touches, with tables of ``count`` rows."""
    flow = Dataflow()
    given, other = flow.add(Input(2)), flow.add(Input(2))
    a, b = flow.add(Arrange(given, SAME, 1)), flow.add(Arrange(other, SAME, 1))
    flow.add(Output(flow.add(Join(a, b, Gather((1, 2))))))
    one_group = flow.add(Arrange(given, Gather((-1, 1)), 1))
    flow.add(Output(flow.add(Reduce(one_group, Least()))))
    flow.add(Output(flow.add(Reduce(flow.add(Arrange(given, Gather((0,)), 1)), Count()))))
    flow.add(Output(flow.add(Threshold(flow.add(Arrange(given, SAME, 2)), Keep.DISTINCT))))
    flow.hydrate()
    n = np.arange(count)
    for node in (given, other):
        flow.feed(node, np.stack([n, n * 7], axis=1), np.ones(count, np.int64), np.ones(count, np.int64))
    flow.step()
    worst = [0, 0, 0]
    for at in range(2, 60):
        before = flow.counters
        feed(flow, given, at, [(at * 5, at * 35)], -1)
        feed(flow, other, at, [(at * 9, 1)])
        flow.step()
        flow.allow_compaction(at)
        spent = flow.counters - before
        worst = [max(*pair) for pair in zip(worst, (spent.matches, spent.seeks, spent.history), strict=True)]
    return worst


def test_a_small_change_touches_few_rows_however_large_the_state() -> None:
    small, large = work(10_000), work(300_000)
    assert all(x <= 60 for x in small)
    assert all(y <= 2 * x + 4 for x, y in zip(small, large, strict=True))


def test_times_that_do_not_fit_are_refused() -> None:
    flow = Dataflow()
    given = flow.add(Input(1))
    flow.scope(width=24)
    flow.add(Output(given))
    flow.hydrate()
    feed(flow, given, (1 << 39) - 1, [(1,)])
    with pytest.raises(SqlError) as raised:
        feed(flow, given, 1 << 39, [(1,)])
    assert raised.value.sqlstate == "54001"
