"""Conditions on the current time in maintained views: rows come and go as time passes, at exactly their moments.

The server's clock is the test's. Views are compared with their meaning at every moment at which something changes and
just before it, by AS OF, under insertion, update, deletion, rollback and restart.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from planner.transform import growing_series
from tests.support.profiles import scaled
from tests.support.sessions import Client, Row, Server

SECOND = 1_000_000


@dataclass(frozen=True)
class Event:
    """A row of the table; times in µs since 1970."""

    id: int
    at: int | None
    ttl: int | None
    ends: int | None

    @property
    def values(self) -> str:
        at = "NULL" if self.at is None else f"'{_text(self.at)}'"
        ttl = "NULL" if self.ttl is None else f"'{self.ttl} microseconds'"
        return f"({self.id}, {at}, {ttl}, {'NULL' if self.ends is None else self.ends})"


def _text(moment: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=moment)).isoformat(sep=" ")


def _day(moment: int) -> int:
    return moment // (86400 * SECOND)


Meaning = Callable[[Event, int], bool]


def _when(*needed: str) -> Callable[[Meaning], Meaning]:
    """The meaning for rows whose columns are not NULL; for others it is false."""
    return lambda meaning: lambda e, now: all(getattr(e, n) is not None for n in needed) and meaning(e, now)


CONDITIONS: dict[str, tuple[str, Meaning]] = {
    "recent": ("at > now() - interval '10 seconds'", _when("at")(lambda e, now: e.at > now - 10 * SECOND)),  # type: ignore[operator]
    "begun": ("at <= now()", _when("at")(lambda e, now: e.at <= now)),  # type: ignore[operator]
    "valid": ("mz_now() BETWEEN extract(epoch from at) * 1000000 AND ends",
              _when("at", "ends")(lambda e, now: e.at <= now <= e.ends)),  # type: ignore[operator]
    "short": ("ends >= mz_now()", _when("ends")(lambda e, now: e.ends >= now)),  # type: ignore[operator]
    "living": ("at + ttl > now() OR ttl IS NULL",
               lambda e, now: e.ttl is None or (e.at is not None and e.at + e.ttl > now)),
    "old": ("now() - at >= interval '7 seconds'", _when("at")(lambda e, now: now - e.at >= 7 * SECOND)),  # type: ignore[operator]
    "lasting": ("at <= now() AND now() < at + interval '4 seconds'",
               _when("at")(lambda e, now: e.at <= now < e.at + 4 * SECOND)),  # type: ignore[operator]
    "today": ("at::date = current_date", _when("at")(lambda e, now: _day(e.at) == _day(now))),  # type: ignore[arg-type]
}  # fmt: skip


class Clock:
    """The server's clock: µs since 1970, set by the test, after all real times. Each look at it takes 1 µs."""

    def __init__(self) -> None:
        self.now = int(datetime(2034, 2, 28, 23, 59, 30, tzinfo=UTC).timestamp()) * SECOND

    def __call__(self) -> int:
        self.now += 1
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server(tmp_path: Path, clock: Clock) -> Iterator[Server]:
    server = Server(tmp_path)
    _use(server, clock)
    yield server
    server.close()


def _use(server: Server, clock: Clock) -> None:
    server.coordinator.engine.clock._source = clock


def _pass_time(server: Server) -> None:
    """What the server's timer does, until nothing is due."""
    engine = server.coordinator.engine
    server.run(server.coordinator.jobs.autocommit(engine.pass_time))
    while engine.next_moment <= engine.clock.now():
        server.run(server.coordinator.jobs.autocommit(engine.pass_time))


