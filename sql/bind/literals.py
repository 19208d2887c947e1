"""Constants: numbers, and untyped strings once their type is known."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, NamedTuple

from ivm.errors import SqlError
from ivm.words import INT4, INT8, NAMED_OIDS, NUMERIC, TEXT, Kind, SqlType
from planner.expr.functions.casts.registry import CastContext
from planner.expr.scalar import Call, Literal, Scalar
from sql.catalog.composite import parts
from storage.types.text import DEFAULT_STYLE, TextStyle, parse_datum

_SESSION_KINDS: Final = frozenset(
    {
        Kind.TIMESTAMPTZ,
        Kind.TIMETZ,
        *NAMED_OIDS,
        Kind.VOID,
    }
)
"""Kinds whose text form depends on the session (time zone, search path): parsed when the plan runs."""
_CLOCK_KINDS: Final = frozenset({Kind.DATE, Kind.TIME, Kind.TIMESTAMP})
_STYLED_KINDS: Final = frozenset({*_CLOCK_KINDS, Kind.TIMESTAMPTZ, Kind.INTERVAL})
_CLOCK_WORDS: Final = re.compile(r"\b(now|today|tomorrow|yesterday|allballs)\b", re.IGNORECASE)


def number(text: str) -> Literal:
    """An integer literal is int4, int8 or numeric by its size; with a point or an exponent it is numeric."""
    if text.lstrip("-").isdigit():
        value = int(text)
        if -(2**31) <= value < 2**31:
            return Literal(value, INT4)
        if -(2**63) <= value < 2**63:
            return Literal(value, INT8)
    return Literal(Decimal(text), NUMERIC)


def typed_literal(value: object, target: SqlType, context: CastContext, at: int, attempt: bool = False) -> Scalar:
    """An untyped string (or NULL) as ``target``, parsed now unless its value depends on when the plan runs.

    ``attempt``: of TRY_CAST. Raises the type's parse errors, at offset ``at``.
    """
    if value is None:
        return Literal(None, target)
    assert isinstance(value, str)
    kind = _innermost(target).kind
    deferred = is_deferred(target, value)
    # the fields of an interval decide what its text means
    base = target if kind is Kind.INTERVAL else target.plain
    style = _STYLE.get()
    _note(base, value, style)
    if deferred or attempt:
        source = Literal(value, TEXT) if attempt else standing_at(at, Literal(value, TEXT), target)
        return Call("try_cast" if attempt else "cast", (source,), target, attempt)
    try:
        literal = standing_at(at, Literal(parse_datum(base, value, style), base))
    except SqlError as error:
        if error.position is None:
            error.position = at + 1
        raise
    if target == base:
        return literal
    return Call("assignment_cast" if context == "assignment" else "cast", (literal,), target, False)


def read_later(target: SqlType) -> bool:
    """Whether every string is read as this type only when the plan runs."""
    return any(part.kind in _SESSION_KINDS for part in parts(target))


def is_deferred(type_: SqlType, text: str) -> bool:
    """Whether a text's value of this type depends on when it is read."""
    kinds = [part.kind for part in parts(type_)]
    if any(kind in _SESSION_KINDS for kind in kinds):
        return True
    return any(kind in _CLOCK_KINDS for kind in kinds) and _CLOCK_WORDS.search(text) is not None


def _innermost(type_: SqlType) -> SqlType:
    """The type that decides how a literal is read: of an array's elements, of a range's bounds."""
    inner = type_.element or type_.subtype
    return type_ if inner is None else _innermost(inner)


_STYLE: Final[ContextVar[TextStyle]] = ContextVar("style", default=DEFAULT_STYLE)
_FOUND: Final[ContextVar[list[str] | None]] = ContextVar("found", default=None)


@contextmanager
def reading(style: TextStyle) -> Iterator[list[str]]:
    """Parses the constants bound inside in the session's style. The list gets those that have another value in the
    default style (UTC and ISO, MDY)."""
    found: list[str] = []
    tokens = _STYLE.set(style), _FOUND.set(found)
    try:
        yield found
    finally:
        _STYLE.reset(tokens[0])
        _FOUND.reset(tokens[1])


class Origin(NamedTuple):
    """A constant's literal, and its offset. ``target``: the type as which its text is read when the plan runs."""

    literal: Literal
    at: int
    target: SqlType | None = None


@dataclass(frozen=True, slots=True)
class Origins:
    """``of``: what the literals of a statement were made of, by their identities; several of one that is computed.
    ``last``: what the constant at each offset has become at last."""

    of: dict[int, tuple[Literal, tuple[Origin, ...]]] = field(default_factory=dict)
    last: dict[int, Origin] = field(default_factory=dict)


_ORIGINS: Final[ContextVar[Origins | None]] = ContextVar("origins", default=None)


@contextmanager
def tracing() -> Iterator[Origins]:
    """Collects what the constants that are bound inside become."""
    found = Origins()
    token = _ORIGINS.set(found)
    try:
        yield found
    finally:
        _ORIGINS.reset(token)


def standing_at(at: int, literal: Literal, target: SqlType | None = None) -> Literal:
    """The literal, which a constant at this offset has become."""
    found = _ORIGINS.get()
    if found is not None:
        origin = Origin(literal, at, target)
        found.last[at] = origin
        found.of[id(literal)] = literal, (origin,)
    return literal


def turned(source: Literal, literal: Literal) -> Literal:
    """The literal, which another one has become."""
    found = _ORIGINS.get()
    if found is not None and id(source) in found.of:
        for origin in found.of[id(source)][1]:
            standing_at(origin.at, literal)
    return literal


def computed(sources: Sequence[Scalar], result: Scalar) -> Scalar:
    """The result, which has been computed of literals."""
    found = _ORIGINS.get()
    if found is not None and isinstance(result, Literal) and id(result) not in found.of:
        of = [found.of[id(source)][1] for source in sources if id(source) in found.of]
        found.of[id(result)] = result, tuple(origin for origins in of for origin in origins)
    return result


def _note(type_: SqlType, text: str, style: TextStyle) -> None:
    """Records a constant that has another value in the default style."""
    found = _FOUND.get()
    if found is None or (style.formats == DEFAULT_STYLE.formats and style.timezone == DEFAULT_STYLE.timezone):
        return
    if all(part.kind not in _STYLED_KINDS for part in parts(type_)):
        return
    readings: list[object] = []
    for each in (style, DEFAULT_STYLE):
        try:
            readings.append(parse_datum(type_, text, each))
        except SqlError as error:
            readings.append(error.sqlstate)
    if readings[0] != readings[1]:
        found.append(text)
