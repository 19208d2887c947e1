"""Who computes a new view's first contents: the server's own engine, or Spark. One place for what decides."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec
from typing import Final

from ivm.errors import SqlError, unsupported
from planner.physical.nodes import Lock, Plan, Table
from storage.spark.costs import START_SECONDS, cores_of

LOCAL_SECONDS: Final = 1.0
"""What a million rows take the server, which does it on one core: by benchmarks.spark_hydration on a quiet machine of
two cores, a join with sums took 0.9 s at 1.1 million rows, 9.4 s at eleven."""
LOCAL_BYTES: Final = 300
"""What a row of what the view reads takes of the server's memory while it hydrates, at most: a guess."""
SPARK_SERVER: Final = 0.45
"""What a million rows take the server where Spark hydrates: it writes what it has and takes the runs."""
SPARK_CORES: Final = 2.2
"""What a million rows take the executors' cores together: the same view by Spark on those two cores took 2.2 and
14.2 s, Spark running already. How it divides between them and the server is by CPU time."""
SPARK_LOOP: Final = 5.0
"""Seconds of a recursive view's rounds, however little there is …"""
SPARK_LOOP_CORES: Final = 5.7
"""… and what a million rows more take of the executors' cores: reachability over one and ten million edges, some 25
rounds, took 9.3 and 48.7 s there (0.85 and 8.1 s by the server)."""


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


def choose(wanted: Hydrate | None, plan: Plan, rows: int, master: str, limit: int = 0) -> Choice:
    """Who is to hydrate the plan, over relations of ``rows`` rows together; None: AUTO. ``limit``: the bytes that
    intermediate results may take, 0 for any. 0A000: Spark, which cannot."""
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
    """By memory where the server has not enough, else by time. A machine's cores differ: the figures are one's."""
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
