"""Time functions at the changes of 29 zones' clocks, as answered by PostgreSQL 15 (``tests/answers/zones.json``)."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import pytest

from planner.expr.functions.datetime.intervals import plus_interval_zoned
from planner.expr.functions.datetime.operators import date_trunc, date_trunc_in_zone
from planner.expr.functions.datetime.zones import timezone_of_stamp, timezone_of_zoned
from storage.types.calendar import EPOCH_DAYS, SECOND
from storage.types.interval_output import Interval
from storage.types.zones import zone
from tests.answers.make_zones import AROUND, HERE, UNITS

STEPS: tuple[Interval, ...] = (
    (0, 1, 0), (0, -1, 0), (1, 0, 0), (-1, -1, 0), (0, 1, 3600 * SECOND), (0, 0, 86400 * SECOND), (-12, 0, 0),
)  # fmt: skip
"""The values of make_zones.STEPS."""


@lru_cache(1)
def answers() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HERE / "zones.json").read_text())
    return found


def numbers(name: str, change: int) -> list[int]:
    """What make_zones.numbers asks."""
    first = (change - EPOCH_DAYS * 86400) * SECOND
    before, after = (timezone_of_zoned(name, m) - m for m in (first - SECOND, first))
    out = [before, after]
    for distance in AROUND:
        stamp = first + distance * SECOND
        local = timezone_of_zoned(name, stamp)
        out.append(local - stamp)
        out += [date_trunc_in_zone(unit, stamp, name) - date_trunc(unit, local) for unit in UNITS]
        out += [plus_interval_zoned(stamp, step, name) - stamp for step in STEPS]
    walls = [first + offset + d * SECOND for offset in (before, after) for d in AROUND]
    return [n // SECOND for n in (*out, *(timezone_of_stamp(name, wall) - wall for wall in walls))]


@pytest.mark.parametrize("name", sorted(answers()))
def test_changes(name: str) -> None:
    recorded = answers()[name]
    for change, pattern in recorded["changes"]:
        assert numbers(name, change) == recorded["patterns"][pattern], change


def test_hours_of_a_change_are_two() -> None:
    """01:30 PDT and 01:30 PST, an hour later, are in two hours."""
    stamps = [(1_730_622_600 + hour * 3600 - EPOCH_DAYS * 86400) * SECOND for hour in (0, 1)]
    first, second = (date_trunc_in_zone("hour", stamp, "US/Pacific") for stamp in stamps)
    assert second - first == 3600 * SECOND


@pytest.mark.parametrize("name", ["Europe/Berlin", "EST5EDT,M3.2.0,M11.1.0", "Africa/Casablanca", "Asia/Kathmandu"])
def test_a_zone_has_an_offset_at_every_instant(name: str) -> None:
    """The calendar repeats after 400 years, and so do yearly rules."""
    place, cycle = zone(name), 146097 * 86400
    for moment in range(5_000_000_000, 5_000_000_000 + 366 * 86400, 5 * 86400):
        assert place.at(moment) == place.at(moment + cycle) == place.at(moment + 700 * cycle)
    assert place.at(-(2**40)) == place.at(-(2**40) - cycle)
