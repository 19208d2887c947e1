# ruff: noqa: E501 (an expression a line)
"""Asks a real PostgreSQL 15 what time functions give at changes of clocks: writes zones.json beside this file.

Run: ``python -m tests.answers.make_zones 'host=… dbname=…'`` (the server must use its machine's time zone files).

Recorded are only changes on which the machine's files and the package tzdata agree, so that the answers stay true when
one of them is updated. Each number is relative to its argument, so that the changes of a zone share few patterns.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

HERE = Path(__file__).parent
NAMED = [
    "US/Pacific",
    "America/New_York",
    "Europe/Berlin",
    "Europe/London",
    "Europe/Dublin",
    "Australia/Lord_Howe",
    "Australia/Sydney",
    "Pacific/Apia",
    "Pacific/Kwajalein",
    "Africa/Casablanca",
    "Antarctica/Troll",
    "Asia/Kathmandu",
    "America/Caracas",
    "Asia/Kolkata",
    "Asia/Tehran",
    "America/St_Johns",
    "Africa/Monrovia",
    "Europe/Moscow",
    "America/Sao_Paulo",
    "Asia/Pyongyang",
    "Pacific/Chatham",
    "America/Nuuk",
]
RULES = (
    "EST5EDT,M3.2.0,M11.1.0", "NZST-12NZDT,M9.5.0,M4.1.0/3", "FOO5BAR4,J60/2,J300/-3", "<+03>-3<+02>-2,59,J365/26",
    "+5:30", "FOO-3", "Etc/GMT+5",
)  # fmt: skip
UNITS = ["minute", "hour", "day", "week", "month", "quarter", "year", "decade", "century", "millennium"]
STEPS = ("1 day", "-1 day", "1 mon", "-1 mon -1 day", "1 day 01:00:00", "24:00:00", "-1 year")
AROUND = (-5400, -1, 0, 1800, 3600)
TEXTS = """
m::text; m::timestamp; m::date; m::time; m::timestamp::timestamptz; m::date::timestamptz
extract(timezone from m); extract(timezone_hour from m); extract(timezone_minute from m); extract(hour from m)
extract(doy from m); date_part('epoch', m); extract(week from m)
to_char(m, 'YYYY-MM-DD HH24:MI:SS TZ tz OF TZH:TZM'); date_trunc('hour', m); date_trunc('day', m)
date_bin('15 min', m, '2001-01-01 00:00+00'); age(m + interval '1 year', m); age(m, '2000-02-29 12:00+00')
m + interval '1 day'; m - interval '1 day'; m - interval '1 mon'; m + interval '1 day' - m
array(select g from generate_series(m - interval '2 days', m + interval '2 days', '1 day') g)
array(select g from generate_series(m - interval '2 hours', m + interval '2 hours', '30 min') g)
make_timestamptz(extract(year from l)::int, extract(month from l)::int, extract(day from l)::int, extract(hour from l)::int, extract(minute from l)::int, extract(second from l)::float8)
make_timestamptz(extract(year from l)::int, extract(month from l)::int, extract(day from l)::int, extract(hour from l)::int, extract(minute from l)::int, extract(second from l)::float8, current_setting('TimeZone'))
to_timestamp(to_char(l, 'YYYY-MM-DD HH24:MI:SS'), 'YYYY-MM-DD HH24:MI:SS'); l::text::timestamptz
(l::text || ' ' || current_setting('TimeZone'))::timestamptz; l::date::timestamptz; l < m; l::date = m; m = l
"""
"""What is asked in a session with that TimeZone, as texts; ``m``: an instant, ``l``: its wall-clock time."""


def scan(offset: Any, first: int, last: int, step: int) -> Iterator[int]:
    """The instants from ``first`` to ``last`` (years) where a function of seconds since 1970 changes."""
    at, end = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (first, last))
    while at < end:
        low, high = at, at + step
        if offset(low) != offset(high):
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(middle) == offset(low) else (low, middle)
            yield high
        at += step


def offset_of(zone: ZoneInfo) -> Any:
    start = datetime(1970, 1, 1, tzinfo=UTC)
    return lambda moment: round((start + timedelta(seconds=moment)).astimezone(zone).utcoffset().total_seconds())  # type: ignore[union-attr]


def changes_of(name: str) -> list[int]:
    """The changes of a named zone on which both databases agree, and which are not merely the database's own future."""
    ours, theirs = resources.files("tzdata").joinpath("zoneinfo", *name.split("/")), Path("/usr/share/zoneinfo") / name
    with ours.open("rb") as one, theirs.open("rb") as other:
        mine, machine = offset_of(ZoneInfo.from_file(one)), offset_of(ZoneInfo.from_file(other))
    found = [t for years in ((1840, 2040), (2099, 2101), (2399, 2402)) for t in scan(machine, *years, 6 * 3600)]
    around = [*range(-368 * 86400, -362 * 86400, 900), *range(-32 * 86400, 32 * 86400, 900)]
    return [t for t in found if all(mine(t + distance) == machine(t + distance) for distance in around)]