class History:
    """The table's contents by epoch."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.states: list[tuple[int, Counter[Event]]] = []

    @property
    def present(self) -> Counter[Event]:
        return Counter(self.states[-1][1]) if self.states else Counter()

    def note(self, present: Counter[Event]) -> None:
        epoch = int(self.client.rows("SELECT mz_now()")[0][0] or 0)
        self.states.append((epoch, +present))

    def at(self, epoch: int) -> Counter[Event]:
        return next((state for e, state in reversed(self.states) if e <= epoch), Counter())

    def moments(self) -> set[int]:
        """The moments at which some condition may change."""
        found = set()
        for _, state in self.states:
            for e in state:
                if e.at is not None:
                    steps = (0, 10, 7, 4)
                    found |= {e.at + s * SECOND for s in steps} | {e.at + s * SECOND + 1 for s in steps}
                    found |= set() if e.ttl is None else {e.at + e.ttl}
                found |= set() if e.ends is None else {e.ends, e.ends + 1}
        return found


def _expected(meaning: Meaning, state: Counter[Event], now: int) -> list[Row]:
    return sorted((str(e.id),) for e in state.elements() if meaning(e, now))


def _random_event(rng: random.Random, now: int) -> Event:
    def some(*values: int) -> int | None:
        return None if rng.random() < 0.15 else rng.choice(values)

    at = some(*(now + rng.randint(-15, 15) * SECOND for _ in range(3)))
    return Event(rng.randint(1, 4), at, some(*(rng.randint(0, 9) * SECOND for _ in range(2))),
                 some(now + rng.randint(-3, 12) * SECOND))  # fmt: skip


def _change(client: Client, rng: random.Random, present: Counter[Event], now: int) -> Counter[Event]:
    """A random statement's effect on the table, which the client runs."""
    if present and rng.random() < 0.3:
        gone = rng.choice(sorted({e.id for e in present}))
        client.run(f"DELETE FROM e WHERE id = {gone}")
        return Counter({e: n for e, n in present.items() if e.id != gone})
    if present and rng.random() < 0.2:
        moved = rng.choice(sorted({e.id for e in present}))
        client.run(f"UPDATE e SET at = at + interval '2 seconds' WHERE id = {moved}")
        changed: Counter[Event] = Counter()
        for e, n in present.items():
            at = e.at + 2 * SECOND if e.at is not None and e.id == moved else e.at
            changed[Event(e.id, at, e.ttl, e.ends)] += n
        return changed
    new = [_random_event(rng, now) for _ in range(rng.randint(1, 3))]
    new += new[: rng.randint(0, 1)]
    client.run(f"INSERT INTO e VALUES {', '.join(e.values for e in new)}")
    return present + Counter(new)


