"""Subscriptions to one relation share the work of a commit, miss nothing of it, and leave others their turn."""

from __future__ import annotations

import asyncio
import random
import socket
import sys
import time
from collections import Counter
from functools import partial
from types import FrameType
from typing import Any, cast

import numpy as np
import pytest

from ivm.errors import SqlError
from sql.coordination import followers
from sql.coordination.followers import Followers, Listening, Written
from sql.coordination.jobs import Jobs
from sql.engine.group import Delta
from sql.pgwire import copy_writer
from storage.stored import History
from tests.support.sessions import Server
from tests.support.subscriber import Subscriber

MANY = 12


def _followed(server: Server, count: int) -> None:
    until = time.monotonic() + 30
    while len(server.coordinator.followers) < count and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.1)


def _wait(subscribers: list[Subscriber], lines: int) -> None:
    until = time.monotonic() + 30
    while any(len(s.lines) < lines for s in subscribers) and time.monotonic() < until:
        time.sleep(0.01)


def test_a_commit_is_handed_over_once_and_written_once(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    plain = copy_writer.format_copy

    def counted(part: Any, *given: Any) -> Any:
        written.append(len(part))
        return plain(part, *given)

    monkeypatch.setattr(copy_writer, "format_copy", counted)
    writer = server.client()
    writer.run("CREATE TABLE followed (a int, b text)")
    writer.run("INSERT INTO followed VALUES (1, 'before')")
    listeners = len(server.coordinator.engine.listeners)
    text = "COPY (SUBSCRIBE followed WITH (SNAPSHOT = false)) TO STDOUT"
    subscribers = [Subscriber(server.client(), text) for _ in range(MANY)]
    _followed(server, MANY)
    assert len(server.coordinator.engine.listeners) == listeners
    writer.run("INSERT INTO followed VALUES (2, 'x'), (3, NULL)")
    writer.run("INSERT INTO followed VALUES (4, 'y')")
    writer.run("DELETE FROM followed WHERE a < 3")
    _wait(subscribers, 5)
    assert all(s.lines == subscribers[0].lines for s in subscribers)
    assert [line.split("\t")[1:] for line in subscribers[0].lines] == [
        ["1", "2", "x"], ["1", "3", "\\N"], ["1", "4", "y"], ["-1", "1", "before"], ["-1", "2", "x"],
    ]  # fmt: skip
    assert sum(written) == 5, written
    assert all(s.pushed for s in subscribers)
    for subscriber in subscribers:
        subscriber.stop()
    until = time.monotonic() + 20
    while len(server.coordinator.followers) and time.monotonic() < until:
        time.sleep(0.01)
    assert not len(server.coordinator.followers)
    writer.run("DROP TABLE followed")


@pytest.mark.parametrize("source", ["t", "v", "(SELECT g, a FROM t WHERE a > 0)"])
def test_each_subscriber_gets_every_change_once_and_in_order(server: Server, source: str) -> None:
    """Quick ones, slow ones, ones that begin late, in several formats; the view is replaced and fails meanwhile."""
    writer, rng = server.client(), random.Random(3)
    writer.run("CREATE TABLE t (k int PRIMARY KEY, g text, a int)")
    view = "SELECT g, sum(a) AS a, max(10 / (a + 100)) AS q FROM t WHERE a < {} GROUP BY g"
    writer.run(f"CREATE MATERIALIZED VIEW v AS {view.format(1000)}")
    writer.run("INSERT INTO t SELECT i, i % 3, i FROM generate_series(1, 20) i")
    forms = ["", " WITH (FORMAT csv)", " WITH (DELIMITER '|')"]
    subscribers: list[tuple[Subscriber, str]] = []

    def begin() -> None:
        form = rng.choice(forms)
        room = rng.choice([float("inf"), 0, 3])
        subscribers.append((Subscriber(server.client(), f"COPY (SUBSCRIBE {source}) TO STDOUT{form}", room), form))

    for _ in range(6):
        begin()
    _followed(server, 6)
    for step in range(80):
        k = rng.randint(1, 30)
        change = f"ON CONFLICT (k) DO UPDATE SET g = excluded.g, a = t.a {rng.choice('+-')} 1"
        match rng.randrange(5):
            case 0:
                writer.run(f"DELETE FROM t WHERE k = {k}")
            case 1:
                writer.run(f"UPDATE t SET g = {rng.choice(['NULL', chr(39) + 'x' + chr(39)])} WHERE k % 7 = {k % 7}")
            case _:
                writer.run(f"INSERT INTO t VALUES ({k}, '{k % 3}', {k}) {change}")
        if step % 9 == 0:
            begin()
        if step == 40:
            writer.run(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {view.format(15)}")
        if step == 46:
            writer.run("INSERT INTO t VALUES (99, 'bad', -100)")
        if step == 53:
            writer.run("DELETE FROM t WHERE k = 99")
    asked = f"SELECT * FROM {source}" if source[0] != "(" else source[1:-1]
    expected = Counter(writer.rows(asked))
    until = time.monotonic() + 30
    while time.monotonic() < until and any(_held(s, form) != expected for s, form in subscribers):
        time.sleep(0.05)
    for subscriber, form in subscribers:
        assert _held(subscriber, form) == expected
        epochs = [int(line.split(_delimiter(form))[0]) for line in subscriber.lines]
        assert epochs == sorted(epochs)
    assert sum(s.pushed for s, _ in subscribers) > 100
    assert any(s.room != float("inf") and s.pushed for s, _ in subscribers)
    for subscriber, _ in subscribers:
        subscriber.stop()
    writer.run("DROP TABLE t CASCADE")


def _delimiter(form: str) -> str:
    return {"": "\t", " WITH (FORMAT csv)": ",", " WITH (DELIMITER '|')": "|"}[form]


def _held(subscriber: Subscriber, form: str) -> Counter[tuple[str | None, ...]]:
    """The rows that a subscriber has after all changes."""
    null = "" if "csv" in form else "\\N"
    held: Counter[tuple[str | None, ...]] = Counter()
    for line in subscriber.lines:
        _, diff, *values = line.split(_delimiter(form))
        held[tuple(None if v == null else v for v in values)] += int(diff)
    return Counter({row: n for row, n in held.items() if n})


def test_one_who_may_no_longer_read_gets_nothing_that_others_get(server: Server) -> None:
    """Bytes are shared by those who may do the same; a subscription ends when its role loses the privilege."""
    writer = server.client()
    writer.run("CREATE TABLE shared (a int); CREATE ROLE reader; CREATE ROLE other")
    writer.run("GRANT SELECT ON shared TO reader, other")
    subscribers = []
    for role in ("NONE", "reader", "other", "NONE"):
        client = server.client()
        client.run(f"SET ROLE {role}")
        subscribers.append(Subscriber(client, "COPY (SUBSCRIBE shared) TO STDOUT"))
        _followed(server, len(subscribers))
    writer.run("INSERT INTO shared VALUES (1)")
    _wait(subscribers, 1)
    assert all(s.pushed for s in subscribers)
    writer.run("REVOKE SELECT ON shared FROM reader")
    writer.run("INSERT INTO shared VALUES (2)")
    first, reader, other, last = subscribers
    _wait([first, other, last], 2)
    with pytest.raises(SqlError) as info:
        reader.ended.result(20)
    assert info.value.sqlstate == "42501"
    assert [len(s.lines) for s in subscribers] == [2, 1, 2, 2]
    for subscriber in (first, other, last):
        subscriber.stop()
    reader.client.close()
    writer.run("DROP TABLE shared; DROP ROLE reader; DROP ROLE other")


def test_what_cannot_be_written_ends_the_subscription(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error while the bytes of many are written reaches each of them: no change is passed over in silence."""
    writer = server.client()
    writer.run("CREATE TABLE unwritable (a int)")
    subscribers = [Subscriber(server.client(), "COPY (SUBSCRIBE unwritable) TO STDOUT") for _ in range(3)]
    _followed(server, 3)

    def broken(*given: Any) -> Any:
        raise SqlError("22023", "no text for this")

    monkeypatch.setattr(copy_writer, "format_copy", broken)
    writer.run("INSERT INTO unwritable VALUES (1)")
    for subscriber in subscribers:
        with pytest.raises(SqlError) as info:
            subscriber.ended.result(20)
        assert info.value.sqlstate == "22023"
    monkeypatch.undo()
    for subscriber in subscribers:
        subscriber.client.close()
    writer.run("DROP TABLE unwritable")


def test_a_committer_has_its_answer_before_followers_are_told(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the engine's thread commits: from its end to the answer it takes some turns of the event loop."""
    monkeypatch.setattr(followers, "SLICE_SECONDS", 0.0)  # each slice tells one follower
    monkeypatch.setattr(followers, "MOST_BUSY_SECONDS", 60.0)
    monkeypatch.setattr(Jobs, "alone", property(lambda jobs: False))
    writer = server.client()
    writer.run("CREATE TABLE answered (a int)")
    text = "COPY (SUBSCRIBE answered) TO STDOUT"
    subscribers = [Subscriber(server.client(), text) for _ in range(MANY)]
    _followed(server, MANY)

    async def commit() -> int:
        async for _ in writer.session.simple("INSERT INTO answered VALUES (1)"):
            pass
        return sum(len(s.lines) for s in subscribers)

    for i in range(1, 4):
        assert server.run(commit()) == (i - 1) * MANY
        _wait(subscribers, i)
    assert all(len(s.lines) == s.pushed == 3 for s in subscribers)
    for subscriber in subscribers:
        subscriber.stop()
    writer.run("DROP TABLE answered")


def test_fetch_has_all_that_was_committed_before(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the followers have not had their turn yet."""
    monkeypatch.setattr(Followers, "_resume", lambda told: None)
    writer, readers = server.client(), [server.client() for _ in range(3)]
    writer.run("CREATE TABLE fetched (a int)")
    for reader in readers:
        reader.run("BEGIN; DECLARE c CURSOR FOR SUBSCRIBE fetched")
    for i in range(1, 4):
        writer.run(f"INSERT INTO fetched VALUES ({i})")
        assert [[row[1:] for row in r.rows("FETCH ALL c")] for r in readers[:2]] == [[("1", str(i))]] * 2
    monkeypatch.undo()
    server.run(_resumed(server.coordinator.followers))
    writer.run("INSERT INTO fetched VALUES (4)")
    assert [row[1:] for row in readers[0].rows("FETCH ALL c")] == [("1", "4")]
    assert [row[1:] for row in readers[2].rows("FETCH ALL c")] == [("1", str(i)) for i in range(1, 5)]
    for reader in readers:
        reader.run("ROLLBACK")
    writer.run("DROP TABLE fetched")


async def _resumed(told: Followers) -> None:
    told._resume()


def test_each_that_listens_costs_a_few_calls(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Counter[str]()
    go_on = Followers._go_on

    def count(frame: FrameType, event: str, given: object) -> None:
        if event == "call":
            calls[frame.f_code.co_name] += 1

    def counted(told: Followers) -> None:
        sys.setprofile(count)
        try:
            go_on(told)
        finally:
            sys.setprofile(None)

    writer = server.client()
    writer.run("CREATE TABLE cheap (a int)")
    text = "COPY (SUBSCRIBE cheap) TO STDOUT"
    subscribers = [Subscriber(server.client(), text) for _ in range(2 * MANY)]
    _followed(server, 2 * MANY)
    monkeypatch.setattr(Followers, "_go_on", counted)
    found, lines = [], 0
    for many in (2 * MANY, MANY):
        for subscriber in subscribers[many:]:
            subscriber.stop()
        subscribers = subscribers[:many]
        until = time.monotonic() + 20
        while len(server.coordinator.followers) > many and time.monotonic() < until:
            time.sleep(0.01)
        counts = []
        for _ in range(4):  # the least: the first compiles, and some are told in more turns than others
            calls.clear()
            lines += 1
            writer.run(f"INSERT INTO cheap VALUES ({lines})")
            _wait(subscribers, lines)
            counts.append(calls.total())
        found.append(min(counts))
    assert found[0] - found[1] <= 6 * MANY, (found, calls)
    for subscriber in subscribers:
        subscriber.stop()
    writer.run("DROP TABLE cheap")


def test_one_that_was_told_of_nothing_listens_again(server: Server) -> None:
    """What roles may do has changed, so each is asked by itself whether it may go on; nothing wakes its task."""
    writer = server.client()
    writer.run("CREATE TABLE again (a int); CREATE ROLE another")
    subscribers = [Subscriber(server.client(), "COPY (SUBSCRIBE again) TO STDOUT") for _ in range(3)]
    _followed(server, 3)
    writer.run("GRANT SELECT ON again TO another")
    while server.coordinator.followers.telling:
        time.sleep(0.01)
    writer.run("INSERT INTO again VALUES (1)")
    _wait(subscribers, 1)
    assert [s.pushed for s in subscribers] == [1, 1, 1]
    for subscriber in subscribers:
        subscriber.stop()
    writer.run("DROP TABLE again; DROP ROLE another")


def _change(epoch: int) -> tuple[Delta, Any]:
    one = np.array([epoch], np.int64)
    history = History(one.reshape(1, 1), one, np.ones(1, np.int64))
    return Delta(epoch, {7: history}), type("State", (), {"ordinal": epoch, "catalog": None})()


@pytest.mark.parametrize("seed", range(20))
def test_rounds_are_cut_into_slices_and_lose_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(followers, "SLICE_SECONDS", 0.0)

    class Engine:
        def __init__(self) -> None:
            self.listeners: list[Any] = []
            self.published = _change(0)[1]

    async def run() -> None:
        engine = Engine()
        told = Followers(cast("Any", engine))
        seen: dict[Any, list[int]] = {}
        since: dict[Any, int] = {}
        made: list[int] = []

        def write(delta: Delta, published: Any) -> Written | None:
            made.append(published.ordinal)
            epochs = delta.changes[7].epochs
            return None if rng.random() < 0.2 else Written(epochs.tobytes(), len(epochs), 8 * len(epochs))

        def new() -> None:
            got: list[int] = []

            def push(what: Written) -> bool:
                if rng.random() < 0.3:
                    return False
                got.extend(np.frombuffer(what.data, np.int64).tolist())
                return True

            def follow(delta: Delta, before: Any, published: Any) -> None:
                assert before.ordinal == (got[-1] if got else since[follow])
                got.extend(delta.changes[7].epochs.tolist())
                told.listen(follow, Listening(told.form("a"), write, push, lambda catalog: True))

            seen[follow], since[follow] = got, engine.published.ordinal
            told.add(follow)

        for _ in range(10):
            new()
        gone: set[Any] = set()
        for epoch in range(1, 60):
            delta, state = _change(epoch)
            engine.published = state
            for listener in engine.listeners:
                listener(delta, state)
            for _ in range(rng.choice([0, 0, 1, 5, 20])):
                await asyncio.sleep(0)
            if rng.random() < 0.1:
                new()
            if rng.random() < 0.05:
                leaving = rng.choice(list(seen))
                told.remove(leaving)
                gone.add(leaving)
        while told._round is not None or told._groups:
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        for follow, got in seen.items():
            whole = list(range(since[follow] + 1, 60))
            assert got == (whole[: len(got)] if follow in gone else whole)
        assert len(made) < 60 * 2, "written once for all that listen, and for those that begin in between"

    asyncio.run(run())


def test_other_clients_have_their_turn_in_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followers, "SLICE_SECONDS", 0.001)

    async def run() -> None:
        engine = type("Engine", (), {"listeners": [], "published": _change(0)[1]})()
        told = Followers(cast("Any", engine))
        turns, calls = 0, 0

        def follow_slowly(delta: Delta, before: Any, published: Any) -> None:
            nonlocal calls
            calls += 1
            time.sleep(0.0002)

        for _ in range(200):
            told.add(partial(follow_slowly))
        engine.listeners[0](*_change(1))
        while calls < 200:
            await asyncio.sleep(0)
            turns += 1
        assert turns >= 20

    asyncio.run(run())


def test_what_has_come_meanwhile_is_read_before_the_next_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followers, "SLICE_SECONDS", 0.0)  # each slice tells one follower

    async def run() -> None:
        engine = type("Engine", (), {"listeners": [], "published": _change(0)[1]})()
        told = Followers(cast("Any", engine))
        ours, theirs = socket.socketpair()
        calls: list[int] = []
        read: list[int] = []

        def follow(number: int, delta: Delta, before: Any, published: Any) -> None:
            calls.append(number)
            if len(calls) % 10 == 5:
                theirs.send(b"x")

        def readable() -> None:
            ours.recv(1)
            read.append(len(calls))

        asyncio.get_running_loop().add_reader(ours, readable)
        for number in range(100):
            told.add(partial(follow, number))
        engine.listeners[0](*_change(1))
        while told.telling:
            await asyncio.sleep(0)
        assert read == list(range(5, 100, 10))
        asyncio.get_running_loop().remove_reader(ours)
        ours.close()
        theirs.close()

    asyncio.run(run())


def test_followers_are_to_be_told_from_the_moment_of_publication_on() -> None:
    """The next commit, which may come first, knows that the event loop will be busy."""

    async def run() -> None:
        engine = type("Engine", (), {"listeners": [], "published": _change(0)[1]})()
        told = Followers(cast("Any", engine))
        calls: list[int] = []

        def follow(delta: Delta, before: Any, published: Any) -> None:
            calls.append(published.ordinal)

        told.add(follow)
        assert not told.telling
        publish = engine.listeners[0]
        await asyncio.to_thread(lambda: [publish(*_change(epoch)) for epoch in range(1, 500)])
        publish(*_change(500))
        assert told.telling
        await asyncio.sleep(0.01)
        assert not told.telling
        assert calls[-1] == 500

    asyncio.run(run())


def test_what_clients_wait_for_is_done_before_the_next_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followers, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(followers, "MOST_BUSY_SECONDS", 60.0)

    async def run() -> None:
        engine = type("Engine", (), {"listeners": [], "published": _change(0)[1]})()
        told = Followers(cast("Any", engine))
        loop, calls, meanwhile = asyncio.get_running_loop(), 0, list[int]()

        async def wait(future: asyncio.Future[None]) -> None:
            before = calls
            await asyncio.shield(future)
            meanwhile.append(calls - before)

        def follow(delta: Delta, before: Any, published: Any) -> None:
            nonlocal calls
            calls += 1
            if calls % 10 == 5:
                future = loop.create_future()
                waiting.append(loop.create_task(wait(future)))
                loop.call_soon(answer, future)

        def answer(future: asyncio.Future[None]) -> None:
            told.give_way()
            loop.call_soon(future.set_result, None)

        waiting: list[asyncio.Task[None]] = []
        for _ in range(60):
            told.add(partial(follow))
        engine.listeners[0](*_change(1))
        while told.telling:
            await asyncio.sleep(0)
        await asyncio.gather(*waiting)
        assert calls == 60
        assert meanwhile == [0] * 6

    asyncio.run(run())