def numbers(connection: Any, zone: str, change: int) -> list[int]:
    """What is recorded of a change, in seconds; ``tests/planner/expr/test_zones.py`` computes the same."""
    at = "to_timestamp(%(t)s + d)"
    parts = [f"extract(epoch from ({at} at time zone %(z)s) - ({at} at time zone 'UTC'))"]
    parts += [
        f"extract(epoch from date_trunc('{u}', {at}, %(z)s) - (date_trunc('{u}', {at} at time zone %(z)s) at time zone 'UTC'))"
        for u in UNITS
    ]
    parts += [f"extract(epoch from ({at} + '{step}'::interval) - {at})" for step in STEPS]
    wall = "(to_timestamp(%(t)s + d) at time zone 'UTC' + make_interval(secs => o))"
    rows = connection.execute(
        f"select array[{', '.join(parts)}]::int8[] from unnest(%(a)s::int[]) d",
        {"t": change, "z": zone, "a": list(AROUND)},
    ).fetchall()
    before, after = (
        connection.execute(
            "select extract(epoch from (to_timestamp(%s) at time zone %s) - (to_timestamp(%s) at time zone 'UTC'))::int",
            (t, zone, t),
        ).fetchone()[0]
        for t in (change - 1, change)
    )
    walls = connection.execute(
        f"select extract(epoch from ({wall} at time zone %(z)s) - ({wall} at time zone 'UTC'))::int8 "
        "from unnest(%(o)s::int[]) with ordinality u(o, n), unnest(%(a)s::int[]) with ordinality v(d, m) order by n, m",
        {"t": change, "z": zone, "o": [before, after], "a": list(AROUND)},
    ).fetchall()
    return [before, after, *(n for row in rows for n in row[0]), *(row[0] for row in walls)]


def asked(zone: str) -> list[str]:
    """The expressions of TEXTS; a text that ends in a zone takes only a name."""
    found = [text.strip() for line in TEXTS.strip().splitlines() for text in line.split(";")]
    return [text for text in found if text and (zone in NAMED or "||" not in text)]


def texts(connection: Any, zone: str, change: int) -> list[list[str | None]]:
    """The answers to TEXTS one second before a change, at it, and half an hour after it."""
    found = []
    for moment in (change - 1, change, change + 1800):
        row = connection.execute(
            f"select {', '.join(f'({text})::text' for text in asked(zone))} from "
            "(select to_timestamp(%s) m, to_timestamp(%s)::timestamp l) t",
            (moment, moment),
        ).fetchone()
        found.append(list(row))
    return found


def main(dsn: str) -> None:
    import psycopg

    zones: dict[str, Any] = {}
    with psycopg.connect(dsn, autocommit=True) as connection:
        for zone in (*NAMED, *RULES):
            connection.execute("select set_config('TimeZone', %s, false)", (zone,))
            if zone in NAMED:
                moments = changes_of(zone)
            else:

                def offset(moment: int, zone: str = zone) -> int:
                    return connection.execute(
                        "select extract(timezone from to_timestamp(%s))::int", (moment,)
                    ).fetchone()[0]  # type: ignore[no-any-return, index]

                moments = [
                    t for year in (1805, 1970, 2024, 2199, 2600) for t in scan(offset, year, year + 1, 7 * 86400)
                ]
                moments = moments or [0, 1_000_000_000, -5_000_000_000]
            patterns: list[list[int]] = []
            changes = []
            for moment in moments:
                pattern = numbers(connection, zone, moment)
                if pattern not in patterns:
                    patterns.append(pattern)
                changes.append([moment, patterns.index(pattern)])
            some = sorted({moments[0], moments[len(moments) // 2], moments[-1]})
            zones[zone] = {
                "patterns": patterns,
                "changes": changes,
                "texts": [[t, texts(connection, zone, t)] for t in some],
            }
    lines = ",\n".join(
        f"{json.dumps(zone)}: {json.dumps(found, separators=(',', ':'))}" for zone, found in zones.items()
    )
    (HERE / "zones.json").write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1])
