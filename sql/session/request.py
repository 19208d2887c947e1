"""The parameters with which a client runs a statement."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Request:
    """``parameters``: datums. ``single``: the statement commits by itself. ``formats``: of the result's columns."""

    parameters: tuple[object, ...] = ()
    single: bool = False
    formats: tuple[int, ...] = ()
