"""pg_sleep: the statement that calls it waits after it has been computed, before its result is sent.

Nothing waits on a thread that other sessions need, and the wait ends with a cancel or a timeout.
"""

from __future__ import annotations

from typing import Final

from ivm.words import FLOAT8, INTERVAL, TIMESTAMPTZ, VOID
from planner.expr.functions.datetime.clock import clock_timestamp
from planner.expr.functions.datetime.intervals import is_infinite, plus_interval_zoned
from planner.expr.functions.table import CallSite, per_value, session_of
from storage.types.calendar import SECOND
from storage.types.interval_output import Interval

_LONGEST: Final = 1e10
"""Seconds that are as good as for ever."""


@per_value("pg_sleep", (FLOAT8,), VOID, volatility="volatile", needs_site=True)
def pg_sleep(site: CallSite, seconds: float) -> int:
    if seconds > 0:
        session_of(site).wait(min(seconds, _LONGEST))
    return 0


@per_value("pg_sleep_for", (INTERVAL,), VOID, volatility="volatile", needs_site=True)
def pg_sleep_for(site: CallSite, interval: Interval) -> int:
    now = clock_timestamp()
    return pg_sleep(site, (plus_interval_zoned(now, interval, site.context.timezone) - now) / SECOND)


@per_value("pg_sleep_until", (TIMESTAMPTZ,), VOID, volatility="volatile", needs_site=True)
def pg_sleep_until(site: CallSite, moment: int) -> int:
    endless = is_infinite(moment) and moment > 0
    return pg_sleep(site, _LONGEST if endless else (moment - clock_timestamp()) / SECOND)
