"""Text as the input of a type whose name is a value: pg_input_is_valid and pg_input_error_info."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ivm.words import BOOL, INT4, TEXT, SqlType
from planner.expr.context import Context
from planner.expr.functions.expansion import add, each_row
from planner.expr.functions.table import CallSite, per_value, session_of


@per_value("pg_input_is_valid", (TEXT, TEXT), BOOL, volatility="stable", needs_site=True)
def pg_input_is_valid(site: CallSite, text: str, type_: str) -> bool:
    return session_of(site).input_error(site.context, text, type_) is None


@per_value("to_regtypemod", (TEXT,), INT4, volatility="stable", needs_site=True)
def to_regtypemod(site: CallSite, type_: str) -> int | None:
    return session_of(site).type_modifier(type_)


def _error_info(
    context: Context, types: tuple[SqlType, ...], text: str | None, type_: str | None
) -> Sequence[tuple[Any, ...]]:
    """One row, of NULLs where the text is valid."""
    if text is None or type_ is None:
        return [(None,) * 4]
    error = context.asked().input_error(context, text, type_)
    return [(None,) * 4 if error is None else (error.message, error.detail, error.hint, error.sqlstate)]


add(
    "pg_input_error_info", (TEXT, TEXT), lambda _: (TEXT,) * 4, each_row(lambda _: (TEXT,) * 4, _error_info, strict=2),
    nullable=True, names=("message", "detail", "hint", "sql_error_code"), row=True,
)  # fmt: skip
