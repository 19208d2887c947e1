"""The session state on which text input and output depend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from ivm.words import SqlType
from storage.encodings.encoding import Encoding


class RegNames(Protocol):
    """Names of catalog objects for the reg* types, supplied by a session
    (``planner.expr.context.SessionFunctions``)."""

    def reg_in(self, type: SqlType, text: str) -> int: ...
    def reg_out(self, type: SqlType, oid: int) -> str: ...


@dataclass(frozen=True, slots=True)
class TextFormats:
    """Postgres's DateStyle (``date``: ISO, SQL, Postgres or German; ``order``: MDY, DMY or YMD, for input and output),
    IntervalStyle (postgres, postgres_verbose, sql_standard or iso_8601) and bytea_output (hex or escape)."""

    date: str = "ISO"
    order: str = "MDY"
    interval: str = "postgres"
    bytea: str = "hex"


DEFAULT_FORMATS: Final = TextFormats()


@dataclass(frozen=True, slots=True)
class TextStyle:
    """``timezone``: the session's. ``now``: the transaction's time, µs since 2000-01-01 UTC, for 'now' and 'today'.
    ``float_digits``: extra_float_digits, which only what a client reads obeys; above 0, floats are exact. ``encoding``:
    of the texts that a client sends and reads, as they are on the wire; None: UTF-8."""

    timezone: str = "UTC"
    now: int = 0
    reg: RegNames | None = None
    formats: TextFormats = DEFAULT_FORMATS
    float_digits: int = 1
    encoding: Encoding | None = None


DEFAULT_STYLE: Final = TextStyle()
