"""The options of sequences and of identity columns."""

from __future__ import annotations

from dataclasses import replace

from ivm.errors import SqlError
from sql.catalog.sequence_options import NoBound, SequenceOptions
from sql.syntax.grammar.cursor import TokenCursor
from sql.syntax.lexing.lexer import TokenKind


def sequence_options(cursor: TokenCursor) -> SequenceOptions:
    """The options up to the end, a closing parenthesis, or the next element of CREATE SCHEMA. Raises 42601 for an
    unknown or repeated one."""
    options = SequenceOptions()
    while not (cursor.at_end() or cursor.is_symbol(")") or cursor.is_one_of("create", "grant")):
        options = sequence_option(cursor, options)
    return options


def sequence_option(cursor: TokenCursor, options: SequenceOptions) -> SequenceOptions:
    """The options with the next one. Raises 42601 for an unknown or repeated one."""
    at = cursor.token.start
    name, value = _option(cursor)
    if getattr(options, name) is not None:
        raise SqlError("42601", "conflicting or redundant options", position=at + 1)
    return replace(options, **{name: value})  # type: ignore[arg-type]


def _option(cursor: TokenCursor) -> tuple[str, object]:
    token = cursor.token
    word = cursor.advance().value if token.kind is TokenKind.WORD else ""
    match word:
        case "as":
            return "type", _type(cursor)
        case "increment":
            cursor.accept("by")
            return "increment", _number(cursor)
        case "minvalue" | "maxvalue":
            return word.replace("value", "imum"), _number(cursor)
        case "no":
            if cursor.accept("cycle"):
                return "cycle", False
            bound_word = cursor.accept_one_of("minvalue", "maxvalue")
            if bound_word is None:
                raise cursor.error()
            return bound_word.replace("value", "imum"), NoBound()
        case "start":
            cursor.accept("with")
            return "start", _number(cursor)
        case "restart":
            cursor.accept("with")
            signed = cursor.token.kind is TokenKind.NUMBER or cursor.is_symbol("-") or cursor.is_symbol("+")
            return "restart", (_number(cursor) if signed else None,)
        case "cache":
            return "cache", _number(cursor)
        case "cycle":
            return "cycle", True
        case "owned":
            cursor.expect("by")
            return "owner", () if cursor.accept("none") else cursor.dotted()
        case "sequence":
            cursor.expect("name")
            return "name", cursor.dotted()
        case _:
            raise cursor.error(token)


def _type(cursor: TokenCursor) -> str:
    return cursor.dotted()[-1]


def _number(cursor: TokenCursor) -> int:
    sign = -1 if cursor.accept_symbol("-") else 1
    if sign == 1:
        cursor.accept_symbol("+")
    token = cursor.token
    value = sign * cursor.integer()
    if not -(2**63) <= value < 2**63:
        message = f'value "{value}" is out of range for type bigint'
        raise SqlError("22003", message, position=token.start + 1)
    return value
