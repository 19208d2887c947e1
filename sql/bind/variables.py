"""Names that mean parameters: the arguments and variables of a routine whose statements an interpreter runs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

from ivm.words import SqlType
from planner.logical.nodes import Rel

Name = tuple[str, ...]


@dataclass(eq=False, slots=True)
class Variables:
    """What a statement of a routine may name besides columns.

    ``type_of``: the type of the variable that a name (perhaps qualified) means, None if it means none. ``key``: tells
    these variables from others in the cache of statements. ``conflicts``: a name that a column has too is ambiguous
    (42702); otherwise it means the column, or the variable if that is ``preferred``. ``fields``: the names of a
    record's fields, which ``record.*`` stands for; None for any other name. ``tables``: relations that only
    the routine sees, with their columns' names. ``used``: the names that the statement
    uses, in the order of the parameters that stand for them, which follow the numbered ones.
    """

    type_of: Callable[[Name], SqlType | None]
    key: Hashable
    conflicts: bool = False
    preferred: bool = False
    fields: Callable[[Name], tuple[str, ...] | None] = lambda _: None
    tables: Mapping[str, tuple[tuple[str, ...], Rel]] = field(default_factory=dict)
    used: list[Name] = field(default_factory=list)
