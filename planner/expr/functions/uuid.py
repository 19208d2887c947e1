"""Functions that make UUIDs."""

from __future__ import annotations

import uuid

from ivm.words import UUID as UUID_TYPE
from planner.expr.functions.table import per_value


@per_value("gen_random_uuid", (), UUID_TYPE, volatility="volatile")
def gen_random_uuid() -> bytes:
    return uuid.uuid4().bytes
