"""Every function of the table over long arguments ends by itself, or soon after it is told to.

The short form takes every seventh function; FRESHET_BOMBS=1 takes all.
"""

from __future__ import annotations

import os
import threading
import time
from decimal import Decimal
from typing import Any

import pytest

from ivm.budget import Budget
from ivm.errors import SqlError
from ivm.stops import stoppable
from ivm.words import INT4, TEXT, Kind, SqlType
from planner.expr.context import Context
from planner.expr.functions.library import FUNCTIONS
from planner.expr.functions.table import ArgumentType, CallingConvention, CallSite, Function, Polymorphic
from planner.expr.rows import RowBatch
from storage.dictionary import Dictionary

Given = tuple[Any, SqlType]
CANCEL_SECONDS = 0.1
ENDS_SECONDS = 4.0
"""With slack for a shared machine. What looks at no cancel takes minutes."""
LONG = {
    Kind.TEXT: "ab1," * 250_000, Kind.BPCHAR: "ab " * 300_000, Kind.NAME: "a" * 60, Kind.BYTEA: b"ab\\1" * 250_000,
    Kind.NUMERIC: Decimal("9" * 100_000 + ".5"), Kind.INT2: 2**15 - 1, Kind.INT4: 2**31 - 1, Kind.INT8: 2**63 - 1,
    Kind.FLOAT4: 1e30, Kind.FLOAT8: 1e300, Kind.BOOL: True, Kind.JSONB: "[" + "1, " * 200_000 + "1]",
    Kind.JSON: "[" + "1, " * 100_000 + "1]", Kind.BIT: "10" * 500_000, Kind.VARBIT: "10" * 500_000,
    Kind.INTERVAL: (10**6, 10**6, 10**12), Kind.DATE: 10_000, Kind.TIMESTAMP: 10**15, Kind.TIMESTAMPTZ: 10**15,
    Kind.OID: 1, Kind.CHAR1: "a",
}  # fmt: skip
SHORT = {Kind.TEXT: "a", Kind.INT4: 1000, Kind.INT8: 1000}
ARRAYS: dict[Kind, tuple[Any, ...]] = {
    Kind.TEXT: ("ab",) * 200_000, Kind.INT4: tuple(range(200_000)), Kind.INT8: tuple(range(200_000)),
}  # fmt: skip


def given(declared: ArgumentType, short: bool) -> Given | None:
    """A long (or short) value of a type; None: there is none here."""
    if isinstance(declared, Polymorphic):
        if "range" in declared.value or "enum" in declared.value:
            return None
        array = SqlType(Kind.ARRAY, element=INT4)
        return (ARRAYS[Kind.INT4], array) if "array" in declared.value else (LONG[Kind.TEXT], TEXT)
    if declared.element is not None:
        values = ARRAYS.get(declared.element.kind)
        return None if values is None else (values, declared)
    value = SHORT.get(declared.kind) if short else None
    value = LONG.get(declared.kind) if value is None else value
    return None if value is None else (value, declared)


def cases() -> list[Any]:
    """Each function with all arguments long, and with those after the first short."""
    found = []
    for key in sorted(FUNCTIONS):
        function = FUNCTIONS[key]
        if function.convention is CallingConvention.PER_VALUE and function.args and function.name != "pg_sleep":
            for later in (False, True)[: len(function.args)]:
                arguments = [given(a, later and i > 0) for i, a in enumerate(function.args)]
                if None not in arguments:
                    found.append(pytest.param(function, arguments, id=f"{key}{' short' * later}"))
    return found if os.environ.get("FRESHET_BOMBS") == "1" else found[::7]


@pytest.mark.parametrize(("function", "arguments"), cases())
def test_it_ends(function: Function, arguments: list[Given]) -> None:
    """A cancel comes after 0.1 s."""
    result = function.result if isinstance(function.result, SqlType) else arguments[0][1]
    batch = RowBatch((), 1, Context(Dictionary(b"0123456789abcdef")))
    site = CallSite(batch, tuple(type_ for _, type_ in arguments), result, 1)
    first = (site,) if function.needs_site else ()
    cancel = threading.Event()
    timer = threading.Timer(CANCEL_SECONDS, cancel.set)
    timer.start()
    begun = time.thread_time()
    try:
        with stoppable(cancel, Budget(1 << 30)):
            function.implementation(*first, *(value for value, _ in arguments))
    except SqlError:
        pass
    except (AssertionError, AttributeError, TypeError, ValueError, KeyError, IndexError):
        pass  # the value stands for one of a narrower type, or the function needs a session
    finally:
        timer.cancel()
    assert time.thread_time() - begun < ENDS_SECONDS
