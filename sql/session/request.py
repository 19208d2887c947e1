"""The parameters with which a client runs a statement."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Request:
    """``parameters``: datums. ``single``: the statement commits by itself. ``formats``: of the result's columns.
    ``text``: of a statement whose constants are the parameters; None: that of the prepared statement."""

    parameters: tuple[object, ...] = ()
    single: bool = False
    formats: tuple[int, ...] = ()
    text: str | None = None
