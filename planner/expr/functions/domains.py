"""The constraints of domains, which values are checked against."""

from __future__ import annotations

from typing import Final

from ivm.errors import SqlError
from ivm.words import BOOL, TEXT
from planner.expr.functions.table import per_value

DOMAIN_CHECK: Final = "domain check"


@per_value(DOMAIN_CHECK, (BOOL, TEXT, TEXT), BOOL, strict=False, key_is_name=True, makes_null=False, internal=True)
def check(met: bool | None, domain: str, constraint: str | None) -> bool:
    """True unless the condition is false (NULL passes). ``constraint``: its name, None for NOT NULL. Raises 23502,
    23514."""
    if met is None or met:
        return True
    if constraint is None:
        raise SqlError("23502", f"domain {domain} does not allow null values")
    raise SqlError("23514", f'value for domain {domain} violates check constraint "{constraint}"')
