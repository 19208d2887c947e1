"""Sorting by bytes is cut into parts, between which others have Python's lock and the work may end."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest

from ivm.errors import SqlError
from ivm.stops import stoppable
from planner.peek import order_limit
from planner.peek.order_limit import SORTED_AT_ONCE, by_bytes


def _values(count: int) -> list[bytes]:
    """So many values, a third of them beginning alike, in no order."""
    found = [b"%d" % i if i % 3 else b"alike %d" % i for i in range(count)]
    random.Random(count).shuffle(found)
    return found


@pytest.mark.parametrize("count", [0, 1, 2, SORTED_AT_ONCE, SORTED_AT_ONCE + 1, 3 * SORTED_AT_ONCE, 100_000])
def test_the_order_is_that_of_bytes(count: int) -> None:
    values = _values(count)
    assert [values[i] for i in by_bytes(values)] == sorted(values)


def test_no_call_sorts_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call in C holds Python's lock: for 600,000 values 0.4 s."""
    calls: list[int] = []

    def counted(what: Any, **how: Any) -> list[Any]:
        calls.append(len(what))
        return sorted(what, **how)

    monkeypatch.setattr(order_limit, "sorted", counted, raising=False)
    by_bytes(_values(40 * SORTED_AT_ONCE))
    assert len(calls) > 30
    assert max(calls) <= 3 * SORTED_AT_ONCE


def test_it_ends_when_cancelled() -> None:
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(SqlError, match="canceling statement"), stoppable(cancel):
        by_bytes(_values(2 * SORTED_AT_ONCE))
