"""What a reducer can do is asked of its class, once."""

from __future__ import annotations

from typing import ClassVar

from ivm.abilities import may_be_slow, picks, reduces_by_formula, searches
from ivm.graph import CountRows, Picks, Reduced, Window
from ivm.rows import Words


class Asked:
    """A reducer that counts how often it is asked for its picks."""

    asked: ClassVar[int] = 0
    out_width = 1
    limit: int | None = None

    def __call__(self, keys: Words, offsets: Words, vals: Words, diffs: Words, /) -> Reduced:
        raise NotImplementedError

    @property
    def picks(self) -> Picks:
        Asked.asked += 1
        return Picks((Window(),))


def test_each_class_is_asked_once() -> None:
    assert all(picks(Asked()) for _ in range(5))
    assert Asked.asked == 1
    assert not searches(Asked())


def test_what_has_nothing_more_can_do_nothing_more() -> None:
    for ability in (picks, searches, may_be_slow, reduces_by_formula):
        assert not ability(CountRows())
