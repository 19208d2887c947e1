"""Waiting for sources, which run beside the test and, with Spark, may be slow."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tests.support.sessions import Client, Row

T = TypeVar("T")
PATIENCE = 240.0


def until(look: Callable[[], T], good: Callable[[T], bool], seconds: float = PATIENCE) -> T:
    """The result of ``look`` once it is good; AssertionError with the last result after this many seconds."""
    end = time.monotonic() + seconds
    while True:
        found = look()
        if good(found):
            return found
        assert time.monotonic() < end, found
        time.sleep(0.05)


def until_rows(client: Client, text: str, expected: list[Row]) -> None:
    """Wait until a query returns these rows, in any order; a failure reports the sources' status."""
    wanted = sorted(expected, key=repr)
    try:
        until(lambda: client.sorted(text), lambda found: found == wanted)
    except AssertionError as error:
        raise AssertionError(f"{error}, and {client.rows('SELECT * FROM freshet.sources')}") from None


def drop_in(path: Path, text: str) -> None:
    """Create a file atomically, as sources require."""
    hidden = path.with_name(f".{path.name}")
    hidden.write_text(text)
    hidden.rename(path)
