"""Functions of values of any type: pg_typeof, sizes, and counts of NULLs."""

from __future__ import annotations

from typing import Any

from ivm.words import INT4, REGTYPE
from planner.expr.functions.table import ANY, CallSite, per_value
from planner.expr.functions.text.concat import to_text
from storage.types.type_names import type_oid


@per_value("pg_typeof", (ANY,), REGTYPE, strict=False, needs_site=True)
def pg_typeof(site: CallSite, value: Any) -> int:
    return type_oid(site.args[0])


@per_value("num_nulls", (ANY,), INT4, strict=False, variadic=True)
def num_nulls(*values: Any) -> int:
    return sum(value is None for value in values)


@per_value("num_nonnulls", (ANY,), INT4, strict=False, variadic=True)
def num_nonnulls(*values: Any) -> int:
    return sum(value is not None for value in values)


@per_value("pg_column_size", (ANY,), INT4, needs_site=True)
def pg_column_size(site: CallSite, value: Any) -> int:
    return len(to_text(site, site.args[0], value).encode())
