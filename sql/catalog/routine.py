"""Users' functions in the catalog: all but the body, which is the relation's ``definition``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ivm.words import Kind, SqlType, simple_type
from planner.expr.functions.table import ArgumentType, Polymorphic
from storage.types.type_names import type_from_oid

Types = Mapping[int, SqlType]
"""The users' types, by oid."""


@dataclass(frozen=True, slots=True)
class Argument:
    """A declared parameter. ``default``: an expression as SQL text. ``mode``: in, out, inout, variadic, or table for a
    column of RETURNS TABLE."""

    name: str | None
    type: ArgumentType
    default: str | None = None
    mode: str = "in"


@dataclass(frozen=True, slots=True)
class Fold:
    """What an aggregate of a state function is made of: the names of its functions, the type of the state, and the
    first state's text. ``final_extra``: the final function gets NULLs of the arguments' types too.

    ``direct``: of an ordered-set aggregate, how many of the first arguments the final function gets and the others not;
    None for any other. ``stands_for``: the built-in aggregate that its functions, of PostgreSQL's, mean, or "";
    ``hypothetical``: that is a hypothetical-set aggregate."""

    transition: tuple[str, ...]
    state: ArgumentType
    initial: str | None = None
    final: tuple[str, ...] | None = None
    final_extra: bool = False
    direct: int | None = None
    stands_for: str = ""
    hypothetical: bool = False


@dataclass(frozen=True, slots=True)
class Routine:
    """A function, a procedure or an aggregate.

    ``declared``: all parameters, in their order. ``result``: the type of a single column. With ``table`` (RETURNS
    TABLE, several OUT parameters, or a row type) the columns are the relation's; if they are polymorphic, or the
    routine returns ``record``, the call determines their types. ``aggregate``: the body is Python. ``expression``: the
    body is RETURN's expression, not a query. ``volatility``: as declared. ``statements``: a body of LANGUAGE sql that
    is not one query of the caller's plan. ``fold``: an aggregate without a body.
    ``vectorised``: in Python, called with arrays. ``definer``: it runs as its owner (SECURITY DEFINER).
    """

    name: str
    declared: tuple[Argument, ...]
    result: ArgumentType
    returns_set: bool = False
    table: bool = False
    volatility: str = "volatile"
    strict: bool = False
    expression: bool = False
    aggregate: bool = False
    language: str = "sql"
    statements: bool = False
    procedure: bool = False
    record: bool = False
    trigger: bool = False
    fold: Fold | None = None
    vectorised: bool = False
    definer: bool = False

    @property
    def interpreted(self) -> bool:
        """Whether an interpreter runs its calls (``sql.session.routines``)."""
        return self.statements or self.language not in ("sql", "python")

    @property
    def returns_nothing(self) -> bool:
        """RETURNS void, or a procedure without OUT parameters."""
        return isinstance(self.result, SqlType) and self.result.kind is Kind.VOID

    @property
    def returns_row(self) -> bool:
        """RETURNS a composite type, also of one field."""
        return self.table and isinstance(self.result, SqlType) and self.result.named is not None

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The parameters that a call gives."""
        return tuple(a for a in self.declared if a.mode not in ("out", "table"))

    @property
    def outputs(self) -> tuple[Argument, ...]:
        """The parameters that are columns of the result."""
        return tuple(a for a in self.declared if a.mode in ("out", "inout", "table"))

    @property
    def types(self) -> tuple[ArgumentType, ...]:
        return tuple(a.type for a in self.arguments)

    def renewed(self, change: Callable[[SqlType], SqlType]) -> Routine:
        """The routine with its types changed."""

        def changed(type_: ArgumentType) -> ArgumentType:
            return type_ if isinstance(type_, Polymorphic) else change(type_)

        declared = tuple(replace(a, type=changed(a.type)) for a in self.declared)
        return replace(self, declared=declared, result=changed(self.result))

    @property
    def polymorphic(self) -> bool:
        """Whether the types of its arguments are those of each call."""
        return any(isinstance(a.type, Polymorphic) for a in self.declared)

    @property
    def variadic(self) -> bool:
        """Whether the last argument may be given as its elements."""
        return any(a.mode == "variadic" for a in self.declared)

    @property
    def optional(self) -> int:
        """How many trailing arguments may be omitted."""
        return sum(a.default is not None for a in self.arguments)

    @property
    def kind(self) -> str:
        """function, procedure or aggregate."""
        return "aggregate" if self.aggregate else "procedure" if self.procedure else "function"


def routine_to_json(routine: Routine) -> dict[str, object]:
    """The inverse of ``routine_from_json``."""
    return {
        "name": routine.name,
        "arguments": [[a.name, argument_to_json(a.type), a.default, a.mode] for a in routine.declared],
        "result": argument_to_json(routine.result),
        "flags": [routine.returns_set, routine.table, routine.volatility, routine.strict, routine.expression,
                  routine.aggregate, routine.language, routine.statements, routine.procedure, routine.record,
                  routine.trigger],
        "vectorised": routine.vectorised,
        "definer": routine.definer,
        "fold": None if routine.fold is None else _fold_to_json(routine.fold),
    }  # fmt: skip


def _fold_to_json(fold: Fold) -> list[object]:
    final = None if fold.final is None else list(fold.final)
    ordered = [] if fold.direct is None else [fold.direct, fold.stands_for, fold.hypothetical]
    return [list(fold.transition), argument_to_json(fold.state), fold.initial, final, fold.final_extra, *ordered]


def _fold_from_json(data: Sequence[Any], types: Types) -> Fold:
    transition, state, initial, final, extra, *ordered = data
    named = None if final is None else tuple(final)
    return Fold(tuple(transition), argument_from_json(state, types), initial, named, extra, *ordered)


def routine_from_json(data: Mapping[str, Any], types: Types) -> Routine:
    """The inverse of ``routine_to_json``."""
    declared = tuple(
        Argument(name, argument_from_json(type_, types), *rest) for name, type_, *rest in data["arguments"]
    )
    fold = _fold_from_json(data["fold"], types) if data.get("fold") else None
    made = Routine(data["name"], declared, argument_from_json(data["result"], types), *data["flags"])
    return replace(made, fold=fold, vectorised=data.get("vectorised", False), definer=data.get("definer", False))


def argument_to_json(type_: ArgumentType) -> object:
    """The inverse of ``argument_from_json``."""
    return type_.value if isinstance(type_, Polymorphic) else type_to_json(type_)


def argument_from_json(data: Any, types: Types) -> ArgumentType:
    """The inverse of ``argument_to_json``."""
    return Polymorphic(data) if isinstance(data, str) else type_from_json(data, types)


def type_to_json(type_: SqlType) -> list[object]:
    """The inverse of ``type_from_json``."""
    element = None if type_.element is None else type_to_json(type_.element)
    named = type_.enum or type_.named
    oid: tuple[int, ...] = () if named is None else (named.oid,)
    if type_.domain is not None:
        oid = (0 if named is None else named.oid, type_.domain.id)
    return [type_.kind.value, type_.precision, type_.scale, element, *oid]


def type_from_json(data: Sequence[Any], types: Types) -> SqlType:
    """The inverse of ``type_to_json``."""
    kind, precision, scale, element, *rest = data
    oid, domain = rest[0] if rest else 0, rest[1] if len(rest) > 1 else None
    if oid:
        known = type_from_oid(oid) or types[oid]
        return known if domain is None else replace(known, domain=domain)
    if element is None and domain is None:
        return simple_type(Kind(kind), precision, scale)
    of = None if element is None else type_from_json(element, types)
    return SqlType(Kind(kind), precision, scale, of, domain=domain)
