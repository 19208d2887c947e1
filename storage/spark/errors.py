"""Passes SqlErrors from Spark's executors to the driver, and translates Spark's own errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ivm.errors import SqlError
from storage.passwords import hide_passwords

ERROR_MARK: Final = "FRESHET-ERROR:"
"""Marks an error's JSON in the text of an exception that crosses from an executor to the driver."""


_CONNECTOR: Final = re.compile(r"ClassNotFoundException: (?:Class )?(\S*fs\S*)|No FileSystem for scheme \W?(\w+)")
_CALLED: Final = "An error occurred while calling "
"""The prefix that Python's bridge to Java adds to Java's messages."""
_GIVE: Final = (
    "Give it one: PYSPARK_SUBMIT_ARGS='--packages GROUP:ARTIFACT:VERSION pyspark-shell' where the server starts, or "
    "the cluster's own configuration."
)


class ConnectorError(SqlError):
    """58000: Spark works, but lacks the connector to read or write this."""


def spark_error(error: Exception) -> SqlError:
    """The executor's own SqlError if the text contains one, otherwise Spark's message in one line."""
    text = str(error)
    start = text.find(ERROR_MARK)
    if start >= 0:
        values, _ = json.JSONDecoder().raw_decode(text[start + len(ERROR_MARK) :])
        return SqlError(*values)
    lines = [hide_passwords(line) for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith(_CALLED):
        lines = [lines[1].lstrip(": "), *lines[2:]]
    missing = _CONNECTOR.search(text)
    if missing is not None:
        what = missing[1] or f"{missing[2]}://"
        return ConnectorError("58000", "Spark has no connector for these files", f"It looked for {what}.", _GIVE)
    if "SQLException: No suitable driver" in text:
        return ConnectorError("58000", "Spark has no driver for this database", lines[0], _GIVE)
    if "PATH_NOT_FOUND" in text:
        return SqlError("58P01", "the files are not there", detail=lines[0])
    return SqlError("58000", "Spark failed", detail=lines[0] if lines else type(error).__name__)


@contextmanager
def spark_errors() -> Iterator[None]:
    """Raises Spark's errors as SqlErrors."""
    try:
        yield
    except Exception as error:
        raise spark_error(error) from error


def marked(error: SqlError) -> RuntimeError:
    """An exception to raise on an executor, from which ``spark_error`` recovers the SqlError in the driver."""
    return RuntimeError(ERROR_MARK + json.dumps([error.sqlstate, error.message, error.detail, error.hint]))