@pytest.mark.parametrize("seed", range(scaled(2)))
def test_random_histories(server: Server, clock: Clock, seed: int) -> None:
    rng = random.Random(seed)
    client = server.client()
    client.run("CREATE TABLE e (id int, at timestamptz, ttl interval, ends bigint)")
    names = sorted(CONDITIONS)
    for name in names[::2]:
        client.run(f"CREATE MATERIALIZED VIEW {name} AS SELECT id FROM e WHERE {CONDITIONS[name][0]}")
    history = History(client)
    history.note(Counter())
    begun = dict.fromkeys(names[::2], clock.now)
    for step in range(14):
        clock.now += rng.choice([0, 1, SECOND // 2, SECOND, 3 * SECOND])
        if rng.random() < 0.2:
            _pass_time(server)
        present, before = history.present, history.present
        kind = rng.random()
        if kind < 0.6:
            present = _change(client, rng, present, clock.now)
        else:
            client.run("BEGIN")
            present = _change(client, rng, present, clock.now)
            client.run("SAVEPOINT s")
            _change(client, rng, present, clock.now)
            for name in begun:
                client.rows(f"SELECT * FROM {name}")
            client.run("ROLLBACK TO s")
            client.run("COMMIT" if kind < 0.85 else "ROLLBACK")
            present = present if kind < 0.85 else before
        history.note(present)
        if step == 6:
            for name in names[1::2]:
                client.run(f"CREATE MATERIALIZED VIEW {name} AS SELECT id FROM e WHERE {CONDITIONS[name][0]}")
                begun[name] = clock.now
        for name in begun:
            assert client.rows(f"VERIFY MATERIALIZED VIEW {name}") == [], (seed, step, name)
    clock.now += 3 * SECOND
    _pass_time(server)
    _check_past(client, history, begun, clock.now, rng)


def _check_past(client: Client, history: History, begun: dict[str, int], now: int, rng: random.Random) -> None:
    """Compares the views with their meaning at the moments of change and just before them, as of then."""
    moments = sorted(m for m in history.moments() | {e for e, _ in history.states} if m <= now)
    for moment in rng.sample(moments, min(len(moments), 12)):
        for name, since in begun.items():
            for epoch in (moment - 1, moment):
                if epoch > max(since, history.states[0][0]):
                    found = client.sorted(f"SELECT * FROM {name} AS OF {epoch}")
                    expected = _expected(CONDITIONS[name][1], history.at(epoch), epoch)
                    assert found == expected, (name, epoch, history.at(epoch))


def test_views_above_follow(server: Server, clock: Clock) -> None:
    """Groups, joins, subqueries and views over temporal filters change as time passes too."""
    client = server.client()
    client.run("CREATE TABLE e (id int, at timestamptz); CREATE TABLE n (id int, name text)")
    client.run("INSERT INTO n VALUES (1, 'one'), (2, 'two'), (3, NULL)")
    views = {
        "live": "SELECT * FROM e WHERE at > now() - interval '5 seconds'",
        "counted": "SELECT id, count(*) FROM live GROUP BY id",
        "joined": "SELECT name, at FROM e JOIN n USING (id) WHERE at > now() - interval '5 seconds'",
        "outer_joined": "SELECT n.id, l.at FROM n LEFT JOIN live l USING (id)",
        "on_join": "SELECT n.id, e.at FROM n LEFT JOIN e ON e.id = n.id AND e.at > now() - interval '5 seconds'",
        "without": "SELECT * FROM n WHERE NOT EXISTS (SELECT FROM e WHERE e.id = n.id AND e.at > now() - "
        "interval '5 seconds')",
        "silent": "SELECT id, max(at) AS last FROM e GROUP BY id HAVING max(at) < now() - interval '5 seconds'",
        "newest": "SELECT DISTINCT ON (id) id, at FROM live ORDER BY id, at DESC",
        "ranked": "SELECT id, at, row_number() OVER (PARTITION BY id ORDER BY at) FROM live",
        "either": "SELECT id FROM live UNION SELECT id FROM e WHERE at > now()",
    }
    for name, query in views.items():
        client.run(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    for i in range(6):
        clock.now += 2 * SECOND
        client.run(f"INSERT INTO e VALUES ({i % 3 + 1}, '{_text(clock.now)}'), (2, '{_text(clock.now + 3 * SECOND)}')")
        for name in views:
            assert client.rows(f"VERIFY MATERIALIZED VIEW {name}") == [], (name, i)
    assert client.rows("SELECT count(*) FROM live") != [("0",)]
    for i in range(12):
        clock.now += SECOND
        _pass_time(server)
        for name in views:
            assert client.rows(f"VERIFY MATERIALIZED VIEW {name}") == [], (name, i)
    assert client.rows("SELECT count(*) FROM live") == [("0",)]
    assert client.sorted("SELECT * FROM counted") == []
    assert len(client.rows("SELECT * FROM silent")) == 3


STEPS = {
    "1 second": SECOND, "300 milliseconds": 3 * SECOND // 10, "1 minute": 60 * SECOND, "1 hour 1 second": 3601 * SECOND,
}  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_a_series_up_to_now_grows(server: Server, clock: Clock, step: str) -> None:
    """It has the values that are not after now(), at every moment, for rows that come, move and go."""
    client, rng = server.client(), random.Random(step)
    client.run("CREATE TABLE e (id int, at timestamptz)")
    series = f"generate_series(at, now() - interval '1 second', interval '{step}')"
    client.run(f"CREATE MATERIALIZED VIEW v AS SELECT id, g FROM e, {series} g")
    client.run("CREATE MATERIALIZED VIEW counted AS SELECT id, count(*), max(g) FROM v GROUP BY id")
    length, rows, states = STEPS[step], Counter[tuple[int, int]](), []
    for _ in range(12):
        clock.now += rng.choice([1, SECOND // 3, SECOND, 4 * SECOND])
        if rng.random() < 0.5:
            _pass_time(server)
        new = (rng.randint(1, 3), clock.now - rng.choice([-2 * SECOND, 0, SECOND, 40 * length, 700 * length]))
        if rows and rng.random() < 0.4:
            client.run(f"DELETE FROM e WHERE id = {new[0]}")
            rows = Counter({row: n for row, n in rows.items() if row[0] != new[0]})
        else:
            client.run(f"INSERT INTO e VALUES ({new[0]}, '{_text(new[1])}'), (NULL, NULL), (9, 'infinity')")
            rows[new] += 1
        states.append((int(client.rows("SELECT mz_now()")[0][0] or 0), Counter(rows)))
        assert client.rows("VERIFY MATERIALIZED VIEW v") == []
        assert client.rows("VERIFY MATERIALIZED VIEW counted") == []
    clock.now += min(5 * length, 60 * SECOND)
    _pass_time(server)
    states.append((clock.now, rows))
    for (epoch, state), (following, _) in pairwise(states):
        starts = [at for _, at in state]
        moments = [at + SECOND + (epoch - at) // length * length for at in starts] + [epoch, following - 1]
        for moment in {m for m in moments if epoch <= m < following}:
            for now in {moment - 1, moment} - {epoch - 1}:
                counts = sum((Counter({i: n * max((now - SECOND - at) // length + 1, 0)})
                              for (i, at), n in state.items()), Counter[int]())  # fmt: skip
                found = client.rows(f"SELECT id, count FROM counted WHERE id < 9 AS OF {now}")
                assert Counter({int(i or 0): int(n or 0) for i, n in found}) == counts, (now, state)


def test_a_series_waits_in_blocks(server: Server, clock: Clock) -> None:
    """What waits for the future of a series is a few hundred rows, however long the past is."""
    client = server.client()
    client.run(f"CREATE MATERIALIZED VIEW v AS SELECT g FROM generate_series("
               f"'{_text(clock.now - 100_000 * SECOND)}'::timestamptz, now(), interval '1 second') g")  # fmt: skip
    assert client.rows("SELECT count(*) FROM v")[0][0] == "100001"
    waiting = server.coordinator.engine.dataflow.due_moments(clock.now + 10**6 * SECOND)
    assert 0 < len(waiting) < 3 * 256
    clock.now += 1000 * SECOND
    _pass_time(server)
    assert client.rows("SELECT count(*) FROM v")[0][0] == "101001"
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []


@pytest.mark.parametrize(
    ("condition", "start", "first"),
    [("g > now() - interval '10 seconds'", "2030-01-01", lambda now: (now - 10 * SECOND) // SECOND + 1),
     ("g >= date_trunc('minute', now())", "2033-06-01", lambda now: now // SECOND // 60 * 60)],
)  # fmt: skip
def test_a_series_makes_no_past_that_is_left_out(
    server: Server, clock: Clock, condition: str, start: str, first: Callable[[int], int]
) -> None:
    """131 million values, and 24 where each block's moment must be searched for: neither has room in memory."""
    client = server.client()
    series = f"generate_series('{start}'::timestamptz, now(), interval '1 second') g"
    client.run(f"CREATE MATERIALIZED VIEW v AS SELECT g FROM {series} WHERE {condition} AND g::text <> ''")
    for _ in range(10):
        clock.now += 9 * SECOND  # past two minutes' ends in all
        _pass_time(server)
        now = int(client.rows("SELECT mz_now()")[0][0] or 0)
        found = client.sorted(f"SELECT extract(epoch FROM g)::bigint FROM v AS OF {now}")
        assert found == [(str(second),) for second in range(first(now), now // SECOND + 1)]


def test_a_series_of_months_and_restarts(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step with months is added again and again, as in PostgreSQL: the 31st becomes the 28th for good."""
    monkeypatch.setattr(growing_series, "LAST", clock.now)  # since 2000: all months to the end of time take seconds
    server = Server(tmp_path)
    _use(server, clock)
    client = server.client()
    client.run("CREATE MATERIALIZED VIEW v AS SELECT g::date FROM generate_series("
               "'2033-10-31'::timestamp, current_date::timestamp, '1 month') g")  # fmt: skip
    expected = ["2033-10-31", "2033-11-30", "2033-12-30", "2034-01-30", "2034-02-28"]
    assert [g for (g,) in client.sorted("SELECT * FROM v")] == expected
    server.restart()
    _use(server, clock)
    client = server.client()
    clock.now += 40 * 86400 * SECOND
    _pass_time(server)
    assert [g for (g,) in client.sorted("SELECT * FROM v")] == [*expected, "2034-03-28"]
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []
    server.close()


def test_a_restart_catches_up(tmp_path: Path, clock: Clock) -> None:
    server = Server(tmp_path)
    _use(server, clock)
    client = server.client()
    client.run("CREATE TABLE e (id int, at timestamptz)")
    client.run("CREATE MATERIALIZED VIEW live AS SELECT id FROM e WHERE at > now() - interval '5 seconds'")
    start = clock.now
    client.run(f"INSERT INTO e VALUES (1, '{_text(start)}'), (2, '{_text(start + 4 * SECOND)}')")
    clock.now = start + 6 * SECOND
    _pass_time(server)
    assert client.rows("SELECT * FROM live") == [("2",)]
    server.restart()
    _use(server, clock)
    client = server.client()
    assert client.rows("SELECT * FROM live") == [("2",)]
    assert client.rows(f"SELECT * FROM live AS OF {start + 4 * SECOND}") == [("1",), ("2",)]
    clock.now = start + 60 * SECOND
    _pass_time(server)
    assert client.rows("SELECT * FROM live") == []
    assert client.rows(f"SELECT * FROM live AS OF {start + 8 * SECOND}") == [("2",)]
    server.close()


def test_it_happens_by_itself(tmp_path: Path) -> None:
    """With the real clock, and nobody who writes."""
    server = Server(tmp_path)
    client = server.client()
    client.run("CREATE TABLE e (id int, at timestamptz)")
    client.run("CREATE MATERIALIZED VIEW live AS SELECT id FROM e WHERE at > now() - interval '200 milliseconds'")
    client.run("INSERT INTO e VALUES (1, now()), (2, now() + interval '1 hour')")
    for _ in range(200):
        if client.rows("SELECT * FROM live") == [("2",)]:
            break
        server.run(asyncio.sleep(0.05))
    assert client.rows("SELECT * FROM live") == [("2",)]
    server.close()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, now() FROM e", "SELECT id FROM e WHERE at <> now()", "SELECT id FROM e WHERE now() = at OR id = 1",
        "SELECT id FROM e WHERE extract(hour FROM now()) = 3", 
        "SELECT id FROM e WHERE at < now() OR at + '1 h' > now()", "SELECT id FROM e WHERE NOT at = now()",
        "SELECT count(*) FILTER (WHERE at < now()) FROM e", "SELECT id FROM e ORDER BY at - now() LIMIT 1",
        "SELECT n.id FROM e n FULL JOIN e ON e.id = n.id AND e.at < now()", "SELECT id FROM e WHERE age(at) < '1 day'",
        "SELECT g FROM generate_series(now() - interval '1 h', now(), '1 minute') g",
        "SELECT g FROM e, generate_series(at, now(), '-1 minute') g",
        "SELECT g FROM e, generate_series(at, now(), id * interval '1 minute') g",
        "SELECT g FROM e, generate_series(now(), at, '1 minute') g",
        "SELECT g FROM generate_series('2020-01-01'::timestamptz, now(), '1 day') WITH ORDINALITY AS t(g, n)",
        "SELECT g FROM generate_series(1, extract(day FROM now())::int) g",
        "SELECT id FROM e WHERE localtime < '12:00'", "SELECT id FROM e WHERE random() < 0.5",
        "WITH RECURSIVE r AS (SELECT id, at FROM e UNION SELECT id + 1, at FROM r WHERE at > now() AND id < 5) "
        "SELECT * FROM r",
    ],
)  # fmt: skip
def test_refused_by_name(server: Server, query: str) -> None:
    client = server.client()
    client.run("CREATE TABLE e (id int, at timestamptz)")
    error = client.error(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert error.sqlstate == "0A000"
    assert error.hint
    client.rows(query)


def test_an_error_in_a_condition_is_the_rows_error(server: Server, clock: Clock) -> None:
    client = server.client()
    client.run("CREATE TABLE e (id int, d int, at timestamptz)")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT id FROM e WHERE at + interval '1 second' * (10 / d) > now()")
    client.run(f"INSERT INTO e VALUES (1, 1, '{_text(clock.now)}')")
    client.run(f"INSERT INTO e VALUES (2, 0, '{_text(clock.now)}')")
    assert client.state("SELECT * FROM v") == "22012"
    client.run("DELETE FROM e WHERE id = 2")
    assert client.rows("SELECT * FROM v") == [("1",)]
    clock.now += 11 * SECOND
    _pass_time(server)
    assert client.rows("SELECT * FROM v") == []
