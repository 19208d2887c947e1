"""Constants and casts, as PostgreSQL shows them: a value in its type's own text, with the type's name."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final

from ivm.errors import SqlError
from ivm.words import NAMED_OIDS, TEXT, Kind, SqlType
from planner.identifiers import quoted_literal
from sql.bind.coerce import same_family
from sql.bind.literals import number
from sql.catalog.composite import parts
from sql.deparse.names import Names, bare
from sql.deparse.tree import Coercion, Constant, Shown
from storage.types.text import DEFAULT_STYLE, format_datum, parse_datum

_LATE: Final = (*NAMED_OIDS, Kind.VOID, Kind.RECORD)
"""Kinds whose text means something else in another session."""
_CLOCK_WORDS: Final = re.compile(r"\b(now|today|tomorrow|yesterday|allballs)\b", re.IGNORECASE)
_STRINGS: Final = (Kind.TEXT, Kind.VARCHAR)
_SAME_BYTES: Final = frozenset({
    (Kind.INT4, Kind.OID), (Kind.OID, Kind.INT4), (Kind.OID, Kind.REGCLASS), (Kind.REGCLASS, Kind.OID),
    (Kind.CIDR, Kind.INET), (Kind.BIT, Kind.VARBIT), (Kind.VARBIT, Kind.BIT), (Kind.TEXT, Kind.BPCHAR),
    (Kind.VARCHAR, Kind.BPCHAR),
})  # fmt: skip


def untyped(names: Names, text: str, type_: SqlType) -> Constant:
    """A string without a type of its own, as a type."""
    base = type_ if type_.kind is Kind.INTERVAL else bare(type_)
    if not _CLOCK_WORDS.search(text) and not any(part.kind in _LATE for part in parts(base)):
        with suppress(SqlError):  # the text depends on the session
            text = format_datum(base, parse_datum(base, text, DEFAULT_STYLE), names.style)
    return constant(names, text, base)


def constant(names: Names, text: str, type_: SqlType) -> Constant:
    """A value by its text: without its type where the text alone means it."""
    label = names.type(type_)
    if type_.kind is Kind.BOOL:
        return Constant("true" if text.startswith("t") else "false", label, False, type_)
    if type_.kind is Kind.INT4 and text[:1] != "-":
        return Constant(text, label, False, type_)
    if type_.kind is Kind.NUMERIC and text[:1].isdigit() and any(sign in text for sign in ".eE"):
        return Constant(text, label, False, type_)
    if type_.kind is Kind.UNKNOWN:
        return Constant(quoted_literal(text), "text", False, type_)
    return Constant(quoted_literal(text), label, True, type_)


def null(names: Names, type_: SqlType | None) -> Constant:
    """NULL of a type."""
    base = bare(type_ or TEXT)
    return Constant("NULL", names.type(base), True, base)


def numeral(names: Names, text: str) -> Constant:
    """A number as written."""
    literal = number(text)
    return constant(names, format_datum(literal.type, literal.value), literal.type)


def as_type(names: Names, arg: Shown, have: SqlType, want: SqlType, *, implicit: bool) -> Shown:
    """An expression of one type cast to another; unchanged where they are the same."""
    if have == want or (implicit and same_family(have, want) and want.plain == want):
        return arg
    if have.kind is want.kind is Kind.RECORD and (not want.fields or implicit):
        return arg
    return Coercion(arg, names.type(want), implicit, by_function(have, want), bare(want))


def by_function(have: SqlType, want: SqlType) -> bool:
    """Whether a cast is a call of a function."""
    if same_family(have, want):
        return want.precision is not None
    if have.element is not None or want.element is not None or Kind.RECORD in (have.kind, want.kind):
        return False
    return have.kind not in _STRINGS and want.kind not in _STRINGS and (have.kind, want.kind) not in _SAME_BYTES
