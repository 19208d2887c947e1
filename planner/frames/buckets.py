"""ntile: where its buckets end. The number of buckets is the argument of the partition's first row."""

from __future__ import annotations

from typing import Final

from planner.frames.plan import WindowPlan, positions
from planner.frames.searched import Group
from planner.logical.frames import Pick, Picked

MOST: Final = 512
"""More buckets than that are not looked at one by one."""


def buckets(plan: WindowPlan, groups: tuple[Group, Group]) -> tuple[int, ...] | None:
    """The number of buckets of each ntile, if a change leaves them all as they are; else None."""
    found = []
    for framed in plan.framed:
        if isinstance(framed.function, Picked) and framed.function.pick is Pick.NTILE:
            before, after = (_number(group, framed.function) for group in groups)
            if before is None or before != after or not 0 < before <= MOST:
                return None
            found.append(before)
    return tuple(dict.fromkeys(found))


def _number(group: Group, picked: Picked) -> int | None:
    if not group.rows.size:
        return None
    held, _ = group.held(0, 1)
    column = held.columns[positions(picked.args)[0]]
    return None if column.nulls is not None and column.nulls[0] else int(column.words[0])


def bucket_ends(number: int, size: int) -> list[int]:
    """The ranks at which each bucket but the last ends in a partition of so many rows."""
    each, larger = divmod(size, number)
    return [b * each + min(b, larger) for b in range(1, number)]
