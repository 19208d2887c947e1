"""The offsets of a time zone for whole columns: ``Zone.at`` and ``Zone.local`` by binary search in its changes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ivm.rows import Words
from storage.types.calendar import EPOCH_DAYS, SECOND
from storage.types.zones import CYCLE, Zone

_UNIX = EPOCH_DAYS * 86400
_DAY = 86400


@lru_cache(64)
def _changes(zone: Zone) -> tuple[Words, Words]:
    """When the zone changes, int64[n], and its offsets before, between and after, int64[n + 1]."""
    held = [zone.first.offset, *(kind.offset for kind in zone.kinds)]
    return np.array(zone.times, np.int64), np.array(held, np.int64)


def _shifts(zone: Zone, times: Words, moments: Words) -> Words:
    """The whole cycles to subtract from each moment."""
    shifts = np.zeros(len(moments), np.int64)
    if zone.later:
        shifts = np.where(moments >= times[-1], ((moments - times[-1]) // CYCLE + 1) * CYCLE, shifts)
    if zone.earlier:
        shifts = np.where(moments < times[0], -((times[0] - moments - 1) // CYCLE + 1) * CYCLE, shifts)
    return shifts


def offsets(zone: Zone, stamps: Words) -> Words:
    """The zone's offset at each instant, in seconds east of Greenwich."""
    times, held = _changes(zone)
    moments = stamps // SECOND + _UNIX
    return held[np.searchsorted(times, moments - _shifts(zone, times, moments), side="right")]


def local_offsets(zone: Zone, locals_: Words) -> Words:
    """The offset by which each wall-clock time is read."""
    times, held = _changes(zone)
    walls = locals_ // SECOND + _UNIX
    moments = walls - _DAY
    shifts = _shifts(zone, times, moments)
    place = np.searchsorted(times, moments - shifts, side="right")
    before = held[place]
    if not len(times):
        return before
    last = place == len(times)
    at = np.where(last, 0, place)
    boundary, after = times[at] + shifts, held[at + 1]
    early, late = walls - before >= boundary, walls - after >= boundary
    # skipped by the change: the clocks before it; shown twice: those after it
    chosen = np.where(early == late, np.where(early, after, before), np.where(before < after, before, after))
    return np.where(last, before, chosen)
