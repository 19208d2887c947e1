"""The variables of a running block, and what names mean in it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ivm.errors import SqlError
from ivm.words import TEXT, Kind, SqlType
from sql.catalog.catalog import Relation
from sql.syntax.plpgsql.nodes import Declaration

Name = tuple[str, ...]


@dataclass(eq=False, slots=True)
class Variable:
    """``type`` None: a record that has no value yet. ``record``: its type is that of the row assigned last; a row
    variable that is none keeps its fields. ``cursor``: the declaration of a bound cursor. ``domain``: the domain that
    its values belong to, whose base type is ``type``."""

    name: str
    type: SqlType | None
    value: object = None
    constant: bool = False
    not_null: bool = False
    record: bool = False
    cursor: Declaration | None = None
    domain: Relation | None = None

    @property
    def composite(self) -> bool:
        """Whether it holds a row."""
        return self.record or (self.type is not None and self.type.kind is Kind.RECORD)

    def place(self, name: str) -> int:
        """The number of a field. Raises 42703, 55000."""
        if self.type is None:
            detail = "The tuple structure of a not-yet-assigned record is indeterminate."
            raise SqlError("55000", f'record "{self.name}" is not assigned yet', detail)
        for i, (label, _) in enumerate(self.type.fields):
            if label == name:
                return i
        raise SqlError("42703", f'record "{self.name}" has no field "{name}"')

    def part(self, rest: Name) -> tuple[object, SqlType]:
        """The value of the variable, or of its field, and the type."""
        if not rest:
            return self.value, TEXT if self.type is None else self.type
        place = self.place(rest[0])
        assert self.type is not None, "it has the field"
        value = self.value[place] if isinstance(self.value, tuple) else None
        return value, replace(self.type.fields[place][1], domain=None)


@dataclass(eq=False, slots=True)
class Scope:
    """The variables of one block, around which is ``parent``."""

    parent: Scope | None
    label: str | None = None
    names: dict[str, Variable] = field(default_factory=dict)

    def add(self, variable: Variable) -> Variable:
        """Declare a variable."""
        self.names[variable.name] = variable
        return variable

    def find(self, name: Name) -> tuple[Variable, Name] | None:
        """The variable that a name means, and the rest of the name: nothing, or a field."""
        here: Scope | None = self
        while here is not None:
            found = here.names.get(name[0])
            rest = name[1:]
            if found is None and here.label == name[0] and rest:
                found, rest = here.names.get(name[1]), name[2:]
            if found is not None:
                return (found, rest) if not rest or (len(rest) == 1 and found.composite) else None
            here = here.parent
        return None

    def known(self, name: Name) -> tuple[Variable, Name]:
        """``find``. 42601 where there is none."""
        found = self.find(name)
        if found is None:
            raise SqlError("42601", f'"{".".join(name)}" is not a known variable')
        return found
