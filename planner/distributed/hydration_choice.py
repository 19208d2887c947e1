"""Chooses who computes a new view's first contents: the server's engine or Spark. The only place that decides."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec
from typing import Final

from ivm.errors import SqlError, unsupported
from ivm.graph import DeltaJoin, Wait
from planner.physical.nodes import Lock, Plan, Table
from storage.spark.costs import START_SECONDS, cores_of

LOCAL_SECONDS: Final = 1.0
"""Seconds that the server takes for a million rows, on one core.

Measured with benchmarks.spark_hydration on a quiet machine of two cores: a join with sums took 0.9 s at 1.1 million
rows, 9.4 s at eleven.
"""
LOCAL_BYTES: Final = 300
"""Bytes of the server's memory for each row that the view reads while it hydrates, at most: a guess."""
SPARK_SERVER: Final = 0.45
"""Seconds that the server takes for a million rows when Spark hydrates: it writes sources and takes the runs."""
SPARK_CORES: Final = 2.2
"""Core seconds that the executors take for a million rows.

The same view by Spark on those two cores took 2.2 and 14.2 s, with Spark already running. The split between executors
and server is by CPU time.
"""
SPARK_LOOP: Final = 5.0
"""Seconds for a recursive view's rounds, however few rows there are."""
SPARK_LOOP_CORES: Final = 5.7
"""Further core seconds that the executors take for a million rows of a recursive view.

Reachability over one and ten million edges, some 25 rounds, took 9.3 and 48.7 s there (0.85 and 8.1 s by the server).
"""


class Hydrate(Enum):
    """The values of HYDRATE."""

    AUTO = "auto"
    SPARK = "spark"
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Choice:
    """``by``: SPARK or LOCAL; ``why``: the reason, as text."""

    by: Hydrate
    why: str

    def __str__(self) -> str:
        return f"{self.by.value} ({self.why})"


def unsupported_by_spark(plan: Plan) -> SqlError | None:
    """The error that says why Spark cannot run a plan; None: it can."""
    if any(isinstance(node, Lock) for node in plan.nodes):
        return unsupported("hydrating a join with PROCTIME() by Spark", "It locks what the server has at its commit.")
    if any(isinstance(node, Wait) for node in plan.nodes):
        return unsupported("hydrating a condition on the current time by Spark", "The server's clock decides it.")
    if searches_ranges(plan):
        return unsupported(
            "hydrating a join on inequalities by Spark", "Its parts are of equal keys. The server does it."
        )
    return None


def searches_ranges(plan: Plan) -> bool:
    """Whether a join of the plan searches ranges, whose rows are in many of Spark's parts."""
    return any(isinstance(node, DeltaJoin) and node.spans for node in plan.nodes)


def stored_in(plan: Plan) -> frozenset[int]:
    """The stored relations that a plan reads."""
    return frozenset(node.relation for node in plan.nodes if isinstance(node, Table))


def choose(wanted: Hydrate | None, plan: Plan, rows: int, master: str, limit: int = 0) -> Choice:
    """Who hydrates the plan, over relations of ``rows`` rows in all. ``wanted`` None: AUTO.

    ``limit``: the bytes that intermediate results may take, 0 for no limit. 0A000: SPARK was asked for, but cannot run
    it.
    """
    if wanted is Hydrate.LOCAL:
        return Choice(Hydrate.LOCAL, "as asked for")
    refusal = unsupported_by_spark(plan)
    if wanted is Hydrate.SPARK:
        if refusal is not None:
            raise refusal
        return Choice(Hydrate.SPARK, "as asked for")
    if refusal is not None:
        return Choice(Hydrate.LOCAL, f"auto: {refusal.message}")
    if find_spec("pyspark") is None:
        return Choice(Hydrate.LOCAL, "auto: this server has no Spark")
    return _cheaper(bool(plan.scopes), rows, cores_of(master), limit)


def _cheaper(recursive: bool, rows: int, cores: int, limit: int) -> Choice:
    """By memory if the server has too little, else by estimated time. The figures are those of one machine's cores."""
    if limit and rows * LOCAL_BYTES > limit:
        needs = f"{rows} rows may take {_size(rows * LOCAL_BYTES)} of the server's memory at once"
        return Choice(Hydrate.SPARK, f"auto: {needs}, and --memory leaves {_size(limit)}")
    millions = rows / 1e6
    local = LOCAL_SECONDS * millions
    of_cores, rounds = (SPARK_CORES + SPARK_LOOP_CORES, SPARK_LOOP) if recursive else (SPARK_CORES, 0.0)
    spark = START_SECONDS + rounds + (SPARK_SERVER + of_cores / cores) * millions
    by = Hydrate.SPARK if spark < local else Hydrate.LOCAL
    what = "a recursive view over " if recursive else ""
    return Choice(by, f"auto: {what}{rows} rows, about {local:.0f} s here, {spark:.0f} s by Spark")


def _size(size: int) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size >> 20} MiB"
