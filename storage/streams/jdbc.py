"""Polls a database's table for new rows, by a column that only grows.

Spark cannot stream from JDBC. A poll reads the rows above the position of the last poll, up to the current maximum,
which becomes the next position and is made durable together with the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from ivm.errors import SqlError
from storage.load.columns import LoadColumn, alike
from storage.load.jdbc import check_folder
from storage.spark.session import functions
from storage.streams.json_rows import JsonRows
from storage.streams.query import encoded, failure
from storage.streams.systems import KeyedDecoder, encoded_columns


@dataclass(frozen=True, slots=True)
class JdbcPoll:
    """``options``: Spark's own for JDBC. ``by``: the growing column. ``rows``: the columns to fill."""

    options: tuple[tuple[str, str], ...]
    rows: JsonRows
    by: str

    @property
    def columns(self) -> tuple[LoadColumn, ...]:
        return encoded_columns(self.rows)


class Polled(NamedTuple):
    """The result of a poll. ``position``: where the next one continues; the rest as in ``Arrived``."""

    rows: pa.Table
    position: str
    alone: Callable[[], pa.Table]


def poll(session: Any, source: JdbcPoll, after: str | None, secret: bytes) -> Polled | None:
    """The rows above a position (at least one), ordered by the polled column; None if there are none.

    Raises 42703 for a column that the table lacks, 0A000 as ``check_folder``, 42804 for a type that does not fit, 58000
    if the database or Spark fails.
    """
    try:
        check_folder(session, dict(source.options)["url"])
        frame = session.read.format("jdbc").options(**dict(source.options)).load()
        names = frame.columns
        by = frame[_quoted(_found(names, source.by))]
        rising = frame if after is None else frame.where(by > _literal(after, frame, by))
        position = rising.select(functions().max(by).cast("string")).collect()[0][0]
        if position is None:
            return None
        chosen = [frame[_quoted(_found(names, c.name))].alias(f"c{i}") for i, c in enumerate(source.rows.columns)]
        batch = rising.where(by <= _literal(position, frame, by)).orderBy(by).select(chosen)
        decode = KeyedDecoder(source.rows)
        alone = partial(encoded, batch.coalesce(1), source.columns, decode, secret)
        return Polled(encoded(batch, source.columns, decode, secret), str(position), alone)
    except Exception as error:
        raise failure(error) from error


def _literal(text: str, frame: Any, column: Any) -> Any:
    """A position as a value of the column's type."""
    return functions().lit(text).cast(frame.select(column).schema[0].dataType)


def _found(names: list[str], name: str) -> str:
    """The database's column of that name, ignoring case. Raises 42703."""
    found = alike(names, name)
    if found is None:
        raise SqlError("42703", f'the table has no column "{name}"', f"Its columns are {', '.join(names)}.",
                       "Name the columns to fill: INTO table (column, ...).")  # fmt: skip
    return found


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
