"""COMMENT ON, as a bound statement. All objects but functions are looked up at execution."""

from __future__ import annotations

from dataclasses import dataclass

from sql.catalog.catalog import Relation


@dataclass(frozen=True, slots=True)
class Comment:
    """``kind`` as written (table, column, constraint, …). ``part``: the column, the constraint, the trigger or the
    policy of the named relation. ``routine``: the function or operator. ``text`` None: the comment goes."""

    kind: str
    schema_name: str | None
    name: str
    text: str | None
    part: str = ""
    routine: Relation | None = None
