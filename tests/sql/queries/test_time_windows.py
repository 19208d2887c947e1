"""TUMBLE and HOP: each row's windows, in queries and maintained, and what is refused."""

from __future__ import annotations

import random

import pytest

from tests.support.sessions import Client

ORIGIN = "timestamptz '1970-01-01 00:00+00'"


@pytest.mark.parametrize(("slide", "size"), [(5, 10), (10, 10), (4, 10), (7, 3), (1, 1)])
def test_windows_are_those_that_contain_the_row(client: Client, slide: int, size: int) -> None:
    """For each multiple of the slide, counted from 1970: a window, of ``size`` seconds."""
    rng = random.Random(slide * 100 + size)
    client.run("DROP TABLE IF EXISTS e CASCADE; CREATE TABLE e (id int, at timestamptz)")
    name = "HOP" if slide != size else "TUMBLE"
    widths = f"interval '{slide} s', interval '{size} s'" if slide != size else f"interval '{size} s'"
    query = f"SELECT id, window_start, window_end FROM {name}(e, at, {widths})"
    client.run(f"CREATE MATERIALIZED VIEW v AS {query}")
    first = f"{ORIGIN} + floor((extract(epoch FROM at) - 20) / {slide}) * interval '{slide} s'"
    starts = f"generate_series({first}, at, interval '{slide} s') s"
    naive = f"SELECT id, s, s + interval '{size} s' FROM e, {starts} WHERE s + interval '{size} s' > at"
    for _ in range(8):
        seconds = [rng.choice(["-0.000001", "0", "7.5", "9.999999", "10", "1234567890", "86400"]) for _ in range(3)]
        rows = ", ".join(f"({rng.randint(1, 3)}, {ORIGIN} + interval '{s} s')" for s in seconds)
        client.run(f"INSERT INTO e VALUES {rows}, (4, NULL)")
        client.run(f"DELETE FROM e WHERE id = {rng.randint(1, 4)}")
        client.run(f"UPDATE e SET at = at + interval '3 s' WHERE id = {rng.randint(1, 3)}")
        expected = client.sorted(naive)
        assert client.sorted(query) == expected
        assert client.sorted("SELECT * FROM v") == expected
        assert client.rows("VERIFY MATERIALIZED VIEW v") == []


@pytest.mark.parametrize(
    ("call", "state"),
    [
        ("hop(e, at, interval '0', interval '1 s')", "22023"), ("hop(e, at, interval '1 s', interval '-1 s')", "22023"),
        ("hop(e, at, '-1 s', '1 s')", "22023"), ("tumble(e, at, interval '0')", "22023"),
        ("tumble(e, at, interval 'x')", "22007"), ("tumble(e, at)", "42883"), ("hop(e, at, interval '1 s')", "42883"),
        ("tumble(e, nothing, interval '1 s')", "42703"), ("tumble(nothing, at, interval '1 s')", "42P01"),
        ("tumble(e, id, interval '1 s')", "42883"),
    ],
)  # fmt: skip
def test_refused(client: Client, call: str, state: str) -> None:
    client.run("DROP TABLE IF EXISTS e CASCADE; CREATE TABLE e (id int, at timestamptz)")
    assert client.state(f"SELECT * FROM {call}") == state
    assert client.state(f"CREATE MATERIALIZED VIEW v AS SELECT * FROM {call}") == state
