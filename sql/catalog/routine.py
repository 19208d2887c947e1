"""Users' functions in the catalog: all but the body, which is the relation's ``definition``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ivm.words import Kind, SqlType
from storage.types.type_names import type_from_oid

Types = Mapping[int, SqlType]
"""The users' types, by oid."""


@dataclass(frozen=True, slots=True)
class Argument:
    """``default``: an expression as SQL text."""

    name: str | None
    type: SqlType
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Routine:
    """``result``: the type of a single column. With ``table`` (RETURNS TABLE) the columns are the relation's.

    ``aggregate``: the body is Python. ``expression``: the body is RETURN's expression, not a query. ``volatility``: as
    declared. ``statements``: a body of LANGUAGE sql that is not one query of the caller's plan.
    """

    name: str
    arguments: tuple[Argument, ...]
    result: SqlType
    returns_set: bool = False
    table: bool = False
    volatility: str = "volatile"
    strict: bool = False
    expression: bool = False
    aggregate: bool = False
    language: str = "sql"
    statements: bool = False

    @property
    def interpreted(self) -> bool:
        """Whether an interpreter runs its calls (``sql.session.routines``)."""
        return self.statements or self.language not in ("sql", "python")

    @property
    def returns_nothing(self) -> bool:
        """RETURNS void."""
        return self.result.kind is Kind.VOID

    @property
    def types(self) -> tuple[SqlType, ...]:
        return tuple(a.type for a in self.arguments)

    @property
    def optional(self) -> int:
        """How many trailing arguments may be omitted."""
        return sum(a.default is not None for a in self.arguments)


def routine_to_json(routine: Routine) -> dict[str, object]:
    """The inverse of ``routine_from_json``."""
    return {
        "name": routine.name,
        "arguments": [[a.name, type_to_json(a.type), a.default] for a in routine.arguments],
        "result": type_to_json(routine.result),
        "flags": [routine.returns_set, routine.table, routine.volatility, routine.strict, routine.expression,
                  routine.aggregate, routine.language, routine.statements],
    }  # fmt: skip


def routine_from_json(data: Mapping[str, Any], types: Types) -> Routine:
    """The inverse of ``routine_to_json``."""
    arguments = tuple(Argument(n, type_from_json(type_, types), default) for n, type_, default in data["arguments"])
    return Routine(data["name"], arguments, type_from_json(data["result"], types), *data["flags"])


def type_to_json(type_: SqlType) -> list[object]:
    """The inverse of ``type_from_json``."""
    element = None if type_.element is None else type_to_json(type_.element)
    named = type_.enum or type_.named
    oid = () if named is None else (named.oid,)
    return [type_.kind.value, type_.precision, type_.scale, element, *oid]


def type_from_json(data: Sequence[Any], types: Types) -> SqlType:
    """The inverse of ``type_to_json``."""
    kind, precision, scale, element, *oid = data
    if oid:
        return type_from_oid(oid[0]) or types[oid[0]]
    of = None if element is None else type_from_json(element, types)
    return SqlType(Kind(kind), precision, scale, of)
