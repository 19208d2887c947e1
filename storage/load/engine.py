"""Chooses the engine of a load: this process, or Spark."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from ivm.errors import SqlError
from storage.load.paths import LocalFiles, Location, RemoteFiles
from storage.spark.costs import START_SECONDS


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds per 100 MB of files as stored. ``local``: of the server, if it reads them itself. If Spark reads them,
    ``server``: of the server, and ``cores``: of all executor cores together."""

    local: float
    server: float
    cores: float


COLUMNAR: Final = Costs(2.5, 1.8, 10.7)
"""Parquet and ORC. In benchmarks.spark_loads, on a quiet machine of two cores, ten million rows in 163 MB of Parquet
took 4.2 s here, and 13 s by Spark on both cores. The split between executors and server is an estimate."""
LINES: Final = Costs(7.5, 0.9, 20.8)
"""CSV, text and JSON: 327 MB of CSV with the same rows took 24.5 s and 38 s there."""


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """The chosen engine. ``reason``: why, as EXPLAIN shows it."""

    spark: bool
    reason: str


def choose_engine(wanted: str, location: Location | None, costs: Costs, cores: int) -> EngineChoice:
    """The engine for a location. None is a database, which only Spark reads. ``cores``: Spark's. Raises 0A000 if
    ``local`` was asked for and cannot read it."""
    if not isinstance(location, LocalFiles):
        what = f'"{location.shown}"' if isinstance(location, RemoteFiles) else "a database"
        if wanted == "local":
            hint = "Leave the option ENGINE out, or write ENGINE spark."
            raise SqlError("0A000", f"{what} is read by Spark only", hint=hint)
        return EngineChoice(True, f"only Spark reads {what}")
    if wanted != "auto":
        return EngineChoice(wanted == "spark", "as the statement asks")
    return _quicker(location.size, costs, cores)


def _quicker(size: int, costs: Costs, cores: int) -> EngineChoice:
    """Compares estimated times. The costs are one machine's, and Spark is assumed not to be running yet."""
    hundreds = size / 1e8
    local = costs.local * hundreds
    spark = START_SECONDS + (costs.server + costs.cores / cores) * hundreds
    reason = f"{shown_bytes(size)}: about {local:.0f} s here, {spark:.0f} s by Spark"
    if spark < local and find_spec("pyspark") is None:
        return EngineChoice(False, f"{reason}, but this server has no Spark")
    return EngineChoice(spark < local, reason)


def shown_bytes(size: int) -> str:
    """A size in bytes, human-readable."""
    amount, units = float(size), ["bytes", "kB", "MB", "GB", "TB"]
    while amount >= 1024 and len(units) > 1:
        amount /= 1024
        units.pop(0)
    return f"{size} {units[0]}" if units[0] == "bytes" else f"{amount:.3g} {units[0]}"
