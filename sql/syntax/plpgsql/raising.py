"""RAISE."""

from __future__ import annotations

import re
from typing import Final

from ivm.errors import SqlError
from sql.syntax.lexing.lexer import TokenKind
from sql.syntax.plpgsql import nodes
from sql.syntax.plpgsql.cursor import BodyCursor

LEVELS: Final = ("exception", "warning", "notice", "info", "log", "debug")
OPTIONS: Final = ("errcode", "message", "detail", "hint", "column", "constraint", "datatype", "table", "schema")


def raise_(cursor: BodyCursor, line: int) -> nodes.Node:
    """What follows RAISE. Raises 42601 where the format does not fit its parameters."""
    if cursor.is_symbol(";"):
        cursor.end_statement()
        return nodes.Raise(line, "exception", None, False, None, (), ())
    level = cursor.accept_one_of(*LEVELS) or "exception"
    condition, state, message = None, False, None
    arguments: list[nodes.Fragment] = []
    if cursor.token.kind is TokenKind.STRING:
        message = cursor.advance().value
        while cursor.accept_symbol(","):
            arguments.append(cursor.fragment(",", ";", "using"))
        _check_format(message, len(arguments))
    elif not cursor.is_word("using") and not cursor.is_symbol(";"):
        condition, state = _condition(cursor)
    options: list[tuple[str, nodes.Fragment]] = []
    if cursor.accept("using"):
        options.append(_option(cursor))
        while cursor.accept_symbol(","):
            options.append(_option(cursor))
    cursor.end_statement()
    return nodes.Raise(line, level, condition, state, message, tuple(arguments), tuple(options))


def _condition(cursor: BodyCursor) -> tuple[str, bool]:
    name = cursor.variable()
    if name != "sqlstate" or cursor.token.kind is not TokenKind.STRING:
        return name, False
    code = cursor.advance().value
    if not re.fullmatch(r"[0-9A-Z]{5}", code):
        raise SqlError("42601", f"invalid SQLSTATE code at or near \"'{code}'\"")
    return code, True


def _check_format(message: str, given: int) -> None:
    wanted = message.replace("%%", "").count("%")
    if wanted > given:
        raise SqlError("42601", "too few parameters specified for RAISE")
    if wanted < given:
        raise SqlError("42601", "too many parameters specified for RAISE")


def _option(cursor: BodyCursor) -> tuple[str, nodes.Fragment]:
    name = cursor.label()
    if name not in OPTIONS:
        raise SqlError("42601", f'unrecognized RAISE statement option at or near "{name}"')
    if not cursor.accept_symbol("=") and not cursor.accept_symbol(":="):
        raise cursor.error()
    return name, cursor.fragment(",", ";")
