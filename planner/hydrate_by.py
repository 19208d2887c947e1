"""Who computes a new view's first contents: the server's own engine, or Spark. One place for what decides."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec
from typing import Final

from ivm.errors import SqlError, unsupported
from planner.physical import Lock, Plan, Table

SPARK_ROWS: Final = 20_000_000
"""Rows of what a view reads from which on a cluster is worth its start."""
SPARK_LOOP_ROWS: Final = 100_000_000
"""The same for a recursive view: each round is a job or more, about a second where it has next to nothing to do."""


class Hydrate(Enum):
    """What HYDRATE says."""

    AUTO = "auto"
    SPARK = "spark"
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Choice:
    """``by``: SPARK or LOCAL; ``why``: in words."""

    by: Hydrate
    why: str

    def __str__(self) -> str:
        return f"{self.by.value} ({self.why})"


def unsupported_by_spark(plan: Plan) -> SqlError | None:
    """Why Spark cannot run a plan, if so."""
    if any(isinstance(node, Lock) for node in plan.nodes):
        return unsupported("hydrating a join with PROCTIME() by Spark", "It locks what the server has at its commit.")
    return None


def stored_in(plan: Plan) -> frozenset[int]:
    """The stored relations that a plan reads."""
    return frozenset(node.relation for node in plan.nodes if isinstance(node, Table))


def choose(wanted: Hydrate | None, plan: Plan, rows: int, master: str) -> Choice:
    """Who is to hydrate the plan, over relations of ``rows`` rows together; None: AUTO. 0A000: Spark, which cannot."""
    if wanted is Hydrate.LOCAL:
        return Choice(Hydrate.LOCAL, "as asked for")
    refusal = unsupported_by_spark(plan)
    if wanted is Hydrate.SPARK:
        if refusal is not None:
            raise refusal
        return Choice(Hydrate.SPARK, "as asked for")
    least = SPARK_LOOP_ROWS if plan.scopes else SPARK_ROWS
    what = "a recursive view" if plan.scopes else "a view"
    if refusal is not None:
        return Choice(Hydrate.LOCAL, f"auto: {refusal.message}")
    if find_spec("pyspark") is None:
        return Choice(Hydrate.LOCAL, "auto: this server has no Spark")
    if master.startswith("local"):
        return Choice(Hydrate.LOCAL, f"auto: Spark is {master}, this machine's own cores")
    if rows < least:
        return Choice(Hydrate.LOCAL, f"auto: it reads {rows} rows, and {what} is Spark's from {least} on")
    return Choice(Hydrate.SPARK, f"auto: it reads {rows} rows, and {what} is Spark's from {least} on")
