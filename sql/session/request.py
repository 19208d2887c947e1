"""How a client asks for a statement."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Request:
    """``parameters``: datums. ``single``: the statement commits by itself. ``formats``: those of its result's
    columns."""

    parameters: tuple[object, ...] = ()
    single: bool = False
    formats: tuple[int, ...] = ()
