"""Constants: numbers as written, and untyped strings once their type is known."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from ivm.errors import SqlError
from ivm.words import INT4, INT8, NUMERIC, TEXT, Kind, SqlType
from planner.casts import CastContext
from planner.scalar import Call, Literal, Scalar
from storage.text import parse_datum

_SESSION_KINDS: Final = frozenset(
    {Kind.TIMESTAMPTZ, Kind.REGCLASS, Kind.REGTYPE, Kind.REGPROC, Kind.REGNAMESPACE, Kind.RECORD, Kind.VOID}
)
"""Kinds whose text form depends on the session (time zone, search path): read when the plan runs."""
_CLOCK_KINDS: Final = frozenset({Kind.DATE, Kind.TIME, Kind.TIMESTAMP})
_CLOCK_WORDS: Final = re.compile(r"\b(now|today|tomorrow|yesterday|allballs)\b", re.IGNORECASE)
_MODIFIED: Final = frozenset({Kind.VARCHAR, Kind.BPCHAR, Kind.NUMERIC, Kind.TIME, Kind.TIMESTAMP, Kind.INTERVAL})


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
    """An untyped string (or NULL) read as ``target``, at once where no session setting matters."""
    if value is None:
        return Literal(None, target)
    assert isinstance(value, str)
    element = target.element or target
    deferred = element.kind in _SESSION_KINDS or (element.kind in _CLOCK_KINDS and _CLOCK_WORDS.search(value))
    if deferred or attempt:
        source = Literal(value, TEXT)
        return Call("try_cast" if attempt else "cast", (source,), target, attempt)
    base = SqlType(target.kind, element=SqlType(element.kind) if target.element is not None else None)
    try:
        literal = Literal(parse_datum(base, value), base)
    except SqlError as error:
        if error.position is None:
            error.position = at + 1
        raise
    if target == base:
        return literal
    return Call("assignment_cast" if context == "assignment" else "cast", (literal,), target, False)


_BARE: Final = re.compile(r"^\s*[-+]?\d+(\.\d*)?\s*$")
_CLOCK: Final = {"minute to second": "00:", "hour to minute": ""}


def interval_text(value: str, fields: str) -> str:
    """The text of ``interval 'value' fields`` with the fields' meaning written out: a bare number takes the last."""
    if _BARE.match(value):
        return f"{value} {fields.rsplit(' to ', 1)[-1]}"
    prefix = _CLOCK.get(fields)
    return f"{prefix}{value}" if prefix and re.match(r"^\s*\d+:\d+(\.\d+)?\s*$", value) else value
