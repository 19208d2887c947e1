"""Which engine loads: this process, or Spark."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from ivm.errors import SqlError
from storage.load.paths import LocalFiles, Location, RemoteFiles
from storage.passwords import hide_passwords

SPARK_BYTES: Final = 512 << 20
"""From how many bytes of files on, as they are stored, ``auto`` takes Spark: its start and its jobs take seconds that
little data is not worth. The number is a guess until the crossover has been measured."""


@dataclass(frozen=True, slots=True)
class Choice:
    """``reason``: why, as EXPLAIN says it."""

    spark: bool
    reason: str


def choose_engine(wanted: str, location: Location | None) -> Choice:
    """The engine for a location; None: a database, which only Spark reads. Raises 0A000 where ``local`` cannot."""
    if not isinstance(location, LocalFiles):
        what = f'"{hide_passwords(location.uri)}"' if isinstance(location, RemoteFiles) else "a database"
        if wanted == "local":
            hint = "Leave the option ENGINE out, or write ENGINE spark."
            raise SqlError("0A000", f"{what} is read by Spark only", hint=hint)
        return Choice(True, f"only Spark reads {what}")
    if wanted != "auto":
        return Choice(wanted == "spark", "as the statement asks")
    size, limit = shown_bytes(location.size), shown_bytes(SPARK_BYTES)
    if location.size < SPARK_BYTES:
        return Choice(False, f"{size} are less than {limit}, from where on Spark is worth its start")
    if find_spec("pyspark") is None:
        return Choice(False, f"{size} would be worth Spark's start, but this server has no Spark")
    return Choice(True, f"{size} are at least {limit}, from where on Spark is worth its start")


def shown_bytes(size: int) -> str:
    """A size as people read it."""
    amount, units = float(size), ["bytes", "kB", "MB", "GB", "TB"]
    while amount >= 1024 and len(units) > 1:
        amount /= 1024
        units.pop(0)
    return f"{size} {units[0]}" if units[0] == "bytes" else f"{amount:.3g} {units[0]}"
