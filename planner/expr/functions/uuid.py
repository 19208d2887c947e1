"""Functions that make UUIDs, and what UUIDs tell."""

from __future__ import annotations

import uuid

from ivm.words import INT2, TIMESTAMPTZ
from ivm.words import UUID as UUID_TYPE
from planner.expr.functions.table import per_value
from storage.types.calendar import DAY, days_from_civil


@per_value("gen_random_uuid", (), UUID_TYPE, volatility="volatile", only_draws=True)
def gen_random_uuid() -> bytes:
    return uuid.uuid4().bytes


@per_value("uuid_extract_version", (UUID_TYPE,), INT2)
def uuid_extract_version(value: bytes) -> int | None:
    """The version; NULL for a UUID of another variant than RFC 9562's."""
    return value[6] >> 4 if value[8] >> 6 == 2 else None


@per_value("uuid_extract_timestamp", (UUID_TYPE,), TIMESTAMPTZ)
def uuid_extract_timestamp(value: bytes) -> int | None:
    """When a UUID of version 1 was made; NULL for others."""
    if uuid_extract_version(value) != 1:
        return None
    # units of 100 ns since the Gregorian calendar began, on 1582-10-15
    return uuid.UUID(bytes=value).time // 10 + days_from_civil(1582, 10, 15) * DAY
