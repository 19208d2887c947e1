"""Rows of the catalogs about text search: the configurations simple and english, and what they use."""

from __future__ import annotations

from collections.abc import Iterator

from sql.catalog.system.definitions import Datums, Row
from sql.system.builtin import builtin_rows
from sql.system.state import SystemState


def pg_ts_config(state: SystemState, row: Row) -> Iterator[Datums]:
    yield from builtin_rows("pg_ts_config")


def pg_ts_config_map(state: SystemState, row: Row) -> Iterator[Datums]:
    yield from builtin_rows("pg_ts_config_map")


def pg_ts_dict(state: SystemState, row: Row) -> Iterator[Datums]:
    yield from builtin_rows("pg_ts_dict")


def pg_ts_parser(state: SystemState, row: Row) -> Iterator[Datums]:
    yield from builtin_rows("pg_ts_parser")


def pg_ts_template(state: SystemState, row: Row) -> Iterator[Datums]:
    yield from builtin_rows("pg_ts_template")
