"""What earlier steps tell of the next one's cost."""

from __future__ import annotations

from sql.engine.step_costs import ALIKE, LONG_NANOSECONDS, UNKNOWN_ROWS, StepCosts


def _stepped(costs: StepCosts, rows: int, nanoseconds: int, table: int = 1) -> None:
    costs.fed(table, rows)
    costs.ended(nanoseconds)


def test_what_no_step_has_shown_may_be_long() -> None:
    costs = StepCosts()
    assert costs.may_be_long({1: 1})
    _stepped(costs, 1, 1000)
    assert not costs.may_be_long({1: UNKNOWN_ROWS - 1})
    assert costs.may_be_long({1: UNKNOWN_ROWS}), "one row does not tell what so many cost"
    assert costs.may_be_long({1: 1, 2: 1})
    _stepped(costs, 10, LONG_NANOSECONDS // 5)
    assert not costs.may_be_long({1: 40})
    assert costs.may_be_long({1: 60})
    assert not costs.may_be_long({1: 10 * ALIKE + 1}), "so few do not tell of so many more"
    _stepped(costs, 1, LONG_NANOSECONDS + 1)
    assert costs.may_be_long({1: 1})


def test_many_rows_that_were_cheap_are_short() -> None:
    costs = StepCosts()
    _stepped(costs, UNKNOWN_ROWS, LONG_NANOSECONDS // 5)
    assert not costs.may_be_long({1: 4 * UNKNOWN_ROWS})
    assert costs.may_be_long({1: 6 * UNKNOWN_ROWS})
    assert costs.may_be_long({1: 3 * UNKNOWN_ROWS, 2: UNKNOWN_ROWS})
    _stepped(costs, 1, 1000)
    assert not costs.may_be_long({1: UNKNOWN_ROWS}), "a small step takes nothing of that away"
    _stepped(costs, UNKNOWN_ROWS // ALIKE, LONG_NANOSECONDS)
    assert costs.may_be_long({1: UNKNOWN_ROWS})
    costs.forget()
    assert costs.may_be_long({1: 1})


def test_a_step_that_undoes_something_tells_nothing() -> None:
    costs = StepCosts()
    _stepped(costs, UNKNOWN_ROWS, 2 * LONG_NANOSECONDS)
    costs.fed(1, UNKNOWN_ROWS)
    costs.skip()
    costs.ended(1000)
    assert costs.may_be_long({1: UNKNOWN_ROWS})
