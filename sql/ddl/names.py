"""Default names of constraints and indexes."""

from __future__ import annotations

from collections.abc import Sequence

from ivm.errors import SqlError
from sql.catalog.catalog import Relation
from sql.catalog.keys import object_name


def constraint_name(table: Relation, name: str | None, columns: tuple[int, ...], label: str) -> str:
    """A new constraint's name: the given one, or Postgres's default. 42710."""
    taken = {c.name for c in table.checks} | {k.name for k in table.foreign_keys}
    taken |= {i.name for i in table.all_indexes if i.constraint}
    if name is None:
        return free_name(table, [table.columns[i].name for i in columns], label, taken)
    if name in taken:
        raise SqlError("42710", f'constraint "{name}" for relation "{table.name}" already exists')
    return name


def free_name(table: Relation, columns: Sequence[str], label: str, taken: set[str]) -> str:
    """``table_columns_label``, with a number appended if that is taken (Postgres's ChooseRelationName)."""
    names: list[str] = []
    for column in columns:
        name, number = column, 0
        while name in names:
            number += 1
            name = f"{column}{number}"
        names.append(name)
    name, number = object_name(table.name, "_".join(names), label), 0
    while name in taken:
        number += 1
        name = object_name(table.name, "_".join(names), f"{label}{number}")
    return name
