"""Users' functions: what the catalog keeps of one beside its body, which is its relation's ``definition``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ivm.words import Kind, SqlType


@dataclass(frozen=True, slots=True)
class Argument:
    """``default``: an expression's text."""

    name: str | None
    type: SqlType
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Routine:
    """``result``: one column's type; the columns of RETURNS TABLE are the relation's, and ``table`` says so.

    ``expression``: the body is RETURN's expression, not a query. ``volatility``: as declared, for clients to see.
    """

    name: str
    arguments: tuple[Argument, ...]
    result: SqlType
    returns_set: bool = False
    table: bool = False
    volatility: str = "volatile"
    strict: bool = False
    expression: bool = False

    @property
    def types(self) -> tuple[SqlType, ...]:
        return tuple(a.type for a in self.arguments)

    @property
    def optional(self) -> int:
        """How many arguments, the last ones, may be left out."""
        return sum(a.default is not None for a in self.arguments)


def routine_to_json(routine: Routine) -> dict[str, object]:
    return {
        "name": routine.name,
        "arguments": [[a.name, _type_to_json(a.type), a.default] for a in routine.arguments],
        "result": _type_to_json(routine.result),
        "flags": [routine.returns_set, routine.table, routine.volatility, routine.strict, routine.expression],
    }


def routine_from_json(data: Mapping[str, Any]) -> Routine:
    arguments = tuple(Argument(name, _type_from_json(type_), default) for name, type_, default in data["arguments"])
    return Routine(data["name"], arguments, _type_from_json(data["result"]), *data["flags"])


def _type_to_json(type_: SqlType) -> list[object]:
    element = None if type_.element is None else _type_to_json(type_.element)
    return [type_.kind.value, type_.precision, type_.scale, element]


def _type_from_json(data: Sequence[Any]) -> SqlType:
    kind, precision, scale, element = data
    return SqlType(Kind(kind), precision, scale, None if element is None else _type_from_json(element))
