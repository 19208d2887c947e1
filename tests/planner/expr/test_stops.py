"""What ends an evaluation from within: a cancel and the budget, which are no errors of rows."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pytest

from ivm.budget import Budget
from ivm.errors import SqlError
from ivm.rows import Vector
from ivm.stops import movable, poll, stoppable
from ivm.words import INT4, TEXT
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import evaluate
from planner.expr.functions.numbers import numeric_math as maths
from planner.expr.scalar import Call, Column, Literal
from sql.engine.state import TooLongHereError
from storage.dictionary import Dictionary

REPEATED = (Call("repeat(text,int4)", (Literal("x", TEXT), Column(0, INT4)), TEXT),)


def rows(count: int) -> list[Vector]:
    return [Vector(np.arange(1_000_000, 1_000_000 + count))]


def test_a_cancel_is_seen_between_values() -> None:
    """It ends the evaluation, and makes no row fail."""
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(SqlError) as info, stoppable(cancel):
        evaluate(REPEATED, rows(3), 3, Context(Dictionary(b"0123456789abcdef")))
    assert info.value.sqlstate == "57014"


def test_the_results_of_a_block_count_together() -> None:
    """Each of them fits the budget, all of them do not; what was taken is given back."""
    budget = Budget(20_000_000)
    with stoppable(None, budget):
        _, failures = evaluate(REPEATED, rows(5), 5, Context(Dictionary(b"0123456789abcdef")))
    assert failures is None
    with pytest.raises(SqlError) as info, stoppable(None, budget):
        evaluate(REPEATED, rows(100), 100, Context(Dictionary(b"0123456789abcdef")))
    assert info.value.sqlstate == "53200"
    assert budget.taken == 0


def test_work_may_move_to_another_thread() -> None:
    """Where it takes long; not once it may have had effects."""
    with pytest.raises(TooLongHereError), movable(0, TooLongHereError):
        evaluate(REPEATED, rows(3), 3, Context(Dictionary(b"0123456789abcdef")))
    with movable(0, lambda: None):
        evaluate(REPEATED, rows(3), 3, Context(Dictionary(b"0123456789abcdef")))


LONG = Decimal("9" * 100_000)
NEAR = Decimal("1." + "0" * 16_000 + "1")


@pytest.mark.parametrize(
    ("function", "arguments", "begin"),
    [
        (maths.natural_logarithm, (LONG,), "230258.509299404"),
        (maths.natural_logarithm, (NEAR,), "0.0000000000000000"),
        (maths.square_root, (LONG,), "1" + "0" * 50_000),
        (maths.logarithm, (Decimal(10), LONG), "100000.00000000000"),
        (maths.power, (LONG, Decimal("0.01")), "1" + "0" * 1000),
        (maths.power, (NEAR, Decimal(2) ** 31), "1.0000000000000000"),
        (maths.modulo, (LONG, Decimal("7.5")), "1.5"),
        (maths.greatest_divisor, (LONG, Decimal(6)), "3"),
        (maths.exponential, (Decimal("2." + "3" * 16_000),), "10.31225"),
    ],
)
def test_long_numerics_take_no_square_of_their_digits(
    function: Callable[..., Decimal], arguments: tuple[Decimal, ...], begin: str
) -> None:
    """Each takes milliseconds; with all digits they took minutes, and held the interpreter's lock."""
    assert f"{function(*arguments):f}".startswith(begin)


def test_what_would_take_too_many_digits_is_refused() -> None:
    """54000, instead of seconds."""
    with pytest.raises(SqlError) as info:
        maths.logarithm(NEAR, LONG)
    assert info.value.sqlstate == "54000"


class Held:
    """What a stopped call holds."""


def test_what_was_stopped_lets_go_of_what_it_held() -> None:
    """Without a garbage collection, while its error is kept."""
    cancel = threading.Event()
    cancel.set()
    seen: list[weakref.ref[Held]] = []

    def work() -> None:
        held = Held()
        seen.append(weakref.ref(held))
        poll()

    gc.disable()
    try:
        with pytest.raises(SqlError) as info, stoppable(cancel):
            work()
        assert info.value.sqlstate == "57014"
        assert seen[0]() is None
    finally:
        gc.enable()
