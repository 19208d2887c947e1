"""Guessing gets slower with each failure, up to a bound, and only for who guesses."""

from __future__ import annotations

from itertools import pairwise

from sql.admission.delays import (
    FIRST_SECONDS,
    FORGET_SECONDS,
    LONGEST_SECONDS,
    MAX_KNOWN,
    QUEUE_SECONDS,
    Delays,
    key_of,
)
from sql.admission.rules import plain_address

ANN = ("ann", "10.1.2.3")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_each_failure_makes_the_next_attempt_wait_longer() -> None:
    clock = Clock()
    delays = Delays(clock)
    waits = []
    for _ in range(12):
        wait = delays.reserve(ANN)
        assert wait is not None
        waits.append(round(wait, 6))
        clock.now += wait
        delays.failed(ANN)
    assert waits[:4] == [0.0, FIRST_SECONDS, 2 * FIRST_SECONDS, 4 * FIRST_SECONDS]
    assert waits == sorted(waits)
    assert waits[-1] == LONGEST_SECONDS
    assert delays.reserve(("ann", "10.1.2.4")) == delays.reserve(("bob", "10.1.2.3")) == 0.0
    delays.passed(ANN)
    assert delays.reserve(ANN) == 0.0


def test_attempts_at_once_wait_for_each_other_and_only_so_many() -> None:
    clock = Clock()
    delays = Delays(clock)
    for _ in range(20):
        delays.failed(ANN)
    waits = [delays.reserve(ANN) for _ in range(10)]
    taken = [wait for wait in waits if wait is not None]
    assert all(b - a == LONGEST_SECONDS for a, b in pairwise(taken))
    assert max(taken) <= QUEUE_SECONDS
    assert waits[-1] is None


def test_failures_are_forgotten_and_never_too_many_are_known() -> None:
    clock = Clock()
    delays = Delays(clock)
    for _ in range(5):
        delays.failed(ANN)
    clock.now += FORGET_SECONDS + 1
    assert delays.reserve(ANN) == 0.0
    delays.failed(ANN)
    assert (delays.reserve(ANN) or 0) > 0.9 * FIRST_SECONDS
    for i in range(MAX_KNOWN + 100):
        delays.failed((f"u{i}", "::"))
    assert len(delays._known) == MAX_KNOWN


def test_ipv6_counts_by_network() -> None:
    keys = {
        key_of("ann", plain_address(host)) for host in ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1", "10.1.2.3")
    }
    assert keys == {("ann", "2001:db8::/64"), ("ann", "2001:db8:0:1::/64"), ("ann", "10.1.2.3")}
