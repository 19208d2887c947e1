"""Facts about the server that psql and drivers ask for."""

from __future__ import annotations

from typing import Final, NoReturn

from ivm.errors import SqlError, unsupported
from ivm.words import BOOL, FLOAT8, INT4, NAME, TEXT, TIMESTAMPTZ, VOID
from planner.expr.context import SERVER_VERSION
from planner.expr.functions.datetime.clock import clock_timestamp
from planner.expr.functions.table import per_value
from storage.encodings.names import NAMES, most_bytes, name_of


@per_value("version", (), TEXT, volatility="stable")
def version() -> str:
    return f"PostgreSQL {SERVER_VERSION}"


@per_value("pg_is_in_recovery", (), BOOL, volatility="volatile")
def pg_is_in_recovery() -> bool:
    return False


@per_value("getdatabaseencoding", (), NAME, volatility="stable")
def encoding() -> str:
    return "UTF8"


@per_value("pg_encoding_to_char", (INT4,), NAME)
def pg_encoding_to_char(code: int) -> str:
    return NAMES[code] if 0 <= code < len(NAMES) else ""


@per_value("pg_char_to_encoding", (NAME,), INT4)
def pg_char_to_encoding(name: str) -> int:
    found = name_of(name)
    return -1 if found is None else NAMES.index(found)


_STARTED: Final = clock_timestamp()


@per_value("pg_postmaster_start_time", (), TIMESTAMPTZ, volatility="stable")
@per_value("pg_conf_load_time", (), TIMESTAMPTZ, volatility="stable")
def pg_postmaster_start_time() -> int:
    """When the server started, and read its only configuration."""
    return _STARTED


@per_value("pg_encoding_max_length", (INT4,), INT4)
def pg_encoding_max_length(code: int) -> int | None:
    """The bytes of a character; NULL for an encoding that there is not."""
    return most_bytes(NAMES[code]) if 0 <= code < len(NAMES) else None


@per_value("pg_jit_available", (), BOOL, volatility="volatile")
def pg_jit_available() -> bool:
    """Whether LLVM compiles expressions."""
    return False


@per_value("pg_notification_queue_usage", (), FLOAT8, volatility="volatile")
def pg_notification_queue_usage() -> float:
    """0: a notification goes to its listeners at once."""
    return 0.0


def _in_recovery() -> NoReturn:
    """What only standby servers can do. Raises 55000."""
    hint = "Recovery control functions can only be executed during recovery."
    raise SqlError("55000", "recovery is not in progress", hint=hint)


for _name, _result in (
    ("pg_is_wal_replay_paused", BOOL), ("pg_get_wal_replay_pause_state", TEXT), ("pg_wal_replay_pause", VOID),
    ("pg_wal_replay_resume", VOID),
):  # fmt: skip
    per_value(_name, (), _result, volatility="volatile")(_in_recovery)


@per_value("pg_last_wal_receive_lsn", (), TEXT, volatility="volatile")
@per_value("pg_last_wal_replay_lsn", (), TEXT, volatility="volatile")
@per_value("pg_last_xact_replay_timestamp", (), TIMESTAMPTZ, volatility="volatile")
def nothing_replayed() -> None:
    """NULL, as on a server that never was in recovery."""


for _name in ("pg_current_wal_lsn", "pg_current_wal_insert_lsn", "pg_current_wal_flush_lsn", "pg_switch_wal"):

    def _no_position(name: str = _name) -> NoReturn:
        raise unsupported(f"{name}(), as the log has no positions of bytes,")

    per_value(_name, (), TEXT, volatility="volatile")(_no_position)
