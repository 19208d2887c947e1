"""Sizes of relations and databases, and pg_size_pretty."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

from ivm.errors import SqlError
from ivm.words import INT8, NAME, NUMERIC, OID, REGCLASS, TEXT
from planner.expr.functions.table import CallSite, per_value
from storage.types.numeric import WIDE, numeric_text
from storage.types.text_number import parse_numeric

_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB", "PB")
_LIMITS: Final = (10 * 1024, 20 * 1024 - 1)
"""An amount is shown in the next unit from here on: bytes, and half units of the others."""
_FORKS: Final = ("main", "fsm", "vm", "init")
_POWERS: Final = {"": 0} | {unit.lower(): power for power, unit in enumerate(_UNITS)}
_SIZE: Final = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)((?:\s*[^\s\d].*)?\s*)", re.DOTALL)
_VALID: Final = ", ".join(f'"{unit}"' for unit in _UNITS[:-1]) + f', and "{_UNITS[-1]}"'


@per_value("pg_relation_size", (REGCLASS,), INT8, volatility="volatile", needs_site=True)
@per_value("pg_table_size", (REGCLASS,), INT8, volatility="volatile", needs_site=True)
@per_value("pg_total_relation_size", (REGCLASS,), INT8, volatility="volatile", needs_site=True)
def relation_size(site: CallSite, oid: int) -> int:
    hook = getattr(site.context.session, "relation_size", None)
    return int(hook(oid)) if callable(hook) else 0


@per_value("pg_relation_size", (REGCLASS, TEXT), INT8, volatility="volatile", needs_site=True)
def fork_size(site: CallSite, oid: int, fork: str) -> int:
    if fork not in _FORKS:
        hint = 'Valid fork names are "main", "fsm", "vm", and "init".'
        raise SqlError("22023", "invalid fork name", hint=hint)
    return relation_size(site, oid) if fork == "main" else 0


@per_value("pg_size_pretty", (INT8,), TEXT)
def pg_size_pretty(size: int) -> str:
    at, amount = 0, size
    while at < len(_UNITS) - 1 and abs(amount) >= _LIMITS[at > 0]:
        amount = int(_cut(Decimal(amount), 512 if at == 0 else 1024))
        at += 1
    return f"{amount if at == 0 else _halved(Decimal(amount))} {_UNITS[at]}"


@per_value("pg_size_pretty", (NUMERIC,), TEXT)
def pg_size_pretty_numeric(size: Decimal) -> str:
    """Bytes keep their fraction; an infinity and NaN are of the largest unit."""
    if not size.is_finite():
        return f"{'NaN' if size.is_nan() else numeric_text(size)} {_UNITS[-1]}"
    at, amount = 0, size
    while at < len(_UNITS) - 1 and abs(amount) >= _LIMITS[at > 0]:
        amount = _cut(amount, 512 if at == 0 else 1024)
        at += 1
    return f"{numeric_text(amount) if at == 0 else _halved(amount)} {_UNITS[at]}"


def _cut(amount: Decimal, unit: int) -> Decimal:
    """The quotient truncated towards zero."""
    return WIDE.divide_int(amount, Decimal(unit))


def _halved(amount: Decimal) -> int:
    """Half of an amount in half units, rounded away from zero."""
    return int(_cut(WIDE.add(amount, Decimal(1 if amount >= 0 else -1)), 2))


@per_value("pg_size_bytes", (TEXT,), INT8)
def pg_size_bytes(text: str) -> int:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise SqlError("22023", f'invalid size: "{text}"')
    unit = match[2].strip().lower()
    power = _POWERS.get(unit)
    if power is None:
        detail, hint = f'Invalid size unit: "{match[2].strip()}".', f"Valid units are {_VALID}."
        raise SqlError("22023", f'invalid size: "{text}"', detail, hint)
    size = WIDE.multiply(parse_numeric(match[1]), Decimal(1 << 10 * power))
    rounded = int(size.to_integral_value(ROUND_HALF_UP))
    if not -(2**63) <= rounded < 2**63:
        raise SqlError("22003", "bigint out of range")
    return rounded


@per_value("pg_tablespace_size", (NAME,), INT8, volatility="stable")
@per_value("pg_tablespace_size", (OID,), INT8, volatility="stable")
def pg_tablespace_size(name: str | int) -> None:
    """The size of a tablespace is unknown: there are none."""


@per_value("pg_database_size", (NAME,), INT8, volatility="volatile", needs_site=True)
@per_value("pg_database_size", (OID,), INT8, volatility="volatile", needs_site=True)
def pg_database_size(site: CallSite, database: str | int) -> int | None:
    hook = getattr(site.context.session, "database_bytes", None)
    return None if not callable(hook) or (size := hook(database)) is None else int(size)
