"""What a table inherits: columns, keys and CHECK constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ivm.errors import SqlError
from sql.catalog.catalog import Relation, TableColumn
from sql.catalog.keys import Check, Index
from storage.types.type_names import format_type


def merged_columns(
    parents: Sequence[Relation], own: tuple[TableColumn, ...]
) -> tuple[tuple[TableColumn, ...], tuple[str, ...]]:
    """A new table's columns, its parents' in their order, then its own; and notices of those merged. Raises 42P07,
    42804, 42611."""
    found: dict[str, TableColumn] = {}
    conflicts: set[str] = set()
    notices: list[str] = []
    for i, parent in enumerate(parents):
        if parent.id in (p.id for p in parents[:i]):
            raise SqlError("42P07", f'relation "{parent.name}" would be inherited from more than once')
        for column in map(_inherited, parent.columns):
            known = found.get(column.name)
            if known is None:
                found[column.name] = column
                continue
            notices.append(f'merging multiple inherited definitions of column "{column.name}"')
            _check_generations(known, column)
            if (known.default, known.generated) != (column.default, column.generated) and column.defaulted:
                if known.defaulted:
                    conflicts.add(column.name)
                known = replace(known, default=column.default, generated=column.generated)
            found[column.name] = _one(known, column, "inherited column")
    for column in own:
        known = found.get(column.name)
        if known is not None:
            notices.append(f'merging column "{column.name}" with inherited definition')
        if column.defaulted:
            conflicts.discard(column.name)
        found[column.name] = column if known is None else _redefined(known, column)
    for name in conflicts:
        message = f'column "{name}" inherits conflicting default values'
        raise SqlError("42611", message, hint="To resolve the conflict, specify a default explicitly.")
    return tuple(found.values()), tuple(notices)


def _inherited(column: TableColumn) -> TableColumn:
    """A column as it is inherited: not as an identity column."""
    identity = column.generated is not None and column.generated.identity
    return replace(column, generated=None if identity else column.generated, local=False)


def _one(known: TableColumn, column: TableColumn, what: str) -> TableColumn:
    if known.type != column.type or known.domain != column.domain:
        detail = f"{format_type(known.type, True)} versus {format_type(column.type, True)}"
        raise SqlError("42804", f'{what} "{column.name}" has a type conflict', detail)
    return replace(known, nullable=known.nullable and column.nullable)


def _check_generations(known: TableColumn, column: TableColumn) -> None:
    """Raises 42611 for a column that two parents generate differently."""
    if (known.expression is None) != (column.expression is None):
        raise SqlError("42611", f'inherited column "{column.name}" has a generation conflict')
    if known.expression != column.expression:
        raise SqlError("42611", f'column "{column.name}" inherits conflicting generation expressions')


def _redefined(known: TableColumn, column: TableColumn) -> TableColumn:
    """An inherited column that the table defines again."""
    result = _one(known, column, "column")
    if column.expression is not None and known.expression is not None:
        hint = "Omit the generation expression in the definition of the child table column to inherit the generation "
        hint += "expression from the parent table."
        raise SqlError("42611", f'child column "{column.name}" specifies generation expression', hint=hint)
    if known.expression is not None and column.defaulted:
        raise SqlError("42611", f'column "{column.name}" inherits from generated column but specifies default')
    result = replace(result, local=True, expression=column.expression or result.expression)
    defaulted = column.default is not None or column.generated is not None
    return replace(result, default=column.default, generated=column.generated) if defaulted else result


def inherited_keys(parent: Relation) -> tuple[Index | None, tuple[Index, ...]]:
    """A partition's primary key and its other indexes, unnamed, from those of the partitioned table."""
    primary = next((replace(i, id=0, name="") for i in parent.all_indexes if i.primary), None)
    return primary, tuple(replace(i, id=0, name="") for i in parent.indexes)


def merged_checks(
    table: str, parents: Sequence[Relation], columns: Sequence[TableColumn], own: Sequence[Check]
) -> tuple[tuple[Check, ...], tuple[str, ...]]:
    """The parents' CHECK constraints over the new table's columns, merged with its own, and what the client is told of
    that. Raises 42710 where two of one name differ, 42P17 for one that is not to be inherited."""
    names = [c.name for c in columns]
    found: dict[str, Check] = {}
    for parent in parents:
        for check in (c for c in parent.checks if not c.no_inherit):
            places = tuple(sorted(names.index(parent.columns[i].name) for i in check.columns))
            known: Check | None = found.setdefault(check.name, replace(check, id=0, columns=places, local=False))
            if known is not None and known.text != check.text:
                message = f'check constraint name "{check.name}" appears multiple times but with different expressions'
                raise SqlError("42710", message)
    added, notices = [], []
    for check in own:
        known = found.get(check.name)
        if known is None:
            added.append(check)
            continue
        if known.text != check.text:
            raise SqlError("42710", f'constraint "{check.name}" for relation "{table}" already exists')
        if check.no_inherit:
            message = f'constraint "{check.name}" conflicts with inherited constraint on relation "{table}"'
            raise SqlError("42P17", message)
        found[check.name] = replace(known, local=True)
        notices.append(f'merging constraint "{check.name}" with inherited definition')
    return (*found.values(), *added), tuple(notices)
