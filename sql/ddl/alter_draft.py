"""A table in the course of ALTER TABLE."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ivm.errors import SqlError
from planner.expr.scalar import Column, Scalar
from sql.catalog.catalog import Relation, TableColumn
from sql.catalog.keys import Check, Index
from sql.statements import definitions


@dataclass(slots=True)
class Draft:
    """A table in the course of being changed. ``values``: each new column, as an expression over the existing rows."""

    table: Relation
    columns: list[TableColumn]
    values: list[Scalar]
    origins: list[int | None]
    """Each column's old position; None for a new column."""
    key: list[str]
    key_name: str | None
    added: list[definitions.AddedConstraint] = field(default_factory=list)
    dropped: set[str] = field(default_factory=set)
    """Constraints to add, and the names of those to drop."""
    gone: dict[int, bool] = field(default_factory=dict)
    """The positions of the columns to drop, and whether the drop cascades to their dependents."""
    retyped: list[int] = field(default_factory=list)
    touched: bool = False
    """Whether columns were added, dropped or changed their type."""
    own: set[str] = field(default_factory=set)
    """The names of the columns and checks that become the table's own."""
    validated: set[str] = field(default_factory=set)
    """The names of the constraints to validate."""
    seen: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """The names of the table's columns in the views over it, as before the change."""

    @classmethod
    def of(cls, table: Relation) -> Draft:
        columns = list(table.columns)
        values: list[Scalar] = [Column(i, c.type, c.nullable) for i, c in enumerate(columns)]
        origins: list[int | None] = list(range(len(columns)))
        return cls(table, columns, values, origins, [columns[i].name for i in table.primary_key], table.key_name)

    def find(self, name: str) -> int:
        """A column's position. Raises 42703."""
        for i, column in enumerate(self.columns):
            if column.name == name:
                return i
        raise SqlError("42703", f'column "{name}" of relation "{self.table.name}" does not exist')

    def check_identity(self, i: int, hint: str | None = None) -> None:
        """Raises 42601 for an identity column."""
        column = self.columns[i]
        if column.generated is not None and column.generated.identity:
            message = f'column "{column.name}" of relation "{self.table.name}" is an identity column'
            raise SqlError("42601", message, hint=hint)

    def check_plain(self, i: int, *, dropping: bool) -> None:
        """Raises 42601 for a generated column."""
        if self.columns[i].expression is not None:
            message = f'column "{self.columns[i].name}" of relation "{self.table.name}" is a generated column'
            hint = "Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead." if dropping else None
            raise SqlError("42601", message, hint=hint)

    def validate(self, name: str) -> None:
        """Note a constraint to validate. Raises 42704, 42809."""
        table = self.table
        if name not in {c.name for c in table.checks} | {k.name for k in table.foreign_keys}:
            if any(i.constraint and i.name == name for i in table.all_indexes):
                message = f'constraint "{name}" of relation "{table.name}" is not a foreign key or check constraint'
                raise SqlError("42809", message)
            raise SqlError("42704", f'constraint "{name}" of relation "{table.name}" does not exist')
        self.validated.add(name)

    def alter_constraint(self, change: definitions.AlterConstraint) -> None:
        """Change when a foreign key is checked. Raises 42704, 42809."""
        table, name = self.table, change.name
        if name not in {k.name for k in table.foreign_keys}:
            others = {c.name for c in table.checks} | {i.name for i in table.all_indexes if i.constraint}
            if name in others:
                message = f'constraint "{name}" of relation "{table.name}" is not a foreign key constraint'
                raise SqlError("42809", message)
            raise SqlError("42704", f'constraint "{name}" of relation "{table.name}" does not exist')
        keys = (
            replace(k, deferrable=change.deferrable, deferred=change.deferred) if k.name == name else k
            for k in table.foreign_keys
        )
        self.table = replace(table, foreign_keys=tuple(keys))

    def has(self, name: str) -> bool:
        return any(c.name == name for c in self.columns)

    def result(self) -> Relation:
        key = tuple(self.find(name) for name in self.key)
        indexes = [self._moved(i) for i in self.table.indexes if i.name not in self.dropped]
        checks = [(c, self._places(c.columns)) for c in self.table.checks if c.name not in self.dropped]
        foreign = [(k, self._places(k.columns)) for k in self.table.foreign_keys if k.name not in self.dropped]
        own = self.own
        return replace(
            self.table,
            columns=tuple(replace(c, local=c.local or c.name in own) for c in self.columns),
            primary_key=key, key_name=self.key_name, indexes=tuple(i for i in indexes if i is not None),
            checks=tuple(self._check(c, places) for c, places in checks if places is not None),
            foreign_keys=tuple(
                replace(
                    k, columns=places, changed=self._places(k.changed) or (), valid=k.valid or k.name in self.validated
                )
                for k, places in foreign if places is not None
            ),
        )  # fmt: skip

    def kept_in(self, new: Relation) -> tuple[int, ...] | None:
        """The old columns' positions in the new table; None: it does not have all of them as they were, or not the old
        one's key."""
        places = []
        for i, column in enumerate(self.table.columns):
            if i not in self.origins:
                return None
            place = self.origins.index(i)
            if self.values[place] != Column(i, column.type, column.nullable):
                return None
            if new.columns[place].nullable != column.nullable:
                return None
            places.append(place)
        if self.table.primary_key and {places[i] for i in self.table.primary_key} != set(new.primary_key):
            return None
        return tuple(places)

    def _check(self, check: Check, places: tuple[int, ...]) -> Check:
        local, valid = check.local or check.name in self.own, check.valid or check.name in self.validated
        return replace(check, columns=places, local=local, valid=valid)

    def _moved(self, index: Index) -> Index | None:
        """The index after the change; None if one of its columns is dropped."""
        columns, included, used = map(self._places, (index.columns, index.included, index.used))
        if columns is None or included is None or used is None:
            return None
        return replace(index, columns=columns, included=included, used=used)

    def _places(self, columns: tuple[int, ...]) -> tuple[int, ...] | None:
        """The new positions of these columns; None if one of them is dropped."""
        names = [self.table.columns[i].name for i in columns]
        return tuple(self.find(name) for name in names) if all(map(self.has, names)) else None
