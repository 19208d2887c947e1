"""Calls of users' functions that the session interprets (``SessionFunctions.call_routine``).

The first argument is the routine's oid, the others are the routine's own; that of a set-returning call is preceded by a
NULL of the row type that it returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import INT8, Kind, SqlType
from planner.expr.context import Context
from planner.expr.functions.expansion import add, each_row
from planner.expr.functions.table import ANY, CallSite, per_value, session_of

ROUTINE: Final = "routine"
STABLE_ROUTINE: Final = "stable routine"
ROUTINE_ROWS: Final = "rows of routine"
ROUTINE_ROW: Final = f"row of {ROUTINE_ROWS}"
"""The same with the whole row as its one column."""


@per_value(STABLE_ROUTINE, (ANY,), ANY, strict=False, needs_site=True, key_is_name=True, variadic=True,
           internal=True, volatility="stable")  # fmt: skip
@per_value(ROUTINE, (ANY,), ANY, strict=False, needs_site=True, key_is_name=True, variadic=True, internal=True,
           volatility="volatile")  # fmt: skip
def call_routine(site: CallSite, routine: int, *arguments: Any) -> Any:
    """The value of the first row that the routine returns: its only column, or a row of all; NULL without rows."""
    rows = session_of(site).call_routine(routine, arguments, site.args[1:], site.result)
    if not rows:
        return None
    return rows[0][0]


def _fields(types: Sequence[SqlType]) -> Sequence[SqlType]:
    return [type_ for _, type_ in types[0].fields]


def _rows(context: Context, types: tuple[SqlType, ...], row: Any, routine: int, *arguments: Any) -> Any:
    if context.session is None:
        raise SqlError("0A000", "this function needs a session")
    return context.session.call_routine(routine, arguments, types[2:], types[0], in_from=True)


add(ROUTINE_ROWS, (SqlType(Kind.RECORD), INT8, ANY), _fields, each_row(_fields, _rows, 1 << 16), nullable=True,
    key=ROUTINE_ROWS, row=True)  # fmt: skip
